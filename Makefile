# Every target builds its own .venv on a machine that has only Python >= 3.11 and pip.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help install demo test lint audit docs bench chaos format tables clean

help:            ## Show this help
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

install: .venv/.installed  ## Build .venv with everything that castpoi needs

.venv/.installed: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "castpoi needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing castpoi into .venv (the first time takes a minute or two)"
	@$(INSTALL) -e '.[serve,report]'
	@touch $@

.venv/.dev: .venv/.installed
	@$(INSTALL) -e '.[dev]'
	@touch $@

.venv/.bench: .venv/.dev
	@$(INSTALL) -e '.[dev,bench]'
	@touch $@

demo: install    ## Every step on a synthetic city, in a minute: prepare, train, evaluate, one table
	@$(BIN)/castpoi demo --out castpoi-demo --overwrite

test: .venv/.dev ## The fast test suite
	@$(BIN)/python -m pytest -n auto -q

lint: .venv/.dev ## ruff, mypy strict, import layers, pinned dependencies, plain English
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python tools/check_pins.py
	@$(BIN)/python tools/check_language.py
	@$(BIN)/python -m pip --disable-pip-version-check check

audit:           ## Known vulnerabilities of the pinned versions; needs a network
	@test -x .audit/bin/pip-audit || { $(PYTHON) -m venv .audit && .audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit==2.10.1; }
	@.audit/bin/pip-audit --strict --requirement constraints.txt --no-deps --disable-pip

format: .venv/.dev ## Format the code and fix what ruff can fix
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

tables: .venv/.dev ## Regenerate the tables of README and docs from results/
	@$(BIN)/python tools/result_tables.py

docs: .venv/.dev  ## The documentation as a site, in site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet && echo "open site/index.html; search needs: $(BIN)/python -m http.server -d site"

bench: .venv/.bench ## Speed and memory, as ratios within one run
	@$(BIN)/python -m benchmarks

chaos: .venv/.dev ## Kills, full disks, flipped bits, odd tables; under ten minutes
	@$(BIN)/python -m chaos

clean:           ## Remove everything that make has built
	@rm -rf .venv .audit castpoi-demo site
