# Every target sets up what it needs in .venv; a second call finds its stamp and starts at once.

VENV  := .venv
BIN   := $(VENV)/bin
PIP   := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# The newest stamp of the two covers `make run`: the development set contains the plain package.
PLAIN := $(VENV)/.installed-plain
DEV   := $(VENV)/.installed-dev
BENCH := $(VENV)/.installed-bench
MUTANTS := $(VENV)/.installed-mutants
# The lowest versions that pyproject.toml allows live apart.
LOWEST := .venv-lowest

# pip compiles what it installs, but not what it installs to be edited.
COMPILE := $(BIN)/python -m compileall -q src

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

.DEFAULT_GOAL := help
.PHONY: help run test exhaustive lint docs readme bench mutants lowest clean system

help: ## show this list
	@grep -E '^[a-z]+:.*## ' Makefile | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 16

run: $(PLAIN) ## do the main job on the example data set; results go to output/
	@$(BIN)/python examples/main_job.py

# What pytest makes of the test files, and Python of ours, is kept: the processes that tests start compile nothing.
test exhaustive: export PYTHONDONTWRITEBYTECODE :=

test: $(DEV) system ## the tests, the doctests and the documents' examples
	@$(BIN)/python -m pytest -m "not exhaustive" --numprocesses=auto --dist=loadgroup

exhaustive: $(DEV) system ## the long versions of what `make test` checks in small
	@$(BIN)/python -m pytest -m exhaustive --numprocesses=auto --dist=loadgroup

# Some tests drive a real PostgreSQL server, a real JVM (Spark) and a real Chromium; the page's accessibility is checked by
# axe-core, from npm. As root we fetch what is missing from Debian's packages; otherwise those tests are skipped, and say so.
system:
	@missing=""; \
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null 2>&1 || missing="$$missing postgresql"; \
	command -v java >/dev/null 2>&1 || missing="$$missing default-jre-headless"; \
	command -v chromium >/dev/null 2>&1 || missing="$$missing chromium"; \
	command -v npm >/dev/null 2>&1 || missing="$$missing npm"; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing; } >/dev/null; \
	else echo "Not found:$$missing. The tests that need them are skipped. As root: apt-get install$$missing"; fi
	@test -e tests/node_modules/axe-core/axe.min.js || npm ci --silent --prefix tests >/dev/null 2>&1 || \
		echo "Not found: axe-core. The check of accessibility is skipped. With npm: npm ci --prefix tests"

lint: $(DEV) ## ruff (rules and format) and mypy, strict
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

docs: $(DEV) ## the documents as a site in docs/_build/html, strictly: a broken link or name fails
	@$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --builder html docs docs/_build/html
	@echo "docs/_build/html/index.html"

readme: $(DEV) ## every command and snippet of the README in a fresh environment
	@$(BIN)/python -m tests.fresh

bench: $(BENCH) ## time the package beside its peers; ROWS=1000000 scales it down
	@$(BIN)/python benchmarks/run_bench.py $(if $(ROWS),--rows $(ROWS))

mutants: $(MUTANTS) ## put small mistakes into critical files, see which no test notices; FILES="noise ledger" MINUTES=20 SEED=1 AGAIN=1 NAMED=1
	@$(BIN)/python -m tests.mutants $(FILES) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SAMPLE),--sample $(SAMPLE)) \
		$(if $(SEED),--seed $(SEED)) $(if $(AGAIN),--again) $(if $(NAMED),--named)

lowest: $(LOWEST)/.installed ## test with the lowest version of every dependency; on demand, about ten minutes
	@$(LOWEST)/bin/python -m tests.lowest

clean: ## remove .venv, results and caches
	rm -rf $(VENV) $(LOWEST) output build dist docs/_build docs/reference .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "privatest needs Python 3.11 or newer; none found. Name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "privatest needs Python 3.11 or newer, not $(PYTHON)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(PLAIN): pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[plot]'
	@$(COMPILE)
	@touch $@

$(DEV): pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[dev]'
	@$(COMPILE)
	@touch $(PLAIN) $@

$(BENCH): pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[dev,bench]'
	@$(COMPILE)
	@touch $(PLAIN) $(DEV) $@

$(MUTANTS): pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[mutants]'
	@$(COMPILE)
	@touch $(PLAIN) $(DEV) $@

# uv and not pip: it alone can be told to take the lowest versions.
$(LOWEST)/.installed: pyproject.toml | $(BIN)/python
	@rm -rf $(LOWEST) && $(BIN)/python -m venv $(LOWEST)
	@$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --compile-bytecode \
		--resolution lowest-direct --editable '.[dev,bench,opendp]'
	@touch $@
