"""Run directories: refusals, take-over, resumption, manifests."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import threading
import time

import pyarrow as pa
import pytest

from rag_core import files, owner, run_dir
from rag_core.errors import DataError, UsageError
from rag_core.parts import Part, PartLog, write_part
from rag_core.run_dir import NoManifestError, claim, finish_run, read_manifest
from rag_core.stages import iter_batches, part_urls, read_table, stage_manifest

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


PART = {
    "index": 0, "name": "part-00000.parquet", "rows": 1, "bytes": 1, "row_digest": "", "seconds": 0.1,
    "counts": {"read": 1, "written": 1, "skipped": {}, "dead_lettered": {}},
}  # fmt: skip
NO_PARTS = [
    1, None, [], {}, {"name": 3}, {"rows": "1"}, {"rows": -1}, {"rows": True}, {"bytes": 1.5},
    {"row_digest": None}, {"files": [1]}, {"files": {"a": 1}}, {"files": {"a": {}}},
    {"seconds": float("nan")}, {"seconds": "1"}, {"counts": []}, {"counts": {"read": 1}},
    {"counts": {**PART["counts"], "skipped": {"a": "b"}}},
]  # fmt: skip


@pytest.mark.parametrize("change", NO_PARTS, ids=ascii)
def test_a_manifest_or_report_of_another_shape_is_none(tmp_path, change):
    """Whatever was edited: a manifest is refused by name, a part is made again."""
    bad = {**PART, **change} if isinstance(change, dict) and change else change
    state = {"job": "split", "parts": [PART, bad], "rows": 2, "content_digest": ""}
    (tmp_path / "_manifest.json").write_text(json.dumps(state))
    with pytest.raises(NoManifestError, match=r"_manifest\.json: damaged; start its job again"):
        read_manifest(str(tmp_path))
    out = tmp_path / "run"
    expected = full_run(out)
    os.remove(out / "_manifest.json")
    url = out / "_work/report-00001.json"
    report = json.loads(url.read_text())
    url.write_text(json.dumps({**report, **change} if isinstance(change, dict) and change else change))
    worker = Numbers()
    assert full_run(out, worker)["content_digest"] == expected["content_digest"] and worker.asked == [10]


@pytest.mark.parametrize(
    "change", [{"name": "part-00000.parquet"}, {"name": "../x"}, {"index": 0}, {"index": None}]
)
def test_a_report_that_speaks_of_another_part_is_none(tmp_path, change):
    out = tmp_path / "run"
    expected = full_run(out)
    url = out / "_work/report-00001.json"
    url.write_text(json.dumps(json.loads(url.read_text()) | change))
    os.remove(out / "_manifest.json")
    worker = Numbers()
    assert full_run(out, worker)["parts"][1]["name"] == expected["parts"][1]["name"] and worker.asked == [10]


@pytest.mark.parametrize(
    "owner_found", [None, [], {}, {"token": 3}, {"token": "t", "host": "h"}, {"host": 1, "pid": "../.."}]
)
def test_an_edited_owner_is_a_damaged_run(tmp_path, owner_found):
    full_run(tmp_path / "run")
    url = str(tmp_path / "run/_run.json")
    files.write_json(url, {**files.read_json(url), "owner": owner_found})
    with pytest.raises(UsageError, match=r"_run\.json: damaged; give --overwrite"):
        start(tmp_path / "run")
    assert start(tmp_path / "run", overwrite=True).finished is None


def test_a_container_that_shares_the_hosts_name_lives_by_its_heartbeat(tmp_path):
    """Its pids are not ours: the one that is recorded may be anybody's here, or nobody's."""
    out = tmp_path / "run"
    full_run(out)
    _owner(out, pid=2**22 + 1, pid_namespace="pid:[17]", token="other")
    with pytest.raises(UsageError, match="in use by process"):
        start(out)
    _owner(out, pid=2**22 + 1, pid_namespace=owner.new_owner()["pid_namespace"], token="other")
    assert start(out).finished is not None


def test_a_heartbeat_that_fails_once_goes_on(tmp_path, monkeypatch):
    """Whatever a store says once; only another owner ends it."""
    run = start(tmp_path / "run")
    faults = [OSError(5, "once"), UsageError("gs://x: cannot be used"), DataError("damaged")]
    beaten = []
    monkeypatch.setattr(run_dir, "HEARTBEAT_SECONDS", 0.001)

    def beat(self):
        beaten.append(1)
        if faults:
            raise faults.pop()
        if len(beaten) > 5:
            raise run_dir.TakenOverError("gone")

    monkeypatch.setattr(run_dir.RunDir, "heartbeat", beat)
    run._beat()
    assert len(beaten) == 6


def test_a_damaged_state_is_not_another_owner(tmp_path):
    run = start(tmp_path / "run")
    (tmp_path / "run/_run.json").write_text("{")
    with pytest.raises(DataError, match=r"_run\.json: damaged while the job ran"):
        run_dir.check_owner(run.output, run.run)


def test_what_a_kill_left_half_written_goes_with_the_next_start(tmp_path):
    out = tmp_path / "run"
    start(out)
    run = start(out)
    left = ("_attempt-0123-_run.json", "_run.json._attempt-clock-01", "_work/_attempt-45-part-00000.parquet")
    for name in left:
        files.write_bytes(str(out / name), b"half")
    (out / "_attempts.txt").write_text("the user's own")
    start(out)
    assert not any((out / name).exists() for name in left) and (out / "_attempts.txt").exists()
    assert run.output == str(out)


def test_seconds_do_not_follow_a_clock_that_jumps(tmp_path, monkeypatch):
    run = start(tmp_path / "run")
    now = run.run["started"]
    clock = iter(range(10**6))
    monkeypatch.setattr(run_dir.time, "time", lambda: now - 86_400 * next(clock))
    report = write_part(run.output, Part(0, {"start": 0}), Numbers(), run.fingerprint)
    manifest = finish_run(run.output, run.run, [report], 1, {})
    assert 0 <= report["seconds"] < 60 and manifest["seconds"] == 0


def test_the_claim_is_held_by_one_although_its_file_is_removed(tmp_path):
    """A waits for B's file, B removes it: A must not hold what nobody else can see."""
    path = tmp_path / "_claim"
    entered, leave = threading.Event(), threading.Event()

    def second():
        with owner.claim_lock(str(tmp_path)):
            entered.set()
            leave.wait(10)

    with open(path, "a+b") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.05)  # it waits for the lock
        os.remove(path)
    assert entered.wait(10)
    with open(path, "a+b") as third, pytest.raises(BlockingIOError):
        fcntl.flock(third, fcntl.LOCK_EX | fcntl.LOCK_NB)
    leave.set()
    thread.join()
    assert not path.exists()


@pytest.mark.parametrize("edit", ["drop", "double", "rows", "digest", "swap"])
def test_a_manifest_whose_parts_do_not_add_up_is_damaged(tmp_path, edit):
    out = tmp_path / "run"
    manifest = full_run(out)
    parts = manifest["parts"]
    changes = {
        "drop": {"parts": parts[:-1]},
        "double": {"parts": [*parts, parts[0]]},
        "rows": {"rows": 10**15},
        "digest": {"parts": [{**parts[0], "row_digest": "0"}, *parts[1:]]},
        "swap": {"parts": [parts[1], parts[0], parts[2]]},
    }
    files.write_json(str(out / "_manifest.json"), {**manifest, **changes[edit]})
    with pytest.raises(NoManifestError, match=r"_manifest\.json: damaged; start its job again"):
        read_manifest(str(out))
    worker = Numbers()
    assert full_run(out, worker)["content_digest"] == manifest["content_digest"] and worker.asked == []


@pytest.mark.parametrize(
    "job, change",
    [
        ("embed", {"encoder": None}), ("embed", {"encoder": 3}), ("embed", {"encoder": {"dim": 2}}),
        ("embed", {"encoder": {"fingerprint": "f", "dim": "2"}}), ("embed", {"inputs": []}),
        ("embed", {"encoder": {"fingerprint": "f", "dim": 10**9}}), ("index", {"kind": ["flat"]}),
    ],
)  # fmt: skip
def test_a_manifest_without_what_readers_need_is_damaged(tmp_path, job, change):
    state = {
        "job": job,
        "parts": [],
        "rows": 0,
        "content_digest": "",
        "inputs": {},
        "options": {},
        "kind": "flat",
    }
    state["encoder"] = {"fingerprint": "f", "dim": 2}
    files.write_json(str(tmp_path / "_manifest.json"), state)
    assert stage_manifest(str(tmp_path), job) == state
    files.write_json(str(tmp_path / "_manifest.json"), {**state, **change})
    with pytest.raises(NoManifestError, match=f"_manifest.json: damaged: no sound '{next(iter(change))}'"):
        stage_manifest(str(tmp_path), job)
