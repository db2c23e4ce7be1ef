# Needs Python 3.11 or newer, make, and the network for the first run.
PYTHON ?= python3
VENV ?= .venv
ASK ?= What is the capital of France?
PY := $(VENV)/bin/python
PEERS := .peers/bin/python

.DEFAULT_GOAL := help

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(VENV)/installed ## fetch a small model, pack it, serve it, ask it: make demo ASK="..."
	@$(PY) -m tools.demo "$$ASK"
export ASK

.PHONY: test
test: $(VENV)/installed-dev ## run the tests
	$(PY) -m pytest

.PHONY: check
check: $(VENV)/installed-dev ## lint, formatting, types
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m mypy

.PHONY: docs
docs: $(VENV)/installed-dev ## write docs/cli.md from the commands
	$(PY) -m tools.cli_reference

.PHONY: bench
bench: $(VENV)/installed-dev ## measure modelc beside other engines (after peers): make bench BENCH="--quick"
	$(PY) -m bench $(BENCH)

.PHONY: conformance
conformance: $(VENV)/installed-dev ## the long checks: the same bits over every configuration
	$(PY) -m pytest -m slow --timeout 7200 tests conformance

.PHONY: peers
peers: .peers/installed ## set up the engines that bench compares with (compiles one of them, some minutes)

.peers/installed: bench/peers.txt
	test -x $(PEERS) || $(PYTHON) -m venv .peers
	$(PEERS) -m pip install --quiet --requirement bench/peers.txt
	@touch $@

.PHONY: clean
clean: ## remove what make and the tools have made here (not the caches outside)
	rm -rf $(VENV) .peers .clients build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find modelc tests tools bench conformance -name __pycache__ -type d -prune -exec rm -rf {} +

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "modelc needs Python 3.11 or newer; name one: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml | $(PY)
	$(PY) -m pip install --quiet --editable .
	@touch $@

$(VENV)/installed-dev: pyproject.toml | $(PY)
	$(PY) -m pip install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/installed
