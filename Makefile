# Every target works on a machine with nothing but Python 3.11 or later. Run `make help` for a list.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# A machine without a GPU may name an index of CPU builds of torch here: make setup TORCH_INDEX=<address>
TORCH_INDEX ?=
# Real data for the benchmarks; docs/data.md says where to get each set.
DATA ?= ../shared/data
export SCRIM_BENCHMARK_DATA := $(abspath $(DATA))

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-long check format mutants bench bench-core bench-service revision clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(VENV)/.installed ## create the environment in .venv

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or later is needed; set PYTHON=...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(PIP) $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) --editable '.[embedded,dev]'
	touch $@

demo: setup ## upload an example table to an embedded stack and release it, into ./demo-output
	$(BIN)/scrim demo --output demo-output

test: setup check ## check the code, then run the tests
	$(BIN)/pytest -n 2 --dist worksteal -q

test-long: setup ## the long suites: more runs of the privacy audits
	$(BIN)/pytest -n 2 --dist worksteal -q -m slow

check: setup ## lint, types and the dependency rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

mutants: setup ## plant known privacy bugs one by one; each must fail a test
	$(BIN)/python -m tests.mutants

bench: bench-core bench-service ## all benchmarks

bench-service: setup ## accepted releases, reads, uploads and ledger operations per second
	$(BIN)/python -m benchmarks.service

revision: setup ## start a migration: make revision NAME=what_changes
	$(BIN)/alembic revision --rev-id $$(printf '%04d' $$(($$(ls migrations/versions/*.py | wc -l) + 1))) -m "$(NAME)"

bench-core: setup ## counting, product answers, one MWEM round, accuracy on ADULT reduced
	$(BIN)/python -m benchmarks.core

clean: ## remove the environment and caches
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
