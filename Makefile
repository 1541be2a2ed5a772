# The project's commands. Each installs or builds what it needs and says what it does.

CARGO ?= cargo
BENCH_ARGS ?=
# Short enough that a fresh machine of two cores has built and measured within a quarter of an hour.
BENCH_DEFAULT = --gateways nginx,weir,haproxy,envoy --rounds 3 --duration 2
CLIENT_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help run test test-clients test-websockets check bench bench-micro fuzz

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

run: ## Build Weir, start it with the quickstart configuration and a demo upstream, print calls to try
	@scripts/need build
	$(CARGO) build --release --locked -p weir --bin weir --example demo_upstream
	@scripts/quickstart target/release

test: ## Run every test: unit, protocol, recorded answers of Kong and APISIX
	@scripts/need build test
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) test --workspace --locked
	$(CARGO) build --locked -p weir
	scripts/python tests/recorded/run.py --weir target/debug/weir
	scripts/python tests/recorded/run.py --weir target/debug/weir --through admin --jobs 4

test-clients: ## Run the tests of Kong's clients (go-kong, the calls of decK) against the Admin API
	@scripts/need build test clients
	$(CARGO) build --locked -p weir
	@scripts/test-clients $(CLIENT_ARGS)

test-websockets: ## Run the Autobahn TestSuite's cases through a gateway, in the clear and over TLS
	@scripts/need build
	$(CARGO) build --locked -p weir
	@tests/websockets/run.py $(WEBSOCKET_ARGS)

check: ## The fast loop: format, lint, unit tests
	@scripts/need build
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) test --workspace --locked --lib --bins

bench: ## A1 to A4 and N4 beside NGINX, HAProxy, Envoy; BENCH_ARGS="all", or "A1 A3 --rounds 3", to choose
	@scripts/need build bench $(if $(BENCH_ARGS),peers)
	$(CARGO) build --release --locked -p weir
	$(CARGO) build --release --locked -p weir-bench
	target/release/weir-bench --weir target/release/weir $(or $(BENCH_ARGS),$(BENCH_DEFAULT))

bench-micro: ## What the pieces of a call cost by themselves; BENCH_ARGS="plugins" to choose
	@scripts/need build
	$(CARGO) bench --locked -p weir-bench --bench pieces -- $(BENCH_ARGS)

fuzz: ## Fuzz every parser for a minute each; SECONDS_EACH=600 for longer
	@scripts/need build fuzz
	@scripts/fuzz $(or $(SECONDS_EACH),60)
