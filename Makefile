# Two commands do everything on a bare machine: `make reproduce` and `make test`.
# Every path is relative, so that a checkout in a folder with a space in its name works.
PYTHON ?= python3.11
VENV ?= .venv
BIN = $(VENV)/bin
# Numerical libraries take all cores by default, and parallel tests would then fight over them.
ONE_THREAD = OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: help install test test-slow lint format reproduce humanoid clean
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/:[^#]*## /\t/' | expand -t 14

$(VENV)/.installed: pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) not found: install Python 3.11, or set PYTHON=/path/to/python3.11"; exit 2; }
	@echo "Installing into $(VENV) (once; a few minutes)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

install: $(VENV)/.installed ## create .venv and install everything

lint: $(VENV)/.installed ## ruff, format check, mypy, import contracts
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m nbstripout --verify $$(git ls-files 'notebooks/*.ipynb')

test: lint ## all checks and the test suite (under 15 minutes on 2 cores)
	$(ONE_THREAD) $(BIN)/python -m pytest -q -n 2 --dist worksteal

test-slow: $(VENV)/.installed ## the tests that take minutes each
	$(ONE_THREAD) $(BIN)/python -m pytest -q -n 2 --dist worksteal -m slow

format: $(VENV)/.installed ## rewrite the code in house style
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

reproduce: $(VENV)/.installed ## train the motivating example in miniature, draw every figure
	$(BIN)/python -m fog reproduce

humanoid: $(VENV)/.installed ## add HumanoidBench, which is not on the package index
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev,humanoid]'
	$(BIN)/python -m pip install --quiet --no-deps -e "git+https://github.com/carlosferrazza/humanoid-bench.git#egg=humanoid_bench"

clean: ## remove the environment and caches, keep runs and figures
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
