# `make` alone says what there is.
CARGO ?= cargo
BINS = -p broker -p ctl -p runner
SECONDS ?= 600
ROUNDS ?= 500
CALLS ?= 10000000

# Where things are built, and where they are installed to. DESTDIR is put before it, for packages.
TARGET := $(or $(CARGO_TARGET_DIR),target)
BUILT ?= $(TARGET)/release
MANUAL ?= $(TARGET)/manual
PREFIX ?= /usr/local
TO = $(DESTDIR)$(PREFIX)
DOC = $(TO)/share/doc/rolebroker
PROGRAMS = rolebrokerd rolebroker rolebroker-runner
UNITS = rolebrokerd.service rolebroker@.socket rolebroker-runner@.service
SAMPLES = rolebroker-agent.service rolebroker-approver.service
PAGES = README.md LICENSE-APACHE LICENSE-MIT config/rolebroker.toml config/runner.toml docs/check.md \
    docs/design.md docs/grants.md docs/operations.md docs/protocol.md docs/runner.md docs/threat-model.md

.PHONY: help demo build test soak crash bounded fmt lint docs deny gate manual install uninstall

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

bounded: ## the store's file under ten million calls: make bounded CALLS=10000000
	$(CARGO) build --release --locked $(BINS)
	RB_BOUNDED_CALLS=$(CALLS) $(CARGO) test --release --locked -p e2e --test e2e bounded:: -- --nocapture

crash: ## the daemon killed at any moment, and its promises checked: make crash ROUNDS=500
	$(CARGO) build --locked $(BINS)
	RB_CRASH_ROUNDS=$(ROUNDS) $(CARGO) test --locked -p e2e --test e2e crash:: -- --nocapture

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

manual: ## man pages and completions, below target/manual
	$(CARGO) run -q --locked -p e2e --bin manual -- $(MANUAL)

install: ## after make build (and make manual): make install PREFIX=/usr/local DESTDIR=
	@for it in $(PROGRAMS); do \
	    test -x $(BUILT)/$$it || { echo "$(BUILT)/$$it is missing: make build"; exit 1; }; done
	@for it in $(PROGRAMS); do install -D -m 0755 $(BUILT)/$$it $(TO)/bin/$$it || exit 1; done
	@$(call units,config/systemd,$(UNITS),$(TO)/lib/systemd/system)
	@$(call units,config/systemd/examples,$(SAMPLES),$(DOC)/examples)
	@install -D -m 0644 config/sysusers.d/rolebroker.conf $(TO)/lib/sysusers.d/rolebroker.conf
	@install -m 0644 $(PAGES) $(DOC)/
	@test -d $(MANUAL) || echo "without man pages and completions: make manual makes them"
	@$(call pages,man/man1,man/man1)
	@$(call pages,man/man8,man/man8)
	@$(call pages,completions/bash,bash-completion/completions)
	@$(call pages,completions/zsh,zsh/site-functions)
	@$(call pages,completions/fish,fish/vendor_completions.d)
	@echo "installed below $(TO); what comes next is in $(PREFIX)/share/doc/rolebroker/operations.md"

uninstall: ## what install has put there; configuration, state and users stay
	@rm -f $(addprefix $(TO)/bin/,$(PROGRAMS)) $(addprefix $(TO)/lib/systemd/system/,$(UNITS)) \
	    $(TO)/lib/sysusers.d/rolebroker.conf $(TO)/share/man/man[18]/rolebroker*.[18] \
	    $(TO)/share/bash-completion/completions/rolebroker* \
	    $(TO)/share/zsh/site-functions/_rolebroker* \
	    $(TO)/share/fish/vendor_completions.d/rolebroker*.fish
	@rm -rf $(DOC)
	@echo "removed from $(TO); /etc/rolebroker, /var/lib/rolebroker and the users are as they were"

# Units name the programs by their path.
units = for it in $(2); do install -D -m 0644 $(1)/$$it $(3)/$$it \
    && sed -i 's|/usr/local/|$(PREFIX)/|g' $(3)/$$it || exit 1; done
pages = for it in $(MANUAL)/$(1)/*; do \
    if test -f $$it; then install -D -m 0644 $$it $(TO)/share/$(2)/$${it\#\#*/} || exit 1; fi; done

gate: fmt lint docs deny test ## everything that must hold before a change lands
	@echo "gate: ok"
