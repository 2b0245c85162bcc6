# The front door: `make test` and `make build` do all the set-up they need. `make help` lists the rest.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# One target after the other, but for those that `test-beside` runs.
ifndef BESIDE
.NOTPARALLEL:
endif
.DELETE_ON_ERROR:

# The presets put each build in its own folder; build/baregrad is the released command.
BUILD := build
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
PYTHON := .venv/bin/python
LAB_OUT := build/lab
package := $(CURDIR)/$(BUILD)/release/python
BENCHES ?= elementwise reduce overhead alloc parallel matmul autograd train conv optim norm
BENCH_ARGS ?=
COMPARE_ARGS ?=
TRAIN_ARGS ?=
CTEST_ARGS ?=

# Resolved when used, not when read: `setup` may be what installs them.
cmake = $(or $(shell command -v cmake),/usr/bin/cmake)
ctest = $(or $(shell command -v ctest),/usr/bin/ctest)
# The longest test takes two minutes; the long ones state their own limit. A test that hangs is to fail by name.
run_ctest = $(ctest) --no-tests=error --output-on-failure --timeout 900 -j $(JOBS) $(CTEST_ARGS)
step = scripts/step.sh

# GCC 12's sanitizers may fail to start where the kernel randomises more than 28 bits of an address.
no_aslr = $(shell setarch -R true 2>/dev/null && echo setarch -R)

# Used by CMake at its first configure of a folder.
export CMAKE_CXX_COMPILER_LAUNCHER ?= $(shell command -v ccache)
# What was compiled in one folder or clone is found again from another of the same depth.
export CCACHE_BASEDIR ?= $(CURDIR)
export CCACHE_NOHASHDIR ?= 1

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Install what is missing (apt packages, .venv); does nothing when all is there
	@scripts/setup.sh

# Ninja re-runs CMake by itself when a CMakeLists.txt changes; only new presets need us.
$(BUILD)/%/build.ninja: CMakePresets.json | setup
	@$(step) "configure $*" $(cmake) --preset $*
	@touch $@

.PHONY: compile-release compile-dev compile-asan compile-tsan compile-tsan-all
compile-release compile-dev compile-asan compile-tsan compile-tsan-all: compile-%: $(BUILD)/%/build.ninja
	@$(step) "build $*" $(cmake) --build $(BUILD)/$* -j $(JOBS)
# Never two of them at work in one folder.
compile-release: | build

# What a user needs, without the tests: half of what `compile-release` builds.
.PHONY: build
build: $(BUILD)/release/build.ninja ## Build the release preset; the command is build/baregrad, .venv can import baregrad
	@$(step) "build the command and the package" \
	  $(cmake) --build $(BUILD)/release -j $(JOBS) --target baregrad_cli baregrad_package
	@ln -sfn release/baregrad $(BUILD)/baregrad
	@test -x $(BUILD)/baregrad || { echo "make build: $(BUILD)/release/baregrad was not built" >&2; exit 1; }
	@$(PYTHON) -B scripts/link_package.py $(package)

# The wheel is built with .venv's own tools, so that no index is asked again; `pip install .` fetches them itself.
# Objects come from ccache: compiler, flags and depth of the folder are those of the release preset.
.PHONY: wheel
wheel: build ## Build the Python wheel into build/wheel
	@rm -f $(BUILD)/wheel/*.whl
	@CXX=$${CXX:-c++} $(step) "build the wheel" $(PYTHON) -m pip wheel . --quiet --disable-pip-version-check \
	  --no-build-isolation --no-deps --wheel-dir $(BUILD)/wheel -Cbuild-dir=$(BUILD)/wheel-build \
	  -Ccmake.define.BAREGRAD_WERROR=ON

.PHONY: test
test: test-release test-beside test-fuzz test-asan test-tsan ## Build and run every test, also under ASan + UBSan and TSan

# What keeps one core busy, longest first: as many at a time as there are cores, the output of each in
# one piece when it ends. None of them asserts a time.
beside := test-lab test-python test-cli test-install test-types test-repo test-wheel test-io test-graph
.PHONY: test-beside
test-beside: build compile-release
	@$(MAKE) --no-print-directory -j $(JOBS) --output-sync=target BESIDE=1 $(beside)

.PHONY: test-repo
test-repo: setup
	@$(step) "test the repository's own tools" $(PYTHON) -B -m pytest -q -p no:cacheprovider tests/tools
	@$(step) "check layers" $(PYTHON) -B tests/tools/check_layers.py
	@$(step) "check repository" $(PYTHON) -B tests/tools/check_repo.py
	@$(step) "check comments" $(PYTHON) -B tests/tools/check_comments.py

.PHONY: test-release
test-release: build compile-release
	@$(step) "test release" $(run_ctest) --preset release -LE long

.PHONY: test-cli
test-cli: build
	@BAREGRAD_BIN=$(CURDIR)/$(BUILD)/baregrad $(step) "test the command line" \
	  $(PYTHON) -B -m pytest -q -p no:cacheprovider tests/cli
	@$(step) "compare the printed tensors with NumPy's" $(PYTHON) -B tests/core/make_print_cases.py --check

.PHONY: test-graph
test-graph: build compile-release
	@BAREGRAD_GRAPH_SAMPLES=$(CURDIR)/$(BUILD)/release/tests/graph_samples \
	  $(step) "render graphs with Graphviz" $(PYTHON) -B -m pytest -q -p no:cacheprovider tests/graph

.PHONY: test-io
test-io: build compile-release
	@BAREGRAD_IO_SAMPLES=$(CURDIR)/$(BUILD)/release/tests/io_samples \
	  $(step) "exchange files with NumPy, safetensors and TensorBoard" \
	  $(PYTHON) -B -m pytest -q -p no:cacheprovider tests/io

.PHONY: test-python
test-python: build
	@PYTHONPATH=$(package) BAREGRAD_BIN=$(CURDIR)/$(BUILD)/baregrad $(step) "test the Python package" \
	  $(PYTHON) -B -m pytest -q -p no:cacheprovider --ignore tests/python/peers tests/python

# What a type checker makes of the package, of a program that uses it, and of the stubs against the running module.
.PHONY: test-types
test-types: export MYPYPATH := $(package)
test-types: export PYTHONPATH := $(package)
test-types: export MYPY_CACHE_DIR := $(CURDIR)/$(BUILD)/mypy
test-types: build
	@$(step) "mypy: the package" $(PYTHON) -B -m mypy -p baregrad
	@$(step) "mypy: a program that uses it" $(PYTHON) -B -m mypy tests/python/typing_sample.py
	@$(step) "stubtest" $(PYTHON) -B tests/tools/check_stubs.py

.PHONY: test-wheel
test-wheel: wheel
	@$(step) "test the wheel" $(PYTHON) -B tests/tools/check_wheel.py $(BUILD)/wheel/*.whl

.PHONY: test-peers
test-peers: build ## Compare the Python package with PyTorch (in .venv-peers)
	@scripts/setup.sh --peers
	@PYTHONPATH=$(package) $(step) "compare with PyTorch" \
	  .venv-peers/bin/python -B -m pytest -q -p no:cacheprovider tests/python/peers

# A look at every experiment, in a fresh folder, and its report in a browser. Nothing here asserts a time.
.PHONY: test-lab
test-lab: build ## Run all experiments with --quick and open their report in a browser
	@scripts/setup.sh --lab
	@rm -rf $(BUILD)/lab-quick
	@BAREGRAD_LAB_PYTHON=$(CURDIR)/.venv-peers/bin/python PYTHONPATH=$(package) $(step) "lab all --quick" \
	  $(BUILD)/baregrad lab all --quick --out $(BUILD)/lab-quick
	@BAREGRAD_LAB_REPORT=$(CURDIR)/$(BUILD)/lab-quick BAREGRAD_LAB_BROWSER_REQUIRED=1 PYTHONPATH=$(package) \
	  $(step) "open the report in a browser" \
	  .venv-peers/bin/python -B -m pytest -q -p no:cacheprovider tests/python/lab/test_browser.py

.PHONY: test-fuzz
test-fuzz: setup
	@$(step) "fuzz file formats" scripts/fuzz_files.sh --runs 20000

.PHONY: test-docs
test-docs: setup
	@$(step) "follow the worked examples of docs" \
	  $(PYTHON) -B tests/tools/follow_docs.py --cmake $(cmake) --jobs $(JOBS) docs/adding_*.md

.PHONY: test-asan
test-asan: setup compile-asan
	@$(step) "test asan" $(no_aslr) $(run_ctest) --preset asan

# The sources that tests/CMakeLists.txt lists as THREADS, at 4 threads; the pool and the allocators also at 2. All
# sources, also at 2: test-long.
.PHONY: test-tsan
test-tsan: setup compile-tsan
	@BAREGRAD_NUM_THREADS=4 $(step) "test tsan, 4 threads" $(no_aslr) $(run_ctest) --preset tsan
	@BAREGRAD_NUM_THREADS=2 $(step) "test tsan, 2 threads" \
	  $(no_aslr) $(run_ctest) --preset tsan -R "test_(parallel|core)"

.PHONY: test-install
test-install: build compile-release
	@$(step) "test the installed copy" env CMAKE=$(cmake) tests/tools/check_install.sh $(BUILD)/release

.PHONY: test-long
test-long: build compile-release compile-asan compile-tsan-all test-docs commands ## The exhaustive forms of the tests (hours)
	@for threads in 2 4; do BAREGRAD_NUM_THREADS=$$threads $(step) "test all of tsan, $$threads threads" \
	  $(no_aslr) $(run_ctest) --preset tsan-all || exit; done
	@BAREGRAD_TEST_LONG=1 $(step) "long test release" $(run_ctest) --preset release -L long
	@BAREGRAD_TEST_LONG=1 BAREGRAD_BIN=$(CURDIR)/$(BUILD)/baregrad $(step) "long test of training" \
	  $(PYTHON) -B -m pytest -q -p no:cacheprovider tests/cli/test_train.py tests/cli/test_runs.py \
	  tests/cli/test_arguments.py tests/cli/test_damaged.py
	@PYTHONPATH=$(package) BAREGRAD_TEST_LONG=1 $(step) "long test of hostile calls, forks and deep networks" \
	  $(PYTHON) -B -m pytest -q -p no:cacheprovider tests/python/test_hostile_calls.py \
	  tests/python/test_fork.py tests/python/test_races.py tests/python/test_nested_modules.py
	@$(step) "fuzz file formats" scripts/fuzz_files.sh --seconds 600
	@BAREGRAD_TEST_LONG=1 $(step) "long test asan" $(no_aslr) $(run_ctest) --preset asan -L fuzz
	@$(step) "clang-tidy, thorough" $(PYTHON) -B scripts/run_tidy.py --thorough -j $(JOBS) $(BUILD)/dev

.PHONY: bench
bench: build compare libtorch-peer ## Run all benchmarks (BENCHES="elementwise ...", BENCH_ARGS="--json FILE")
	@scripts/setup.sh --bench
	@BAREGRAD_LIBTORCH_PEER=$(libtorch_peer) $(BUILD)/baregrad bench $(BENCHES) $(BENCH_ARGS)

# PyTorch's C++ library at the work of our rows, for `bench autograd overhead alloc`.
.PHONY: libtorch-peer
libtorch_peer := $(CURDIR)/$(BUILD)/libtorch_peer.so
libtorch-peer: setup
	@scripts/setup.sh --peers
	@.venv-peers/bin/python -B bench/libtorch/build.py $(libtorch_peer)

.PHONY: compare
compare: build ## Compare with PyTorch and NumPy from Python (COMPARE_ARGS="--rows 9 15 --json FILE --plot FILE")
	@scripts/setup.sh --peers
	@PYTHONPATH=$(package) .venv-peers/bin/python -B bench/compare.py $(COMPARE_ARGS)

# clang-tidy needs a command for each source, and no build. dev is configured each time, for new sources.
.PHONY: commands
commands: setup
	@$(step) "configure dev" $(cmake) --preset dev

.PHONY: lint
lint: commands ## Formatting, clang-tidy, shellcheck and the repository's own rules
	@$(step) "check formatting" scripts/format.sh --check
	@$(step) "shellcheck" scripts/shellcheck.sh
	@$(step) "check layers" $(PYTHON) -B tests/tools/check_layers.py
	@$(step) "check repository" $(PYTHON) -B tests/tools/check_repo.py
	@$(step) "check comments" $(PYTHON) -B tests/tools/check_comments.py
	@$(step) "clang-tidy" $(PYTHON) -B scripts/run_tidy.py -j $(JOBS) $(BUILD)/dev

.PHONY: format
format: setup ## Format the C++ sources in place
	@scripts/format.sh

.PHONY: train
train: build ## Train a network on the best data found (TRAIN_ARGS="fashion --model cnn")
	@$(BUILD)/baregrad train $(TRAIN_ARGS)

.PHONY: lab
lab: build ## Run all experiments and write their report to LAB_OUT (LAB_ARGS="--quick")
	@scripts/setup.sh --lab
	@BAREGRAD_LAB_PYTHON=$(CURDIR)/.venv-peers/bin/python PYTHONPATH=$(package) \
	  $(BUILD)/baregrad lab all --out $(LAB_OUT) $(LAB_ARGS)

.PHONY: clean
clean: ## Remove everything built; .venv and .venv-peers stay
	rm -rf $(BUILD)
