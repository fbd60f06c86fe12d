# `make` or `make help` lists the targets. Everything runs in .venv, which `setup` creates.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# A stamp records which packages .venv holds. The full set includes the demo's, so it renews both stamps.
FULL := $(VENV)/.stamp-full
DEMO := $(VENV)/.stamp-demo
PINS := pyproject.toml constraints.txt
PIP := $(BIN)/python -m pip --disable-pip-version-check

# The TypeScript client and the console, and their npm packages. Without them their tests are skipped.
TYPESCRIPT := client/typescript
CONSOLE := server/console
PACKAGES := $(TYPESCRIPT)/node_modules/.stamp $(CONSOLE)/node_modules/.stamp
NODE_PATH_FIRST := PATH="$(abspath $(BIN)):$$PATH"

# Arguments for pytest and the benchmarks: make test ARGS='-k matmul'
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup setup-demo demo kernels test shadow torch-device soak lint format derive coverage docs manual bench bench-peers libraries gpu gpu-wheels image image-test image-soak clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(FULL) $(PACKAGES)  ## create .venv with server, tests and linters (installs torch)

demo: $(DEMO)  ## create .venv for the demo only (no torch)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "gradwire needs Python 3.11 or newer; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "$(PYTHON) cannot make virtual environments: install its venv module" \
		     "(Debian and Ubuntu: apt-get install python3-venv) and run make again" >&2; exit 1; }

$(FULL): $(PINS) | $(BIN)/python
	$(PIP) install -e '.[server,cluster,test,dev,docs]' -c constraints.txt
	@touch $(FULL) $(DEMO)

$(DEMO): $(PINS) | $(BIN)/python
	$(PIP) install -e '.[server]' scikit-learn -c constraints.txt
	@touch $(DEMO)

$(PACKAGES): %/node_modules/.stamp: %/package-lock.json | $(FULL)
	@if cd $* && $(NODE_PATH_FIRST) npm ci --no-progress; then touch node_modules/.stamp; \
	else echo "npm packages cannot be installed: the tests of $* will be skipped" >&2; fi

demo: $(DEMO)  ## train on handwritten digits through an embedded server
	$(BIN)/python examples/digits.py

kernels: $(FULL)  ## compile the CPU kernels into the user's cache
	$(BIN)/python -m gradwire_engine.kernels.cpu.toolchain

# Two workers for two cores: one math thread each.
test: $(FULL) $(PACKAGES) kernels  ## run the tests; GRADWIRE_TEST_COMPILED=1 runs them with the compiled kernels
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadgroup $(ARGS)
	$(if $(ARGS),,$(MAKE) shadow)
	$(if $(ARGS),,$(MAKE) torch-device)

# The tests that exercise graphs most for their time. Others: make shadow ARGS=tests/client
SHADOWED := $(patsubst %,tests/client/test_%.py,amp autograd backward_semantics differentiable_optim grad_attribute \
	hooks_in_random_graphs inference_tensors inplace_views view_and_inplace_semantics)

shadow: $(FULL)  ## run tests on the tape and by plans, and compare the sessions bit for bit
	GRADWIRE_TEST_PLANS=shadow OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
		$(BIN)/python -m pytest -q -n 2 $(or $(ARGS),$(SHADOWED))

torch-device: $(FULL)  ## run the tests of the device of PyTorch, whose registration changes PyTorch for all others
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 $(or $(ARGS),tests/torch_device)

soak: $(FULL)  ## run the long tests: make soak ARGS='cuts --seconds 600'
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.soak $(ARGS)

lint: $(FULL) $(PACKAGES)  ## check style, types (also of examples and documents), import contracts and freshness of derived files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tools.typed_documents
	@for folder in $(TYPESCRIPT) $(CONSOLE); do \
		if [ -e $$folder/node_modules/.stamp ]; then \
			echo "npm run check in $$folder"; (cd $$folder && $(NODE_PATH_FIRST) npm run -s check) || exit 1; \
		else echo "the types of $$folder are not checked: its npm packages are not installed"; fi; \
	done
	$(BIN)/lint-imports
	$(BIN)/python -m tools.import_circles
	$(BIN)/python -m tools.derive --check

format: $(FULL)  ## format and fix with ruff
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

derive: $(FULL)  ## rewrite the files that follow from the op table and other tables
	$(BIN)/python -m tools.derive

coverage: $(FULL)  ## measure all entries of torch's databases and write the records
	$(BIN)/python -m tests.op_db --record
	$(BIN)/python -m tests.module_db --record
	$(BIN)/python -m tests.optim_db --record
	$(BIN)/python -m tools.derive

docs: derive  ## same as derive (includes the generated pages under docs/)

# The server shows it under /manual. Wheels and images that are built afterwards contain it.
manual: $(FULL)  ## build the manual, with search, from docs/ and the packages
	$(BIN)/python -m tools.manual $(ARGS)

bench: $(FULL) kernels  ## run the benchmarks: make bench ARGS='mlp gpt --rounds 9'
	$(BIN)/python -m benchmarks $(ARGS)

# Installs them under build/libraries: about 3 GB in all. make libraries ARGS='timm transformers_*', ARGS=--record
libraries: $(FULL) kernels  ## train with libraries built on PyTorch, and compare with PyTorch
	$(BIN)/python -m tests.libraries $(ARGS)

# Installs each under build/peers in its own environment: about 3 GB in all.
bench-peers: $(FULL) kernels  ## compare with other remote tensor libraries
	$(BIN)/python -m benchmarks.peers $(ARGS)

# Uses the GPU machine's own Python with CuPy: no .venv, no network. What it lacks comes from `make gpu-wheels`, if that
# ran here before the tree was copied there.
GPU_WHEELS := build/gpu-wheels
gpu:  ## run the GPU checks and benchmarks with PYTHON, without .venv
	@if [ -d $(GPU_WHEELS) ]; then \
		$(PYTHON) -m pip install -q --no-index --no-deps --upgrade --target build/gpu-site $(GPU_WHEELS)/*.whl; fi
	PYTHONPATH=protocol:engine:server:client:.:build/gpu-site $(PYTHON) -m tests.gpu --bench $(ARGS)

GPU_PYTHON ?= 3.12
gpu-wheels: $(BIN)/python  ## fetch what a GPU machine without network lacks, for GPU_PYTHON
	rm -rf $(GPU_WHEELS)
	$(PIP) download -q --no-deps --only-binary=:all: --python-version $(GPU_PYTHON) --implementation cp \
		$(foreach glibc,28 27 17,--platform manylinux_2_$(glibc)_x86_64) --platform manylinux2014_x86_64 \
		-d $(GPU_WHEELS) -c constraints.txt -r tests/gpu/wheels.txt

# See docs/deploying.md. BASE_IMAGE=...@sha256:... pins the base image.
image: manual  ## build the CPU server's image, gradwire:cpu, with the manual
	docker build -f docker/cpu.Dockerfile -t gradwire:cpu $(if $(BASE_IMAGE),--build-arg BASE_IMAGE=$(BASE_IMAGE)) .

image-test: $(DEMO)  ## build the image and test it in a container (exits with 77 without a container engine)
	PYTHON=$(BIN)/python docker/test.sh $(ARGS)

image-soak: $(FULL)  ## run a `make soak` test against a container with compose.yaml's limits
	PYTHON=$(BIN)/python docker/soak.sh $(or $(ARGS),frames)

clean:  ## remove caches and builds, keep .venv
	rm -rf build dist server/gradwire_server/http/manual .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -path ./$(VENV) -prune -o -path ./.git -prune -o -name __pycache__ -type d -exec rm -rf {} +
