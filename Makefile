# Everything a contributor runs. Needs Python 3.11 or later with venv, make, bash and git.
PYTHON ?= python3
TORTURE ?= 500

SHELL := /bin/bash
BIN := .venv/bin
STAMP := .venv/.ready
.DEFAULT_GOAL := help

# Without compiled files every start of the program takes twice as long.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-slow check bench torture e2e clean

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## \(.*\)/make \1\t\2/p' Makefile | expand -t 16

demo: $(STAMP) ## run the demo: no account, no network, no cost
	@$(BIN)/raymond demo

test: $(STAMP) ## all tests but test-slow, torture and e2e; at most 3 minutes on 2 cores
	@$(BIN)/python -m pytest

test-slow: $(STAMP) ## the tests that take seconds each, and the rest of the large families
	@$(BIN)/python -m pytest -m slow -n 2

check: $(STAMP) ## format, lint, types, imports
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --cache-dir .cache/import_linter

bench: $(STAMP) ## measure the runtime against a plain shell loop
	@$(BIN)/python bench/run.py

torture: $(STAMP) ## kill the program TORTURE (500) times and look for anything lost
	@RAYMOND_TORTURE=$(TORTURE) $(BIN)/python -m pytest -m torture -n 2 --timeout 3600

e2e: $(STAMP) ## tests with the real Claude Code and Codex against models faked on loopback
	@bash tests/e2e/install
	@$(BIN)/python -m pytest -m e2e -n 2 tests/e2e

clean: ## remove the environment and all caches; runs stay
	rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage build dist
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

# One environment for everything, made again when the pins or the project's description change.
$(STAMP): pyproject.toml constraints.txt
	@echo "setting up .venv (once)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "error: $(PYTHON) is older than Python 3.11; try: make PYTHON=python3.11" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@
