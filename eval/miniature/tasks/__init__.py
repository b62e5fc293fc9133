"""The test sets of the paper's tasks, from a world: questions, sentences, clues, claims."""

from eval.miniature.tasks.build import with_tasks

__all__ = ["with_tasks"]
