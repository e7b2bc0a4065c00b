# make demo [CORPUS=path]   install, train on real text through Ray, verify, show what came out
# make test                 install, run every test
# make check                lint, types, tests that need no Ray: before every push
# make fmt                  format and fix what can be fixed
# make bench CORPUS=path    trainers side by side (installs the rivals)

SUITABLE = import sys; sys.exit(not (3, 10) <= sys.version_info[:2] < (3, 14))
PYTHON ?= $(shell for p in python3 python3.12 python3.11 python3.13 python3.10; do \
	$$p -c '$(SUITABLE)' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
CORPUS ?=

export RAY_USAGE_STATS_ENABLED ?= 0
export RAY_ENABLE_UV_RUN_RUNTIME_ENV ?= 0

.PHONY: demo test check fmt bench clean

demo: $(VENV)/.demo
	$(BIN)/python scripts/demo.py $(CORPUS)

test: $(VENV)/.test
	$(BIN)/python -m pytest

check: $(VENV)/.test $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy raybpe
	$(BIN)/python -m pytest tests/unit

fmt: $(VENV)/.lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.test $(VENV)/.bench
	$(BIN)/python benchmarks/train.py $(CORPUS)
	$(BIN)/python benchmarks/stages.py $(CORPUS)

clean:
	rm -rf $(VENV) demo dist build

$(VENV)/.pip:
	@test -n "$(PYTHON)" || { echo "no Python 3.10 to 3.13 found; say where: make PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'  # for dependency groups
	@touch $@

# The demo installs the wheel, as a user would; development installs the sources in place.
$(VENV)/.demo: $(VENV)/.pip pyproject.toml $(shell find raybpe -name '*.py')
	$(BIN)/python -m pip install --quiet '.[verify]'
	@touch $@
	@rm -f $(VENV)/.test

$(VENV)/.test: $(VENV)/.pip pyproject.toml
	$(BIN)/python -m pip install --quiet --group test -e .
	@touch $@
	@rm -f $(VENV)/.demo

$(VENV)/.lint $(VENV)/.bench: $(VENV)/.%: $(VENV)/.pip pyproject.toml
	$(BIN)/python -m pip install --quiet --group $*
	@touch $@
