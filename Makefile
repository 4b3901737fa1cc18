# Every target sets up what it needs; `make help` lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
# Where a machine has no Java, the extra `java` brings one.
EXTRAS := dev,docs,bench,spark$(shell command -v java >/dev/null 2>&1 || echo ,java)
NAME ?= local
CORES := $(shell nproc 2>/dev/null || echo 2)
# One more than there are cores: many tests wait for Spark, or for processes of their own.
WORKERS ?= $(shell expr $(CORES) + 1)
# Images often leave bytecode out; then each of the many processes compiles all sources again.
export PYTHONDONTWRITEBYTECODE :=
# Links, pages and names that are missing fail it; it needs no network.
SITE := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

.PHONY: chaos soak help setup test test-fast lint format docs demo bench clean
.PHONY: check-types check-style check-layers check-site

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: $(VENV)/.ready $(VENV)/.warm ## Create .venv with the pinned dependencies

# Most modules of the dependencies are never imported; the others are compiled when they are.
$(VENV)/.ready: pyproject.toml benchmarks/pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "Muntin needs Python 3.11 or newer; set PYTHON=..."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt --editable '.[$(EXTRAS)]' --editable benchmarks
	@touch $@

# Once: kernels whose sources change later are compiled when they are called.
$(VENV)/.warm: | $(VENV)/.ready
	@$(BIN)/muntin doctor --warm >/dev/null || true
	@touch $@

test: setup ## Run the whole test suite
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations 15 $(ARGS)

test-fast: setup ## Run one case of every test that needs no Spark
	$(BIN)/python -m pytest -n $(CORES) --fast --durations 15 $(or $(ARGS),tests)

# On a fresh clone, kernels are compiled meanwhile: types are checked on one core.
lint: $(VENV)/.ready ## Check style, types, layering and documentation
	@$(MAKE) --no-print-directory --jobs 2 check-types $(VENV)/.warm check-style check-layers check-site

check-types:
	$(BIN)/mypy

check-style:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

check-layers:
	$(BIN)/lint-imports --no-cache

check-site:
	$(SITE)

format: $(VENV)/.ready ## Rewrite the sources in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.ready ## Build the documentation as a site in build/site
	$(SITE)

demo: setup ## Run 256 queries over a stream of synthetic trades on local Spark
	$(BIN)/muntin demo

bench: setup ## Run one benchmark: make bench NAME=local
	$(BIN)/muntin bench $(NAME) $(ARGS)

chaos: setup ## Kill a stream at random moments, 50 seeds, and damage each of its files
	$(BIN)/python tests/spark/chaos.py 50
	$(BIN)/python tests/spark/damage.py

soak: setup ## Run 5,000 small batches and compare what is held with 1,000; takes an hour
	$(BIN)/python tests/spark/soak.py 5000

clean: ## Remove what the other targets made
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
