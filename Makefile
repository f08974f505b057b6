# Everything a developer or CI runs. PYTHON chooses the interpreter (3.11, 3.12, 3.13).
PYTHON ?= python3
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
VENV := .venv/$(VERSION)
BIN := $(VENV)/bin
SOURCES := mpx lab train controller models tests bench
# Under sudo what is made here stays the caller's, whose checkout it is: as root it could not be changed later.
AS_CALLER := $(if $(filter $(shell stat -c %u .),$(SUDO_UID)),sudo -E -H -u $(SUDO_USER))

# Tests at once: more than cores, as most of them wait. Those of tests/unit do so less, and each worker imports all.
WORKERS ?= 8
UNIT_WORKERS ?= 5

.PHONY: help setup check check-types check-rest test test-again test-unit test-all fuzz kills foreign demo demo-ssh demo-token demo-gsiftp demo-web demo-lab demo-multipath demo-one-transfer lock clean

help:
	@echo "make demo    copy real files up and down through an emulated 30 ms path"
	@echo "make demo-ssh   copy to localhost: and back over ssh, with a private sshd"
	@echo "make demo-token   copy to and from mpx serve inside TLS, with a token"
	@echo "make demo-gsiftp   copy to and from a stock GridFTP server, with a throwaway CA"
	@echo "make demo-web   copy from and to web servers and S3, and straight between two servers"
	@echo "make demo-lab   as root: copy across an emulated 200 Mbit/s, 60 ms with real TCP"
	@echo "make demo-one-transfer   as root: probe, classify, ask a controller, search, in one copy over two paths"
	@echo "make demo-multipath   as root: copy over four paths of an OpenFlow network at once"
	@echo "make test    set up what the tests need and run all but the long ones   [PYTHON=python3.12 WORKERS=8]"
	@echo "make test-again   those that failed in the last run, if they are few, one after the other"
	@echo "make test-unit   only those of tests/unit, which need nothing but this Python"
	@echo "make test-all    all tests, then fuzz, foreign and kills; an hour"
	@echo "make fuzz    a minute of hostile input for each parser of foreign bytes   [TARGETS=... SECONDS=60 SEED=N]"
	@echo "make foreign   thousands of FTP servers bent at random"
	@echo "make kills   kills in copies and labs, twenty for each direction and victim, ten minutes"
	@echo "make check   lint, format, types, the import contract"
	@echo "make lock    write requirements/*.txt anew from pyproject.toml"

setup: $(VENV)/.done $(VENV)/.done-dev

# What a user of mpx needs; the demo uses nothing else.
$(VENV)/.done: pyproject.toml requirements/run.txt
	$(AS_CALLER) $(PYTHON) -m venv $(VENV)
	$(AS_CALLER) $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/run.txt
	$(AS_CALLER) $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(AS_CALLER) touch $@

# For who runs a controller, too.
$(VENV)/.done-controller: $(VENV)/.done requirements/controller.txt
	$(AS_CALLER) $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/controller.txt
	@$(AS_CALLER) touch $@

$(VENV)/.done-dev: $(VENV)/.done requirements/dev.txt
	$(AS_CALLER) $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(AS_CALLER) touch $@

# Both at once. All tests are read meanwhile, so that they are compiled when the workers of `make test` begin:
# else each would compile all of them.
check: setup
	@$(MAKE) --no-print-directory --output-sync=target --jobs 2 check-types check-rest

check-types:
	$(BIN)/mypy

check-rest: export PYTHONDONTWRITEBYTECODE =
check-rest:
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/bench/test_bench_layers.py
	@-$(BIN)/python -m pytest -qq --collect-only -m 'not long' > /dev/null 2>&1

# Each with one thread for numbers: threads that wait for a core would spin on it. Compiled modules are kept
# whatever the environment says, as tests start mpx and its parts thousands of times.
test test-again test-unit test-all: export OMP_NUM_THREADS = 1
test test-again test-unit test-all: export PYTHONDONTWRITEBYTECODE =
# The peer of our time warping compares a few short series; to compile it takes longer.
test test-again test-unit test-all: export NUMBA_DISABLE_JIT = 1
test: setup
	$(BIN)/python tests/install_peers.py
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m 'not long' $(PYTEST)

test-again: setup
	$(BIN)/python tests/try_again.py

test-unit: setup
	$(BIN)/python -m pytest -n $(UNIT_WORKERS) --dist worksteal -m 'not long' $(PYTEST) tests/unit

test-all: setup
	$(BIN)/python tests/install_peers.py
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(PYTEST)
	$(MAKE) fuzz foreign kills

# Every target that `make test` tries for some seconds (tests/fuzz), for a minute each; an input that fails is kept.
fuzz: SECONDS = 60
fuzz: setup
	$(BIN)/python tests/fuzz/run.py --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) $(TARGETS)

# Twenty kills for each direction and victim, as it takes ten minutes; `make test` has one of each. Then two
# hundred of labs that are being built or taken down, in two minutes.
kills: setup
	MPX_KILLS=20 $(BIN)/python -m pytest -q -s tests/interop/test_kills.py
	MPX_KILLS=100 $(BIN)/python -m pytest -q -s tests/lab/test_lab_kills.py

# Thousands of FTP servers bent at random, for each direction; `make test` has some dozens.
foreign: setup
	MPX_FOREIGN=3000 $(BIN)/python -m pytest -q -n 2 --timeout 7200 tests/contract/test_bent_servers.py

demo: $(VENV)/.done
	$(BIN)/python -m mpx_lab.demo

demo-ssh: $(VENV)/.done
	$(BIN)/python -m mpx_lab.demo_ssh

demo-token: $(VENV)/.done
	$(BIN)/python -m mpx_lab.demo_token

demo-gsiftp: $(VENV)/.done
	$(BIN)/python -m mpx_lab.demo_gsiftp

# Its servers are among what the tests need.
demo-web: $(VENV)/.done-dev
	$(BIN)/python -m mpx_lab.demo_web

# Needs root: hosts are network namespaces. It installs iproute2 and a C compiler if they are missing.
# Compiled modules would be root's, in the folders of whoever called sudo.
demo-lab: export PYTHONDONTWRITEBYTECODE = 1
demo-lab: $(VENV)/.done
	$(PYTHON) tests/install_peers.py ip cc
	$(BIN)/python -m mpx_lab.demo_lab

demo-multipath: export PYTHONDONTWRITEBYTECODE = 1
demo-multipath: $(VENV)/.done-controller
	$(PYTHON) tests/install_peers.py ip cc ovs-vswitchd
	$(BIN)/python -m mpx_lab.demo_multipath

demo-one-transfer: export PYTHONDONTWRITEBYTECODE = 1
demo-one-transfer: $(VENV)/.done-controller
	$(PYTHON) tests/install_peers.py ip cc ovs-vswitchd
	$(BIN)/python -m mpx_lab.demo_one_transfer

# Universal (all Pythons and platforms), with hashes, without any address of a package index.
LOCK = env -u PIP_FIND_LINKS uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-emit-index-url --no-emit-find-links --no-annotate
lock:
	$(LOCK) pyproject.toml requirements/build.in -o requirements/run.txt
	$(LOCK) pyproject.toml requirements/build.in --extra controller -c requirements/run.txt -o requirements/controller.txt
	$(LOCK) pyproject.toml requirements/build.in --extra dev --extra bench --extra train --extra controller --extra s3 --extra xrootd --extra globus -c requirements/controller.txt -o requirements/dev.txt
	$(LOCK) --group peers -o requirements/peers.txt

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
