# Each target sets up what it needs in .venv, from a machine with nothing but Python 3.11 or later and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: install demo test slow check bench docs clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("paceline needs Python 3.11 or later, found " + sys.version.split()[0] + ": pass PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $(STAMP)

demo: install
	$(BIN)/python -m paceline demo

# one thread: on problems this small, several only wait for each other; two processes, each with whole files, whose
# tests share what is expensive (fits, a cluster), in the order of tests/conftest.py
test: install
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not slow" -n 2 --dist loadfile --no-loadscope-reorder

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
