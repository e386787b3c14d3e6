# Two commands do everything on a bare machine: `make reproduce` and `make test`.
# Every path is relative, so that a checkout in a folder with a space in its name works.
PYTHON ?= python3.11
VENV ?= .venv
BIN = $(VENV)/bin
# Numerical libraries take all cores by default, and parallel tests would then fight over them.
ONE_THREAD = OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: help install test test-slow test-newest attack lint format docs lock reproduce miniature humanoid bench clean
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

# What `make test` skips for want of Ray, submitit or Stable-Baselines3 is tested here, in an
# environment of its own: with their types installed, mypy would say other things of our code.
SLOW = $(VENV)-slow

$(SLOW)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(SLOW)
	$(SLOW)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,ray,slurm,sb3]'
	@touch $@

# With FOG_ALL_TESTS a missing package is a failure. Slurm itself is no Python package, so its tests
# may be skipped; the run of submitit's local executor is left then. By file, because the tests of
# one file share a cluster. A node of Ray may take longer to start than the 30 s that Ray allows it.
SLOW_TEST = FOG_ALL_TESTS=1 RAY_raylet_start_wait_time_s=120 $(ONE_THREAD) \
	$(SLOW)/bin/python -m pytest -q -rs -n 2 --dist loadfile

test-slow: $(SLOW)/.installed ## the tests that take minutes each, and those of Ray, Slurm and SB3
	@PATH="$$PATH:/usr/sbin:/sbin"; command -v slurmctld >/dev/null \
		&& echo "Slurm: a real cluster of this node" \
		|| echo "Slurm: not installed (apt-get install slurm-wlm munge); submitit's local executor only"
	$(SLOW_TEST) -m slow
	$(SLOW_TEST) tests/diagnostics/adapters tests/fog/sweep/test_ray.py tests/fog/sweep/test_slurm.py

# The same tests with the newest versions that pyproject.toml allows; torch and the simulators stay.
NEWEST = $(VENV)-newest

$(NEWEST)/.installed: pyproject.toml constraints-newest.txt
	$(PYTHON) -m venv $(NEWEST)
	$(NEWEST)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade --upgrade-strategy eager \
		-c constraints-newest.txt -e '.[dev]'
	@touch $@

test-newest: $(NEWEST)/.installed ## the tests with the newest versions that are allowed
	$(NEWEST)/bin/python -m pip freeze --exclude-editable | grep -iE '^(numpy|pandas|gymnasium|scipy|torch)=='
	$(ONE_THREAD) $(NEWEST)/bin/python -m pytest -q -n 2 --dist worksteal

attack: $(VENV)/.installed ## kill, damage, fuzz and fill disks, and see what survives (about 10 minutes)
	$(BIN)/python -m tests.attack

format: $(VENV)/.installed ## rewrite the code in house style
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

# Notebooks are executed on the committed runs, then everything becomes one site. Any warning, such as
# a link that leads nowhere, is an error.

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@

docs: $(VENV)/.docs ## the documentation with executed notebooks as one site, into site/
	rm -rf docs/notebooks site
	$(BIN)/fog figures --runs results/priming/runs --out docs/notebooks --only priming calibration theorem_1 theorem_2
	$(BIN)/fog figures --runs results/motivating/runs/norm --out docs/notebooks --only motivating_example per_vs_decay
	$(BIN)/fog figures --runs results/ablations/runs --out docs/notebooks --only replay_ablation expansion_ablation
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html -d site/doctrees docs site/html
	@echo "Open site/html/index.html"

# uv takes constraints from pyproject.toml only, so it gets a copy that has them. The pinned set needs
# Python 3.11.5.
LOCKED = sys_platform == 'linux' and python_full_version >= '3.11.5'
lock: ## make uv.lock anew from pyproject.toml and constraints.txt (needs uv)
	rm -rf build/lock && mkdir -p build/lock/fog
	cp README.md LICENSE build/lock && cp fog/__init__.py build/lock/fog
	{ cat pyproject.toml; echo '[tool.uv]'; echo "environments = [\"$(LOCKED)\"]"; echo 'constraint-dependencies = ['; \
		sed -nE 's/^([A-Za-z].*)$$/    "\1",/p' constraints.txt; echo ']'; } > build/lock/pyproject.toml
	cd build/lock && uv lock
	mv build/lock/uv.lock uv.lock

reproduce: $(VENV)/.installed ## see primacy bias, its harm, and what two cures do, from four runs of your own
	$(BIN)/python -m fog reproduce

# The runs themselves are made by the commands of results/README.md, which take hours. Published curves
# are not ours to keep: the figure that has them beside our runs is drawn again only with
# PEERS=folder (docs/peers.md), and without its table.
DRAWN = figures/results
miniature: $(VENV)/.installed ## figures and claims of docs/results.md, from the committed runs
	$(BIN)/fog figures --runs results/priming/runs --out $(DRAWN)/priming --only priming calibration
	$(BIN)/fog figures --runs results/motivating/runs/unprimed --out $(DRAWN)/unprimed --only motivating_example
	$(BIN)/fog figures --runs results/motivating/runs/plain --out $(DRAWN)/primed --only motivating_example
	$(BIN)/fog figures --runs results/motivating/runs/norm --out $(DRAWN)/primed_layer_norm --only motivating_example
	$(BIN)/fog figures --runs results/ablations/runs --out $(DRAWN)/ablations --only replay_ablation expansion_ablation
	$(BIN)/fog figures --runs results/paper_size/runs --out $(DRAWN)/paper_size --only universality $(if $(PEERS),--peers $(PEERS))
	rm -f $(DRAWN)/paper_size/universality_sac_public.csv
	$(BIN)/fog claims --runs results --figures $(DRAWN) --markdown > results/claims.md.new
	mv results/claims.md.new results/claims.md

humanoid: $(VENV)/.installed ## add HumanoidBench, which is not on the package index
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev,humanoid]'
	$(BIN)/python -m pip install --quiet --no-deps -e "git+https://github.com/carlosferrazza/humanoid-bench.git#egg=humanoid_bench"

# Peers need an environment of their own: they must not decide the versions of ours. torch goes first,
# so that none of them replaces it. CleanRL is not a package that Python 3.11 can install: its script
# runs from a checkout, and without network access CLEANRL=/path/to/one does.
BENCH = .venv-bench
BENCH_PYTHON = $(BENCH)/bin/python
BENCH_PIP = $(BENCH_PYTHON) -m pip install --quiet --disable-pip-version-check
BENCH_OUT = benchmarks/out
CLEANRL ?= $(BENCH)/cleanrl
CLEANRL_COMMIT = fe8d8a03c41a7ef5b523e2e354bd01c363e786bb

$(BENCH)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(BENCH)
	$(BENCH_PIP) torch==2.13.0
	$(BENCH_PIP) -c constraints.txt -e .
	$(BENCH_PIP) -c constraints.txt stable-baselines3 sbx-rl jax tyro cpprb
	@touch $@

$(BENCH)/cleanrl: | $(BENCH)/.installed
	rm -rf $@.part
	git clone --quiet https://github.com/vwxyzjn/cleanrl.git $@.part
	git -C $@.part checkout --quiet $(CLEANRL_COMMIT)
	mv $@.part $@

bench: $(BENCH)/.installed $(CLEANRL) ## speed beside peers, into benchmarks/out (wants an idle machine)
	mkdir -p $(BENCH_OUT)
	$(BENCH_PYTHON) benchmarks/speed.py --cleanrl $(CLEANRL) --out $(BENCH_OUT)/speed
	$(BENCH_PYTHON) benchmarks/replay.py --json $(BENCH_OUT)/replay.json > $(BENCH_OUT)/replay.md
	$(BENCH_PYTHON) benchmarks/probes.py products > $(BENCH_OUT)/probes_products.txt
	$(BENCH_PYTHON) benchmarks/probes.py share > $(BENCH_OUT)/probes_share.txt
	$(BENCH_PYTHON) benchmarks/sweep.py > $(BENCH_OUT)/sweep.md

clean: ## remove the environment and caches, keep runs and figures
	rm -rf $(VENV) $(SLOW) $(NEWEST) $(BENCH) site docs/notebooks build/lock .mypy_cache .ruff_cache .pytest_cache .hypothesis
