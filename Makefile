# Everything a new machine needs beyond Python 3.11+, pip and make is set up by these targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check
SOURCES := pyproject.toml constraints.txt

.PHONY: demo test bench docs clean

demo: $(VENV)/.runtime  ## compare private policies with their non-private twins; writes report.html
	$(BIN)/dpbandits compare noise-aware-imed lazy-thompson private-klucb lazy-ucb modified-thompson \
		--privacy mu=1 --rounds 1e5 --runs 20 --report report.html

test: $(VENV)/.development  ## all checks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m pytest -n auto

bench: $(VENV)/.development  ## the speed table
	$(BIN)/python benchmarks/speed.py

docs: $(VENV)/.development  ## generated pages and pictures, docs/reproduction.md among them
	$(BIN)/python docs/make.py

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit("dpbandits needs Python 3.11 to 3.13, this is " + sys.version) if not (3, 11) <= sys.version_info[:2] <= (3, 13) else None'
	@echo "setting up $(VENV) (once, about half a minute) …"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.runtime: $(VENV)/.python $(SOURCES)
	@$(PIP) --editable .
	@touch $@

$(VENV)/.development: $(VENV)/.python $(SOURCES)
	@$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.runtime

clean:
	rm -rf $(VENV) report.html dpbandits-results .pytest_cache .mypy_cache .ruff_cache .hypothesis
