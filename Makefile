# `make` alone says what there is.
CARGO ?= cargo
BINS = -p broker -p ctl -p runner
SECONDS ?= 600

.PHONY: help demo build test soak fmt lint docs deny gate

help: ## what there is to make
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

demo: ## the main job on real files, in one screen
	@$(CARGO) build -q $(BINS)
	@$${CARGO_TARGET_DIR:-target}/debug/rolebroker demo

build: ## the three programs, optimised
	$(CARGO) build --release --locked $(BINS)

test: ## every test, real processes and the simulator included
	$(CARGO) build --locked $(BINS)
	$(CARGO) test --locked --workspace
	$(CARGO) test --locked -q -p proto --all-features --lib

soak: ## the simulator on fresh seeds: make soak SECONDS=600
	RB_SOAK_SECONDS=$(SECONDS) $(CARGO) test --locked -p e2e --test simulator two_thousand -- --nocapture

fmt:
	$(CARGO) fmt --check

lint:
	$(CARGO) clippy --locked --workspace --all-targets --all-features -- -D warnings

docs:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps --document-private-items

deny:
	@if $(CARGO) deny --version >/dev/null 2>&1; then \
	    $(CARGO) deny --log-level error check bans licenses sources; \
	else \
	    echo "deny: skipped, cargo-deny is not installed (cargo install cargo-deny)"; \
	fi

gate: fmt lint docs deny test ## everything that must hold before a change lands
	@echo "gate: ok"
