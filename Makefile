# `make` lists what there is to do. Every target does the set-up that it needs, once.
#
# Variables: PYTHON=python3.12 (the interpreter of .venv), PORT=8000 (make serve),
#            PYODIDE=cdn (make site: take Pyodide's large files from a CDN in place of hosting them),
#            ARGS="-k name" (make unit, make browser: passed to pytest), WORKERS=2 (make test: processes),
#            EXAMPLES="mnist" (make examples: those alone).

PYTHON  ?= python3
PORT    ?= 8000
PYODIDE ?= self
ARGS    ?=
EXAMPLES ?=
WORKERS ?= 2

PY      := .venv/bin/python
PACKAGE := $(shell find tensorgrad -type f -not -path '*/__pycache__/*' 2>/dev/null)
WEB     := $(shell find web -type f 2>/dev/null)
DOCS    := $(wildcard tools/docs_*.py docs/*.md docs/*.txt docs/examples/* examples/*.py) README.md ARCHITECTURE.md CHANGELOG.md
TIMED   := tests/browser/test_a_fresh_page.py tests/browser/test_a_load.py
export PORT PYODIDE

.DEFAULT_GOAL := help
.PHONY: help setup demo examples serve test lint unit doctest browser wheel site docs clean
.DELETE_ON_ERROR:

help: ## list the targets
	@echo "make TARGET, where TARGET is one of"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1|\2/p' Makefile | while IFS='|' read -r name text; do printf '  %-9s %s\n' $$name "$$text"; done

setup: build/.python build/.pyodide ## install everything that the other targets need (they do it themselves)

demo: build/.site ## train a digit classifier in headless Chromium, picture in out/
	@PYTHONPATH=.:examples $(PY) tools/demo.py

examples: build/.site ## train every example in full in headless Chromium, report in docs/examples.md
	@PYTHONPATH=.:examples $(PY) tools/train_examples.py $(EXAMPLES)

serve: build/.site ## serve the site with the Python REPL on http://127.0.0.1:$(PORT)
	@$(PY) tools/serve.py

# Two files measure times and come first, alone. The files of the others go to several processes, each with a
# browser of its own: while shaders compile in one, Python runs in another. What takes longest comes first.
test: build/.site build/.puppeteer ## run everything: lint, doctests, unit tests, tests in the browser
	$(PY) -m pytest -q $(TIMED)
	@$(MAKE) --no-print-directory -j2 $(if $(filter output-sync,$(.FEATURES)),-O) lint doctest
	$(PY) -m pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(addprefix --ignore=,$(TIMED)) tests/browser tests/unit $(ARGS)

lint: build/.python ## ruff and pyright
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m pyright

doctest: build/.python ## the examples in docstrings
	$(PY) -m pytest -q --doctest-modules tensorgrad $(ARGS)

unit: build/.mnist build/.names ## tests on CPython, no browser
	$(PY) -m pytest -q tests/unit $(ARGS)

browser: build/.site build/.puppeteer ## tests in headless Chromium and Firefox
	$(PY) -m pytest -q tests/browser $(ARGS)

wheel: build/.wheel ## dist/tensorgrad_webgpu-*.whl

site: build/.site ## the static site in build/site/

docs: build/.site ## the documentation, which is part of the site, in build/site/docs/

clean: ## remove what was built; downloads and .venv stay
	rm -rf dist out build/site build/wheel build/data build/.wheel build/.site build/.mnist build/.names

# Stamps: each is the time when its step last succeeded.

build/.system: tools/system.py
	@mkdir -p build
	@$(PYTHON) tools/system.py
	@touch $@

build/.python: build/.system tools/requirements.txt pyproject.toml
	@test -x $(PY) || $(PYTHON) -m venv .venv
# A .venv that is a link belongs to another checkout: an editable installation from here would turn that one to these sources.
	@if [ -L .venv ]; then echo ".venv is a link: nothing is installed into it"; else \
	  echo "installing Python packages into .venv"; \
	  $(PY) -m pip install --quiet --disable-pip-version-check -r tools/requirements.txt && \
	  $(PY) -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .; fi
	@touch $@

build/.downloads: tools/fetch_pyodide.py | build/.python
	@$(PY) tools/fetch_pyodide.py
	@touch $@

build/.pyodide: build/.downloads tools/compile_pyodide.py tools/bytecode.py tools/bytecode.mjs
	@$(PY) tools/compile_pyodide.py
	@touch $@

build/.puppeteer: tools/fetch_puppeteer.py tools/vendor.py web/vendor.json | build/.python
	@$(PY) tools/fetch_puppeteer.py
	@touch $@

build/.mnist: tools/fetch_mnist.py | build/.python
	@$(PY) tools/fetch_mnist.py
	@touch $@

build/.names: tools/fetch_names.py | build/.python
	@$(PY) tools/fetch_names.py
	@touch $@

build/.wheel: tools/build_wheel.py pyproject.toml README.md LICENSE $(PACKAGE) | build/.python
	@$(PY) tools/build_wheel.py
	@touch $@

build/.site: build/.wheel build/.pyodide build/.mnist build/.names tools/assemble_site.py tools/pages.py tools/vendor.py $(DOCS) $(WEB) build/.choice-$(PYODIDE)
	@PYTHONPATH=. $(PY) tools/assemble_site.py
	@touch $@

# Another choice of PYODIDE than last time makes the site anew.
build/.choice-$(PYODIDE):
	@rm -f build/.choice-*
	@touch $@
