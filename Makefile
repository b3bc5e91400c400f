# colltune: `make demo` tunes this machine, `make test` runs the tests. Both set up .venv first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Threads in numerical libraries would take the cores that the measured ranks need.
export OMP_NUM_THREADS := 1

.PHONY: demo test test-all lint clean help
help:
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

$(BIN)/.ready: requirements.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --requirement requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

demo: $(BIN)/.ready ## tune bcast and allreduce on this machine, and write the tuning to tuned/
	@rm -rf tuned
	$(BIN)/colltune tune bcast allreduce --out tuned --max-size 1MiB --budget 2m
	$(BIN)/colltune env tuned

test: $(BIN)/.ready ## all tests that end in minutes, with a real MPI
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m pytest -m "not slow"

test-all: $(BIN)/.ready ## all tests
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m pytest

lint: $(BIN)/.ready ## formatting, style and types
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/mypy src

bench-%: $(BIN)/.ready ## bench-NAME: write bench/NAME.json, a flat object of figures, and print it
	$(BIN)/python benchmarks/bench_$(subst -,_,$*).py

clean:
	rm -rf $(VENV) build dist bench tuned .pytest_cache .mypy_cache .ruff_cache .hypothesis
