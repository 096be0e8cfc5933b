# pg_snowflake: build, install, try, test. `make help` lists the targets; what only maintainers run
# is in docs/testing.md.

# As PGXS has it: the PostgreSQL to build for, and a directory before those to install into. Where
# PG_CONFIG is not named, scripts/pg-config says which is taken: that of the PATH, or else the
# newest that is installed.
PG_CONFIG ?=
DESTDIR ?=
# cargo, its profile and its directory. `dev` builds in half the time, `demo` in less; packages have
# `dist`. CARGO_BUILD_TARGET is cargo's own, for another processor than this one.
CARGO ?= cargo
PROFILE ?= release
TARGET ?= target
# What worker IDs can be leased from; less, or nothing, makes a smaller library:
# REGISTRIES="registry-etcd".
REGISTRIES ?= registries
export PG_CONFIG CARGO

FOUND := $(shell PG_CONFIG='$(PG_CONFIG)' scripts/pg-config 2>/dev/null)
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
MAJOR = $(shell PG_CONFIG='$(FOUND)' scripts/pg-config --major)
LIBDIR = $(DESTDIR)$(shell '$(FOUND)' --pkglibdir)
EXTENSIONDIR = $(DESTDIR)$(shell '$(FOUND)' --sharedir)/extension
FLAGS = --locked --profile $(PROFILE) --target-dir '$(TARGET)' \
	$(shell scripts/cargo-flags vendored; CARGO='$(CARGO)' scripts/cargo-flags) \
	--no-default-features --features 'pg$(MAJOR) $(REGISTRIES)'
BUILT = $(TARGET)/$(if $(CARGO_BUILD_TARGET),$(CARGO_BUILD_TARGET)/)$(subst dev,debug,$(PROFILE))
STAGE = $(TARGET)/install
# Directories, too: they change where a file goes.
SOURCES := $(shell find build.rs Cargo.lock Cargo.toml core/Cargo.toml core/src moving/Cargo.toml moving/src registry/Cargo.toml registry/src \
	pg_snowflake.control sql src scripts/install-script scripts/stage \
	examples/moving-in)
INSTALL = install

.PHONY: all install put uninstall installcheck clean deps demo check test test-all bench lint docs hosted dist deb image help FORCE
.NOTPARALLEL:

all: $(STAGE)/pg_snowflake.so ## build the library and the SQL scripts

# For what it was built; written where that changes, so that everything is built again.
FOR = $(FOUND) $(PROFILE) $(REGISTRIES) $(CARGO_BUILD_TARGET)
$(STAGE)/.for: FORCE
	@mkdir -p $(@D) && { echo '$(FOR)' | cmp -s - $@ || echo '$(FOR)' >$@; }

# So `sudo make install` after `make` needs no cargo.
$(STAGE)/pg_snowflake.so: $(STAGE)/.for $(SOURCES)
	@PGRX_PG_CONFIG_PATH='$(FOUND)' scripts/explained $(CARGO) build $(FLAGS)
	@scripts/stage $(BUILT)/libpg_snowflake.so $(STAGE)

install: all put ## install into the PostgreSQL of PG_CONFIG, below DESTDIR

# What lies in STAGE; scripts call it, too, with a STAGE of their own.
put:
	$(INSTALL) -d '$(LIBDIR)' '$(EXTENSIONDIR)'
	$(INSTALL) -m 755 $(STAGE)/pg_snowflake.so '$(LIBDIR)/'
	$(INSTALL) -m 644 $(STAGE)/*.control $(STAGE)/*.sql '$(EXTENSIONDIR)/'

uninstall: ## remove what install put there
	rm -f '$(LIBDIR)/pg_snowflake.so' '$(EXTENSIONDIR)/pg_snowflake.control' \
		'$(EXTENSIONDIR)'/pg_snowflake--*.sql '$(EXTENSIONDIR)'/pg_snowflake_staged.sql \
		'$(EXTENSIONDIR)'/pg_snowflake_from_uuid.sql

installcheck: ## test what is installed, on a running server that preloads it: that of PGHOST, PGPORT, PGUSER
	@PG_CONFIG='$(FOUND)' scripts/installcheck

clean: ## remove what was built
	rm -rf '$(TARGET)'

deps: ## on Debian, install what the build needs; WHAT=test for the tests
	@scripts/deps $(WHAT)

demo: ## build it, install it, and see it at work on a temporary server: 3 minutes
	@scripts/demo

check: ## did my change break something? 2 minutes, after the first time
	@scripts/check

test: ## every test that needs minutes, not hours: 15 minutes
	@scripts/test

test-all: ## all tests, on every PostgreSQL: hours; RUN="16 17" for some
	@scripts/test-all

bench: ## side by side with what else makes IDs; QUICK=1, ONLY=analytics
	@scripts/bench

lint: ## form, clippy, licences, unused crates, scripts
	@scripts/lint

docs: ## the book, into target/book
	@scripts/docs

hosted: ## the extension in SQL, for hosted PostgreSQL, in target/hosted
	@mkdir -p target/hosted && scripts/hosted >target/hosted/pg_snowflake--hosted--$(VERSION).sql

dist: ## archives of the committed sources, in target/dist
	@scripts/dist

deb: dist ## Debian's package, in target/deb
	@scripts/deb

image: ## the extension image for CloudNativePG, in target/image; POSTGRES=19
	@scripts/image $(POSTGRES)

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | column -t -s '|'
