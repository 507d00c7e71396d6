# Each target is one command; `make help` lists them.
PYTHON ?= python3
IMPL ?= droplet
# A torch that is already in the environment is kept, of any release that constraints/ has a file of.
TORCH ?= 2.13
JOBS ?= $(shell nproc)

VENV := .venv
BIN := $(VENV)/bin
# e.g. CONFIG=vendors/droplet/profiles/lossy.yaml builds a variant of the chip into build/droplet-lossy
CONFIG ?=
# e.g. ARGS='--family pooling --seed 1' are more options of the conformance run
ARGS ?=
BUILD := build/$(IMPL)$(addprefix -,$(basename $(notdir $(CONFIG))))
GENERATED := $(if $(CONFIG),$(BUILD)/generated,generated)
# A test that misses a build fails; files go to processes whole, those that take longest first. Some wait for others, so
# there is one process more than processors.
WORKERS = $(shell expr $(JOBS) + 1)
PYTEST = DIOPI_REQUIRE_BUILD=1 $(BIN)/python -m pytest tests -n $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart 0
# Nothing that the build starts may load a half-built backend.
QUIET := TORCH_DEVICE_BACKEND_AUTOLOAD=0
KNOWN := $(sort $(notdir $(patsubst %/,%,$(dir $(wildcard vendors/*/vendor.yaml)))))

# On a terminal pip shows how far its downloads are.
PIP_OPTIONS := $(if $(MAKE_TERMOUT),,--quiet)
PIP := $(BIN)/pip install --disable-pip-version-check $(PIP_OPTIONS)

.DEFAULT_GOAL := help
.PHONY: help setup demo build quick test deep-test check format golden matrix constraints bench conformance times docs clean known-impl environment

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 16
	@echo; echo "  IMPL=<vendor> chooses a vendor: $(KNOWN)"
	@echo "  CONFIG=<file> builds the variant of its chip that lacks what the file says"

known-impl:
	@test -f vendors/$(IMPL)/vendor.yaml || \
	  { echo "there is no vendor '$(IMPL)'; IMPL is one of: $(KNOWN)" >&2; exit 2; }

setup: $(VENV)/.ready  ## make the environment .venv

$(VENV)/.ready: pyproject.toml python/torch_dipu/pyproject.toml $(wildcard constraints/*)
	@tools/require-compiler
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(QUIET) $(BIN)/python tools/constraints.py install --torch $(TORCH) $(addprefix -- ,$(PIP_OPTIONS))
	$(QUIET) $(PIP) --no-build-isolation --no-deps -e .
	$(QUIET) $(PIP) --no-build-isolation --no-deps \
	  --config-settings=wheel.cmake=false --config-settings=editable.mode=redirect -e python/torch_dipu
	@touch $@

build: known-impl setup  ## generate and build one vendor: IMPL=droplet
	@$(QUIET) $(BIN)/python tools/build.py --vendor $(IMPL) --build $(BUILD) --jobs $(JOBS) $(addprefix --convert-config ,$(CONFIG))

conformance: build  ## run the conformance suite: IMPL=droplet ARGS='--op add'
	$(QUIET) $(BIN)/diopi-conformance run --vendor $(IMPL) --jobs $(JOBS) --libraries $(BUILD)/lib \
	  --plan $(GENERATED)/$(IMPL)/conformance/plan.json --out conformance_results/$(notdir $(BUILD)).json $(ARGS)

demo: known-impl environment setup  ## build droplet, train three models on it, run a sample of its conformance cases
	@$(BIN)/python demo/demo.py --vendor $(IMPL) --jobs $(JOBS)

environment:
	@test -f $(VENV)/.ready || echo "1/5 environment: packages into $(VENV)"

quick: check  ## the tests that need no PyTorch backend, and a sample of the conformance cases: about 6 minutes
	@$(QUIET) $(BIN)/python tools/build.py --vendor droplet --build build/droplet-quick --jobs $(JOBS) --no-torch
	$(PYTEST) --tier quick
	$(QUIET) $(BIN)/diopi-conformance run --vendor droplet --jobs $(JOBS) --libraries build/droplet-quick/lib --sample 4 \
	  --out conformance_results/droplet-quick.json

test: check  ## what every change must pass: half an hour to an hour; TURN=today takes half of it, by the date
	@$(QUIET) $(BIN)/python -m tests.e2e.composed build/profiles/composed.yaml
	@$(QUIET) $(BIN)/python tools/build.py --vendor droplet --build build/droplet --jobs $(JOBS) \
	  --profile vendors/droplet/profiles/lossy.yaml --profile build/profiles/composed.yaml
	$(PYTEST) --tier test $(addprefix --turn ,$(TURN)) --times build/times/tests.json

deep-test: setup  ## all other tests: KIND=sanitizers|races|matrix|fuzz|mutants|frameworks|today STEP=<name> LIMIT=<seconds> ARGS=...
	@$(BIN)/python tools/deep_tests.py --jobs $(JOBS) $(addprefix --kind ,$(KIND)) $(addprefix --step ,$(STEP)) \
	  $(addprefix --limit ,$(LIMIT)) $(if $(ARGS),-- $(ARGS))

check: setup  ## formatting, types, imports, schemas, generated files
	$(BIN)/black --quiet --check generators conformance python tests demo tools setup.py
	$(BIN)/ruff check --quiet generators conformance python tests demo tools setup.py
	$(BIN)/python -m tools.cpp_format --check
	$(BIN)/python -m tools.cpp_tidy
	$(BIN)/mypy --no-error-summary generators/diopigen conformance/diopi_conformance python/op_tools/op_tools python/op_tools/ditorch \
	  python/dicp/dicp
	$(BIN)/lint-imports --no-logo >/dev/null
	$(BIN)/diopigen lint --vendor droplet
	$(BIN)/diopigen fmt --check
	$(BIN)/diopigen header --check
	$(BIN)/python tools/diagnostics_doc.py --check
	$(BIN)/python -m tools.modules_page --check
	$(BIN)/python -m tools.test_tiers --check
	$(BIN)/python -m tools.versions_doc --check
	$(BIN)/python -m tools.scaling --check
	$(BIN)/python -m tools.performance_page --check

format: setup  ## format Python, C++ and schemas
	$(BIN)/ruff check --quiet --fix generators conformance python tests demo tools setup.py
	$(BIN)/black --quiet generators conformance python tests demo tools setup.py
	$(BIN)/python -m tools.cpp_format
	$(BIN)/diopigen fmt

golden: setup  ## update the goldens of the tests
	$(QUIET) $(BIN)/python -m pytest tests/golden tests/diagnostics --snapshot-update -q

matrix: setup  ## build and test with each release of torch: RELEASES='2.13 2.15' GOAL=test
	@$(BIN)/python -m tools.matrix $(RELEASES) $(addprefix --goal ,$(GOAL))

constraints: setup  ## resolve the packages of the environment anew, by version and hash: constraints/
	$(BIN)/python tools/constraints.py write $(ARGS)

bench: build  ## the benchmarks, each beside a named peer
	$(BIN)/python benchmarks/run.py --vendor $(IMPL) --build $(BUILD)

times: setup  ## where the minutes of the last build and test run went, beside the run before; kept in benchmarks/results
	@$(QUIET) $(BIN)/python -m tools.times

docs: setup  ## the documentation site: build/site/index.html
	$(QUIET) $(BIN)/diopigen docs --out build/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --config-file build/docs/mkdocs.yml

clean:  ## remove what was built and generated for vendors
	rm -rf build .cache generated/torch_dipu-* $(foreach vendor,$(KNOWN),generated/$(vendor))
