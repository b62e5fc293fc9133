"""A generated dump and questions about it: as many passages as wanted, the same for a seed on any machine."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from tests.beam_jobs.conftest import WORDS

WORDS_PER_PASSAGE = 48
PASSAGES_PER_PAGE = 5
PAGES_PER_FILE = 2_000
VOCABULARY = np.array([*WORDS, *map(str, range(200))])

_HEAD = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">\n'
    "<siteinfo><sitename>Scale</sitename><dbname>scale</dbname></siteinfo>\n"
)
_PAGE = (
    "<page><title>Title {id}</title><ns>0</ns><id>{id}</id><revision><id>{id}</id><model>wikitext</model>"
    '<format>text/x-wiki</format><text xml:space="preserve">{text}</text></revision></page>\n'
)


def write_dump(directory: Path, passages: int, seed: int = 0) -> None:
    """MediaWiki XML files under `directory` whose articles are cut into exactly `passages` passages."""
    directory.mkdir(parents=True)
    pages, rest = divmod(passages, PASSAGES_PER_PAGE)
    if rest:
        raise ValueError(f"{passages} passages: not a multiple of {PASSAGES_PER_PAGE}")
    rng = np.random.default_rng(seed)
    for number, first in enumerate(range(0, pages, PAGES_PER_FILE)):
        with open(directory / f"dump-{number:04d}.xml", "w") as stream:
            stream.write(_HEAD)
            for page in range(first, min(first + PAGES_PER_FILE, pages)):
                words = VOCABULARY[rng.integers(0, len(VOCABULARY), WORDS_PER_PASSAGE * PASSAGES_PER_PAGE)]
                words[0] = f"'''word{page}'''"  # a markup and an answer that one passage alone has
                stream.write(_PAGE.format(id=page + 1, text=" ".join(words)))
            stream.write("</mediawiki>\n")


def write_asked(path: Path, questions: int, pages: int, seed: int = 1) -> None:
    """`questions` questions of the task `custom`, answers spread over the pages."""
    rng = np.random.default_rng(seed)
    with open(path, "w") as stream:
        for n in range(questions):
            words = VOCABULARY[rng.integers(0, len(VOCABULARY), 6)]
            asked = {
                "question_id": f"q{n}",
                "question": " ".join(words) + "?",
                "answers": [f"word{n * 7919 % pages}"],
            }
            stream.write(json.dumps(asked) + "\n")
