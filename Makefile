# `make run` starts everything, `make test` tests everything; both set up what they need first.
# Quiet and repeatable: each step leaves a stamp and is skipped until what it was made from changes.

PORT ?= 8000
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
export PORT
PIP = .venv/bin/python -m pip --disable-pip-version-check --no-input -qq
TEMPLATES = $(wildcard templates */templates)
STATIC_SOURCES = $(shell find agentapp accounts conversations tools_admin -path '*/static/*' -type f)

.PHONY: run test test-processes test-computing lint format shell setup lock

run: setup
	@exec .venv/bin/python manage.py up

setup: .venv/.run node_modules/.run var/static/.stamp
	@:

# All of them as two halves beside each other: one computes while the other waits for processes. `ARGS=…` runs those.
PYTEST = .venv/bin/python -m pytest
test: .venv/.dev setup
ifdef ARGS
	@$(PYTEST) $(ARGS)
else
	@$(MAKE) --no-print-directory -j2 test-processes test-computing
endif

test-processes:
	@$(PYTEST) -m processes

# Its report comes when it is whole.
test-computing:
	@$(PYTEST) -m "not processes" >var/test-computing.log 2>&1; code=$$?; cat var/test-computing.log; exit $$code

lint: .venv/.dev node_modules/.dev setup
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy .
	.venv/bin/lint-imports
	.venv/bin/djhtml --check $(TEMPLATES)
	.venv/bin/python -m agentapp.embedded.testing .venv/bin/python manage.py makemigrations --check --dry-run
	@$(NODE) npx --no-install tsc --noEmit -p .

format: .venv/.dev
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .
	.venv/bin/djhtml $(TEMPLATES)

shell: setup
	@exec .venv/bin/python manage.py shell

# Needs uv. The locks hold hashes and no addresses, so that every mirror will do.
COMPILE = uv pip compile --quiet --generate-hashes --universal --no-header --python-version 3.11 $(UPGRADE)
lock:
	$(COMPILE) pyproject.toml -o requirements.lock
	$(COMPILE) pyproject.toml --extra embedded -c requirements.lock -o requirements-embedded.lock
	$(COMPILE) pyproject.toml --extra embedded --group dev -c requirements-embedded.lock -o requirements-dev.lock
	$(COMPILE) --group node -o requirements-node.lock

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed (python3 -m venv must work). Set PYTHON=… if it has another name."; exit 1; }
	@echo "Creating .venv"
	@$(PYTHON) -m venv .venv || { rm -rf .venv; echo "$(PYTHON) cannot make virtual environments: on Debian and Ubuntu, install python3-venv."; exit 1; }

.venv/.run: requirements-embedded.lock | .venv/bin/python
	@echo "Installing Python packages"
	@$(PIP) install --require-hashes -r $<
	@touch $@

.venv/.dev: requirements-dev.lock .venv/.run
	@echo "Installing Python packages for development"
	@$(PIP) install --require-hashes -r $<
	@touch $@

# The system's Node.js when it is recent enough, else the one that a wheel brings into .venv.
# It trusts the certificates that the system trusts, such as those of a company's proxy.
NODE = export NODE_USE_SYSTEM_CA=1 PATH="$(CURDIR)/.venv/node:$$PATH";
.venv/node: requirements-node.lock | .venv/bin/python
	@mkdir -p $@
	@if ! node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2>/dev/null || ! command -v npm >/dev/null; then \
		echo "Installing Node.js into .venv"; \
		$(PIP) install --require-hashes -r $< && ln -sf ../bin/node ../bin/npm ../bin/npx $@; \
	fi
	@touch $@

node_modules/.run: package-lock.json .npmrc | .venv/node
	@echo "Installing front-end libraries"
	@$(NODE) npm ci --ignore-scripts --omit=dev --no-audit --no-fund --no-update-notifier --loglevel=error >/dev/null
	@touch $@

node_modules/.dev: package-lock.json .npmrc | .venv/node
	@echo "Installing front-end libraries and tools"
	@$(NODE) npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error >/dev/null
	@touch node_modules/.run $@

var/env: | .venv/.run
	@.venv/bin/python -m agentapp.embedded.environment

var/static/.stamp: .venv/.run node_modules/.run $(STATIC_SOURCES) | var/env
	@echo "Collecting static files"
	@.venv/bin/python manage.py collectstatic --no-input --verbosity 0 --ignore languages
	@touch $@
