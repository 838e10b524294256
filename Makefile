# Every target creates what it needs: a virtual environment in .venv and, if the system lacks the venv module and we are
# root, the package that contains it.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
LOCK   := requirements/dev.lock

UNIVERSAL := --universal --python-version 3.11 --no-header --no-annotate

# The tests start hundreds of Python processes: each would compile the modules again.
quick test: export PYTHONDONTWRITEBYTECODE =

.PHONY: help site sbom dist demo quick test check format bench docs lock pictures browser clean man

help:
	@echo "make demo      crawl and refresh a generated web on this machine"
	@echo "make quick     lint, types and the tests that need no server, browser or process of their own"
	@echo "make test      format, lint, types, import contracts and all tests"
	@echo "make check     the same without the tests"
	@echo "make format    format the code and apply automatic fixes"
	@echo "make bench     measure speed against other crawlers (in an environment of their own), and of the lab"
	@echo "make docs      regenerate the generated pages of docs/"
	@echo "make lock      renew the lock files in requirements/"
	@echo "make dist      build the wheel, man pages included, and the source archive"
	@echo "make sbom      write sbom.json: the packages of .venv, in the format of CycloneDX"
	@echo "make site      build the documentation as a web site in site/"
	@echo "make pictures  retake the pictures of the dashboard"
	@echo "make clean     remove .venv and caches"

$(STAMP): pyproject.toml $(LOCK)
	@$(PYTHON) -c 'import sys; sys.exit("recrawl needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || { \
	  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null || { echo "Python's venv module is missing: install it (Debian: python3-venv) and run make again" >&2; exit 1; }; \
	  apt-get update -qq && apt-get install -y -qq python3-venv && $(PYTHON) -m venv $(VENV); }
	@echo "installing recrawl into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(LOCK) --editable ".[dev]" || { \
	  echo "the versions of $(LOCK) cannot be installed here: installing the newest that pyproject.toml allows" >&2; \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"; }
	@touch $@

demo: $(STAMP)
	$(BIN)/recrawl demo

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The dashboard tests drive a real browser; without one, and if none can be installed, they are skipped.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || { \
	  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && { \
	    echo "installing chromium ..."; apt-get update -qq && apt-get install -y -qq chromium >/dev/null; }; } || \
	  echo "no Chromium found: the dashboard tests will be skipped (Debian: install the package chromium)"

quick: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -m quick -n auto --dist loadgroup -p no:schemathesis

test: check browser
	$(BIN)/python -m pytest -n auto --dist loadgroup

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(STAMP)
	$(BIN)/python -m benchmarks

docs: $(STAMP)
	$(BIN)/python -m recrawl.cli.reference docs/reference
	$(BIN)/python -m tests.misbehaving docs/reference/failures.md
	$(BIN)/python -m tests.visit_diagram docs/concepts/visits.md

# Man pages, from the help of the commands.
man: $(STAMP)
	$(BIN)/python -m recrawl.cli.manual man/man1

# The wheel and the source archive, man pages included.
dist: man
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check build
	rm -rf dist && $(BIN)/python -m build --outdir dist

# The newest versions that pyproject.toml allows, for every supported version of Python.
lock: $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile --quiet --upgrade $(UNIVERSAL) pyproject.toml --extra dev --output-file $(LOCK)
	for peer in pywb wacz; do $(BIN)/uv pip compile --quiet --upgrade $(UNIVERSAL) requirements/$$peer.in --output-file requirements/$$peer.lock; done

# The documentation with search and the docstrings; broken links fail.
site: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# What is installed in .venv, with versions and licences.
sbom: $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check cyclonedx-bom
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --output-file sbom.json $(BIN)/python

pictures: $(STAMP) browser
	$(BIN)/python -m benchmarks.pictures docs/pictures

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
