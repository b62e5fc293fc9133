"""Holders read from the Factbook's sentences, what counts as a change, and the chain over them."""

from __future__ import annotations

import gzip
import json

import pandas as pd
import pytest

from eval.miniature.factbook import changed_offices, holder, main, read_snapshots, swap_steps, write_inputs
from rag_core.errors import DataError, UsageError


@pytest.mark.parametrize(
    "sentence, name",
    [
        ("President Abdelaziz BOUTEFLIKA (since 28 April 1999)", "BOUTEFLIKA"),
        ("President Jose Eduardo DOS SANTOS (since 21 September 1979); Vice President X", "DOS SANTOS"),
        ("Queen ELIZABETH II (since 6 February 1952); Heir Apparent Prince CHARLES", "ELIZABETH II"),
        ("President Brig. Gen. (Ret.) Teodoro OBIANG Nguema Mbasogo (since 1979)", "OBIANG"),
        ("President Juan Evo MORALES Ayma (since 22 January 2006)", "MORALES"),
        ("S&eacute;bastien L&Eacute;CORNU (since 10 September 2025)", "LÉCORNU"),
        ("Chancellor Christian KERN (SPOe) (since 17 May 2016)", "KERN"),
        ("Chairman, Presidential Council, Fayiz al-SARAJ (since December 2015)", "SARAJ"),
        ("President (vacant)", None),
    ],
)
def test_the_holder_is_the_first_family_name(sentence, name):
    assert holder(sentence) == name


def test_another_spelling_is_no_change():
    before = {("Iran", "h"): "President RUHANI", ("France", "h"): "HOLLANDE", ("Gone", "h"): "SMITH"}
    after = {("Iran", "h"): "President ROHANI", ("France", "h"): "President MACRON", ("New", "h"): "JONES"}
    assert changed_offices(before, after) == {("France", "h"): ("HOLLANDE", "MACRON")}


def write_snapshots(path):
    rows = []
    for date, names in (("2016", ("ALPHA", "BETA")), ("2020", ("GAMMA", "BETA"))):
        for country, name in zip(("Aland", "Bland"), names):
            text = f"President Jo {name} (since 1 May {date})"
            rows.append(
                {"snapshot": date, "country": country, "chief_of_state": text, "head_of_government": None}
            )
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        stream.write("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_both_corpora_are_whole_and_questions_are_about_changes(tmp_path):
    path = write_snapshots(tmp_path / "f.jsonl.gz")
    assert write_inputs(path, tmp_path / "out", ("2016", "2020")) == 1
    (asked,) = [json.loads(line) for line in (tmp_path / "out/questions-2020.jsonl").read_text().splitlines()]
    assert asked["question"] == "Who is the chief of state of Aland?" and asked["answers"] == ["GAMMA"]
    passages = [json.loads(line) for line in (tmp_path / "out/passages-2016.jsonl").read_text().splitlines()]
    assert [p["title"] for p in passages] == ["Aland", "Bland"]
    assert passages[0]["text"] == "chief of state: President Jo ALPHA (since 1 May 2016)"
    steps = {s.name: s for s in swap_steps(tmp_path / "out", ("2016", "2020"))}
    assert "--reuse" in steps["embed_2020"].argv and "embed_2016" in steps["embed_2020"].needs
    assert {"eval_2016_asked_2016", "eval_2020_asked_2016"} <= steps.keys()


def test_what_cannot_be_is_one_error(tmp_path):
    path = write_snapshots(tmp_path / "f.jsonl.gz")
    with pytest.raises(UsageError, match="--snapshots 1999: .* has 2016, 2020"):
        main(["--input", str(path), "--output", str(tmp_path / "o"), "--snapshots", "1999", "2020"])
    with pytest.raises(UsageError, match="two different dates"):
        main(["--input", str(path), "--output", str(tmp_path / "o"), "--snapshots", "2016", "2016"])
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="file: a file, not a directory"):
        main(["--input", str(path), "--output", str(tmp_path / "file"), "--snapshots", "2016", "2020"])


@pytest.mark.parametrize(
    "line, message",
    [
        (b'{"snapshot": "2016"}\n', "line 5: not a snapshot of a country: no country"),
        (b"[1]\n", "line 5: expected a JSON object"),
        (b"{\n", "line 5: not valid JSON"),
        (b'{"snapshot": "\xff"}\n', "line 5: not UTF-8"),
        (b'{"snapshot": 5, "country": "A"}\n', "line 5: not a snapshot of a country: snapshot 5"),
        (b'{"snapshot": "5", "country": "A", "chief_of_state": "", "head_of_government": 1}\n',
         "line 5: not a snapshot of a country: head_of_government 1"),
    ],
)  # fmt: skip
def test_a_line_that_is_no_country_is_named(tmp_path, line, message):
    path = write_snapshots(tmp_path / "f.jsonl.gz")
    with gzip.open(path, "ab") as stream:
        stream.write(line)
    with pytest.raises(DataError, match=message):
        read_snapshots(path)
    (tmp_path / "cut.gz").write_bytes(path.read_bytes()[:40])
    with pytest.raises(DataError, match="cut.gz"):
        read_snapshots(tmp_path / "cut.gz")
    (tmp_path / "plain").write_bytes(gzip.decompress(path.read_bytes()).rpartition(line)[0])
    assert len(read_snapshots(tmp_path / "plain")) == 2


@pytest.mark.slow
def test_the_matching_index_names_the_holder_and_the_other_does_not(shared_data, tmp_path):
    """Frozen MiniLM over real sentences; EM of a generator is not asked."""
    source = shared_data / "leaders" / "factbook_leaders_by_snapshot.jsonl.gz"
    assert main(["--input", str(source), "--output", str(tmp_path / "out")]) == 0
    table = pd.read_parquet(tmp_path / "out" / "table.parquet")
    at_5 = table[table["k"] == 5]
    same = at_5[at_5["index"] == at_5["asked"]]
    assert (same["n"] > 200).all() and (same["ci_low"] >= 0.70).all()
    assert (at_5[at_5["index"] != at_5["asked"]]["value"] <= 0.15).all()
