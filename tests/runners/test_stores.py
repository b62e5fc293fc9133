"""Every job with its inputs and its output in an object store: the same rows as on disk."""

from __future__ import annotations

import pytest
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from beam_jobs.options import register_file_systems
from rag_core import files
from rag_core.run_dir import read_manifest
from tests.beam_jobs.conftest import make_tiny_encoder, write_corpus, write_questions
from tests.runners.digests import miniature
from tests.runners.stores import BUCKET, NO_ACCOUNT, amazon_storage, google_storage, upload_tree


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Corpus, questions and encoder in one directory, and the digests of all jobs over them on disk."""
    root = tmp_path_factory.mktemp("inputs")
    write_corpus(root / "tsv", files=1, rows=40)
    write_questions(root / "questions.jsonl", 8)
    make_tiny_encoder(root / "encoder")
    return root, chain(str(root), str(tmp_path_factory.mktemp("runs")), [])


def chain(inputs: str, runs: str, flags: list[str], left_out: tuple[str, ...] = ()) -> dict[str, list[str]]:
    """The jobs, from the inputs at a directory or URL to runs at another; row digests by job."""
    jobs = miniature(runs, f"{inputs}/tsv/*.tsv", f"{inputs}/questions.jsonl", f"{inputs}/encoder")
    return {job.name: job.run(f"{runs}/{job.name}", flags) for job in jobs if job.name not in left_out}


@pytest.fixture
def room(monkeypatch, tmp_path):
    """A cache of this test's own, and Beam's options as they were."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    before = FileSystems._pipeline_options
    yield
    FileSystems.set_options(before)


def use(flags: list[str]) -> None:
    FileSystems.set_options(PipelineOptions(flags))
    register_file_systems()


def test_a_name_with_pattern_letters_deletes_and_finds_itself_alone(room):
    names = [f"gs://{BUCKET}/{directory}/a" for directory in ("out*", "out[1]", "out1", "out2")]
    with google_storage():
        use(NO_ACCOUNT)
        for name in names:
            files.write_bytes(name, b"x")
        with pytest.raises(FileNotFoundError, match=f"gs://{BUCKET}/out3/a"):
            files.open_input(f"gs://{BUCKET}/out3/a").read()
        assert files.entries(f"gs://{BUCKET}/out[1]") == ["a"] and files.size(names[1]) == 1
        files.delete(names[:2])
        assert [f.url for f in files.list_tree(f"gs://{BUCKET}")] == names[2:]


@pytest.mark.slow
def test_every_job_on_google_storage(inputs, room):
    root, on_disk = inputs
    with google_storage():
        use(NO_ACCOUNT)
        upload_tree(root, f"gs://{BUCKET}")
        assert chain(f"gs://{BUCKET}", f"gs://{BUCKET}/runs", NO_ACCOUNT) == on_disk


@pytest.mark.slow
def test_every_job_on_amazon_storage(inputs, room):
    root, on_disk = inputs
    with amazon_storage() as flags:
        use(flags)
        upload_tree(root, f"s3://{BUCKET}")
        variants = ("bm25", "by_index", "by_bm25")  # of index and retrieve; on gs:// they are all done
        found = chain(f"s3://{BUCKET}", f"s3://{BUCKET}/runs", flags, left_out=variants)
        assert found == {name: rows for name, rows in on_disk.items() if name not in variants}
        # A secret that was an option is written nowhere.
        state = files.list_tree(f"s3://{BUCKET}/runs")
        text = b"".join(files.read_bytes(f.url) for f in state if f.url.endswith(".json"))
        assert b"dummy" not in text and b"***" in text
        launch = read_manifest(f"s3://{BUCKET}/runs/split")["launch"]
        assert launch["options"]["s3_secret_access_key"] == "***"
