# pg_snowflake: build, install, test, show. `make help` lists the targets.

# Where it is not named, scripts/pg-config says which is taken, each time anew: it may be installed meanwhile.
PG_CONFIG ?=
CHOSEN = $(shell PG_CONFIG='$(PG_CONFIG)' scripts/pg-config)
CARGO ?= cargo
# What worker IDs can be leased from; less, or nothing, makes a smaller library: REGISTRIES="registry-etcd".
REGISTRIES ?= registries
# cargo's profile and directory. `dev` builds in a fraction of the time, and checks its own arithmetic; packages have `dist`.
PROFILE ?= release
TARGET ?= target
export PG_CONFIG CARGO

VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
MAJOR = $(shell PG_CONFIG='$(PG_CONFIG)' scripts/pg-config --major)
LIBDIR = $(DESTDIR)$(shell $(CHOSEN) --pkglibdir)
EXTENSIONDIR = $(DESTDIR)$(shell $(CHOSEN) --sharedir)/extension
BUILD = PGRX_PG_CONFIG_PATH=$(CHOSEN) $(CARGO)
FEATURES = $(shell CARGO='$(CARGO)' scripts/cargo-flags) --no-default-features \
	--features "pg$(MAJOR) $(REGISTRIES)"
# CARGO_BUILD_TARGET is cargo's own, for another processor than this one.
BUILT = $(TARGET)/$(if $(CARGO_BUILD_TARGET),$(CARGO_BUILD_TARGET)/)$(subst dev,debug,$(PROFILE))
STAGE = $(TARGET)/install
TOOLS = $(shell . scripts/tools && echo $$tools)

.PHONY: help deps deps-test deps-clients build install uninstall demo check test test-all test-assertions test-valgrind test-clients test-clusters \
	test-arm64 test-extensions test-mixed test-platforms test-schemas litmus random-queries soak check-history model simulation \
	mutants hosted test-hosted bench bench-bundle microbench clippy lint advisories versions docs dist deb test-packages \
	release-files image test-image test-container clean
.NOTPARALLEL:

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | column -t -s '|'

deps:
	@scripts/deps

deps-test:
	@scripts/deps test

deps-clients:
	@scripts/deps clients

build: deps ## build the library and the SQL scripts for the PostgreSQL of PG_CONFIG
	$(BUILD) build --locked --profile $(PROFILE) --target-dir $(TARGET) $(FEATURES)
	@rm -rf $(STAGE) && mkdir -p $(STAGE)
	@cp $(BUILT)/libpg_snowflake.so $(STAGE)/pg_snowflake.so
	@sed 's/@CARGO_VERSION@/$(VERSION)/' pg_snowflake.control > $(STAGE)/pg_snowflake.control
	@cp sql/released/*.sql sql/*.sql $(STAGE)/
	@scripts/install-script > $(STAGE)/pg_snowflake--$(VERSION).sql

install: build ## build, and install into the PostgreSQL of PG_CONFIG
	@scripts/install $(STAGE) '$(LIBDIR)' '$(EXTENSIONDIR)'

uninstall: ## remove what install put there
	@sudo=; [ -w '$(LIBDIR)' ] || sudo=sudo; set -ex; \
	$$sudo rm -f '$(LIBDIR)/pg_snowflake.so' '$(EXTENSIONDIR)/pg_snowflake.control' \
		'$(EXTENSIONDIR)'/pg_snowflake--*.sql

hosted: ## the extension in SQL and PL/pgSQL, for servers where no library can be installed, in target/hosted
	@mkdir -p $(TARGET)/hosted && scripts/hosted > $(TARGET)/hosted/pg_snowflake--hosted--$(VERSION).sql

demo: install ## a throw-away cluster, pgbench writing to it, and what can be read off its IDs
	@scripts/demo

check: deps-test ## a first look at a change, in two minutes: form, core, structure of the sources, some regress files
	@$(MAKE) --no-print-directory install PROFILE=dev
	@scripts/check

test: deps-test install ## everything but the examples: core, model checks, regress files, clusters
	@scripts/test

test-clients: deps-clients install ## the examples of clients, in examples/, with their packages
	$(CARGO) test $(shell scripts/cargo-flags tests) --test clients

test-clusters: ## Patroni, active-active, cascades, PgBouncer, on PostgreSQL 17 or later; FAILOVERS=20 for as many, ONLY=patroni for some
	@FAILOVERS='$(FAILOVERS)' ONLY='$(ONLY)' scripts/test-clusters

test-mixed: deps-test install ## servers of RELEASED_VERSION=0.2.0 and of this one share a registry while they are upgraded and go back, from SEED
	@RELEASED_VERSION='$(RELEASED_VERSION)' SEED='$(SEED)' scripts/test-mixed

test-platforms: ## other systems, made by debootstrap: PLATFORMS="debian-12 debian-13 debian-14", each with its own PostgreSQL; SHORT=1 for less
	@SHORT='$(SHORT)' scripts/test-platforms $(PLATFORMS)

test-arm64: ## built for 64-bit Arm, and run on a Debian 13 of that by qemu: regress files, crashes, core; packages for Debian 12 to 14; SHORT=1 for less
	@SHORT='$(SHORT)' scripts/test-arm64

test-schemas: deps-test install ## schemas of others and SCHEMA_COUNT=100 random ones, from SEED, moved in and out; SCHEMAS=directory for more
	@SCHEMAS='$(SCHEMAS)' SCHEMA_COUNT='$(SCHEMA_COUNT)' SEED='$(SEED)' scripts/test-schemas

random-queries: deps-test install ## rows, work and truth of QUERIES=20000 random queries for each of SEEDS="1 2 3", which takes hours
	@for seed in $(or $(SEEDS),1 2 3); do \
		QUERIES=$(or $(QUERIES),20000) SEED=$$seed $(CARGO) test $(shell scripts/cargo-flags tests) --test main -- --nocapture \
			planner::the_same_rows planner::work::the_same_work planner::work::truth:: || exit; done

litmus: ## the lock-free code's orderings by Arm's model of memory, with herd7: model/litmus
	@scripts/litmus

soak: deps-test install ## faults at random, for MINUTES=5, FAULTS and IDS from SEED, and the check of its record, kept in RECORD=directory; REGISTRY=etcd (postgres, redis) with leases; SCENARIO=failover and others for one history; EDITION=sql for the extension in SQL
	@SEED='$(SEED)' MINUTES='$(MINUTES)' FAULTS='$(FAULTS)' IDS='$(IDS)' SETS='$(SETS)' REGISTRY='$(REGISTRY)' \
		SCENARIO='$(SCENARIO)' EDITION='$(EDITION)' RECORD='$(RECORD)' \
		$(CARGO) run -q --locked --profile model -p snowflake_test --bin soak

check-history: ## checks the record of a soak once more, in RECORD=directory
	@$(CARGO) run -q --locked --profile model -p snowflake_test --bin check-history -- '$(RECORD)'

model: ## the whole model check of leases; CHECK=text for those whose name contains it, with the ways to repeated IDs
	@$(CARGO) run -q --locked --profile model -p snowflake_model -- check $(if $(CHECK),'$(CHECK)')

simulation: ## a thousand servers with leases for a simulated day, from SEED
	@$(CARGO) run -q --locked --profile model -p snowflake_model -- simulation $(SEED)

mutants: ## small changes in core and moving, of which each makes a test fail; SAMPLE=20 for so many by chance, from SEED; FILES="core/src/lease/**" for some
	@scripts/deps mutants
	@SAMPLE='$(SAMPLE)' SEED='$(SEED)' FILES='$(FILES)' scripts/mutants

bench: install ## side by side with what else makes IDs; QUICK=1 for less, ONLY=analytics for one measure, RESULTS=directory
	@QUICK='$(QUICK)' ONLY='$(ONLY)' RESULTS='$(RESULTS)' $(CARGO) run -q --locked --release -p snowflake_bench

bench-bundle: ## the benchmark with PostgreSQL and all that it needs in one folder, target/bench-bundle, for any Linux machine
	@scripts/bench-bundle

microbench: ## the core alone, by criterion, which compares with the run before
	$(CARGO) bench --locked -p snowflake_core

# snowflake_registry/memory is the registry of tests. --all-targets leaves out tests that `cargo test` does not run, which '*' names. Without
# registries, only the library differs, so only that is checked.
CLIPPY = $(BUILD) clippy --locked $(FEATURES)
ALL = --workspace --features snowflake_registry/memory
clippy: deps ## clippy for the PostgreSQL of PG_CONFIG; REGISTRIES= for the library without registries
ifeq ($(strip $(REGISTRIES)),)
	$(CLIPPY) -- -D warnings
else
	$(CLIPPY) $(ALL) --all-targets -- -D warnings
	$(CLIPPY) $(ALL) --test '*' -- -D warnings
endif

lint: deps ## formatting, clippy, licences, unused crates, the core's package for crates.io, shell scripts, SQL files
	@scripts/deps lint
	$(CARGO) fmt --all --check
	@$(MAKE) --no-print-directory clippy
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --locked -p snowflake_core --no-deps
	$(CARGO) package --locked -p snowflake_core --allow-dirty --offline
	$(TOOLS)/bin/cargo-machete machete
	$(TOOLS)/bin/cargo-deny --locked check --hide-inclusion-graph licenses bans sources
	$(TOOLS)/hadolint/bin/hadolint packaging/docker/Dockerfile
	@scripts/lint-scripts
	@scripts/lint-sql

advisories: ## what RustSec says of the crates in use; its database is downloaded
	@scripts/deps lint
	$(TOOLS)/bin/cargo-deny --locked check advisories

versions: deps-test ## compile for every PostgreSQL major, and test the oldest and the newest by the main tests; RUN="16 17" for others
	@RUN='$(RUN)' scripts/versions

test-all: deps-test ## `make test` on every PostgreSQL major; RUN="16 17" for some
	@RUN='$(RUN)' scripts/test-all

test-assertions: deps-test ## the planner's tests and PostgreSQL's own regression tests, on a PostgreSQL with assertions, which is built once
	@scripts/deps assertions
	@scripts/test-assertions

test-valgrind: deps-test ## regress files under Valgrind, on the PostgreSQL with assertions; ONLY="decode planner" for some
	@scripts/deps assertions
	@ONLY='$(ONLY)' scripts/test-valgrind

test-hosted: install ## the extension in SQL by pg_tle, on the PostgreSQL of TLE_PG_CONFIG, which has that: pg_test/tle/README.md
	@TLE_PG_CONFIG='$(TLE_PG_CONFIG)' pg_test/tle/run

test-extensions: deps-test ## beside hypopg, pg_hint_plan, pg_qualstats, TimescaleDB and more, on a PostgreSQL that is fetched with them; ONLY=hints for some
	@QUERIES='$(QUERIES)' ONLY='$(ONLY)' scripts/test-extensions

docs: ## the book of docs/, into target/book
	@scripts/deps docs
	@scripts/docs

dist: ## archives of the committed sources, a bill of materials and SHA256SUMS, in target/dist
	@scripts/dist

deb: dist ## Debian's package for the PostgreSQL of PG_CONFIG, from the archive, in target/deb
	@scripts/deb

test-packages: deb ## installs, uses, upgrades and removes the package in a throw-away copy of this machine's file system
	@scripts/test-packages

release-files: dist ## what a release publishes, in target/release: archives, the packages of each system that was run at this commit, SHA256SUMS
	@SIGNING_KEY='$(SIGNING_KEY)' scripts/release-files

image: ## the extension image that CloudNativePG mounts, in target/image; POSTGRES=19 for another major than 18
	@scripts/image $(POSTGRES)

test-image: image ## what is in it, and a PostgreSQL without pg_snowflake that uses it
	@scripts/test-image

test-container: ## the Dockerfile, built without a container engine, and the servers of examples/compose
	@scripts/test-container

clean: ## remove what was built
	$(CARGO) clean
