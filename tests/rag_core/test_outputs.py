"""Where a run may be written: places that are none, places inside a run, places that are an input."""

from __future__ import annotations

import os

import pytest

from rag_core import files
from rag_core.errors import UsageError, run_command
from rag_core.outputs import check_output, refuse_overlap


@pytest.mark.parametrize("output", ["", " ", "\n"])
def test_no_name_is_no_directory(output):
    with pytest.raises(UsageError, match="not a directory name"):
        check_output(output)


@pytest.mark.parametrize(
    "output", ["s3:/bucket/x", "gs:bucket", "GS:/b/x", "s3:", "s3://", "gs:///x", "https:/x"]
)
def test_a_mistyped_url_is_no_directory_on_this_disk(output):
    with pytest.raises(UsageError, match="not a URL"):
        check_output(output)


def test_what_is_not_a_directory(tmp_path):
    (tmp_path / "f").write_text("x")
    os.symlink(tmp_path / "nowhere", tmp_path / "link")
    with pytest.raises(UsageError, match="a file of this name exists"):
        check_output(str(tmp_path / "f"))
    with pytest.raises(UsageError, match="a link that leads nowhere"):
        check_output(str(tmp_path / "link"))


ODD = (
    "a b",
    "é\u202e",
    "a%s",
    "a*",
    "[a]",
    "a?",
    "line\nbreak",
    "\x1b[31m",
    "-rf",
    "$(touch evil)",
    "..a",
    "a\udcff",
)


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_odd_names_are_names(tmp_path, name):
    output = str(tmp_path / name)
    check_output(output)
    files.write_json(files.join(output, "_run.json"), {"name": name})
    check_output(output)
    assert files.entries(output) == ["_run.json"] and files.read_json(f"{output}/_run.json") == {"name": name}
    assert [f.url for f in files.list_files(output)] == [f"{output}/_run.json"]


@pytest.mark.parametrize("below", ["embeddings", "a/b", "_work/x", "../run/x"])
def test_a_run_inside_a_run_is_refused(tmp_path, below):
    files.write_json(str(tmp_path / "run/_run.json"), {})
    (tmp_path / "other").symlink_to(tmp_path / "run")
    for run in ("run", "other"):
        with pytest.raises(UsageError, match="inside the run .*/run, whose readers would find two"):
            check_output(str(tmp_path / run / below))
    check_output(str(tmp_path / "run"))
    check_output(str(tmp_path / "runs"))


def test_a_run_inside_a_stored_run_is_refused(memory_store):
    files.write_json("mem://b/run/_run.json", {})
    with pytest.raises(UsageError, match="inside the run mem://b/run"):
        check_output("mem://b/run/a/b")
    check_output("mem://b/run")
    check_output("mem://b/runs")


@pytest.mark.parametrize("name", ["out*", "out[1]", "out?"])
def test_a_stored_directory_with_pattern_letters_is_itself_alone(memory_store, name):
    files.write_json("mem://b/out1/_run.json", {})
    assert files.entries(f"mem://b/{name}") == [] == files.list_files(f"mem://b/{name}/")
    files.write_bytes(f"mem://b/{name}/thesis.tex", b"years of work")
    assert files.entries(f"mem://b/{name}") == ["thesis.tex"]
    with pytest.raises(UsageError, match="nothing was deleted"):
        check_output(f"mem://b/{name}")


def test_what_a_run_reads_is_not_where_it_is_written(tmp_path):
    run = tmp_path / "run"
    files.write_bytes(str(run / "part-00000.parquet"), b"rows")
    (tmp_path / "link").symlink_to(run)
    out = str(run)
    for place in (
        out,
        f"{out}/",
        f"{out}/part-00000.parquet",
        f"{out}/*.parquet",
        f"{tmp_path}/link",
        f"{tmp_path}/x/../run",
    ):
        with pytest.raises(UsageError, match=r"--output .*/run: also --input; name a new directory"):
            refuse_overlap(out, {"--input": [place]})
    by_pattern = {"--input": [str(tmp_path / "*/part-*.parquet")]}
    refuse_overlap(out, by_pattern)  # a new directory, or one that is refused later: nothing to lose
    with pytest.raises(UsageError, match="also --input"):
        refuse_overlap(out, by_pattern, look=True)
    refuse_overlap(out, {"--input": [str(tmp_path / "runs"), str(tmp_path), "gs://b/run"]}, look=True)
    refuse_overlap("minilm", {"--encoder": ["minilm"]})
    with pytest.raises(UsageError, match="also --reuse"):
        refuse_overlap("gs://b/run", {"--reuse": ["gs://b/run/"]})


@pytest.mark.parametrize("name", ["x" * 300, "loop/out"])
def test_a_path_that_cannot_be_is_told_in_one_line(tmp_path, capsys, name):
    os.symlink("loop", tmp_path / "loop")
    path = tmp_path / name

    def main(_):
        os.makedirs(path)

    assert run_command(main) == 2
    told = capsys.readouterr().err
    assert told.startswith("error: ") and told.count("\n") == 1 and str(tmp_path) in told


def test_a_complaint_is_one_line_that_a_terminal_may_be_given(capsys):
    def main(_):
        raise FileNotFoundError(2, "No such file", "a\nb\x1b[31m\u202e\udcff é.txt")

    assert run_command(main) == 2
    assert capsys.readouterr().err == "error: a b\\x1b[31m\\u202e\\udcff é.txt: No such file\n"
