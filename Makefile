PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp
PIP := $(BIN)/python -m pip --disable-pip-version-check
PYTEST_ARGS ?=

# Many small problems and several processes at a time: one thread each is fastest. Compiled tests are
# kept, even where the environment says otherwise: every worker would compile all of them each time.
TEST_ENV := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "atomcast needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Name another one: make install PYTHON=python3.12" >&2; \
	  exit 1; }
	@rm -f $@
	@test -x $(BIN)/python || { echo "Creating an environment in $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "Installing atomcast and all it is tested with: some 450 MB to download, about two minutes"
	@{ PYTHONUNBUFFERED=1 $(PIP) install --progress-bar off --prefer-binary -c constraints.txt -e '.[dev]' \
	  && touch $@; } | awk '/(Downloading|Using cached|Processing) .*(whl|gz)( |$$)/ \
	                          { sub(/Using cached/, "cached"); n = split($$2, path, "/"); \
	                            print "  " path[n], $$3, $$4; fflush() } \
	                        /^Installing collected/ { print "  unpacking all of them"; fflush() }'
	@test -e $@ # a pipe tells nothing of its first command
	@echo "Installed in $(VENV)"

.PHONY: install
install: $(STAMP) ## create .venv with atomcast and everything needed to work on it

.PHONY: run
run: install ## run the demo
	$(BIN)/atomcast demo

.PHONY: test
test: install ## run the tests (PYTEST_ARGS="-n 0 -k lasso" is passed on)
	$(TEST_ENV) $(BIN)/python -m pytest $(PYTEST_ARGS)

.PHONY: test-browser
test-browser: install ## look at reports in a headless Chromium (chromium and chromedriver needed)
	$(PIP) install --quiet selenium
	$(TEST_ENV) $(BIN)/python -m pytest -n 0 -m browser $(PYTEST_ARGS)

.PHONY: fuzz
fuzz: install ## run property tests on 20 times as many examples, and those of endurance (half an hour)
	$(TEST_ENV) $(BIN)/python -m pytest -m 'hypothesis or endurance' --hypothesis-profile=fuzz --timeout=3600 $(PYTEST_ARGS)

.PHONY: check
check: lint ## style, types and the tests of the core: about a minute
	$(TEST_ENV) $(BIN)/python -m pytest -q -m 'not slow' tests/loop tests/steps tests/network $(PYTEST_ARGS)

.PHONY: lint
lint: install ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: docs
docs: install ## build the documentation into site/; warnings are errors
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs site

.PHONY: format
format: install ## format the code and fix what can be fixed
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

.PHONY: bench
bench: install ## compare with other libraries: a table, JSON and a picture in out/bench (half an hour)
	$(BIN)/python benchmarks/summary.py

.PHONY: bench-check
bench-check: install ## check that fits take no more rounds, atoms, values and products than stored
	$(TEST_ENV) $(BIN)/python benchmarks/counts.py

.PHONY: bench-all
bench-all: install ## run every benchmark in benchmarks/
	@set -e; for script in $(filter-out benchmarks/kinds.py benchmarks/rows.py, $(sort $(wildcard benchmarks/*.py))); do \
	  echo "== $$script"; $(BIN)/python $$script; done

.PHONY: examples
examples: install ## run every example in examples/
	@set -e; for script in $(sort $(wildcard examples/*.py examples/federated/*.py)); do \
	  echo "== $$script"; $(BIN)/python $$script; done

.PHONY: dist
dist: install ## build sdist and wheel into dist/, and use the wheel in an empty environment
	$(PIP) install --quiet build
	rm -rf dist && $(BIN)/python -m build --outdir dist .
	@set -e; dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	$(PYTHON) -m venv "$$dir/env"; \
	"$$dir/env/bin/python" -m pip install --quiet --prefer-binary -c constraints.txt dist/*.whl; \
	cd "$$dir" && env/bin/python -m atomcast --version && env/bin/atomcast demo --out demo > /dev/null \
	  && echo "the wheel works in an empty environment"

.PHONY: constraints
constraints: ## look for newer versions and write constraints.txt anew
	@set -e; dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	$(PYTHON) -m venv "$$dir"; \
	"$$dir/bin/python" -m pip install --quiet --prefer-binary -e '.[dev]'; \
	{ echo "# Versions that are tested together, on Python 3.11 to 3.13. Regenerate with: make constraints"; \
	  "$$dir/bin/python" -m pip freeze --quiet --exclude-editable; } > "$$dir/constraints.txt"; \
	cp "$$dir/constraints.txt" constraints.txt

.PHONY: clean
clean: ## remove the environment and everything generated
	rm -rf $(VENV) build dist out site atomcast-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
