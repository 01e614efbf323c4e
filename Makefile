# What can be done here; the work itself is in scripts/. `make` alone lists the targets.

# Ranks of the demo and of the soak, and what else the program of a target is given.
RANKS ?= 2
ARGS ?=
# How long `make soak` goes on.
MINUTES ?= 60
# Pairs of each kind that `make pairs` compares.
PAIRS ?= 1000
# The folder below which `make install` puts the library for C.
PREFIX ?= /usr/local
# The profile whose programs `make pages` runs.
PROFILE ?= checked

.DEFAULT_GOAL := help
.PHONY: help check test demo demo-c demo-mpi demo-mpi-net demo-net demo-python demo-sockets \
	consumers bench bench-net bench-adaptive bench-collectives bench-fabric bench-mpi bench-mpi-net \
	bench-sockets provider ucp sockets soak pairs sockets-programs audit book capi python evidence \
	install pages deb man install-deps

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' Makefile

check: ## Formatting, lints, tidiness, citations, lists of the interface, documentation
	@scripts/deps.sh cargo cc clang-tidy g++
	@scripts/check.sh

test: ## Everything that must pass: check, all tests, loom models, pages, instruction counts
	@scripts/deps.sh cargo cc chromium clang clang-tidy cmake fi_info g++ ip mpicc.openmpi \
		mpiexec.hydra mpirun.openmpi pkg-config python3 srun tshark valgrind
	@scripts/check.sh
	@scripts/test.sh

demo: ## Rank the pages of a real graph with RANKS=2 processes
	@scripts/deps.sh cargo cc
	@RANKS='$(RANKS)' scripts/demo.sh $(ARGS)

demo-net: ## The same over a network between two namespaces of this machine, as root
	@scripts/deps.sh cargo cc ip
	@RANKS='$(RANKS)' scripts/demo-net.sh $(ARGS)

demo-mpi: ## Run an MPI program of Debian's over Ayre, and over its MPI's own transport
	@scripts/deps.sh cargo cc hpcc mpirun.openmpi
	@RANKS='$(RANKS)' scripts/demo-mpi.sh

demo-mpi-net: ## The same over a network between two namespaces that loses datagrams, as root
	@scripts/deps.sh cargo cc hpcc ip mpirun.openmpi
	@RANKS='$(RANKS)' scripts/demo-mpi-net.sh

demo-c: ## Install Ayre for C in a folder, compile the examples against it, and run them
	@scripts/deps.sh cargo cc pkg-config
	@RANKS='$(RANKS)' scripts/demo-c.sh

demo-python: ## Build and install Ayre for Python, and find clusters with RANKS processes
	@scripts/deps.sh cargo cc python3 python3-venv
	@RANKS='$(RANKS)' scripts/demo-python.sh

demo-sockets: ## Redis between two namespaces of this machine, over TCP and over Ayre, as root
	@scripts/deps.sh cargo cc ip redis-benchmark redis-server
	@scripts/demo-sockets.sh

consumers: ## Run MPI programs of others over Ayre, tests and real ones; ARGS=quick: a part
	@scripts/deps.sh cargo cc hpcc lmp mpirun.openmpi $(if $(filter quick,$(ARGS)),,pw.x) python3 xdlu
	@scripts/consumers.sh $(ARGS)

sockets-programs: ## Run real programs with libayre-sockets.so: ARGS='check redis', kills, quick
	@scripts/deps.sh cargo cc $(if $(filter quick,$(ARGS)),curl initdb mariadbd memcached memcaslap \
		mosquitto mosquitto_pub nginx openssl pgrep redis-benchmark redis-server sysbench wrk)
	@scripts/sockets-programs.sh $(ARGS)

bench: ## Measure this machine: Ayre's operations against the machine's own limits
	@scripts/deps.sh cargo cc
	@scripts/bench.sh $(ARGS)

bench-net: ## The same over the network, beside UDP and TCP: two namespaces, as root
	@scripts/deps.sh cargo cc
	@scripts/bench.sh net $(ARGS)

bench-fabric: ## Ayre as a provider beside libfabric's own, and the machine's limits: ROUNDS=7
	@scripts/deps.sh cargo cc fi_info
	@bench/fabric.sh

bench-adaptive: ## Schedules chosen by what links are loaded with, beside fixed ones: ROUNDS=4
	@scripts/deps.sh cargo cc
	@bench/adaptive.sh

bench-collectives: ## Collectives beside Open MPI's, on 2, 4 and 8 ranks: ROUNDS=7
	@scripts/deps.sh cargo cc mpicc.openmpi mpirun.openmpi
	@bench/collectives.sh

bench-mpi: ## Open MPI over Ayre beside its own transport: ROUNDS=7 of each, by turns
	@scripts/deps.sh cargo cc mpicc.openmpi mpirun.openmpi
	@bench/mpi.sh

bench-mpi-net: ## The same between two namespaces beside its tcp path, as root: ROUNDS=5
	@scripts/deps.sh cargo cc ip mpicc.openmpi mpirun.openmpi
	@bench/mpi-net.sh

bench-sockets: ## Real programs over TCP, AF_UNIX, and Ayre with libayre-sockets.so: ROUNDS=5
	@scripts/deps.sh cargo cc
	@bench/sockets.sh

evidence: ## Compute the published numbers of the sources anew: docs/evidence.md and .html
	@scripts/deps.sh cargo cc
	@cargo run --quiet --release -p ayre-sim --example evidence docs

python: ## Build Ayre for Python, and check it in an environment of its own
	@scripts/deps.sh cargo cc python3
	@scripts/python-try.sh $(ARGS)

capi: ## Build Ayre for C and C++: libayre.so, libayre.a, headers
	@scripts/deps.sh cargo cc
	@scripts/capi.sh

install: ## Install Ayre for C and C++ below PREFIX=/usr/local
	@scripts/deps.sh cargo cc
	@scripts/capi.sh install '$(PREFIX)'

ucp: ## Build Ayre as a library for programs of UCX: libucp.so.0
	@scripts/deps.sh cargo
	@scripts/ucp.sh

provider: ## Build Ayre as a provider of libfabric: libayre-fi.so
	@scripts/deps.sh cargo cc
	@scripts/provider.sh

sockets: ## Build Ayre's library for the TCP connections of unmodified programs
	@scripts/deps.sh cargo cc
	@scripts/sockets.sh

deb: ## Build packages for Debian; ARGS=try: install, use and remove them besides, as root
	@scripts/deps.sh cargo cc $(if $(filter try,$(ARGS)),cmake fi_info g++ lintian mpicc.openmpi \
		mpirun.openmpi pkg-config)
	@scripts/deb.sh $(ARGS)

book: ## Make the book, target/book/html/index.html, and check its links
	@scripts/deps.sh python3
	@scripts/book.sh

pages: ## Compile the Rust blocks of the book's pages, and run those of the shell
	@scripts/deps.sh cargo cc fi_info mpicc.openmpi mpiexec.hydra mpirun.openmpi
	@cargo build --workspace --lib --bins --examples --profile '$(PROFILE)'
	@PROFILE='$(PROFILE)' scripts/pages.sh

man: ## Write the pages of the manual to target/man
	@scripts/deps.sh cargo cc
	@cargo run -q -p ayre-cli -- man target/man

audit: ## Licences, advisories, interfaces and packages, before a release; ARGS=quick: licences
	@scripts/deps.sh cargo cc python3
	@scripts/audit.sh $(ARGS)

soak: ## Repeat the tests with many random cases for MINUTES=60
	@scripts/deps.sh cargo cc
	@MINUTES='$(MINUTES)' RANKS='$(RANKS)' scripts/soak.sh

pairs: ## Run simulated networks twice by one seed, PAIRS=1000 of each kind, and compare
	@scripts/deps.sh cargo cc
	@PAIRS='$(PAIRS)' scripts/pairs.sh

install-deps: ## Install what the targets above need, or say what is missing
	@scripts/deps.sh cargo cc chromium fi_info ip mpicc.openmpi mpiexec.hydra srun mpirun.openmpi \
		tshark valgrind
