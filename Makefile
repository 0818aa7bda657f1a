# The book's commands: `make` alone lists them. Each makes the environment .venv first when it is missing
# or when requirements.txt or pyproject.toml changed.
#   make PYTHON=python3.12 book         another Python
#   make PIP_ARGS="..." book            more arguments for pip, e.g. an index with CPU builds of torch
PYTHON ?= python3
PIP_ARGS ?=
PORT ?= 8000
CHAPTERS ?=
EXPERIMENTS ?=
SUBMISSIONS ?= assignments/samples
UNSAFE ?=

VENV := .venv
PY := $(VENV)/bin/python
HTML := _build/html
EXECUTED := _build/executed
# Everything the pages are made of: `make browser` and `make pdf` execute the chapters when one of these is newer.
SOURCES := $(wildcard results/*.json) $(shell find chapters lib assets tools intro.md errata.md references.bib _config.yml _toc.yml \
	-type f -not -path '*/__pycache__/*' -not -path '*/.ipynb_checkpoints/*' -not -path '*.egg-info/*' -not -name page.png 2>/dev/null)

export RESIDUAL_GD_PROGRESS := 0
export PYTHONUNBUFFERED := 1

.DEFAULT_GOAL := help
.PHONY: help venv book pdf texlive serve test lint nightly browser notebooks picture experiments course release grade \
	formgrader clean

help: ## list the commands
	@echo "The book's commands:"
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

venv: $(VENV)/.installed ## make or update the environment .venv

$(VENV)/.installed: requirements.txt pyproject.toml tools/make_venv.sh
	@sh tools/make_venv.sh $(PYTHON) $(PIP_ARGS)

book: $(VENV)/.installed ## execute every chapter afresh and build the pages; any warning is an error
	@$(PY) tools/build_book.py

$(EXECUTED)/record.json: $(VENV)/.installed $(SOURCES)
	@$(PY) tools/build_book.py --only-execute

$(HTML)/.complete: $(EXECUTED)/record.json
	@$(PY) tools/build_book.py --only-render

texlive:
	@sh tools/need_texlive.sh

pdf: texlive $(EXECUTED)/record.json ## make the PDF from the executed chapters (executes them first when needed), and test it
	@$(PY) tools/build_pdf.py
	@echo "== Reading the PDF"
	@$(PY) -m pytest tests/pdf -p no:cacheprovider

serve: $(VENV)/.installed ## serve the built pages on localhost (PORT=8000)
	@test -f $(HTML)/.complete || { echo "No pages yet: run 'make book' first." >&2; exit 1; }
	@echo "The book is at http://localhost:$(PORT)/ (Ctrl-C stops the server)."
	@$(PY) -m http.server --bind 127.0.0.1 --directory $(HTML) $(PORT)

lint: $(VENV)/.installed
	@echo "== Lint: ruff"
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .

# One thread a process, as in the build; several processes at a time.
test: export OMP_NUM_THREADS := 1
test: lint $(VENV)/.course ## lint, unit tests, and every chapter's outputs compared with a fresh run (nbval)
	@sh tools/need_bubblewrap.sh
	@echo "== Tests of the library and of the tools"
	@$(PY) -m pytest tests --ignore=tests/browser --ignore=tests/pdf -n auto --dist loadfile -p no:cacheprovider
	@echo "== Chapters: every stored output against a fresh run"
	@$(PY) -m pytest --nbval chapters --nbval-sanitize-with tests/nbval_sanitize.cfg --nbval-cell-timeout 900 \
		--nbval-kernel-startup-timeout 120 -n auto --dist loadscope -p no:cacheprovider

nightly: export OMP_NUM_THREADS := 1
nightly: export RESIDUAL_GD_EXAMPLES := 1000
nightly: export RESIDUAL_GD_ALONE := 1
nightly: $(VENV)/.installed ## every statement on 1,000 fresh instances, every notebook alone (an hour or two)
	@$(PY) -m pytest tests/test_statements.py -k no_counterexample -n auto -p no:cacheprovider
	@echo "== Every notebook alone in an empty folder, with the library installed from its wheel"
	@$(PY) -m pytest tests/test_wheel.py -p no:cacheprovider

browser: $(HTML)/.complete ## read the built pages in a real browser (builds them first when needed)
	@sh tools/need_chromium.sh
	@echo "== Pages in a browser"
	@$(PY) -m pytest tests/browser -p no:cacheprovider

notebooks: $(VENV)/.installed ## execute the chapters and store them in normal form (CHAPTERS="chapters/01-setup.ipynb" for one)
	@$(PY) tools/notebooks.py $(CHAPTERS)

picture: $(HTML)/.complete ## take README's picture of a page (assets/page.png) from the built book
	@sh tools/need_chromium.sh
	@$(PY) tools/picture.py

experiments: $(VENV)/.installed ## make the recorded runs that results/ lacks; a killed run goes on (EXPERIMENTS=NAME for one)
	@RESIDUAL_GD_PROGRESS=1 $(PY) -m residual_gd.experiments.run $(EXPERIMENTS)

# Beside the book: nbgrader must not move a pinned version.
$(VENV)/.course: $(VENV)/.installed requirements-course.txt
	@$(PY) -m pip install --disable-pip-version-check $(PIP_ARGS) -r requirements-course.txt -c requirements.txt
	@$(PY) -m pip check
	@touch $@

course: $(VENV)/.course ## install what a lecturer needs for the problem sets (nbgrader) beside the book

release: $(VENV)/.course ## write the students' version of the problem sets, without solutions, and a zip of each
	@PYTHONPATH=tools $(PY) -m course.release

grade: $(VENV)/.course ## grade submissions in a sandbox; a stopped run goes on (SUBMISSIONS=folder; default: the samples)
	@RESIDUAL_GD_PROGRESS=1 UNSAFE=$(UNSAFE) PYTHONPATH=tools $(PY) -m course.grade "$(SUBMISSIONS)"

formgrader: $(VENV)/.course ## open nbgrader's page for grading free texts (PORT=8000)
	@cd assignments && PATH="$(CURDIR)/$(VENV)/bin:$$PATH" jupyter lab --port=$(PORT) --LabApp.default_url=/formgrader

clean: ## remove the pages and everything else that the commands make, but the environment
	rm -rf _build .ruff_cache .pytest_cache .hypothesis lib/*.egg-info
	find . -name __pycache__ -not -path './$(VENV)/*' -type d -prune -exec rm -rf {} +
	find . -name .ipynb_checkpoints -not -path './$(VENV)/*' -type d -prune -exec rm -rf {} +
