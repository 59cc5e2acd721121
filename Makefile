# One virtual environment, .venv, filled from the lock files; a step that is done leaves a stamp there and is not done twice.
PYTHON ?= python3
# workers of the tests; on two cores a third fills the time in which the others wait for a browser or a sandbox
JOBS ?= 3
BIN := .venv/bin
SITE_BIN := .venv-site/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
COMPILE := $(BIN)/uv pip compile pyproject.toml --quiet --group build --universal --fork-strategy fewest --python-version 3.11 \
	--generate-hashes --no-annotate --exclude-newer "7 days" --custom-compile-command "make lock"
# Tests write here, and not into HOME, whose settings are the user's own and which a build may not write to.
OWN := $(CURDIR)/.venv/tests
# Lessons are compared with what they store. Exercises and solutions store nothing, so that they only have to run (which is what --nbval-lax does).
BOOKS := notebooks exercises solutions
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder --nbval --nbval-cell-timeout 120 tests $(BOOKS)

help:           ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

lab: setup      ## open the course in JupyterLab, on your own copies in work/
	$(BIN)/python -m roofline_lib course

fresh: setup    ## bring clean copies of the lessons into work/ and keep the old ones beside them
	$(BIN)/python -m roofline_lib course --fresh

test test-all: export MPLCONFIGDIR = $(OWN)/matplotlib
test test-all: export IPYTHONDIR = $(OWN)/ipython
test test-all: export JUPYTER_RUNTIME_DIR = $(OWN)/runtime

test: .venv/test .venv-site/done  ## run every test that a change must pass
	@sh tools/debian_packages.sh chromium bubblewrap
	$(PYTEST)

test-all: .venv/test .venv-site/done  ## also the slow ones: long random runs, broken formulas, lowest versions, other Pythons
	@sh tools/debian_packages.sh chromium bubblewrap npm
	$(BIN)/python tests/mutants.py
	PYTHON=$(BIN)/python sh tools/other_versions.sh
	$(MAKE) wasm
	HYPOTHESIS_PROFILE=long $(PYTEST) -m "not online"

setup: .venv/lab  ## build .venv and nothing else

refresh: setup  ## run the notebooks and store their outputs
	$(BIN)/python tools/refresh_notebooks.py
	$(BIN)/python tools/slides.py

exercises: setup  ## write exercises/ from solutions/
	$(BIN)/python tools/make_exercises.py

lessons: setup  ## number the lessons, and link them, as roofline_lib/course/lessons.toml lists them
	$(BIN)/python tools/number_lessons.py

bench: .venv/test  ## measure how soon the explorers answer, beside their peers
	@sh tools/debian_packages.sh chromium
	$(PIP) --no-build-isolation -e '.[bench]'
	$(BIN)/python benchmarks/sliders.py

site: .venv-site/done  ## build the web pages and the browser edition into site/_build/html
	$(SITE_BIN)/python site/build.py

wasm: .venv-wasm/done  ## run the numeric tests and every lesson on a WebAssembly Python
	.venv-wasm/bin/python tests/wasm/run.py

lock: .venv/test  ## write the lock files anew, with the newest versions that are a week old
	$(COMPILE) --upgrade --extra course --output-file requirements.lock
	$(COMPILE) --upgrade --extra test --extra peers --extra nbgrader --constraint requirements.lock --output-file requirements-test.lock
	$(COMPILE) --upgrade --extra site --constraint requirements-test.lock --output-file requirements-site.lock

.venv/lab: requirements.lock pyproject.toml
	@sh tools/debian_packages.sh python3-venv
	$(PYTHON) -m venv .venv
	$(PIP) --require-hashes -r requirements.lock && $(PIP) --no-deps --no-build-isolation -e . && touch $@

.venv/test: requirements-test.lock .venv/lab
	$(PIP) --require-hashes -r requirements-test.lock
	MPLCONFIGDIR=$(OWN)/matplotlib $(BIN)/python -c 'import matplotlib.font_manager'  # its list of fonts takes a while, once
	cd .venv && rm -rf share/jupyter/labextensions/@jupyter/nbgrader etc/jupyter/jupyter_server_config.d/nbgrader.json && touch test  # no grader in a learner's Lab

# an environment of its own: the browser edition takes every extension of JupyterLab that it finds beside it
.venv-site/done: requirements-site.lock
	@sh tools/debian_packages.sh python3-venv
	$(PYTHON) -m venv --clear .venv-site
	$(SITE_BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-site.lock && touch $@

.venv-wasm/done: tests/wasm/requirements.lock tests/wasm/wheels.lock
	@sh tools/debian_packages.sh python3-venv
	$(PYTHON) -m venv --clear .venv-wasm
	.venv-wasm/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r tests/wasm/requirements.lock
	.venv-wasm/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --only-binary=:all: --python-version 3.15 \
		--implementation py --abi none --platform any --target .venv-wasm/wasm-site -r tests/wasm/wheels.lock && touch $@

.PHONY: help lab fresh test test-all setup refresh exercises lessons bench site wasm lock
