# `make` alone lists the targets. A fresh clone needs Python 3.11 or newer, make and git. The first target creates the virtual
# environment; it is updated when a lock file or pyproject.toml changes.
#   VENV=/some/where make test     keeps the environment elsewhere
#   PYTHON=python3.12 make test    builds it with that interpreter
#   JOBS=2 make test               runs as many tests at once; they wait a third of their time, so more than processors is good

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV ?= .venv
PYTHON ?=
JOBS ?= 3
CHECKED ?= dbos-sqlite pgqueuer
CHECK = --rounds 5 $(foreach peer,$(CHECKED),--peer $(peer)) $(foreach work,W1 W2 W3 W4,--workload $(work))
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RUN_STAMP := $(VENV)/.runs

.PHONY: help install demo ui ui-types screenshots ui-bench test check fmt bench bench-baseline bench-check chaos pythons docs lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(STAMP) ## Create the virtual environment from the lock file

$(STAMP): requirements.lock pyproject.toml scripts/setup.sh
	@PYTHON="$(PYTHON)" scripts/setup.sh "$(VENV)"
	@touch $@ $(RUN_STAMP)

# Enough to run NoETL; $(STAMP) completes it.
$(RUN_STAMP): requirements-run.lock pyproject.toml scripts/setup.sh
	@PYTHON="$(PYTHON)" scripts/setup.sh "$(VENV)" requirements-run.lock
	@touch $@

UI := src/noetl/server/static/index.html
UI_MODULES := ui/node_modules/.package-lock.json

$(UI_MODULES): ui/package-lock.json
	@if command -v npm >/dev/null; then cd ui && npm install --no-audit --no-fund --silent && touch node_modules/.package-lock.json; fi

# The web UI. Without npm, the server has a plain page in its place.
$(UI): $(UI_MODULES) $(shell find ui -path ui/node_modules -prune -o -type f -print)
	@if command -v npm >/dev/null; then cd ui && npm run --silent build; else echo "make ui: no npm here; the server shows a plain page."; fi

ui: $(UI) ## Build the web UI into the package (needs Node 20.19 or newer)

ui-types: $(STAMP) $(UI_MODULES) ## Write the UI's types of the API from the route table, and its words
	$(BIN)/python scripts/ui_types.py ui/src/api/openapi.json
	$(BIN)/python scripts/ui_glossary.py ui/src/words/glossary.ts
	cd ui && npm run --silent types

screenshots: $(STAMP) $(UI) ## Take pictures of every screen of the web UI into docs/images/ui (needs Chromium)
	@scripts/chromium.sh
	PYTHONPATH=. $(BIN)/python scripts/screenshots.py

demo: $(RUN_STAMP) $(UI) ## Start a server with a worker and run playbooks on it; Ctrl-C stops it
	@PATH="$(abspath $(BIN)):$$PATH" scripts/demo.sh

PROVIDER := tests/oidc/node_modules/.package-lock.json

# A real OpenID Connect provider. Without npm, the tests that sign in with it are skipped.
$(PROVIDER): tests/oidc/package-lock.json
	@if command -v npm >/dev/null; then cd tests/oidc && { npm ci --no-audit --no-fund --silent || npm install --no-audit --no-fund --silent; }; fi

test: $(STAMP) ## Run every check and every test; CI runs exactly this
	@$(MAKE) --no-print-directory --jobs=2 check ui $(PROVIDER) # side by side
	@scripts/chromium.sh
	@scripts/prometheus.sh $(VENV)/prometheus
	@scripts/clickhouse.sh $(VENV)/clickhouse $(BIN)/python
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup

check: $(STAMP) ## Check format, lint, types, import contracts and the English of code and docs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python scripts/voice.py & voice=$$!; $(BIN)/mypy && $(BIN)/lint-imports && wait $$voice # side by side

fmt: $(STAMP) ## Format the code and apply safe lint fixes
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

bench: $(STAMP) ## Measure NoETL and its peers in turns, save the results and print ratios (needs uv)
	$(BIN)/python bench/run.py --save
	$(BIN)/python scripts/docs.py

ui-bench: $(STAMP) $(UI) ## Measure the web UI in Chromium against its budgets (needs Chromium)
	@scripts/chromium.sh
	$(BIN)/python bench/ui.py --save
	$(BIN)/python scripts/docs.py

bench-baseline: $(STAMP) ## Write the baseline of `make bench-check` on this machine
	$(BIN)/python bench/run.py --save baseline $(CHECK)

bench-check: $(STAMP) ## Compare a short run with the baseline; fail on a loss of more than 15 %
	$(BIN)/python bench/run.py --check $(CHECK)

chaos: $(STAMP) ## Run the long mutation and fault tests, and every law with new random examples
	HYPOTHESIS_PROFILE=chaos $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup -m "chaos or hypothesis"

pythons: ## Run the fast tests on the other supported Pythons that this machine has
	JOBS=$(JOBS) scripts/pythons.sh

docs: $(STAMP) ## Regenerate the reference pages in docs/reference/ from the code
	$(BIN)/python scripts/docs.py

lock: ## Resolve the lock files from pyproject.toml (needs uv)
	scripts/lock.sh

clean: ## Delete the environment and all caches
	[ ! -e "$(VENV)/pyvenv.cfg" ] || rm -rf "$(VENV)"
	rm -rf build dist src/noetl/server/static ui/node_modules .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests bench scripts -type d -name __pycache__ -prune -exec rm -rf {} +
