# popagent: `make up` runs it, `make test` proves it. Needs Python 3.11 or newer, nothing else.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV := .venv
PY := $(VENV)/bin/python
UI := services/gateway/ui
PYTEST_ARGS ?= -n 2 --dist loadfile
NAME ?= first-token
GENERATORS := popagent_proto.export popagent_gateway.export_openapi popagent_local.reference
LOCKS := requirements-build.lock requirements.lock requirements-dev.lock

# Where the home cannot be written to, uv and npm keep what they fetched in the clone.
CACHED := $(shell base="$${XDG_CACHE_HOME:-$$HOME/.cache}"; for folder in "$$base/uv" "$$base" "$$(dirname "$$base")"; do \
  if [ -e "$$folder" ]; then [ ! -w "$$folder" ] || echo yes; break; fi; done)
ifeq ($(UV_CACHE_DIR)$(CACHED),)
export UV_CACHE_DIR := $(CURDIR)/$(VENV)/.uv-cache
endif

.PHONY: help setup weights up test test-full lint types contracts contracts-check bench wheel ui lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

setup: $(VENV)/.run ui weights ## Install what popagent needs into .venv, build the UI, fetch the model's weights

up: setup ## Run everything in the foreground; Ctrl-C stops all of it
	@exec $(PY) -m popagent_local up --with-parent $$PPID

test: lint types contracts-check ## Prove the product: lint, types, contracts, tests (under 10 minutes)
	@$(VENV)/bin/pytest -m "not full" $(PYTEST_ARGS)

test-full: lint types contracts-check ## The same, with chaos in full, the real model and the official clients
	@$(VENV)/bin/pytest $(PYTEST_ARGS)

lint: $(VENV)/.dev ## Style and layers
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/lint-imports --no-logo

types: $(VENV)/.dev ## Static types
	@$(VENV)/bin/mypy libs services proto

contracts: $(VENV)/.dev ## Write schemas, OpenAPI, TypeScript and the configuration reference anew
	@for module in $(GENERATORS); do $(PY) -m $$module; done

contracts-check: $(VENV)/.dev
	@for module in $(GENERATORS); do $(PY) -m $$module --check; done

bench: $(VENV)/.dev ## Measure: make bench NAME=first-token
	@$(PY) tests/load/bench.py $(NAME)

wheel: $(VENV)/.dev ## Build dist/popagent-*.whl: everything that `pip install` needs
	@$(VENV)/bin/uv build --quiet --no-build-isolation --wheel --out-dir dist .
	@ls -l dist/*.whl

ui: $(if $(wildcard $(UI)/package.json),$(VENV)/.dev,$(VENV)/.run) ## Build the web UI
	@if [ -f $(UI)/package.json ]; then \
	  export PATH="$$PATH:$(CURDIR)/$(VENV)/bin" npm_config_cache="$(CURDIR)/.popagent/node/npm"; \
	  cd $(UI) && npm ci && npm run build; fi

# An endpoint of your own needs no weights. Without a network the rest still works, and `up` says what is missing.
weights: $(VENV)/.run
	@if [ -z "$${POPAGENT_MODEL_URL:-}" ] && ! grep -qsE '^(export )?POPAGENT_MODEL_URL=.' .env; then \
	  $(PY) -m popagent_local model pull || echo "The model's weights are missing; \`make weights\` tries again." >&2; fi

lock: $(VENV)/.dev ## Write the lock files anew from pyproject.toml
	@for out in $(LOCKS); do \
	  case $$out in \
	    *build*) input=requirements-build.in; extra= ;; \
	    *dev*) input=pyproject.toml; extra="--group dev" ;; \
	    *) input=pyproject.toml; extra= ;; \
	  esac; \
	  $(VENV)/bin/uv pip compile --system-certs --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	    --no-header --no-annotate $$input $$extra --output-file $$out; \
	done

clean: ## Remove what was built; data in .popagent and the weights stay
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis $(UI)/node_modules

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
