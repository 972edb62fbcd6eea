# On a fresh machine with Python 3.11+ and make, `make demo` and `make test` do all their own set-up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO_READY := $(VENV)/.demo-ready
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
AGENTS ?= .agents
LOCK := --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header --upgrade -q
# How many tests run at the same time: two for each core, since many wait for processes.
SIDE_BY_SIDE ?= $(shell $(PYTHON) -c 'import os; print(2 * (os.cpu_count() or 1))')

.PHONY: help setup demo test test-agents test-versions check format lint types imports fix bench soak docs pictures lock clean

help:  ## Show what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 15

setup: $(READY)  ## Make .venv with everything installed

$(BIN)/python:
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Punchlist needs Python 3.11 or newer; this is $$($(BIN)/python --version)." >&2; rm -rf $(VENV); exit 1; }

# The lock files are complete, so pip resolves nothing (--no-deps): a release of a dependency cannot break the set-up.
$(READY): requirements-dev.txt pyproject.toml | $(BIN)/python
	$(PIP) --require-hashes --no-deps -r requirements-dev.txt
	$(PIP) --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q src
	@touch $(READY) $(DEMO_READY)

# The demo needs neither the tests' tools nor a provider's SDK.
$(DEMO_READY): requirements-demo.txt pyproject.toml | $(BIN)/python
	$(PIP) --require-hashes --no-deps -r requirements-demo.txt
	$(PIP) --no-deps --no-build-isolation -e .
	@touch $(DEMO_READY)

demo: $(DEMO_READY)  ## See an agent finish its list; no key needed
	$(BIN)/punchlist demo

# Set on some machines: without it, every process of a test would compile the sources again.
export PYTHONDONTWRITEBYTECODE =

# By file, since the tests of a file share what is expensive to make; the slowest files first (tests/slowest.txt).
test: $(READY)  ## Run the tests, on SQLite and PostgreSQL
	$(BIN)/python -m pytest -n $(SIDE_BY_SIDE) --dist loadfile --no-loadscope-reorder $(ARGS)

# The programs are fetched by npm once, a gigabyte of them, and kept in $(AGENTS).
test-agents: $(READY)  ## Run the tests with the real agents and the MCP suite; needs Node
	$(BIN)/python -m tests.agents.programs $(AGENTS)
	PUNCHLIST_TEST_AGENTS=$(AGENTS) $(BIN)/python -m pytest -n $(SIDE_BY_SIDE) tests/agents tests/surfaces/test_mcp_conformance.py $(ARGS)

# Two environments of their own, with the lowest and the newest versions that pyproject.toml allows.
test-versions: $(READY)  ## Run the tests that use dependencies, at the lowest and newest versions
	$(PIP) uv
	$(BIN)/python -m tests.versions $(ARGS)

check: format lint types imports test  ## What CI runs, except test-agents and test-versions

format: $(READY)
	$(BIN)/ruff format --check .

lint: $(READY)
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports

fix: $(READY)  ## Format, and repair what the linter can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)  ## Run the benchmarks: table on stdout, JSON in bench/results
	$(BIN)/python -m bench $(ARGS)

# Two files at a time, each in one process: the tests of a file share what is expensive to make.
soak: $(READY)  ## The trust tests with their full numbers (at most an hour on two cores)
	PUNCHLIST_SOAK=1 $(BIN)/python -m pytest -m soak -n 2 --dist loadfile --timeout 3000 --durations 15 $(ARGS)

pictures: $(READY)  ## Take the pictures of the terminal application and of the pages; needs Chromium
	$(BIN)/python -m docs.terminal_picture
	$(BIN)/python -m docs.web_pictures

docs: $(READY)  ## Write what is made from code into the documentation
	$(BIN)/python -m docs.generate

lock: $(READY)  ## Resolve the dependencies anew into requirements-*.txt
	$(PIP) uv
	$(BIN)/uv pip compile pyproject.toml --all-extras --group dev $(LOCK) -o requirements-dev.txt
	$(BIN)/uv pip compile pyproject.toml --group demo --group build -c requirements-dev.txt $(LOCK) -o requirements-demo.txt

clean:  ## Remove what was made
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
