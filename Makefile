# `make run` and `make test` do all of their own set-up: Python 3.11 and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet

# Without bytecode on disk every process of a test run would compile all of it anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run test test-fast test-cgroup2 test-versions lint bench chaos agreement lock clean

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.run: requirements.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "preparing $(VENV) ..." >&2
	@$(PIP) install --require-hashes -r requirements-build.lock -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.run requirements-dev.lock
	@echo "preparing the development tools ..." >&2
	@$(PIP) install --require-hashes -r requirements-dev.lock
	@touch $@

$(VENV)/.bench: $(VENV)/.dev requirements-bench.lock
	@$(PIP) install --require-hashes -r requirements-bench.lock
	@touch $@

run: $(VENV)/.run ## a live cluster with load, on nothing but Python
	@$(BIN)/bayplan up $(ARGS)

FAST := pytest -n 2 -m "not slow"

test: lint ## everything: style, types, layers, all tests, real parts included
	@$(BIN)/$(FAST) $(ARGS)
	@$(BIN)/bayplan lab doctor --build || echo "no lab here: the tests that need one say so and are skipped" >&2
	@$(BIN)/pytest -m slow $(ARGS)

test-fast: $(VENV)/.dev ## the tests that take no time, with fewer examples of each property
	@$(BIN)/$(FAST) --hypothesis-profile=quick $(ARGS)

test-cgroup2: $(VENV)/.dev ## control groups of version 2, in a small QEMU machine
	@$(BIN)/python -m tests.node.cgroup.machine $(ARGS)

# The oldest and the newest Kubernetes that the lab builds, and the tests that speak to a cluster.
VERSIONS ?= 1.35 1.37
ON_A_CLUSTER := tests/ledger/shell tests/ledger/chaos tests/ledger/rights tests/cluster/contract tests/cluster/live \
	tests/cluster/served tests/cluster/test_lab_releases.py tests/stories \
	tests/simulate/test_lab_run.py tests/simulate/vms/test_live.py \
	tests/cli/test_lab.py tests/cli/test_kubectl_parity.py tests/cli/test_explain_live.py tests/cli/test_twin_live.py

test-versions: $(VENV)/.dev ## what speaks to a cluster, on the oldest and the newest Kubernetes (an hour)
	@for minor in $(VERSIONS); do \
		$(BIN)/bayplan lab doctor --build --kubernetes $$minor && \
		BAYPLAN_LAB_KUBERNETES=$$minor $(BIN)/pytest -m slow $(ON_A_CLUSTER) $(ARGS) || exit 1; \
	done

lint: $(VENV)/.dev ## style, types and layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: $(VENV)/.bench ## our figures beside a peer's, from the same run
	@$(BIN)/python -m benchmarks $(ARGS)

chaos: $(VENV)/.dev ## the ledger under faults, beside what etcd held (minutes)
	@$(BIN)/bayplan lab doctor --build
	@$(BIN)/python -m tests.ledger.chaos $(ARGS)

agreement: $(VENV)/.run ## 10,000 decisions beside a real kube-scheduler
	@$(BIN)/bayplan lab doctor --build
	@$(BIN)/python -m bayplan.conformance.agreement $(ARGS)

lock: ## write the lock files anew (needs uv on PATH)
	@compile="uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade"; \
	$$compile --group build -o requirements-build.lock; \
	$$compile pyproject.toml -o requirements.lock; \
	for g in dev bench; do $$compile pyproject.toml --group $$g -o requirements-$$g.lock; done

clean: ## remove what make made
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis .import_linter_cache
