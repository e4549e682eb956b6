# SPDX-License-Identifier: Apache-2.0

# The go command of the version that go.mod asks for, wherever it has to come from: see scripts/go.
GO := $(CURDIR)/scripts/go

# The version is stamped below, so the go command need not ask git, which refuses to answer root about a user's tree.
export GOFLAGS := $(strip $(GOFLAGS) -buildvcs=false)
VERSION = $(shell git -c safe.directory=$(CURDIR) describe --tags --always --dirty 2>/dev/null)

PREFIX    ?= /usr/local
PKG       ?= ./...
FUZZTIME  ?= 5s
BENCHTIME ?= 1s
# Time limit of one package's tests.
TIMEOUT   ?= 10m
ARGS      ?=

# Tests that find themselves without root say so and are skipped; as root, there is no such excuse.
ifeq ($(shell id -u),0)
export TWOPATH_REQUIRE_ROOT ?= 1
endif

.PHONY: help demo build test race fuzz bench check generate setup install uninstall clean

help: ## Say what there is to make (the default)
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' Makefile
	@echo '  PKG=./xsk/... narrows test, race and bench; FUZZTIME=20000x, BENCHTIME=1x, PREFIX=, ARGS= (for demo)'

demo: ## Set up what is missing, build as the user, and show the A/B as root
	@MAKE='$(MAKE)' scripts/demo $(ARGS)

build: ## Build bin/twopath: static, for this machine or GOARCH=arm64
	@scripts/setup go
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-X main.version=$(VERSION)' -o bin/twopath ./cmd/twopath

# One package at a time: the tests own the processors they pin threads to. Results that depend on the kernel and on
# privileges are not cached.
test: ## Run all tests; as root also those that make namespaces and load XDP programs
	@if [ "$$(id -u)" -eq 0 ]; then scripts/setup go test; else scripts/setup go; fi
	@CGO_ENABLED=0 $(GO) build ./...
	CGO_ENABLED=0 $(GO) test -count=1 -p=1 -timeout=$(TIMEOUT) $(TESTFLAGS) $(PKG)

race: ## Run the tests under the race detector
	@scripts/setup go race
	CGO_ENABLED=1 $(GO) test -race -count=1 -p=1 -timeout=$(TIMEOUT) $(TESTFLAGS) $(PKG)

fuzz: ## Run every fuzz target for FUZZTIME
	@scripts/setup go
	FUZZTIME=$(FUZZTIME) scripts/fuzz

bench: ## Run the benchmarks
	@scripts/setup go
	CGO_ENABLED=0 $(GO) test -run='^$$' -bench=. -benchmem -benchtime=$(BENCHTIME) -count=1 -p=1 -timeout=$(TIMEOUT) $(PKG)

check: ## Formatting, vet, staticcheck, tidy modules, and BPF objects that match their sources
	@scripts/setup go check generate
	@scripts/check

generate: ## Compile the BPF programs and write their loaders
	@scripts/setup go generate
	scripts/generate

setup: ## Install what all of the above needs
	scripts/setup go test race check generate

install: ## Install bin/twopath, built before, under DESTDIR and PREFIX
	@test -x bin/twopath || { echo 'nothing to install yet: make build' >&2; exit 1; }
	install -D -m 0755 bin/twopath '$(DESTDIR)$(PREFIX)/bin/twopath'

uninstall: ## Remove what install put there
	rm -f '$(DESTDIR)$(PREFIX)/bin/twopath'

clean: ## Remove what was built
	rm -rf bin
