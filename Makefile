# Everything from a fresh clone: `make run`, `make test`. Both set up what is missing, and rebuild only what changed.
# Options: TORCH_DIR=/path/to/libtorch (nothing is downloaded then), PREFIX=, JOBS=, PYTHON=, LLVM=16.
SHELL := bash
.DEFAULT_GOAL := build
.NOTPARALLEL:

export LLVM ?= 16
export PATH := $(CURDIR)/.venv/bin:$(PATH)
PREFIX ?= /usr/local
# A file that includes LibTorch takes 1.3 GB to compile: no more at once than memory holds.
JOBS ?= $(shell awk -v cores=$$(env -u OMP_NUM_THREADS nproc) '/MemAvailable/ {n = int($$2 / 1500000); print n < 1 ? 1 : n < cores ? n : cores}' /proc/meminfo)
TEST_JOBS ?= 2
FUZZERS := wire_fuzz mesh_fuzz
FUZZ_RUNS ?= 10000000
SOAK_SECONDS ?= 600
BENCH ?= --out docs/benchmarks
STEPS ?= --out docs/benchmarks

ninja = ninja -C $(1) -j $(JOBS)
# What was tuned on this machine is not what is tested.
ctest = TUTTI_TUNING=off ctest --test-dir $(1) --output-on-failure -j $(TEST_JOBS)

.PHONY: build run test python-test low sanitize soak bench compat fuzz fuzz-short fuzz-build check format install clean help

build: ## build everything into build/
	@tools/setup build torch report
	@tools/configure release
	@$(call ninja,build)

run: ## the main job: train a small GPT on the text of this repository, over as many ranks as there are cores
	@tools/setup build torch report
	@tools/configure release
	@$(call ninja,build) --quiet tutti tutti_train_program
	build/tutti train

test: ## build everything and pass every test, with a short run of the fuzzers
	@tools/setup build torch test mpi fuzz report browser
	@tools/configure release
	@$(call ninja,build)
	$(call ctest,build)
	@$(MAKE) --no-print-directory fuzz-short python-test

python-test:
	@if [[ -x tools/python_test ]]; then tools/python_test; fi

low: ## build and test levels 0-2 alone, without LibTorch
	@tools/setup build test
	@tools/configure low
	@$(call ninja,build-low)
	$(call ctest,build-low)

sanitize: sanitize-asan sanitize-tsan ## levels 0-2 and the tool under ASAN+UBSAN, then under TSAN

# The sanitizers' shadow memory needs the kernel's usual randomization of addresses; where it is wider, it is turned off.
narrow = $(shell (( $$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 28) > 28 )) && setarch -R true 2>/dev/null && echo setarch -R)

sanitize-%:
	@tools/setup build test
	@tools/configure $*
	@$(narrow) $(call ninja,build-$*)
	$(narrow) $(call ctest,build-$*)

soak: ## 2,000 kills, mismatches of every kind, ten minutes of random operations
	@tools/setup build torch test
	@tools/configure release
	@$(call ninja,build) --quiet tutti soak chaos_test
	TUTTI_SOAK=1 build/bin/chaos_test
	build/tutti run -n 3 -- build/bin/soak --seconds $(SOAK_SECONDS) --seed $${RANDOM}

bench: ## collectives beside Gloo, Open MPI, MPICH, Intel MPI, oneCCL and a bare loop; training steps beside DDP; into docs/benchmarks
	@tools/setup build torch bench
	@tools/configure release
	@$(call ninja,build) --quiet tutti tutti_bench tutti_bare_loop tutti_steps tutti_train_program
	@bench/build_peers
	bench/compare $(BENCH)
	@tools/python_package
	bench/compare_steps $(STEPS)
	bench/compare_training $(STEPS)

compat: ## weights to and from Hugging Face's transformers, with equal logits
	@tools/setup build torch compat
	@tools/configure release
	@$(call ninja,build) --quiet tutti tutti_train_program
	train/compare_transformers

fuzz-build:
	@tools/setup build fuzz
	@CXX=clang++-$(LLVM) tools/configure fuzz
	@$(call ninja,build-fuzz) $(FUZZERS)

fuzz: fuzz-build ## 10 million runs of each fuzzer
	tools/fuzz $(FUZZ_RUNS) $(FUZZERS)

fuzz-short: fuzz-build
	tools/fuzz 200000 $(FUZZERS)

check: ## format, layers, scripts, clang-tidy
	@tools/setup build torch check
	@tools/configure check
	tools/check

format: ## lay out every C++ file as .clang-format says
	@tools/setup check
	tools/check --fix format

install: build ## headers, library, tool and CMake package into PREFIX
	cmake --install build --prefix "$(PREFIX)"

clean: ## remove the build folders; .venv stays
	rm -rf build build-check build-debug build-low build-asan build-tsan build-fuzz

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20
