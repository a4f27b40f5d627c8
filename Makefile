# make setup   a .venv with everything (fast when nothing changed)
# make demo    the main job on embedded data; installs the light core only
# make test    lint, types and tests
# make lint    style and types
# make bench   how fast selection is, side by side

PYTHON ?= python3
BIN := .venv/bin
# Relative, because pip splits this variable at spaces.
export PIP_CONSTRAINT := constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: setup demo test lint bench clean

setup: .venv/full

demo: .venv/core
	$(BIN)/sabal simulate digits --strategies sabal,badge,margin,random --seeds 10 \
		--init 20 --batch 10 --rounds 10 --jobs 2 --out demo/digits

# One BLAS thread per test process: the processes already use every core.
test: lint
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto

lint: .venv/full
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/full
	$(BIN)/sabal bench

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis demo

.venv/core: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

.venv/full: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable ".[torch,ray,app,dev]"
	touch .venv/core $@
