# Two commands from a bare clone: `make demo` and `make test`. Both install what is missing (tools/bootstrap), build what
# they need, and are quick when nothing changed: `make` and `make demo` build the program alone, `make test` the tests,
# too, and bench programs are built where they are asked for. Everything is written inside build/, except system packages.
#   CINGULUM_CUDA=OFF, CINGULUM_WEBGPU=OFF   leave a backend out; CINGULUM_VIEW=OFF the server of the viewer
#   CINGULUM_CUDA_ARCHS="75-virtual;90-real" architectures of the CUDA code
#   WERROR=ON|OFF                            whether warnings are errors, as in CI; remembered by the build folder
#   UNITY=ON|OFF                             whether the files of a folder are compiled together; remembered, too
#   JOBS=N                                   parallel compilations and tests
#   CINGULUM_TEST_REQUIRE=data,mrtrix        what must be there: tests that lack it fail instead of being skipped

CINGULUM_CUDA ?= ON
CINGULUM_WEBGPU ?= ON
CINGULUM_VIEW ?= ON
CINGULUM_CUDA_ARCHS ?= 75-virtual;90-real
PREFIX ?= /usr/local
JOBS ?= $(shell nproc 2>/dev/null || sysctl -n hw.ncpu)
export CINGULUM_CUDA CINGULUM_WEBGPU CINGULUM_VIEW
# Tests run in folders of their own, so the name of the real data must not depend on where one stands. A folder that is not
# there is said and leaves the variable empty: those tests are then skipped, each with its reason, or fail (see above).
ifdef CINGULUM_TEST_DATA
ifeq ($(realpath $(CINGULUM_TEST_DATA)),)
$(warning CINGULUM_TEST_DATA=$(CINGULUM_TEST_DATA): no such folder, tests on real data cannot run)
endif
override CINGULUM_TEST_DATA := $(realpath $(CINGULUM_TEST_DATA))
export CINGULUM_TEST_DATA
endif

BUILD := build
# Mesa keeps compiled shaders; nothing is written outside the clone.
export MESA_SHADER_CACHE_DIR := $(CURDIR)/$(BUILD)/mesa
CMAKE := $(BUILD)/venv/bin/cmake
CTEST := $(BUILD)/venv/bin/ctest
OPTIONS := -DCINGULUM_CUDA=$(CINGULUM_CUDA) -DCINGULUM_WEBGPU=$(CINGULUM_WEBGPU) -DCINGULUM_VIEW=$(CINGULUM_VIEW) \
           "-DCINGULUM_CUDA_ARCHS=$(CINGULUM_CUDA_ARCHS)" $(if $(WERROR),-DCINGULUM_WERROR=$(WERROR)) \
           $(if $(UNITY),-DCINGULUM_UNITY=$(UNITY))
# Tests are configured once what they need was installed, and stay configured.
TESTING = -DBUILD_TESTING=$$(test -e $(BUILD)/.bootstrap-test && echo ON || echo OFF)
# Runs a command, says how many minutes it took and notes it in build/minutes.txt: $(call part,NAME,COMMAND)
part = tools/timed $(BUILD)/minutes.txt $(1) $(2)

.PHONY: all bootstrap bootstrap-test bootstrap-web bootstrap-cluster bootstrap-bench configure build build-tests build-benches test test-long test-cluster \
        test-web test-sanitized demo demo-oct wheel docs format install dev tsan gpu-package gpu-test gpu-soak gpu-sanitize gpu-bench bench fuzz clean help
.NOTPARALLEL:

all: build

help:
	@sed -n 's/^# *//p;/^$$/q' Makefile
	@echo "targets: all test test-long test-cluster test-web test-sanitized demo demo-oct wheel bench fuzz docs format install dev tsan gpu-package gpu-test gpu-soak gpu-sanitize gpu-bench clean"

bootstrap:
	@$(call part,bootstrap,tools/bootstrap $(BUILD))
bootstrap-test:
	@$(call part,bootstrap,tools/bootstrap $(BUILD) test)
bootstrap-web:
	@$(call part,bootstrap,tools/bootstrap $(BUILD) test web)
bootstrap-cluster:
	@$(call part,bootstrap,tools/bootstrap $(BUILD) test cluster)
bootstrap-bench:
	@$(call part,bootstrap,tools/bootstrap $(BUILD) test bench)

# After the bootstrap of what is to be built.
CONFIGURE = $(CMAKE) --preset release $(OPTIONS) $(TESTING) > $(BUILD)/configure.log || { cat $(BUILD)/configure.log; exit 1; }

configure: bootstrap
	@$(CONFIGURE)

# The program and what it needs.
build: configure
	@$(call part,program,$(CMAKE) --build $(BUILD) -j $(JOBS) --target cingulum_program)

# Everything but the bench programs.
build-tests: bootstrap-test
	@$(CONFIGURE)
	@$(call part,build,$(CMAKE) --build $(BUILD) -j $(JOBS))

build-benches: bootstrap-bench
	@$(CONFIGURE)
	@$(call part,benches,$(CMAKE) --build $(BUILD) -j $(JOBS) --target benches cingulum_program)

# The list of devices comes first: it says why tests of an absent one are skipped. Minutes, and how many tests were skipped
# for which reason, are printed before ctest's summary, which is repeated so that it stands at the end.
test: build-tests
	@$(BUILD)/bin/cingulum devices
	@tools/run-tests $(BUILD) -j $(JOBS) -LE '^(web|cluster)$$'

# Several nodes on one machine: the workflow here and on a Slurm of two nodes, stopped and resumed, and the program in a container.
# JVM, Nextflow, Slurm and buildah are installed: where one is not there after all, that is a failure.
test-cluster: build-tests bootstrap-cluster
	@CINGULUM_TEST_REQUIRE=$(CINGULUM_TEST_REQUIRE),nextflow,slurm,buildah,bids-validator \
	  tools/run-tests $(BUILD) -j $(JOBS) -L '^cluster$$' --no-tests=error

# In a browser, which is installed: where it is not there after all, that is a failure. Before the build, since the module of
# exported pages is compiled by emscripten, which is installed, too.
test-web: bootstrap-web build-tests
	@CINGULUM_TEST_REQUIRE=$(CINGULUM_TEST_REQUIRE),chromium,zarrita,neuroglancer \
	  tools/run-tests $(BUILD) -j $(JOBS) -L '^web$$' --no-tests=error

# Parsers on their corpus, files, Zarr, streamlines, base and rings under the address and undefined-behaviour sanitizers: what is
# quick enough for every change, and so without the checks of null pointers (a crash anyway), vtables and alignment, which
# double the time to compile. `make dev` does it for all tests, with every check; `make fuzz` has every check, too.
SANITIZED := test_base test_formats test_zarr test_streamlines test_ring fuzz
SANITIZED_LABELS := ^($(subst $() ,|,$(SANITIZED)))$$
test-sanitized: bootstrap-test
	@$(CMAKE) --preset sanitized > $(BUILD)/configure-sanitized.log || { cat $(BUILD)/configure-sanitized.log; exit 1; }
	@$(call part,build-sanitized,$(CMAKE) --build build-sanitized -j $(JOBS) --target $(SANITIZED))
	@$(call part,test-sanitized,$(CTEST) --test-dir build-sanitized --output-on-failure -j $(JOBS) -L '$(SANITIZED_LABELS)')

# The full counts of the reliability goals, in parts of at most 45 minutes each: make test-long PART=kill
PART ?= all
test-long: build-tests
	@tools/test-long $(PART)

demo: build
	@tools/demo

# Compares by NumPy and SciPy, which the tests bring.
demo-oct: bootstrap-test build
	@tools/demo-oct

# One file for pip, with CUDA code and wgpu-native inside.
wheel: build-tests
	@$(call part,wheel,tools/wheel $(BUILD))

# Each scenario with its ceiling and its peers in the same run; JSON in build/.
bench: build-benches
	@$(BUILD)/bin/bench_device --out $(BUILD)/bench_device.json
	@$(BUILD)/bin/bench_formats_images --peer $(BUILD)/venv/bin/python --out $(BUILD)/bench_formats_images.json
	@$(BUILD)/bin/bench_formats_tractograms --peer $(BUILD)/venv/bin/python --out $(BUILD)/bench_formats_tractograms.json
	@$(BUILD)/bin/bench_models --out $(BUILD)/bench_models.json
	@$(BUILD)/bin/bench_track --data $(BUILD)/bench_track --out $(BUILD)/bench_track.json

docs: build
	@$(BUILD)/bin/cingulum docs docs/commands

format: bootstrap-test
	@git ls-files -co --exclude-standard '*.cpp' '*.hpp' '*.cu' '*.cuh' | xargs -r clang-format-14 -i

install: build
	@$(CMAKE) --install $(BUILD) --prefix $(PREFIX)

# Sanitizers: address and undefined behaviour (dev), threads (tsan).
dev tsan: bootstrap-test
	@$(CMAKE) --preset $@ -DCINGULUM_WEBGPU=$(CINGULUM_WEBGPU) > $(BUILD)/configure-$@.log || { cat $(BUILD)/configure-$@.log; exit 1; }
	@$(CMAKE) --build --preset $@ -j $(JOBS)
	@$(CTEST) --preset $@ -j $(JOBS)

# Every parser on mutated files: FUZZ_SECONDS=60 each.
fuzz: bootstrap-test
	@tools/fuzz

# A folder with everything that a run on a GPU machine needs (build/gpu), and what runs there.
gpu-package: bootstrap-test
	@$(CONFIGURE)
	@tools/gpu-package $(BUILD) -j $(JOBS)
gpu-test:
	@tools/gpu-test
# The reliability goals of GPU actors: FORM=short (a minute) or full (10^9 messages over each path).
gpu-soak:
	@tools/gpu-soak $(FORM)
gpu-sanitize:
	@tools/gpu-sanitize
gpu-bench:
	@tools/gpu-bench

clean:
	rm -rf build build-dev build-sanitized build-tsan build-fuzz build-off build-mutate build-coverage
