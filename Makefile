# Each target sets up what it needs. Everything made lies in .venv, .venvs and build; `make clean` removes it.

PYTHON ?= python3
# The Taskgraphs that tests/graph runs on besides the newest, each in an environment of its own.
OLDER = 15.1.3 18.1.0 22.0.0
PYTHON39 := $(shell tools/find-python 3.9)
# Merlin, which some tests launch workers of, has an environment of its own, where they can run.
# With celery 5.7.0 it never runs the second step of a chain.
MERLIN = merlin==1.13.0 'celery<5.7'
MERLIN_FOR_TESTS := $(and $(shell command -v slurmctld),$(shell command -v redis-server),.venvs/merlin/.test)

BIN = .venv/bin
PYTEST = -m pytest --numprocesses=auto --maxprocesses=4
# Those of launch/ and schedulers/ are parts: tests check the whole scripts that they make up.
SHELL_FILES = .ci/run tools/find-python taskgraph_workers/detect.sh $(wildcard examples/*/*.sh)

export PIP_DISABLE_PIP_VERSION_CHECK = 1
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV

.PHONY: help demo test test-newest test-py39 $(OLDER:%=test-%)
.PHONY: lint format types contracts docs bench clean
# The order of the test runs is part of what `make test` promises.
.NOTPARALLEL:

help:
	@echo "make demo       which tasks of the example pipeline move under another profile, and a training"
	@echo "make test       every test on the newest Taskgraph, most on Python 3.9, tests/graph on Taskgraph $(OLDER)"
	@echo "make lint       style, Python 3.9 compatibility, shell scripts"
	@echo "make format     let ruff rewrite the code in the house style"
	@echo "make types      mypy --strict"
	@echo "make contracts  which part may import which"
	@echo "make docs       the documentation, in build/docs"
	@echo "make bench      what placing a task, launching workers and dispatching trainings cost"
	@echo "make clean      remove all that the other targets made"

# --- set-up: a stamp in each environment tells when it was last brought up to setup.cfg ---

# In variables, since a comma would part the arguments of `call`.
DEMO = --editable '.[dispatch]'
TEST = --editable '.[test]'
DEV = --editable '.[dev,test]'
DOCS = --editable '.[docs]'
CELERY = --editable '.[dispatch]' 'celery[redis]'

# $(call environment,FOLDER,INTERPRETER,WHAT TO INSTALL)
define environment
@echo "Setting up $(1) ..."
@$(2) -m venv $(1)
@$(1)/bin/python -m pip install -qq --upgrade $(3)
@touch $@
endef

.venv/.demo: setup.cfg pyproject.toml
	$(call environment,.venv,$(PYTHON),$(DEMO))

.venv/.test: setup.cfg pyproject.toml
	$(call environment,.venv,$(PYTHON),$(TEST) taskcluster-taskgraph)
	@touch .venv/.demo

.venv/.dev: setup.cfg pyproject.toml
	$(call environment,.venv,$(PYTHON),$(DEV) taskcluster-taskgraph)
	@touch .venv/.demo .venv/.test

# Documentation needs none of what tests and checks do, some of which has no wheel everywhere.
.venv/.docs: setup.cfg pyproject.toml
	$(call environment,.venv,$(PYTHON),$(DOCS))

.venvs/taskgraph-%/.test: setup.cfg pyproject.toml
	$(call environment,.venvs/taskgraph-$*,$(PYTHON),$(TEST) taskcluster-taskgraph==$*)

.venvs/python3.9/.test: setup.cfg pyproject.toml
	$(call environment,.venvs/python3.9,$(PYTHON39),$(TEST) taskcluster-taskgraph)

.venvs/merlin/.test: Makefile
	$(call environment,.venvs/merlin,$(PYTHON),$(MERLIN))

# Celery, which `make bench` compares with, does there what our dispatcher does.
.venvs/celery/.bench: setup.cfg Makefile
	$(call environment,.venvs/celery,$(PYTHON),$(CELERY))

# --- the main job ---

DISPATCH = TASKGRAPH_WORKERS_STATE=build/demo $(BIN)/taskgraph-workers dispatch

# `plan` exits 1 when the profiles differ, which is what is to be seen here.
demo: .venv/.demo
	@for profile in gcp-standard onprem; do \
	    echo; \
	    $(BIN)/taskgraph-workers plan --root taskcluster --level 1 --from gcp-spot --profile $$profile; \
	    code=$$?; [ $$code -le 1 ] || exit $$code; \
	done
	@echo; echo "A start message, and the training that it asks for:"
	@rm -rf build/demo
	@$(DISPATCH) send examples/dispatch/start.json
	@$(DISPATCH) run --config examples/dispatch/config.yml --until-idle
	@$(DISPATCH) status c3feb8b2-287e-11e8-b467-0ed5f89f718b
	@$(DISPATCH) ends

# --- tests; the newest Taskgraph runs them all, and last ---

test: $(OLDER:%=test-%) test-py39 test-newest

$(OLDER:%=test-%): test-%: .venvs/taskgraph-%/.test
	@echo "== tests/graph on Taskgraph $*"
	@EXPECTED_TASKGRAPH=$* .venvs/taskgraph-$*/bin/python $(PYTEST) tests/graph

ifneq ($(PYTHON39),)
test-py39: .venvs/python3.9/.test $(MERLIN_FOR_TESTS)
	@echo "== every test on Python 3.9, but for those that the newest runs for all"
	@.venvs/python3.9/bin/python $(PYTEST) -m 'not once'
else
test-py39:
	@echo "== no Python 3.9 here, so no test runs on it; \`make lint\` checks what 3.9 can parse and import"
endif

test-newest: .venv/.test $(MERLIN_FOR_TESTS)
	@echo "== every test on the newest Taskgraph"
	@$(BIN)/python $(PYTEST)

# --- checks ---

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/vermin --quiet --no-tips --violations --target=3.9- taskgraph_workers
	@if command -v shellcheck >/dev/null; then \
	    echo shellcheck $(SHELL_FILES); shellcheck $(SHELL_FILES); \
	else echo "shellcheck is not installed: the shell scripts are not checked"; fi

format: .venv/.dev
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

types: .venv/.dev
	$(BIN)/mypy

contracts: .venv/.dev
	$(BIN)/lint-imports setup.cfg --no-cache --no-logo

docs: .venv/.docs
	$(BIN)/sphinx-build -q -n -W --keep-going docs build/docs

bench: .venv/.test .venvs/merlin/.test
	$(BIN)/python -m benchmarks
bench: $(if $(shell command -v redis-server),.venvs/celery/.bench)

clean:
	rm -rf .venv .venvs build *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
