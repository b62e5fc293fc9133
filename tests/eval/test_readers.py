"""A results table in the readers its users have: the snippets of docs/evaluation.md, run as they stand."""

import json
import re
from pathlib import Path

import pytest

from eval import run as eval_run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "evaluation.md"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    root = tmp_path_factory.mktemp("results")
    words = ("who", "when", "where")
    rows = [
        {"question_id": f"q{i}", "question": f"{words[i % 3]} {i}?", "answers": [f"a {i}"]} for i in range(60)
    ]
    (root / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, share in (("closed_book", 5), ("rag", 2)):
        given = {f"q{i}": f"a {i}" if i % share == 0 else "another" for i in range(60) if i != 7}
        (root / f"{name}.json").write_text(json.dumps(given))
    argv = ["--questions", root / "q.jsonl", "--task", "custom", "--output", root / "results"]
    argv += ["--predictions", root / "closed_book.json", root / "rag.json"]
    assert eval_run.run(list(map(str, argv))) == 0
    return root / "results"


def snippet(language: str, word: str, page: Path = PAGE) -> str:
    blocks = re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
    (found,) = [block for block in blocks if word in block]
    return found


@pytest.mark.parametrize("package", ("pandas", "duckdb", "polars"))
def test_the_page_s_snippets_run(package, results, monkeypatch, capsys):
    monkeypatch.chdir(results.parent)
    names: dict = {}
    exec(snippet("python", f"import {package}"), names)
    shown = capsys.readouterr().out
    assert "exact_match" in shown and "0.2" in shown and "0.5" in shown
    assert "another" in shown, "the worst examples are shown"


def test_the_readme_s_snippets_run(results, monkeypatch, capsys):
    readme = PAGE.parents[1] / "README.md"
    monkeypatch.chdir(results.parent)
    exec(snippet("python", "import pandas", readme), {})
    shown = capsys.readouterr().out
    assert "exact_match" in shown and "another" in shown
    assert re.search(r"^who +0\.3", shown, re.M), "grouped by the question's first word"
    names: dict = {}
    exec(snippet("python", "clean_wikitext", readme), names)
    assert names["split_words"]("Canal", names["text"], words=4) == ["The canal is 12", "kilometres long."]
