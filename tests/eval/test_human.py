"""Pairwise human judgement: sheets that tell nothing, and Table 4 from what comes back."""

import csv
import gzip
import io
import json
from collections import Counter

import pandas as pd
import pytest

from eval import human
from eval import run as eval_run
from eval._human_judgements import read_judgements
from eval._human_sheets import Pair, make_items, safe_cell, sample
from eval._human_table import krippendorff_alpha, majority
from rag_core.errors import DataError, UsageError
from tests.reference.agreement import majority_of, nominal_alpha

N = 40


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    rows = [{"question_id": f"q{i}", "question": f"about {i}", "answers": ["x"]} for i in range(N)]
    (root / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name in ("SecretBart", "SecretRag"):
        given = {f"q{i}": f"text {name[6:].lower()[::-1]} {i}" for i in range(N)}
        given["q0"] = "=cmd|'/C calc'!A0"
        if name == "SecretBart":
            del given["q1"]
        (root / f"{name}.json").write_text(json.dumps(given))
        argv = ["--questions", root / "q.jsonl", "--task", "custom", "--predictions", root / f"{name}.json"]
        assert eval_run.run(list(map(str, [*argv, "--output", root / name]))) == 0
    return root


@pytest.fixture
def sheets(runs, tmp_path):
    gold = {"question": "gold?", "a": "right text", "b": "wrong text", "factuality": "a"}
    (tmp_path / "gold.jsonl").write_text(json.dumps({"id": "g", **gold}) + "\n")
    out = tmp_path / "judging"
    argv = ["sheet", "--a", runs / "SecretBart", "--b", runs / "SecretRag", "--output", out, "--n", "30"]
    argv = list(map(str, [*argv, "--gold", tmp_path / "gold.jsonl"]))
    assert human.main(argv) == 0
    assert human.main(argv) == 0, "the same again writes the same"
    with pytest.raises(UsageError, match="sheets of another draw"):
        human.main([*argv, "--seed", "1"])
    return out


def rows_of(sheet):
    return list(csv.DictReader(io.StringIO(sheet.read_text("utf-8-sig"), newline="")))


def test_sheets_are_blind_and_balanced(sheets):
    key = json.loads((sheets / "key.json").read_text())
    assert key["names"] == {"a": "SecretBart", "b": "SecretRag"} and len(key["items"]) == 3 * 31
    orders = []
    for number in (1, 2, 3):
        page = (sheets / f"sheet-{number}.html").read_text()
        table = (sheets / f"sheet-{number}.csv").read_text("utf-8-sig")
        data = json.loads(page.split('id="data">')[1].split("</script>")[0])
        assert data.keys() == {"sheet", "annotator", "criteria", "items"}
        assert all(item.keys() == {"id", "question", "left", "right"} for item in data["items"])
        assert {item["id"] for item in data["items"]} <= key["items"].keys()
        assert "Secret" not in table + page and "gold:" not in table + page
        rows = rows_of(sheets / f"sheet-{number}.csv")
        items = [key["items"][row["item"]] for row in rows]
        assert Counter(i["left"] for i in items)["a"] in (15, 16)
        orders.append([i["pair"] for i in items])
        for row, item in zip(rows, items):
            if item["pair"] not in ("q0", "gold:g"):
                assert ("trab" in row["text_1_left"]) == (item["left"] == "a")
    assert len(set(map(tuple, orders))) == 3 and len(set(map(frozenset, orders))) == 1
    assert "q1" not in orders[0], "without an answer there is nothing to judge"
    sides = {}
    for item in key["items"].values():
        sides.setdefault(item["pair"], []).append(item["left"])
    assert all(len(set(of_pair)) == 2 for of_pair in sides.values()), "sides alternate between annotators"


def test_the_draw_is_by_hash():
    pairs = [Pair(f"q{i}", "", "", "") for i in range(100)]
    drawn = {p.pair_id for p in sample(pairs, 20, 0)}
    assert (
        drawn == {p.pair_id for p in sample(pairs[::-1], 20, 0)} != {p.pair_id for p in sample(pairs, 20, 1)}
    )
    assert [i.item_id for i in make_items(pairs, 0, 0)] == [i.item_id for i in make_items(pairs[::-1], 0, 0)]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", " =1", "\n@SUM(A1)", "＝1"])
def test_no_cell_starts_a_formula(text):
    assert safe_cell(text) == "'" + text
    assert safe_cell("a" + text) == "a" + text


def test_hostile_answers_are_text_in_the_csv(runs, tmp_path):
    out = str(tmp_path / "j")
    argv = ["sheet", "--a", str(runs / "SecretBart"), "--b", str(runs / "SecretRag"), "--output", out]
    assert human.main([*argv, "--annotators", "1"]) == 0
    cells = [cell for row in rows_of(tmp_path / "j" / "sheet-1.csv") for cell in row.values()]
    assert "'=cmd|'/C calc'!A0" in cells and not any(c[:1] in tuple("=+-@\t\r") for c in cells if c)


def test_from_sheet_to_table(sheets, tmp_path, capsys):
    """Annotators 1 and 2 prefer the second system always, 3 the first text and fails the gold question."""
    key = json.loads((sheets / "key.json").read_text())
    paths = []
    for number in (1, 2, 3):
        rows = rows_of(sheets / f"sheet-{number}.csv")
        for row in rows:
            item = key["items"][row["item"]]
            better = "a" if item["gold"] else "b"
            side = "left" if (better == item["left"]) != (number == 3 and bool(item["gold"])) else "right"
            row["factuality"] = "Left" if number == 3 and not item["gold"] else side
            row["specificity"] = "both good"
        path = tmp_path / f"back-{number}"
        if number == 1:
            keep = ("sheet", "item", "annotator", "factuality", "specificity")
            path.write_text("".join(json.dumps({k: row[k] for k in keep}) + "\n" for row in rows))
        else:  # as a spreadsheet of another country writes it
            with open(path, "w", newline="", encoding="utf-8-sig") as stream:
                writer = csv.DictWriter(stream, rows[0].keys(), delimiter=";")
                writer.writeheader()
                writer.writerows(rows)
        paths.append(str(path))
    argv = ["aggregate", *paths, "--key", str(sheets / "key.json")]
    assert (
        human.main([*argv, "--json", str(tmp_path / "t.json"), "--parquet", str(tmp_path / "v.parquet")]) == 0
    )
    table = json.loads((tmp_path / "t.json").read_text())
    facts = table["criteria"]["factuality"]["rows"]
    assert {o: r["count"] for o, r in facts.items()} == {
        "a": 0, "b": 30, "both_good": 0, "both_poor": 0, "no_majority": 0}  # fmt: skip
    assert table["criteria"]["specificity"]["rows"]["both_good"]["share"] == 1.0
    assert table["criteria"]["specificity"]["alpha"] is None, "one label only: undefined"
    people = {p["annotator"]: p for p in table["annotators"]}
    assert [people[f"annotator-{i}"]["gold"]["count"] for i in (1, 2, 3)] == [1, 1, 0]
    assert people["annotator-3"]["first_preferred"]["share"] >= 30 / 31
    votes = pd.read_parquet(tmp_path / "v.parquet")
    assert len(votes) == 60 and set(votes[votes.criterion == "factuality"].majority) == {"b"}
    assert "SecretRag better" in capsys.readouterr().out
    strict = [
        *argv,
        "--min-gold",
        "0.5",
        "--json",
        str(tmp_path / "s.json"),
        "--markdown",
        str(tmp_path / "t.md"),
    ]
    assert human.main(strict) == 0
    table = json.loads((tmp_path / "s.json").read_text())
    assert table["counts"]["removed"] == 30 and table["criteria"]["factuality"]["alpha"] is None
    assert "| SecretRag better | 100.0 [88.6, 100.0] (30) |" in (tmp_path / "t.md").read_text()
    rows = [json.loads(line) for line in open(paths[0]).read().splitlines()]
    rows = [row for row in rows if not key["items"][row["item"]]["gold"]][1:]
    (tmp_path / "short").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert (
        human.main(["aggregate", str(tmp_path / "short"), paths[1], "--key", str(sheets / "key.json")]) == 0
    )
    assert "factuality: pairs by number of judgements: 1: 1, 2: 29" in capsys.readouterr().out
    again = ["aggregate", paths[0], *argv[1:], "--json", str(tmp_path / "again.json")]
    assert human.main(again) == 0
    assert json.loads((tmp_path / "again.json").read_text())["counts"]["read again"] == 31


def test_three_judgements_of_999_pairs(shared_data, tmp_path):
    path = shared_data / "human" / "pandalm_pairwise.json.gz"
    assert human.main(["aggregate", str(path), "--json", str(tmp_path / "t.json")]) == 0
    found = json.loads((tmp_path / "t.json").read_text())["criteria"]["preference"]
    records = json.loads(gzip.open(path).read())
    units = [[r["annotator1"], r["annotator2"], r["annotator3"]] for r in records]
    counts = Counter(map(majority_of, units))
    assert {o: r["count"] for o, r in found["rows"].items()} == {
        "a": counts[1], "b": counts[2], "tie": counts[0], "no_majority": counts[None]}  # fmt: skip
    assert found["n"] == 999 and found["judgements"] == 2997
    assert found["alpha"] == pytest.approx(float(nominal_alpha(units)), abs=1e-12)
    assert found["alpha_ci_low"] < found["alpha"] < found["alpha_ci_high"]


def test_alpha_of_published_data_and_of_random_units():
    """Krippendorff's own example (Computing Krippendorff's Alpha-Reliability, 2011, C): 0.743 nominal."""
    rows = [
        "1 2 3 3 2 1 4 1 2 . . .", "1 2 3 3 2 2 4 1 2 5 . 3",
        ". 3 3 3 2 3 4 2 2 5 1 .", "1 2 3 3 2 4 4 1 2 5 1 .",
    ]  # fmt: skip
    units = [[v for v in unit if v != "."] for unit in zip(*(row.split() for row in rows))]
    value, (low, high) = krippendorff_alpha(units)
    assert round(value, 3) == 0.743 and low < value < high
    assert krippendorff_alpha([["a"], []]) == (None, None) == krippendorff_alpha([["a", "a"]])
    import random

    draw = random.Random(0)
    for _ in range(50):
        units = [draw.choices("abc", k=draw.randint(0, 5)) for _ in range(12)]
        assert krippendorff_alpha(units)[0] == pytest.approx(float(nominal_alpha(units)), abs=1e-12)
        assert [majority(u) for u in units] == [majority_of(u) for u in units]


def test_a_majority_is_more_than_half():
    assert majority(["a", "a", "b"]) == "a" and majority(["a", "b", "both_good"]) is None
    assert majority(["a", "a", "b", "b"]) is None and majority(["a", "a", "b", "both_poor"]) is None


def test_bad_judgements_name_file_record_and_reason(sheets, tmp_path):
    key = json.loads((sheets / "key.json").read_text())
    item = next(iter(key["items"]))
    good = {"item": item, "annotator": "x", "factuality": "left", "specificity": None}
    path = tmp_path / "back.jsonl"

    def read(*records, with_key=True):
        path.write_text("".join(r if isinstance(r, str) else json.dumps(r) + "\n" for r in records))
        return read_judgements([str(path)], key if with_key else None)

    assert len(read(good, {**good, "annotator": "y"}, {"item": item, "annotator": "z"}).rows) == 2
    for records, message in (
        ([good, {**good, "factuality": "right"}], "record 2: 'x' judged pair .* otherwise in .*record 1"),
        ([{**good, "item": "i0"}], "item 'i0' is not in the key"),
        ([{**good, "factuality": "a"}], "factuality is 'a': expected left, right, both_good, both_poor"),
        ([{**good, "annotator": " "}], "no annotator"),
        ([good, "{"], "record 2: not valid JSON"),
        (["[1]"], "record 1: expected an object"),
        ([{"question": 1}], "neither 'item', nor 'pair', nor 'annotator1'"),
        ([{"idx": 1, "annotator1": 7}], "annotator1 is 7: expected 1, 2, 0, a, b, tie"),
    ):
        with pytest.raises(DataError, match=message):
            read(*records)
    with pytest.raises(DataError, match="give --key"):
        read(good, with_key=False)
    assert read({"pair": "p", "annotator": "x", "factuality": "a"}, with_key=False).rows[0].choices == {
        "factuality": "a"
    }


def test_gold_and_options_are_checked(runs, tmp_path):
    gold = tmp_path / "gold.jsonl"
    argv = [
        "sheet",
        "--a",
        str(runs / "SecretBart"),
        "--b",
        str(runs / "SecretRag"),
        "--output",
        str(tmp_path / "o"),
    ]
    for text, message in (
        ('{"question": "q", "a": "x"}', "line 1: expected texts question, a, b"),
        (
            '{"question": "q", "a": "x", "b": "y"}',
            "expected factuality or specificity with .*, found nothing",
        ),
        ('{"question": "q", "a": "x", "b": "y", "factuality": "left"}', "found 'left'"),
        ("{", "line 1: not valid JSON"),
    ):
        gold.write_text(text)
        with pytest.raises(DataError, match=message):
            human.main([*argv, "--gold", str(gold)])
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "mine.txt").write_text("")
    with pytest.raises(UsageError, match="not empty"):
        human.main(argv)
    with pytest.raises(UsageError, match="at least 1"):
        human.main([*argv, "--n", "0"])
    with pytest.raises(UsageError, match="both systems are called 'SecretBart'"):
        human.main([*argv[:3], "--b", argv[2], *argv[5:]])
