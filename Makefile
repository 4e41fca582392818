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

# How large a table `make bench-service` uploads; ONLY_READS=1 measures reads alone.
UPLOAD_MIB ?= 2048
ONLY_READS ?=

# What `make bench-products`, `make bench-mixed`, `make bench-households` and `make bench-judge` run; by
# default all sets, all epsilons and as many runs as in the papers.
SETS ?=
EPSILONS ?=
RUNS ?=
STUDIES ?= adult figure-1 crossover downstream speed
GAMES := dual_query fem query_gan pgm_em aim gem_plus
ALL_SETS := adult-reduced adult loans acs-pa loans-pairs
ALL = --set $(if $(SETS),$(SETS),$(ALL_SETS)) --epsilon 1 --runs $(if $(RUNS),$(RUNS),1)
GRID = $(if $(SETS),--set $(SETS)) $(if $(EPSILONS),--epsilon $(EPSILONS)) $(if $(RUNS),--runs $(RUNS))

# What `make test-random` repeats; by default every test that depends on chance.
TESTS ?=

# How much `make soak` does; another SEED is another order of events.
RELEASES ?= 50
KILLS ?= 200
RESTARTS ?= 20
WIPES ?= 20
FILLS ?= 20
SQUEEZES ?= 20
SEED ?= 0

.DEFAULT_GOAL := help
.PHONY: help setup setup-bench setup-browser demo test test-random test-browser test-documents test-wheels audit test-long soak check format mutants bench bench-core bench-service bench-speed bench-console bench-products bench-all bench-games bench-mixed bench-households bench-judge bench-gaussian bench-quality bench-numbers bench-forecasts bench-certified bench-draws bench-rules revision dist clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(VENV)/.installed ## create the environment in .venv

$(VENV)/.installed: pyproject.toml scrim/pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or later is needed; set PYTHON=...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(PIP) $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) --editable ./scrim --editable '.[dev]'
	touch $@

# Chromium is not a Python package. Root installs it with apt; other users are asked to install it.
setup-browser: setup ## what the tests of the console need: playwright, axe and a Chromium
	$(PIP) --editable ./scrim --editable '.[browser]'
	@for name in $$SCRIM_CHROMIUM chromium chromium-browser google-chrome google-chrome-stable; do \
		if command -v $$name; then exit 0; fi; \
	done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update --quiet && apt-get install --quiet --yes --no-install-recommends chromium fonts-liberation; \
	else \
		echo 'No Chromium was found: install it (apt install chromium, brew install --cask chromium), or name' \
			'one in SCRIM_CHROMIUM.'; \
		exit 1; \
	fi

setup-bench: setup ## what `make bench-judge` needs: scikit-learn
	$(PIP) --editable ./scrim --editable '.[bench]'

demo: setup ## upload an example table to an embedded stack and release it, into ./demo-output
	$(BIN)/scrim demo --output demo-output

test: setup check ## check the code, then run the tests
	$(BIN)/pytest -n 3 --dist worksteal -q

# TESTS takes arguments of pytest: files, names (-k), another selection by markers (-m).
test-random: RUNS := $(if $(RUNS),$(RUNS),100)
test-random: setup ## run every test that depends on chance RUNS times (100), and count failures; takes hours
	$(BIN)/python -m tests.random_runs --runs $(RUNS) $(TESTS)

test-browser: setup-browser ## the console in a real Chromium; SCRIM_SCREENSHOTS=folder keeps a picture of every page
	$(BIN)/pytest -q -m browser

test-documents: setup ## carry out every command and every program of the documents
	$(BIN)/pytest -n 2 --dist worksteal -q -m documents

test-wheels: setup ## install both packages into empty environments and run the demo there
	$(if $(TORCH_INDEX),PIP_EXTRA_INDEX_URL=$(TORCH_INDEX)) $(BIN)/pytest -q -m wheels tests/e2e/test_wheels.py

audit: setup ## every mechanism on neighbouring tables, 20,000 runs a side
	$(BIN)/pytest -n 2 --dist worksteal -q -m audit

test-long: setup mutants ## the long suites: every mutant, and more runs of the privacy audits
	$(BIN)/pytest -n 2 --dist worksteal -q -m slow

soak: setup ## kill parts, wipe the broker, fill the disk and squeeze memory during many releases
	SCRIM_SOAK_RELEASES=$(RELEASES) SCRIM_SOAK_KILLS=$(KILLS) SCRIM_SOAK_RESTARTS=$(RESTARTS) \
	SCRIM_SOAK_WIPES=$(WIPES) SCRIM_SOAK_FILLS=$(FILLS) SCRIM_SOAK_SQUEEZES=$(SQUEEZES) \
	SCRIM_SOAK_SEED=$(SEED) $(BIN)/pytest -q -m slow tests/worker/test_soak.py tests/service/api/test_processes.py

check: setup ## lint, types and the dependency rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers 2
	$(BIN)/lint-imports

format: setup ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

mutants: setup ## plant known privacy bugs two at a time (WORDS: only some); each must fail a test
	$(BIN)/python -m tests.mutants $(WORDS)

bench: bench-core bench-service ## the benchmarks that take minutes

bench-service: setup ## an upload of 2 GiB (UPLOAD_MIB), free answers, releases at a cap, reads, ledger
	$(BIN)/python -m benchmarks.service --upload-mib $(UPLOAD_MIB) $(if $(ONLY_READS),--only-reads)

bench-speed: setup ## processor seconds of small jobs, alone and two at once, and of a worker's first questions
	$(BIN)/python -m benchmarks.speed

bench-console: setup ## bytes and milliseconds of every page of the console
	$(BIN)/python -m benchmarks.console

bench-products: setup ## errors and times of whole releases (SETS, EPSILONS, RUNS); all of it takes days
	$(BIN)/python -m benchmarks.products run $(GRID)
	$(BIN)/python -m benchmarks.products report

bench-all: setup ## one table over all mechanisms at epsilon 1 (SETS, RUNS), into docs/results/all.md; takes hours
	$(BIN)/python -m benchmarks.products run $(ALL)
	$(BIN)/python -m benchmarks.products report

bench-games: setup ## the same for the games and the graphical models, compared with gem_plus
	$(BIN)/python -m benchmarks.products run $(ALL) --mechanism $(GAMES)
	$(BIN)/python -m benchmarks.products report

bench-mixed: setup ## errors and times with categories and numbers (SETS, EPSILONS, RUNS, STUDIES)
	$(BIN)/python -m benchmarks.mixed run $(GRID)
	for study in $(STUDIES); do $(BIN)/python -m benchmarks.mixed $$study $(if $(RUNS),--runs $(RUNS)) || exit 1; done
	$(BIN)/python -m benchmarks.mixed report

bench-households: setup ## errors and times with households and their people (SETS, EPSILONS, RUNS)
	$(BIN)/python -m benchmarks.households run $(GRID)
	$(BIN)/python -m benchmarks.households report

bench-judge: setup-bench ## releases on tables that only judge, beside those of tuning (SETS, EPSILONS, RUNS); takes days
	$(BIN)/python -m benchmarks.judge run $(GRID)
	$(BIN)/python -m benchmarks.judge times
	$(BIN)/python -m benchmarks.judge report

bench-forecasts: setup ## forecast errors beside measured ones (SETS, EPSILONS, RUNS), into docs/results/forecasts.md
	$(BIN)/python -m benchmarks.quality.forecasts run $(GRID)
	$(BIN)/python -m benchmarks.quality.forecasts report

bench-gaussian: setup ## root mean square errors of gaussian on ADULT, forecast and measured; takes minutes
	$(BIN)/python -m benchmarks.gaussian $(RUNS)

bench-numbers: setup ## errors of numbers with adaptive bins and with equal ones (SETS, RUNS); credit-default only judges
	$(BIN)/python -m benchmarks.placement
	$(BIN)/python -m benchmarks.numbers $(SETS) $(if $(RUNS),--runs $(RUNS))

bench-quality: setup ## how often error bars cover the truth (SETS, EPSILONS, RUNS), and forecasts; takes an hour
	$(BIN)/python -m benchmarks.quality.error_bars $(GRID)
	$(BIN)/python -m benchmarks.quality.forecasts report

bench-certified: setup ## how often the certified total variation covers the truth, for every mechanism
	$(BIN)/python -m benchmarks.certified $(RUNS)

bench-rules: setup ## errors of all pairs of ADULT with rules and without (RUNS); takes minutes
	$(BIN)/python -m benchmarks.rules $(RUNS)

bench-draws: setup ## how often intervals from several draws cover a regression coefficient (SETS, EPSILONS, RUNS)
	$(BIN)/python -m benchmarks.draws $(GRID)

revision: setup ## start a migration: make revision NAME=what_changes
	$(BIN)/alembic revision --rev-id $$(printf '%04d' $$(($$(ls migrations/versions/*.py | wc -l) + 1))) -m "$(NAME)"

bench-core: setup ## counting, product answers, one MWEM round, accuracy on ADULT reduced
	$(BIN)/python -m benchmarks.core

dist: setup ## build the packages scrim and scrim-server, into ./dist
	rm -rf dist
	cd scrim && $(abspath $(BIN))/hatchling build --directory $(abspath dist)
	$(BIN)/hatchling build --directory dist

clean: ## remove the environment, built packages and caches
	rm -rf $(VENV) dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
