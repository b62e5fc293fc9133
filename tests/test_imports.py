"""Imports go one way: runners → stdlib; rag_core → never Beam, never a sibling; and so on."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
OURS = ("beam_jobs", "eval", "rag_core", "runners", "benchmarks", "tests")
ALLOWED = {
    "runners": (),
    "rag_core": ("rag_core",),
    "beam_jobs": ("beam_jobs", "rag_core", "runners"),
    "eval": ("eval", "rag_core", "beam_jobs.options", "beam_jobs.transforms"),
}


def imported(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def files_of(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


@pytest.mark.parametrize("package", ALLOWED)
def test_layers(package):
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in files_of(package)
        for name in imported(path)
        if name.split(".")[0] in OURS and not name.startswith(ALLOWED[package])
    ]
    assert wrong == []


def test_the_library_never_imports_beam_and_runners_only_the_standard_library():
    beam = [p for p in files_of("rag_core") for n in imported(p) if n.split(".")[0] == "apache_beam"]
    assert beam == []
    other = {n.split(".")[0] for p in files_of("runners") for n in imported(p)} - set(sys.stdlib_module_names)
    assert other <= {"runners"}


def test_nothing_unpickles_or_evaluates_input():
    banned = {"pickle", "cPickle", "dill", "marshal", "shelve"}
    found = [
        p for package in ALLOWED for p in files_of(package) if {n.split(".")[0] for n in imported(p)} & banned
    ]
    assert found == []
    calls = []
    for package in ALLOWED:
        for path in files_of(package):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    if node.func.id in ("eval", "exec"):
                        calls.append(f"{path}:{node.lineno}")
    assert calls == []


def test_importing_the_library_is_light():
    code = (
        "import sys, rag_core, rag_core.answers, rag_core.passages, rag_core.encoders, rag_core.retrieval;"
        "print(sorted({'torch', 'faiss', 'transformers', 'apache_beam'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"
