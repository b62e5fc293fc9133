"""Results of two runs over the same questions, with posteriors, passages and hostile texts."""

from __future__ import annotations

import json
from pathlib import Path

from eval import run as eval_run
from rag_core.schemas import PASSAGES, PREDICTIONS, content_hash
from tests.eval.conftest import write_stage

HOSTILE = (
    "<script>window.ran = 1</script></script><img src=x onerror='window.ran = 2'>"
    "\u202etfel ot thgir\u2028\u2029<!--\x00"
)
LONG = HOSTILE + "x" * (1 << 20)
N = 60


def prediction(i: int, run: str) -> str:
    """Run a is right on all but q5; run b not on q7 and q11, and words differ on q20 to q29."""
    if i in {"a": (5,), "b": (7, 11)}[run]:
        return f"wrong in {run}"
    return f"the Answer {i}!" if run == "b" and 20 <= i < 30 else f"answer {i}"


def write_world(root: Path) -> dict[str, str]:
    """Directories by name: a and b (results), predictions_a and predictions_b, passages."""
    questions = [
        {"question_id": f"q{i}", "question": f"who is number {i}?", "answers": [f"answer {i}"]}
        for i in range(N)
    ]
    questions[3] = {"question_id": "q3", "question": HOSTILE, "answers": [HOSTILE, "answer 3"]}
    (root / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions))
    paths = {"passages": _passages(root / "passages")}
    for run in ("a", "b"):
        rows = [_prediction_row(i, run) for i in range(N)]
        made = write_stage(root / f"predictions_{run}", "generate", PREDICTIONS, rows)
        argv = [
            "--questions",
            root / "q.jsonl",
            "--task",
            "custom",
            "--predictions",
            made,
            "--run",
            f"run <{run}>",
        ]
        assert eval_run.run(list(map(str, [*argv, "--output", root / run]))) == 0
        paths |= {run: str(root / run), f"predictions_{run}": made}
    return paths


def _prediction_row(i: int, run: str) -> dict:
    failed = run == "b" and i == 9
    return {
        "question_id": f"q{i}",
        "status": "failed" if failed else "ok",
        "prediction": None if failed else (LONG if i == 3 and run == "b" else prediction(i, run)),
        "log_prob": -1.0,
        "candidates": [],
        "passage_ids": [f"p{(i + k) % 20}" for k in range(12)],
        "doc_prior": [0.5, 0.25, *([0.025] * 10)],
        "doc_posterior": [0.125, 0.75, *([0.0125] * 10)],
        "tokens": ["<script>", " two"],
        "token_posterior": [[0.25, 0.75, *([0.0] * 10)], [0.0, 0.75, *([0.025] * 10)]]
        if run == "b"
        else None,
        "error": "too long" if failed else None,
    }


def _passages(directory: Path) -> str:
    texts = [(f"p{i}", f"Title {i}", f"Here ANSWER {i} is told. " + "word " * 200) for i in range(19)]
    texts[4] = ("p4", HOSTILE, HOSTILE)
    rows = [
        {"passage_id": i, "page_id": i, "title": title, "text": text, "n_words": 1}
        | {"content_hash": content_hash(title, text)}
        for i, title, text in texts
    ]
    return write_stage(directory, "split", PASSAGES, rows)
