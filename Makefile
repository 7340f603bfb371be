# Everything a contributor or CI runs. `make help` lists the targets.

.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

GO ?= go
PYTHON ?= python3
PKG ?= ./...
FUZZTIME ?= 10s
# For the tests of one package: Go's 10 minutes are not enough for all of them on a slow machine that is busy.
TIMEOUT ?= 30m
PROGRAMS ?= 2000
ARGS ?=

# Tools are pinned and live in the checkout, so that everyone lints alike.
TOOLS := .tmp/bin
GOLANGCI_LINT_VERSION := v2.15.0
GOLANGCI_LINT := $(TOOLS)/golangci-lint-$(GOLANGCI_LINT_VERSION)

# Conformance tests of HTTP/2: 145 cases.
H2SPEC_VERSION := v2.2.1+incompatible
H2SPEC := $(TOOLS)/h2spec-$(H2SPEC_VERSION)

# The generator of a client for sessions over HTTP.
OAPI_CODEGEN_VERSION := v2.8.2
OAPI_CODEGEN := $(TOOLS)/oapi-codegen-$(OAPI_CODEGEN_VERSION)

# Tests of APIs over HTTP by their descriptions.
SCHEMATHESIS_VERSION := 4.32.5
SCHEMATHESIS := $(TOOLS)/schemathesis-$(SCHEMATHESIS_VERSION)/bin/schemathesis

# gRPC's library for Node, which "make interop" tests if it is there.
GRPC_JS_VERSION := 1.13.4
GRPC_JS := .tmp/node/grpc-js-$(GRPC_JS_VERSION)

# One virtual environment with a pinned TensorFlow serves interop and bench.
VENV := .venv
VENV_READY := $(VENV)/ready

# TensorFlow 1.15, which needs Python 3.7, for the tests that are part of its source code.
PYTHON37 ?= python3.7
VENV_OLD := .venv-1.15
VENV_OLD_READY := $(VENV_OLD)/ready

# Interpreters with other releases of TensorFlow, for shim-test: those of interop-old.
TENSORFLOWS ?= $(wildcard $(or $(WEFT_INTEROP_OLD),$(HOME)/.cache/weft-interop-old)/*/bin/python)

# Race instrumentation slows numeric kernels about tenfold and they share no state: the rest is what it is for.
RACE_SKIP := /internal/kernels/|/internal/numeric/simd|/internal/proto/pb$$|/op$$

# What `weft --version` shows where the go command records no commit: its hash and date, and whether
# the source code differs from it.
STAMP_VARIABLE := github.com/weft-ml/weft/internal/sys/buildinfo.stamp
STAMP = $(shell git log -1 --format='%h %cI' 2>/dev/null && { git diff --quiet HEAD || echo modified; })

# What `make generate` may write: compared before and after by checkgenerate.
FINGERPRINT := find . \( -name .git -o -name .tmp -o -name '.venv*' -o -name bin -o -name __pycache__ \) -prune \
	-o -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: build ## Train an MLP on a cluster of three tasks on this machine (ARGS="--data DIR" for real MNIST)
	bin/weft demo $(ARGS)

.PHONY: build
build: ## Build the static binary bin/weft
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags="-s -w -X '$(STAMP_VARIABLE)=$(STAMP)'" -o bin/weft ./cmd/weft

# A program that opens libraries of GPUs needs glibc. On amd64 the file starts without it, too, then without GPUs.
GPU_ARCH := $(or $(GOARCH),$(shell $(GO) env GOARCH))
GPU_ENTRY := $(if $(filter amd64,$(GPU_ARCH)),-E weft_entry)

.PHONY: build-gpu
build-gpu: ## Build bin/weft-gpu, the program with GPU devices (Linux)
	@rm -f bin/weft-gpu # go build would leave it as nointerp has made it
	CGO_ENABLED=0 $(GO) build -tags gpu -trimpath -ldflags="-s -w $(GPU_ENTRY) -X '$(STAMP_VARIABLE)=$(STAMP)'" -o bin/weft-gpu ./cmd/weft
	$(if $(GPU_ENTRY),GOARCH= $(GO) run ./internal/sys/onefile/nointerp bin/weft-gpu)

# POCL computes on the CPU, as two devices; the tests of the CUDA driver build a stand-in for libcuda if there is a C compiler.
POCL := POCL_DEVICES="pthread pthread" WEFT_OPENCL_CPU=1
TYPES ?= f32,i64,u32
GPU_PACKAGES := ./internal/gpu/... ./internal/sys/onefile/...
OPENCL_LIBRARY := $(wildcard /usr/lib/*/libOpenCL.so.1)
POCL_ICD := $(wildcard /etc/OpenCL/vendors/pocl.icd)

.PHONY: gpu
gpu: build-gpu $(if $(and $(OPENCL_LIBRARY),$(POCL_ICD)),,pocl) ## Test GPU devices without a GPU: OpenCL on the CPU (POCL), CUDA on a stand-in (TYPES= for kernels of all types)
	$(GO) vet -tags gpu $(GPU_PACKAGES) ./cmd/...
	CGO_ENABLED=0 $(POCL) WEFT_TEST_TYPES=$(TYPES) $(GO) test -tags gpu -timeout $(TIMEOUT) $(GPU_PACKAGES)
	CGO_ENABLED=0 $(POCL) WEFT_TEST_GPU=opencl $(GO) test -tags gpu -timeout $(TIMEOUT) ./internal/test/gputest

# POCL's devices have the memory of the machine. A part of it makes a full device quick to test.
.PHONY: gpu-tensorflow
gpu-tensorflow: build build-gpu $(if $(and $(OPENCL_LIBRARY),$(POCL_ICD)),,pocl) $(VENV_READY) ## Test GPU devices with programs of a real TensorFlow: OpenCL on the CPU (POCL)
	$(POCL) WEFT_INTEROP_GPU="--gpu=opencl --gpu-memory-fraction=0.1" $(VENV)/bin/python -m interop -k Gpus

.PHONY: pocl
pocl: ## Install POCL, an OpenCL for CPUs (Debian, Ubuntu)
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends pocl-opencl-icd ocl-icd-libopencl1

.PHONY: gpu-report
gpu-report: ## Examine the GPUs of this machine, and write dist/weft-gpu-report.json to send to the project (ARGS="-quick")
	CGO_ENABLED=0 $(GO) build -tags gpu -trimpath -ldflags="-s -w -X '$(STAMP_VARIABLE)=$(STAMP)'" -o bin/weft-gpu-report ./cmd/weft-gpu-report
	mkdir -p dist
	bin/weft-gpu-report -out dist $(ARGS)

# The tools of packages are a module of their own.
.PHONY: release
release: ## Make the files of a release in dist: programs, packages, an image, checksums
	cd deploy/packaging && $(GO) run . -source ../.. -out ../../dist

.PHONY: release-check
release-check: release ## Make the release again in another folder, compare it, and start what is packed
	deploy/packaging/check.sh dist

.PHONY: check
check: test lint ## What to run before a commit: test and lint

.PHONY: test
test: ## Run the tests
	$(GO) vet $(PKG)
	$(GO) test -timeout $(TIMEOUT) $(PKG)

.PHONY: race
race: ## Run the tests of concurrent packages under the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race -timeout $(TIMEOUT) $$($(GO) list $(PKG) | grep -Ev '$(RACE_SKIP)')

.PHONY: invariants
invariants: ## Run the tests with internal checks compiled in
	$(GO) test -tags invariants -timeout $(TIMEOUT) $(PKG)

.PHONY: levels
levels: ## Run the tests of kernels held to AVX2, and to no vector instructions
	WEFT_SIMD=avx2 $(GO) test -count=1 -timeout $(TIMEOUT) ./internal/kernels/... ./gradients/...
	WEFT_SIMD=generic $(GO) test -count=1 -timeout $(TIMEOUT) ./internal/kernels/... ./gradients/...

.PHONY: lint
lint: $(GOLANGCI_LINT) sizedmake ## Lint and check formatting
	$(GOLANGCI_LINT) run $(PKG)

.PHONY: sizedmake
sizedmake: ## Look for allocations of kernels that are not counted
	$(GO) build -o $(TOOLS)/sizedmake ./internal/test/sizedmake
	$(GO) vet -vettool=$(TOOLS)/sizedmake ./internal/kernels/... ./internal/opkit/...

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## Format the Go code
	$(GOLANGCI_LINT) fmt

.PHONY: generate
generate: ## Regenerate committed code and documents
	$(GO) generate $(PKG)

.PHONY: ptx
ptx: ## Compile the kernels for NVIDIA GPUs again (WEFT_NVRTC=libnvrtc.so of CUDA 11.8; no GPU is needed)
	CGO_ENABLED=0 $(GO) run -tags gpu ./internal/gpu/source/makeptx internal/gpu/source/ptx

.PHONY: checkgenerate
checkgenerate: ## Fail when committed generated files are not current
	@mkdir -p .tmp
	@$(FINGERPRINT) > .tmp/before-generate
	@$(MAKE) generate
	@$(FINGERPRINT) > .tmp/after-generate
	@diff .tmp/before-generate .tmp/after-generate || { echo 'generated files are out of date: run "make generate" and commit'; exit 1; }

.PHONY: interop
interop: build $(if $(filter Linux,$(shell uname -s)),build-gpu) $(VENV_READY) ## Test against a real TensorFlow, both directions (ARGS="-k hello" picks cases)
	$(VENV)/bin/python -m interop $(ARGS)

.PHONY: serving-guide
serving-guide: build ## Run the commands of the guides to serving models and to sessions over HTTP
	interop/guide.sh docs/guides/serving.md
	interop/guide.sh docs/guides/rest.md

.PHONY: rest-client
rest-client: build $(OAPI_CODEGEN) ## Train a network over HTTP with a client that is generated from the description
	interop/restclient/run.sh bin/weft $(OAPI_CODEGEN)

.PHONY: schemathesis
schemathesis: build $(SCHEMATHESIS) ## Send random requests to the APIs over HTTP (ARGS="--max-examples 1000")
	interop/schemathesis/run.sh bin/weft $(SCHEMATHESIS) $(ARGS)

.PHONY: serving-load
serving-load: build ## Send many requests to a model server while its model is replaced (needs h2load; ARGS=100000)
	interop/load.sh bin/weft $(ARGS)

.PHONY: java-client
java-client: build ## Ask a model server with a client in Java (needs Java 17 and Maven)
	interop/java/run.sh bin/weft

.PHONY: interop-old
interop-old: build ## Run programs of TensorFlow 0.12, 1.4 and 1.15 (ARGS=--all, ARGS="-k queue -r 1.4 -c WTT")
	$(PYTHON) -m interop.old $(ARGS)

.PHONY: interop-old-files
interop-old-files: build ## Exchange files with TensorFlow 0.12, 1.4 and 1.15 (ARGS=1.4)
	$(PYTHON) -m interop.old.files $(ARGS)

.PHONY: conformance-old
conformance-old: build $(VENV_READY) $(VENV_OLD_READY) ## Run TensorFlow 1.15's own tests (TESTS=folder of its source code)
	$(VENV_OLD)/bin/python -m interop.old.conformance --tests "$(TESTS)" --successor $(VENV)/bin/python $(ARGS)

.PHONY: conformance-tf2
conformance-tf2: build $(VENV_READY) ## Run TensorFlow 2.21's tests of remote execution and parameter servers (TESTS=folder of its source code)
	$(VENV)/bin/python -m interop.tf2.conformance --tests "$(TESTS)" $(ARGS)

.PHONY: shim-test
shim-test: build $(VENV_READY) ## Test python/weft_shim, with the releases of TensorFlow in TENSORFLOWS
	for python in $(VENV)/bin/python $(TENSORFLOWS); do \
		$$python python/tests/test_shim.py; $$python python/tests/test_wheel.py; \
	done
	TENSORFLOWS="$(VENV)/bin/python $(TENSORFLOWS)" $(VENV)/bin/python -m interop -k '][weft]' $(ARGS)

.PHONY: wheel
wheel: build ## Build the Python packages of weft_shim, without and with the program, in dist
	rm -rf dist
	$(PYTHON) python/backend.py dist
	$(PYTHON) python/backend.py dist --binary bin/weft

.PHONY: clients
clients: $(GRPC_JS) ## Install clients of other languages for "make interop" (needs npm)

# The dashboard is committed as compiled from TypeScript, so that "make build" needs Go alone.
# Its packages are kept out of the source tree, which tests and linters read.
DASHBOARD := internal/inspect/dashboard/app
DASHBOARD_NODE := .tmp/node/dashboard
DASHBOARD_READY := $(DASHBOARD_NODE)/node_modules/.package-lock.json

$(DASHBOARD_READY): $(DASHBOARD)/package.json $(DASHBOARD)/package-lock.json
	mkdir -p $(DASHBOARD_NODE)
	cp $^ $(DASHBOARD_NODE)
	npm ci --no-audit --no-fund --silent --prefix $(DASHBOARD_NODE)
	touch $@

.PHONY: dashboard
dashboard: $(DASHBOARD_READY) ## Compile the dashboard; needs npm
	$(DASHBOARD_NODE)/node_modules/.bin/tsc --noEmit --project $(DASHBOARD)
	cd interop/dashboard && $(GO) run ./bundle

# The module follows the requirements of Weft's, whose go.mod may have changed.
.PHONY: dashboard-test
dashboard-test: $(DASHBOARD_READY) ## Test the dashboard in Chromium; SCREENSHOTS names a folder for pictures
	$(DASHBOARD_NODE)/node_modules/.bin/tsc --noEmit --project $(DASHBOARD)
	cd interop/dashboard && export GOFLAGS=-mod=mod && $(GO) run ./bundle -check && $(GO) vet ./... && $(GO) test -count=1 ./...

.PHONY: site
site: ## Build the documentation as a static site with search (dist/site/index.html)
	cd docs/site && $(GO) vet ./... && $(GO) test -count=1 ./... && $(GO) run . -root ../.. -out ../../dist/site

.PHONY: prometheus
prometheus: build ## Let a real Prometheus read the metrics of a cluster that trains (needs prometheus and promtool)
	$(GO) build -trimpath -o bin/betweengraph ./examples/betweengraph
	$(PYTHON) -m interop.prometheus bin/weft bin/betweengraph

.PHONY: opentelemetry
opentelemetry: build $(VENV_READY) ## Let a real OpenTelemetry collector take the traces of a cluster
	$(GO) run go.opentelemetry.io/collector/cmd/builder@v0.140.0 --config interop/collector.yaml
	$(VENV)/bin/python -m interop.opentelemetry bin/weft bin/collector/collector

# Kubernetes and Kubeflow's controller have modules of their own, apart from each other and from
# Weft's, because of their many requirements: the first build takes 10 minutes or more.
.PHONY: kubernetes
kubernetes: build $(VENV_READY) ## Run deploy/kubernetes on a real control plane of Kubernetes and Kubeflow's controller (Linux)
	cd interop/kubernetes/tfjob && $(GO) vet . && $(GO) build -trimpath -o ../../../bin/kubernetes-tfjob .
	cd interop/kubernetes && $(GO) vet ./... && $(GO) build -trimpath -o ../../bin/kubernetes-controlplane ./controlplane
	cd interop/kubernetes && $(GO) test -count=1 -v -timeout $(TIMEOUT) .

.PHONY: slurm
slurm: build ## Run weft launch --slurm in a real Slurm on this machine (needs slurmctld, slurmd, slurm-client and munge)
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/betweengraph ./examples/betweengraph
	$(GO) test -c -o bin/slurm.test ./cmd/weft/internal/slurm
	interop/slurm/run.sh bin/weft bin/betweengraph bin/slurm.test

.PHONY: h2spec
h2spec: build $(H2SPEC) ## Run the conformance tests of HTTP/2 against a server
	interop/h2spec.sh bin/weft $(H2SPEC) $(ARGS)

.PHONY: bench
bench: build $(VENV_READY) ## Compare with TensorFlow's server, end to end (ARGS="--quick", ARGS="--only latency")
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o bin/bench-client ./bench/goclient
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o bin/bench-predictclient ./bench/predictclient
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o bin/bench-nullserver ./bench/nullserver
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o bin/bench-models ./examples/models
	$(VENV)/bin/python -m bench.run $(ARGS)

.PHONY: bench-kernels
bench-kernels: build $(VENV_READY) ## Compare kernels with TensorFlow's (ARGS="--threads 2", ARGS="--quick softmax")
	$(VENV)/bin/python -m bench.kernels $(ARGS)

.PHONY: bench-go
bench-go: ## Micro-benchmarks of kernels and vector code
	$(GO) test -run '^$$' -bench . -benchmem ./internal/kernels/... ./internal/numeric/simd/...

.PHONY: fuzz
fuzz: ## Fuzz every parser for FUZZTIME each
	@grep -rlE --include='*_test.go' '^func Fuzz' . | while read -r file; do \
		for name in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*).*/\1/p' "$$file"); do \
			echo "== $$name ($$(dirname "$$file"))"; \
			$(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$(dirname "$$file")"; \
		done; \
	done

.PHONY: fuzz-night
fuzz-night: ## Fuzz for MINUTES, from the target where the last run stopped; adds the time up in .ci/fuzz-hours
	.ci/fuzz $(or $(MINUTES),480)

.PHONY: fuzz-ops
fuzz-ops: build $(VENV_READY) ## Try random operations against TensorFlow (ARGS="--tries 50000")
	$(VENV)/bin/python -m interop.fuzz $(ARGS)

.PHONY: metamorphic
metamorphic: ## Run PROGRAMS random programs in every way (ARGS="-first 10000"); one that fails is kept, as small as possible
	$(GO) test ./internal/test/metamorphic -run RandomPrograms -timeout 60m -programs $(PROGRAMS) -keep testdata $(ARGS)

.PHONY: soak
soak: ## Make 10,000 sessions and 100,000 steps, of which many are cancelled, and look for what is left
	$(GO) test -tags invariants ./internal/role/master ./server -run Soak -v -timeout 60m -soak 100

.PHONY: failpoints
failpoints: ## Make each of 46 places fail, sleep and panic during steps (ARGS="-fail-steps 10" for a short run)
	$(GO) test -tags failpoints ./server -run TestFailpoints -timeout $(TIMEOUT) $(ARGS)

.PHONY: chaos
chaos: ## Train while tasks are killed, stopped and cut off (ARGS="-seed 1 -duration 30m")
	CGO_ENABLED=0 $(GO) build -trimpath -tags failpoints -o bin/weft-failpoints ./cmd/weft
	$(GO) run ./internal/test/chaos -weft bin/weft-failpoints $(ARGS)

.PHONY: kills
kills: ## End a process 200 times while it saves a checkpoint, with SIGKILL and SIGTERM (KILLS=50)
	$(GO) test -count=1 ./train -run TestKilledWhileSaving -timeout $(TIMEOUT) -kills $(or $(KILLS),200)

.PHONY: probes
probes: build ## Send requests that try to take all memory to a server (ARGS="-only queue -memory 1024")
	$(GO) run ./internal/test/probes -weft bin/weft $(ARGS)

.PHONY: hostile
hostile: build ## Send random hostile programs to servers for MINUTES (SEED=2, ARGS="-first 7 -one" repeats one)
	$(GO) run ./internal/test/probes -weft bin/weft -random $(or $(MINUTES),10)m -seed $(or $(SEED),1) $(ARGS)

.PHONY: cover
cover: ## Measure test coverage (.tmp/cover.html)
	@mkdir -p .tmp
	$(GO) test -coverprofile=.tmp/cover.out $(PKG)
	$(GO) tool cover -html=.tmp/cover.out -o .tmp/cover.html
	@$(GO) tool cover -func=.tmp/cover.out | tail -n 1

.PHONY: clean
clean: ## Remove what make built
	rm -rf bin dist .tmp $(VENV) $(VENV_OLD)

$(GOLANGCI_LINT):
	@mkdir -p $(TOOLS)
	GOBIN=$(CURDIR)/$(TOOLS) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	mv $(TOOLS)/golangci-lint $@

$(OAPI_CODEGEN):
	@mkdir -p $(TOOLS)
	GOBIN=$(CURDIR)/$(TOOLS) $(GO) install github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@$(OAPI_CODEGEN_VERSION)
	mv $(TOOLS)/oapi-codegen $@

$(SCHEMATHESIS):
	$(PYTHON) -m venv $(@D)/..
	$(@D)/python -m pip install --quiet schemathesis==$(SCHEMATHESIS_VERSION)

$(GRPC_JS):
	@mkdir -p .tmp/node
	npm install --silent --no-audit --no-fund --prefix .tmp/node @grpc/grpc-js@$(GRPC_JS_VERSION)
	@touch $@

$(H2SPEC):
	@mkdir -p $(TOOLS)
	GOBIN=$(CURDIR)/$(TOOLS) $(GO) install github.com/summerwind/h2spec/cmd/h2spec@$(H2SPEC_VERSION)
	mv $(TOOLS)/h2spec $@

$(VENV_READY): interop/requirements.txt interop/requirements-alone.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --requirement interop/requirements.txt
	$(VENV)/bin/python -m pip install --quiet --no-deps --requirement interop/requirements-alone.txt
	@touch $@

$(VENV_OLD_READY): interop/old/requirements.txt
	$(PYTHON37) -m venv $(VENV_OLD)
	$(VENV_OLD)/bin/python -m pip install --quiet --requirement interop/old/requirements.txt
	@touch $@
