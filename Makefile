# popagent: `make up` runs it, `make test` proves it. Needs Python 3.11 or newer, nothing else.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV := .venv
PY := $(VENV)/bin/python
UI := services/gateway/ui
# Tests wait for servers as well as compute, so two cores carry three workers; the long stories of tests/ are collected first.
PYTEST_ARGS ?= -n 3 --dist loadfile --no-loadscope-reorder
NAME ?= first-token
MINUTES ?= 30
CHAOS := tests/chaos libs/bus/tests/test_consuming.py libs/db/tests/test_pool.py libs/rows/tests/test_leased_properties.py \
  libs/rows/tests/test_lost_processes.py libs/rows/tests/test_outbox_nats.py services/chat/tests/test_outages.py \
  services/gateway/tests/test_outages.py services/task-runner/tests/test_bad_lines.py \
  services/task-runner/tests/test_lost_runners.py services/task-runner/tests/test_outages.py \
  services/task-runner/tests/test_task_properties.py
GENERATORS := popagent_proto.export popagent_gateway.export_openapi popagent_local.reference
LOCKS := requirements-build.lock requirements-ui.lock requirements.lock requirements-dev.lock
PAGE := services/gateway/popagent_gateway/static/index.html
PAGE_SOURCES := $(shell find $(UI) -name node_modules -prune -o -type f ! -name '*.test.*' -print 2>/dev/null)
MODULES := $(UI)/node_modules

# Where the home cannot be written to, uv and npm keep what they fetched in the clone.
CACHED := $(shell base="$${XDG_CACHE_HOME:-$$HOME/.cache}"; for folder in "$$base/uv" "$$base" "$$(dirname "$$base")"; do \
  if [ -e "$$folder" ]; then [ ! -w "$$folder" ] || echo yes; break; fi; done)
ifeq ($(UV_CACHE_DIR)$(CACHED),)
export UV_CACHE_DIR := $(CURDIR)/$(VENV)/.uv-cache
endif

.PHONY: help setup weights up test test-full chaos soak lint types contracts contracts-check bench wheel ui lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

setup: $(VENV)/.run page weights ## Install what popagent needs into .venv, build the page, fetch the model's weights

up: setup ## Run everything in the foreground; Ctrl-C stops all of it
	@exec $(PY) -m popagent_local up --with-parent $$PPID

test: checks ## Prove the product: lint, types, contracts, tests (about 12 minutes on two cores)
	@$(VENV)/bin/pytest -m "not full" $(PYTEST_ARGS)

test-full: checks ## The same, with chaos in full, the real model and the official clients
	@$(VENV)/bin/pytest $(PYTEST_ARGS)

# All that needs no running service, two at a time; what each says is printed when it is done.
.PHONY: checks
checks: ui-dev
	@$(MAKE) -j 2 $(if $(filter output-sync,$(.FEATURES)),--output-sync=target) types ui-test ui lint contracts-check chromium

chaos: $(VENV)/.dev ## Break everything once, at length: tests/chaos/README.md says what
	@$(VENV)/bin/pytest $(CHAOS)

soak: $(VENV)/.dev ## Work under random kills, and balance the books: make soak MINUTES=30
	@$(PY) tests/load/bench.py chaos $(MINUTES)

lint: $(VENV)/.dev ## Style and layers
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/lint-imports --no-logo

types: $(VENV)/.dev ui-check ## Static types
	@$(VENV)/bin/mypy libs services proto

contracts: $(VENV)/.dev ## Write schemas, OpenAPI, TypeScript and the configuration reference anew
	@for module in $(GENERATORS); do $(PY) -m $$module; done

contracts-check: $(VENV)/.dev
	@for module in $(GENERATORS); do $(PY) -m $$module --check; done

bench: $(VENV)/.dev ui ## Measure: make bench NAME=first-token
	@$(PY) tests/load/bench.py $(NAME)

wheel: $(VENV)/.dev ui ## Build dist/popagent-*.whl: everything that `pip install` needs
	@$(VENV)/bin/uv build --quiet --no-build-isolation --wheel --out-dir dist .
	@ls -l dist/*.whl

ui: $(PAGE) ## Build the web page, if anything of it changed
	@:

# The rest works without the page, so that a machine without a package registry gets a suite and is told what it lacks.
.PHONY: page ui-dev ui-check ui-test chromium
page: $(VENV)/.run
	@$(MAKE) ui || echo "The web page was not built; \`make ui\` tries again. Everything else works." >&2

# What the page is built from, and in a clone that is worked on, what checks it.
$(MODULES)/.run: $(UI)/package-lock.json $(UI)/.npmrc | $(VENV)/.run
	@echo "setup: installing what builds the page"
	@$(with_node); if [ -e $(MODULES)/.dev ]; then cd $(UI); npm ci; touch node_modules/.dev; \
	  else cd $(UI); npm ci --omit=dev; fi
	@touch $@

$(MODULES)/.dev: $(UI)/package-lock.json $(UI)/.npmrc | $(VENV)/.dev
	@echo "setup: installing what builds and checks the page"
	@$(with_node); cd $(UI); npm ci
	@touch $(MODULES)/.run $@

$(PAGE): $(PAGE_SOURCES) | $(MODULES)/.run
	@echo "setup: building the page"
	@$(with_node); cd $(UI); npm run --silent build -- --logLevel warn

ui-dev: $(MODULES)/.dev
	@:

ui-check: $(MODULES)/.dev
	@$(with_node); cd $(UI); npm run --silent check

ui-test: $(MODULES)/.dev
	@$(with_node); cd $(UI); npm run --silent test

# Looks at the page in tests; where it cannot be installed they are skipped and say so. Without windows it needs a third
# of the processor time, so that is tried first; a whole browser will do.
chromium:
	@for name in chromium-headless-shell chrome-headless-shell; do \
	  if command -v $$name >/dev/null; then exit 0; fi; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "setup: installing chromium for the browser tests"; \
	  export DEBIAN_FRONTEND=noninteractive; \
	  install="timeout 240 apt-get -qq install --no-install-recommends"; \
	  if { timeout 60 apt-get -qq update && $$install chromium-headless-shell; } >/dev/null 2>&1; then exit 0; fi; fi; \
	for name in chromium chromium-browser google-chrome google-chrome-stable; do \
	  if command -v $$name >/dev/null; then exit 0; fi; done; \
	if [ -z "$${install:-}" ] || ! $$install chromium >/dev/null 2>&1; then \
	  echo "Chromium could not be installed; the browser tests are skipped." >&2; fi

# An endpoint of your own needs no weights. Without a network the rest still works, and `up` says what is missing.
weights: $(VENV)/.run
	@if [ -z "$${POPAGENT_MODEL_URL:-}" ] && ! grep -qsE '^(export )?POPAGENT_MODEL_URL=.' .env; then \
	  $(PY) -m popagent_local model pull || echo "The model's weights are missing; \`make weights\` tries again." >&2; fi

lock: $(VENV)/.dev ## Write the lock files anew from pyproject.toml
	@for out in $(LOCKS); do \
	  case $$out in \
	    *-build.lock|*-ui.lock) input=$${out%.lock}.in; extra= ;; \
	    *dev*) input=pyproject.toml; extra="--group dev" ;; \
	    *) input=pyproject.toml; extra= ;; \
	  esac; \
	  $(VENV)/bin/uv pip compile --system-certs --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	    --no-header --no-annotate $$input $$extra --output-file $$out; \
	done

clean: ## Remove what was built; data in .popagent and the weights stay
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis $(MODULES) $(dir $(PAGE))

# The machine's Node where it is new enough, else the one of requirements-ui.lock.
define with_node
export npm_config_cache="$(CURDIR)/.popagent/node/npm"; \
if ! { command -v npm && node -e \
  '[a, b] = process.versions.node.split("."); process.exit(a > 22 || (a == 22 && b > 11) || (a == 20 && b > 18) ? 0 : 1)'; } \
  >/dev/null 2>&1; then \
  if [ ! -x $(VENV)/bin/npm ]; then echo "setup: installing Node into $(VENV)"; \
    $(VENV)/bin/uv pip install --system-certs --quiet --python $(PY) --require-hashes -r requirements-ui.lock; fi; \
  export PATH="$(CURDIR)/$(VENV)/bin:$$PATH"; fi
endef

# A venv whose interpreter is gone (an upgraded Python) is made again.
ifeq ($(wildcard $(PY)),)
.PHONY: $(VENV)/.build
endif

# uv installs four times faster than pip; pip brings it, checked against its digest.
$(VENV)/.build: requirements-build.lock
	@found=; for python in python3.13 python3.12 python3.11 python3.14 python3 python; do \
	  if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "popagent needs Python 3.11 or newer; found: $$(python3 --version 2>&1 || echo none)." >&2; exit 1; fi; \
	echo "setup: $$($$found --version) into $(VENV)"; \
	"$$found" -m venv --clear $(VENV) || { \
	  echo "This Python cannot make a venv. On Debian or Ubuntu: apt install python3-venv" >&2; exit 1; }; \
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-build.lock
	@touch $@

define install
	@echo "setup: installing $(1)"
	@$(VENV)/bin/uv pip install --system-certs --quiet --python $(PY) --require-hashes $(addprefix -r ,$(1))
	@$(VENV)/bin/uv pip install --system-certs --quiet --python $(PY) --no-deps --no-build-isolation --editable .
endef

$(VENV)/.run: $(VENV)/.build requirements.lock pyproject.toml
	$(call install,requirements.lock)
	@touch $@

$(VENV)/.dev: $(VENV)/.run requirements-dev.lock
	$(call install,requirements-dev.lock)
	@touch $@
