# Every target makes .venv by itself and uses it.
.DEFAULT_GOAL := help
SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
STAMP := $(VENV)/.installed
TESTS ?=
ARGS ?=

.PHONY: help setup java check lint types imports dependencies generated test unit integration acceptance cases demo ready crash explore bench fmt generate build clean distclean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z][a-z-]*:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# -- what has to be there

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Counterfoil needs Python 3.11 or newer; name one with make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

setup: $(STAMP) java ## .venv with everything, Java 17 and Maven (by apt where we are root on Debian or Ubuntu), Kafka's jars
	@$(BIN)/python -m counterfoil.parts

java:
	@bash tests/support/java.sh

# -- checking

check: lint types imports dependencies generated ## lint, format, types, layers, reasons for dependencies, generated files

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy -p counterfoil
	$(BIN)/mypy tests $(wildcard examples)

imports: $(STAMP)
	$(BIN)/lint-imports

dependencies: $(STAMP)
	$(BIN)/python -m tests.support.dependencies

generated: $(STAMP)
	$(BIN)/python -m tests.support.generated

# -- testing

# Those that kill processes have the machine for themselves; the others run two at a time.
test: setup ## every test, on a real PostgreSQL and a real Kafka (TESTS=path ARGS='-k word' for some)
ifeq ($(strip $(TESTS)$(ARGS)),)
	$(BIN)/pytest -n 2 --dist worksteal tests/unit tests/integration
	$(BIN)/pytest tests/acceptance
else
	$(BIN)/pytest $(or $(TESTS),tests) $(ARGS)
endif

unit: $(STAMP) ## the tests without I/O
	$(BIN)/pytest tests/unit $(ARGS)

integration: setup ## the tests on real parts
	$(BIN)/pytest tests/integration $(ARGS)

acceptance: setup ## the tests of the command line, with processes that are killed
	$(BIN)/pytest tests/acceptance $(ARGS)

cases: $(STAMP) ## each public fault case with its tests; fails for one without
	$(BIN)/python -m tests.support.cases

explore: $(STAMP) ## every order of events through the real core, each named trace, and the simulator (ARGS='--only T7', '--seed 42')
	@$(BIN)/python -m tests.explore $(ARGS)

# -- showing

demo: $(STAMP) ## 2,000 operations, a sink that misbehaves, a killed worker: lost 0, doubled 0 (ARGS='--brokers HOST:PORT')
	$(BIN)/counterfoil demo $(ARGS)

ready: setup ## three known operations on a real Kafka and PostgreSQL: a kill before the commit, temporary errors, an invalid payload
	@$(BIN)/python -m counterfoil.demo.ready $(ARGS)

crash: setup ## every failpoint with every fault, on real servers, and each guard removed once: lost 0, doubled 0 (ARGS='PLACE=FAULT' for some)
	@$(BIN)/python -m tests.crash $(ARGS)

bench: setup ## the figures of this machine, as one JSON object
	$(BIN)/counterfoil bench --json $(ARGS)

# -- writing

fmt: $(STAMP) ## format, and fix what lint can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

generate: $(STAMP) ## write the generated pages of docs/ again
	$(BIN)/python -m tests.support.generated --write

build: $(STAMP) ## sdist and wheel in dist/
	$(BIN)/hatchling build -d dist

clean: ## remove what tools leave behind
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -print0 | xargs -0 rm -rf

distclean: clean ## remove .venv too
	rm -rf $(VENV)
