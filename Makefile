# Everything a contributor runs. Needs Python 3.11 or later with venv, make, bash and git.
PYTHON ?= python3
TORTURE ?= 500
WITHOUT ?=
SAMPLE ?= 0
SEED ?= 0
POINT ?=
SBOM ?= dist/raymond.cdx.json

SHELL := /bin/bash
BIN := .venv/bin
RUNTIME := .venv/.runtime
STAMP := .venv/.ready
.DEFAULT_GOAL := help

# Without compiled files every start of the program takes twice as long.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-slow check bench torture crashpoints e2e pins sbom clean

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## \(.*\)/make \1\t\2/p' Makefile | expand -t 16

demo: $(RUNTIME) ## run the demo: no account, no cost; the first time, it downloads what Raymond needs
	@$(BIN)/raymond demo

# Each worker imports and collects everything, for 5 s of CPU: three keep two cores busy.
test: JOBS ?= 3
test-slow torture e2e: JOBS ?= 4

test: $(STAMP) ## all tests but test-slow, torture, crashpoints and e2e; at most 2 minutes on 2 cores
	@$(BIN)/python -m pytest -n $(JOBS)

test-slow: $(STAMP) ## the tests that take seconds each, and the rest of the large families; THIRD=0, 1 or 2 takes a third
	@SLOW_THIRD=$(THIRD) $(BIN)/python -m pytest -m slow -n $(JOBS)

check: $(STAMP) ## format, lint, types, imports
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --cache-dir .cache/import_linter

bench: $(STAMP) ## measure the runtime against a plain shell loop
	@$(BIN)/python bench/run.py

torture: $(STAMP) ## TORTURE (500) rounds of random workflows in random trouble; SEED=N repeats them, WITHOUT=KIND,KIND spares some
	@seed=$(SEED); [ "$${seed:-0}" != 0 ] || seed=$$((RANDOM * 32768 + RANDOM)); \
		echo "rounds $$seed to $$((seed + $(TORTURE) - 1)): make torture TORTURE=$(TORTURE) SEED=$$seed repeats them"; \
		RAYMOND_TORTURE=$(TORTURE) RAYMOND_SEED=$$seed RAYMOND_WITHOUT=$(WITHOUT) \
		$(BIN)/python -m pytest -m torture -n $(JOBS) tests/crash/test_round.py

crashpoints: $(STAMP) ## crash or fail every system call of a short run; SAMPLE=100 of them, or one POINT; needs strace
	@command -v strace >/dev/null || echo "strace is not here: try apt-get install strace" >&2
	@RAYMOND_CRASHPOINTS=$(SAMPLE) RAYMOND_SEED=$(SEED) RAYMOND_POINT='$(POINT)' \
		$(BIN)/python -m pytest -m crashpoints -n 0 -s tests/crash/test_crashpoints.py

e2e: $(STAMP) ## tests with the real Claude Code and Codex against models faked on loopback
	@bash tests/e2e/install
	@$(BIN)/python -m pytest -m e2e -n $(JOBS) tests/e2e

pins: ## resolve requirements*.txt again after a change of pyproject.toml (newer versions: tools/pins --upgrade)
	@PYTHON=$(PYTHON) tools/pins

sbom: $(STAMP) ## write the bill of materials of the runtime (CycloneDX) to SBOM (dist/raymond.cdx.json)
	@$(BIN)/python tools/sbom.py $(SBOM)

clean: ## remove the environment and all caches; runs stay
	rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage build dist
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

# One environment for everything, made again when the pins or the project's description change: first what runs Raymond,
# which is all that the demo needs, then the tools. Every file that is fetched must have a hash that stands in the pins,
# what builds the project among them: its own build fetches nothing.
# Compiled at once: a module that is first imported while a test limits the size of files is kept cut off by Python.
PIP := $(BIN)/python -m pip --disable-pip-version-check
TELL := sed -un 's/^ *Collecting \([^ ]*\).*/  fetching \1/p'

$(RUNTIME): pyproject.toml requirements.txt requirements-build.txt
	@echo "setting up .venv (once)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "error: $(PYTHON) is older than Python 3.11; try: make PYTHON=python3.11" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	@set -o pipefail; $(PIP) install --require-hashes -r requirements.txt -r requirements-build.txt | $(TELL)
	@$(PIP) install -qq --no-index --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q src
	@touch $@

$(STAMP): $(RUNTIME) requirements-dev.txt
	@echo "setting up the tools of contributors (once)"
	@set -o pipefail; $(PIP) install --require-hashes -r requirements-dev.txt | $(TELL)
	@touch $@
