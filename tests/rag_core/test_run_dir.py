"""Run directories: refusals, take-over, resumption, manifests."""

from __future__ import annotations

import json
import os
import socket

import pyarrow as pa
import pytest

from rag_core import files, owner
from rag_core.errors import DataError, UsageError
from rag_core.parts import Part, PartLog, write_part
from rag_core.run_dir import NoManifestError, claim, finish_run, read_manifest
from rag_core.stages import iter_batches, part_urls, read_table

SCHEMA = pa.schema([pa.field("n", pa.int64())])


class Numbers:
    """A stage that writes `start .. start+5` and remembers which parts it was asked for."""

    schema = SCHEMA

    def __init__(self):
        self.asked = []

    def setup(self):
        pass

    def rows(self, source, log: PartLog):
        self.asked.append(source["start"])
        log.read += 5
        log.written += 4
        log.reject(f"n{source['start']}", "unlucky")
        yield pa.RecordBatch.from_pylist([{"n": source["start"] + i} for i in range(4)], SCHEMA)


def start(output, **changes):
    arguments = {"logic_version": 1, "inputs": {"f": 1}, "models": {}, "options": {"o": 1}, **changes}
    return claim(str(output), "numbers", **arguments)


def full_run(output, worker=None):
    worker = worker or Numbers()
    run = start(output)
    with run.alive():
        reports = [
            write_part(run.output, Part(i, {"start": 10 * i}), worker, run.fingerprint) for i in range(3)
        ]
        return finish_run(run.output, run.run, reports, 3, {"kind": "test"})


def test_a_run_from_claim_to_reader(tmp_path):
    out = str(tmp_path / "run")
    manifest = full_run(out)
    assert manifest["rows"] == 12 and manifest["kind"] == "test"
    assert manifest["counts"] == {"read": 15, "written": 12, "skipped": {}, "dead_lettered": {"unlucky": 3}}
    assert read_table(out)["n"].to_pylist() == [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]
    letters = files.read_bytes(files.join(out, "_dead_letter", "part-00001.jsonl"))
    assert json.loads(letters) == {"record": "n10", "reason": "unlucky", "detail": ""}
    rows = [n for n in os.listdir(out) if not n.startswith("_")]
    assert sorted(rows) == ["part-00000.parquet", "part-00001.parquet", "part-00002.parquet"]


def test_the_same_run_again_is_finished_at_once(tmp_path):
    manifest = full_run(tmp_path / "run")
    again = start(tmp_path / "run")
    assert again.finished == manifest


def test_unfinished_parts_are_kept_when_their_digests_stand(tmp_path):
    out = tmp_path / "run"
    expected = full_run(out)
    os.remove(out / "_manifest.json")
    os.remove(out / "part-00001.parquet")
    with open(out / "part-00002.parquet", "r+b") as stream:  # same size, other bytes
        stream.seek(8)
        stream.write(b"\xff\xff")
    worker = Numbers()
    manifest = full_run(out, worker)
    assert worker.asked == [10, 20]
    assert [p["row_digest"] for p in manifest["parts"]] == [p["row_digest"] for p in expected["parts"]]
    assert manifest["content_digest"] == expected["content_digest"]


def test_other_options_are_refused_unless_overwritten(tmp_path):
    out = tmp_path / "run"
    full_run(out)
    (out / "notes.txt").write_text("the user's own")
    with pytest.raises(UsageError, match="other inputs, models or options.*--overwrite"):
        start(out, options={"o": 2})
    assert read_manifest(str(out))["rows"] == 12
    run = start(out, options={"o": 2}, overwrite=True)
    assert run.finished is None
    assert sorted(os.listdir(out)) == ["_dead_letter", "_run.json", "_work", "notes.txt"]
    with pytest.raises(NoManifestError, match="an unfinished run"):
        read_manifest(str(out))


def test_a_directory_of_somebody_else_is_refused_even_with_overwrite(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    for overwrite in (False, True):
        with pytest.raises(UsageError, match="nothing was deleted"):
            start(tmp_path, overwrite=overwrite)
    assert os.listdir(tmp_path) == ["thesis.tex"]


def _owner(out, **changes):
    url = str(out / "_run.json")
    run = files.read_json(url)
    run["owner"] |= {"released": False, **changes}
    files.write_json(url, run)


def test_a_live_owner_on_this_host_is_refused(tmp_path):
    out = tmp_path / "run"
    full_run(out)
    parent = os.getppid()
    _owner(out, pid=parent, pid_start=owner.process_start(parent), token="other")
    with pytest.raises(UsageError, match=f"in use by process {parent}"):
        start(out, overwrite=True)


def test_a_recycled_pid_is_not_the_owner(tmp_path):
    out = tmp_path / "run"
    full_run(out)
    _owner(out, pid=os.getppid(), pid_start="another boot:17", token="other")
    assert start(out).finished is not None


def test_another_host_lives_by_its_heartbeat_in_the_stores_time(tmp_path):
    out = tmp_path / "run"
    full_run(out)
    _owner(out, host="elsewhere." + socket.gethostname(), token="other")
    run = files.read_json(str(out / "_run.json"))
    beat = files.info(str(out / "_run.json")).modified
    url, name = str(out / "_run.json"), run["owner"]
    assert owner.is_live(url, name, now=lambda _: beat + 119)
    assert not owner.is_live(url, name, now=lambda _: beat + 121)
    with pytest.raises(UsageError, match="in use by"):
        start(out)


def test_a_run_that_was_taken_over_cannot_finish(tmp_path):
    run = start(tmp_path / "run")
    _owner(tmp_path / "run", token="other")
    with pytest.raises(UsageError, match="taken over"):
        finish_run(run.output, run.run, [], 0, {})
    assert not files.exists(str(tmp_path / "run" / "_manifest.json"))


def test_missing_and_doubled_parts_stop_the_manifest(tmp_path):
    run = start(tmp_path / "run")
    report = write_part(run.output, Part(0, {"start": 0}), Numbers(), run.fingerprint)
    for reports in ([report], [report, report]):
        with pytest.raises(RuntimeError, match="expected 0 to 1"):
            finish_run(run.output, run.run, reports, 2, {})


def test_readers_refuse_what_is_not_finished(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_manifest(str(tmp_path / "nothing"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(NoManifestError, match="empty directory"):
        read_manifest(str(tmp_path / "empty"))
    full_run(tmp_path / "run")
    os.remove(tmp_path / "run" / "part-00001.parquet")
    with pytest.raises(DataError, match=r"part-00001\.parquet: missing"):
        part_urls(str(tmp_path / "run"))
    with pytest.raises(DataError, match=r"part-00001\.parquet: missing"):
        list(iter_batches(str(tmp_path / "run")))


def test_counts_that_do_not_add_up_are_an_internal_error():
    with pytest.raises(RuntimeError, match="read 2, written 1"):
        PartLog(read=2, written=1).counts()


@pytest.mark.parametrize("name", ["../a/part-00000.parquet", "/etc/passwd", "a/../../b", "..", "", "a\\b"])
def test_a_manifest_that_names_files_elsewhere_is_refused(tmp_path, name):
    part = {"name": name, "rows": 1, "bytes": 1, "row_digest": ""}
    for parts in ([part], [{**part, "name": "index", "files": {name: {"bytes": 1}}}]):
        state = {"job": "split", "parts": parts, "rows": 1, "content_digest": ""}
        (tmp_path / "_manifest.json").write_text(json.dumps(state))
        with pytest.raises(DataError, match="is not the name of a file below this directory"):
            read_manifest(str(tmp_path))
