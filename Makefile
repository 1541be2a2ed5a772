# The project's commands. Each builds what it needs and names what is missing; only `make deps` installs anything.

CARGO ?= cargo
BENCH_ARGS ?=
# Short enough that a fresh machine of two cores has built and measured within a quarter of an hour.
BENCH_DEFAULT = --gateways nginx,weir,haproxy,envoy --rounds 3 --duration 2
CLIENT_ARGS ?=
AUDIT ?=
CONSOLE_ARGS ?=

.DEFAULT_GOAL := help
# What `make deps` installs for: build, console, browser, test, clients, bench, audit, fuzz, dist.
FOR ?= build test browser

.PHONY: help deps opa run console test test-console test-clients test-websockets check check-minimum audit bench bench-micro bench-analytics fuzz dist release generate

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

deps: ## Install what is missing (Debian packages, test programs); FOR="bench fuzz" to choose
	@scripts/deps install $(FOR)

opa: ## Build the policy agent of the tests from the Go module proxy; it takes some minutes
	@scripts/deps install opa

run: ## Build Weir quickly, start it with the quickstart configuration and a demo upstream, print calls to try
	@scripts/deps check build
	$(CARGO) build --profile quick --locked -p weir --bin weir --example demo_upstream
	@scripts/quickstart target/quick

console: ## Build the console's pages into crates/console/assets (needs Node 20.19 or newer, and npm)
	@scripts/deps check console
	cd console && npm ci --no-fund --no-audit && npm run build

generate: ## Write everything that is made of the sources: lists and tables of plugins, fields, the JSON Schema
	UPDATE_GOLDEN=1 $(CARGO) test -q -p weir-tidy plugin_lists
	UPDATE_GOLDEN=1 $(CARGO) test -q -p weir-native --test schema
	UPDATE_GOLDEN=1 $(CARGO) test -q -p weir --bins pages

test: ## Run the tests as CI does: unit, protocol, recorded answers of Kong and APISIX, acceptance tests in a browser
	@scripts/deps check build test
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	@# It builds target/debug/weir, too. A build of that package alone would build its dependencies with other features.
	CARGO=$(CARGO) scripts/test-rust
	scripts/python tests/recorded/run.py --weir target/debug/weir
	scripts/python tests/recorded/run.py --weir target/debug/weir --through admin --jobs 4
	@# Of the browser tests only the acceptance tests: all of them take much longer. make test-console runs all.
	ACCEPTANCE=1 scripts/test-console target/debug/weir

test-console: ## Run all tests of the console in Chromium; CONSOLE_ARGS="-g rollback" to choose
	@scripts/deps check build browser
	$(CARGO) build --locked --workspace --bin weir
	@scripts/test-console target/debug/weir $(CONSOLE_ARGS)

test-clients: ## Run the tests of Kong's clients (go-kong, the calls of decK) against the Admin API
	@scripts/deps check build test clients
	$(CARGO) build --locked --workspace --bin weir
	@scripts/test-clients $(CLIENT_ARGS)

test-websockets: ## Run the Autobahn TestSuite's cases through a gateway, in the clear and over TLS
	@scripts/deps check build
	$(CARGO) build --locked --workspace --bin weir
	@tests/websockets/run.py $(WEBSOCKET_ARGS)

check: ## The fast loop: format, lint, unit tests
	@scripts/deps check build
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) test --workspace --locked --lib --bins

check-minimum: ## Check that the oldest supported compiler (rust-version in Cargo.toml) builds Weir
	@scripts/check-minimum

audit: ## Check licences, sources and advisories of all dependencies; AUDIT="licenses bans sources" without the database
	@scripts/deps check audit
	cargo deny --locked check $(AUDIT)

bench: ## A1 to A4 and N4 beside NGINX, HAProxy, Envoy; BENCH_ARGS="all", or "A1 A3 --rounds 3", to choose
	@scripts/deps check build dist
	@scripts/deps check bench
	scripts/dist
	$(CARGO) build --release --locked -p weir-bench
	target/release/weir-bench --weir target/dist/weir $(or $(BENCH_ARGS),$(BENCH_DEFAULT))

bench-micro: ## What the pieces of a call cost by themselves; BENCH_ARGS="plugins" to choose
	@scripts/deps check build
	$(CARGO) bench --locked -p weir-bench --bench pieces -- $(BENCH_ARGS)

bench-analytics: ## Analytics of 30 days and 8,000 keys: size of the file, times of queries, cost of counting
	@scripts/deps check build
	$(CARGO) bench --locked -p weir-analytics --bench store -- $(BENCH_ARGS)

fuzz: ## Fuzz every parser for a minute each; SECONDS_EACH=600 for longer
	@scripts/deps check build fuzz
	@scripts/fuzz $(or $(SECONDS_EACH),60)

dist: ## Build target/dist/weir, guided by a profile made on this machine (builds Weir twice)
	@scripts/deps check build dist
	scripts/dist

release: ## Make the packages of a release in target/release-VERSION: archive, .deb, SBOM, checksums
	@scripts/deps check build console dist
	scripts/release
