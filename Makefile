.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: bench help verify test test-quick check docs format coverage golden clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 14

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "gradline needs Python 3.11 or newer; run: make PYTHON=python3.11"; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[dev]'
	@touch $@

verify: $(STAMP) ## set up, then verify every claim of the theory
	$(BIN)/gradline verify

test: $(STAMP) ## set up, then run all tests
	$(BIN)/python -m pytest -q -n 2 --dist worksteal

test-quick: $(STAMP) ## the tests without the property tests
	$(BIN)/python -m pytest -q -n 2 --dist worksteal --ignore tests/properties

check: $(STAMP) ## lint, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q -p no:cacheprovider theory numerics

format: $(STAMP) ## format and fix what ruff can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

coverage: $(STAMP) ## branch coverage of both packages
	$(BIN)/python -m pytest -q -n 2 --dist worksteal --cov --cov-branch --cov-report=term-missing:skip-covered

docs: $(STAMP) ## build the documentation into docs/_build, warnings are errors
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html

bench: $(STAMP) ## kernels and sweeps side by side, into docs/benchmarks.md
	env -u OPENBLAS_NUM_THREADS -u OPENBLAS_CORETYPE $(BIN)/python tests/benchmarks/run.py docs/benchmarks.md

golden: $(STAMP) ## write the generated code in tests/golden anew
	GRADLINE_REWRITE_GOLDEN=1 $(BIN)/python -m pytest -q tests/numerics/test_kernels.py -k golden

clean: ## remove what the other targets made
	rm -rf .venv build docs/_build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage*
