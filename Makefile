# Everything a new machine needs beyond Python 3.11+, pip and make is set up by these targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Bytecode is written when a module is first used; of most modules it never is.
PIP := PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
SOURCES := pyproject.toml constraints.txt

# Programs that some tests need; without them those tests are skipped.
MISSING := $(if $(wildcard /usr/lib/postgresql/*/bin/initdb),,postgresql) \
	$(if $(shell command -v chromium || command -v google-chrome),,chromium) \
	$(if $(shell command -v systemd-analyze),,systemd) $(if $(shell command -v haproxy),,haproxy)

.PHONY: demo test quick coverage bench docs figures release-check system-packages clean
# The tests of a file that takes long are marked `slow`; `make quick` leaves them out.
QUICK := tests -m "not slow"

demo: $(VENV)/.runtime  ## compare private policies with their non-private twins; writes report.html
	$(BIN)/dpbandits compare noise-aware-imed lazy-thompson private-klucb lazy-ucb \
		--privacy eps=1 --rounds 1e5 --runs 20 --report report.html

test: $(VENV)/.development  ## all checks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m pytest -n auto

quick: $(VENV)/.development  ## what a minute can tell: style, and the tests that do not take long
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m pytest -q -n auto $(QUICK)

coverage: $(VENV)/.development  ## which lines the quick tests reach; fails below the floor in pyproject.toml
	$(BIN)/python -m pytest -q -n auto --cov --cov-report=term:skip-covered $(QUICK)

bench: $(VENV)/.development  ## the speed table
	$(BIN)/python benchmarks/speed.py

docs: $(VENV)/.development  ## the site, docs/build/site: no simulations but those of the tutorials
	$(BIN)/python docs/make.py pages
	$(BIN)/python docs/make_site.py

figures: $(VENV)/.development  ## all that is measured again, docs/reproduction.md among it: takes long
	$(BIN)/python docs/make.py figures

release-check: $(VENV)/.development  ## build the wheel, and run the README from it in empty environments
	@$(PIP) --editable '.[release]'
	$(BIN)/python .ci/check_release.py

system-packages:  ## PostgreSQL, Chromium and what checks deploy/, from Debian, where missing
ifneq ($(strip $(MISSING)),)
	@test "$$(id -u)" = 0 || { echo "please install, as root: apt-get install $(strip $(MISSING))"; exit 1; }
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends $(MISSING)
endif

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit("dpbandits needs Python 3.11 to 3.13, this is " + sys.version) if not (3, 11) <= sys.version_info[:2] <= (3, 13) else None'
	@echo "setting up $(VENV) (once, about half a minute) …"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.runtime: $(VENV)/.python $(SOURCES)
	@$(PIP) --editable '.[cli,plot]'
	@touch $@

$(VENV)/.development: $(VENV)/.python $(SOURCES)
	@$(PIP) --editable '.[dev]'
	@$(PIP) --no-deps obp==0.4.1 # which requires torch, gigabytes that none of what is used here needs
	@touch $@ $(VENV)/.runtime

clean:
	rm -rf $(VENV) dist docs/build report.html dpbandits-results .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
