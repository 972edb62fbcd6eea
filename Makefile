# On a fresh machine with Python 3.11+ and make, `make demo` and `make test` do all their own set-up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
AGENTS ?= .agents
# How many tests run at the same time.
SIDE_BY_SIDE ?= auto

.PHONY: help setup demo test test-agents check format lint types imports bench soak docs lock clean

help:  ## Show what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 13

setup: $(READY)  ## Make .venv with everything installed

$(READY): requirements-dev.txt pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Punchlist needs Python 3.11 or newer; this is $$($(BIN)/python --version)." >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q src
	@touch $(READY)

demo: $(READY)  ## See an agent finish its list; no key needed
	$(BIN)/punchlist demo

test: $(READY)  ## Run the tests, on SQLite and PostgreSQL
	$(BIN)/python -m pytest -n $(SIDE_BY_SIDE) --dist worksteal $(ARGS)

# The programs are fetched by npm once, a gigabyte of them, and kept in $(AGENTS).
test-agents: $(READY)  ## Run the tests with the real agents and the MCP suite; needs Node
	$(BIN)/python -m tests.agents.programs $(AGENTS)
	PUNCHLIST_TEST_AGENTS=$(AGENTS) $(BIN)/python -m pytest -n $(SIDE_BY_SIDE) tests/agents tests/surfaces/test_mcp_conformance.py $(ARGS)

check: format lint types imports test  ## What CI runs, but for test-agents

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

soak: $(READY)  ## The trust tests with their full numbers (takes long)
	PUNCHLIST_SOAK=1 $(BIN)/python -m pytest -m soak --timeout 7200 $(ARGS)

docs: $(READY)  ## Write what is made from code into the documentation
	$(BIN)/python -m docs.generate

lock: $(READY)  ## Resolve the dependencies anew into requirements*.txt
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header --upgrade -q -o requirements.txt
	$(BIN)/uv pip compile pyproject.toml --group dev -c requirements.txt --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header --upgrade -q -o requirements-dev.txt

clean:  ## Remove what was made
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
