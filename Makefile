# Each target sets up what it needs in .venv, from a machine with nothing but Python 3.11 or later and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Two stamps in one environment: what the demo needs, and everything (which the demo is content with, too).
DEMO := $(VENV)/.installed-for-the-demo
ALL := $(VENV)/.installed
# byte code is written when a module is first imported, and most of torch never is
PIP_INSTALL := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

ROOT := $(if $(filter-out 0,$(shell id -u)),sudo -n,)

.PHONY: install browser demo test slow check bench docs clean

install: $(ALL)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("paceline needs Python 3.11 or later, found " + sys.version.split()[0] + ": pass PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

$(DEMO): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) -e '.[demo]'
	@touch $(DEMO)

$(ALL): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) -e '.[dev]'
	@touch $(ALL) $(DEMO)

demo: $(DEMO)
	$(BIN)/python -m paceline demo

# Debian's chromium for the tests of the page: installed where it is missing and we may, else these tests are skipped
browser:
	@command -v chromium >/dev/null || { command -v apt-get >/dev/null && $(ROOT) true 2>/dev/null && \
		$(ROOT) apt-get -o DPkg::Lock::Timeout=600 update -qq && \
		$(ROOT) env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -y -qq --no-install-recommends chromium >/dev/null; } || \
		echo "chromium is not installed and could not be: the tests of the page in a browser are skipped"

# one thread: on problems this small, several only wait for each other; three processes, because tests of clusters mostly
# wait, each with whole files, whose tests share what is expensive (fits, a cluster), in the order of tests/conftest.py
test: install browser
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not slow" -n 3 --dist loadfile --no-loadscope-reorder

slow: install
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m slow

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

bench: install
	@for name in $$(cd benchmarks && ls *.py | grep -v '^_' | sed 's/\.py$$//'); do \
		echo "== benchmarks.$$name"; \
		$(BIN)/python -W ignore -m benchmarks.$$name | tee benchmarks/results/$$name.txt || exit 1; done

docs: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo open site/index.html

clean:
	rm -rf $(VENV) site .pytest_cache .ruff_cache .hypothesis dist build
