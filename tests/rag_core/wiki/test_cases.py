"""Every wiki case collected from public reports of other tools' faults."""

import io
import json
import time

import pytest

from rag_core.passages import split_words
from rag_core.wiki import clean_wikitext, read_articles

MAX_SECONDS = 2.0


@pytest.fixture(scope="module")
def cases(shared_cases):
    lines = (shared_cases / "wiki.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def squeeze(text):
    return " ".join(text.split())


def keep_lists(case):
    return case.get("profile") == "keep_lists"


def test_wikitext_cases(cases):
    faults = []
    for case in cases:
        if case["kind"] not in ("wikitext", "wikitext_repeat"):
            continue
        wikitext = case.get("wikitext") or case["unit"] * case["n"] + case["suffix"]
        began = time.process_time()
        text = squeeze(clean_wikitext(wikitext, case.get("lang", "en"), keep_lists(case)))
        if time.process_time() - began > MAX_SECONDS:
            faults.append((case["id"], "too slow"))
        if "expected" in case and text != squeeze(case["expected"]):
            faults.append((case["id"], text, case["expected"]))
        faults += [
            (case["id"], text, "lacks", part) for part in case.get("must_contain", ()) if part not in text
        ]
        faults += [
            (case["id"], text, "has", part) for part in case.get("must_not_contain", ()) if part in text
        ]
    assert faults == []


def test_xml_cases(cases):
    faults = []
    for case in cases:
        if case["kind"] != "xml":
            continue
        dump = io.BytesIO(case["xml"].encode())
        if case.get("expect_error"):
            with pytest.raises(ValueError, match=r"byte \d+"):
                list(read_articles(dump))
            continue
        found = [(a.page_id, a.title, a.text) for a in read_articles(dump, keep_lists=keep_lists(case))]
        expected = [(str(p["id"]), p["title"], p["text"]) for p in case["expected_pages"]]
        if found != expected:
            faults.append((case["id"], found, expected))
    assert faults == []


def test_split_cases(cases):
    faults = []
    for case in cases:
        if case["kind"] == "split":
            passages = split_words(case["title"], case["text"], mode=case["mode"])
            lengths = [len(p.split()) for p in passages]
            if lengths != case["expected_lengths"] or not passages[-1].endswith(
                case.get("expected_last_suffix", "")
            ):
                faults.append((case["id"], lengths))
    assert faults == []
