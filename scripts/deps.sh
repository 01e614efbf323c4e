#!/bin/sh
# Makes sure that the named tools are there: installs what is missing with apt-get when run by
# root, otherwise says which packages to install and fails.
#
# usage: scripts/deps.sh [cargo] [cc] [chromium] [clang] [clang-tidy] [cmake] [curl] [fi_info]
#                        [g++] [hpcc] [initdb] [ip] [lintian] [lmp] [mariadbd] [memcached]
#                        [memcaslap] [mosquitto] [mosquitto_pub] [mpicc.openmpi] [mpiexec.hydra]
#                        [mpirun.openmpi] [nginx] [openssl] [pgrep] [pkg-config] [pw.x] [python3]
#                        [python3-venv] [redis-benchmark] [redis-server] [srun] [sysbench] [tshark]
#                        [valgrind] [wrk] [xdlu]
set -eu

say() { echo "deps: $*"; }

# A tool is there when it can do what it is wanted for: Debian has the compiler of an MPI, and
# libfabric's tools, without the headers that programs need, and clang without its sanitizers.
has() {
    # Their packages have no programs, or have them in folders of their own.
    [ "$1" != xdlu ] || { ls /usr/lib/*/scalapack/openmpi-tests/xdlu >/dev/null 2>&1 && return; }
    [ "$1" != initdb ] || { ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 && return; }
    [ "$1" != python3-venv ] || { python3 -c 'import ensurepip' >/dev/null 2>&1 && return; }
    command -v "$1" >/dev/null 2>&1 || return 1
    case "$1" in
    clang) has_sanitizers ;;
    fi_info) has_header cc rdma/fabric.h ;;
    mpicc.openmpi) has_header mpicc.openmpi mpi.h ;;
    esac
}

has_sanitizers() { echo 'int main;' | clang -fsanitize=address -w -o /dev/null -x c - 2>/dev/null; }

has_header() { echo "#include <$2>" | "$1" -E -x c - >/dev/null 2>&1; }

package_of() {
    case "$1" in
    cargo) echo rustup ;;
    cc) echo gcc libc6-dev ;;
    chromium) echo chromium ;;
    clang) echo clang libclang-rt-dev ;;
    clang-tidy) echo clang-tidy ;;
    cmake) echo cmake ;;
    curl) echo curl ca-certificates ;;
    fi_info) echo libfabric-bin libfabric-dev libfabric1 binutils ;;
    g++) echo g++ ;;
    hpcc) echo hpcc ;;
    initdb) echo postgresql ;;
    ip) echo iproute2 ;;
    lintian) echo lintian ;;
    lmp) echo lammps ;;
    mariadbd) echo mariadb-server mariadb-client ;;
    memcached) echo memcached ;;
    memcaslap) echo libmemcached-tools ;;
    mosquitto) echo mosquitto ;;
    mosquitto_pub) echo mosquitto-clients ;;
    mpicc.openmpi) echo libopenmpi-dev ;;
    mpiexec.hydra) echo mpich ;;
    mpirun.openmpi) echo openmpi-bin ;;
    nginx) echo nginx-light ;;
    openssl) echo openssl ;;
    pgrep) echo procps ;;
    pkg-config) echo pkg-config ;;
    pw.x) echo quantum-espresso quantum-espresso-data ;;
    python3 | python3-venv) echo python3 python3-venv ;;
    redis-benchmark) echo redis-tools ;;
    redis-server) echo redis-server ;;
    srun) echo slurm-client slurmctld slurmd ;;
    sysbench) echo sysbench ;;
    tshark) echo tshark ;;
    valgrind) echo valgrind libc6-dbg ;;
    wrk) echo wrk ;;
    xdlu) echo scalapack-mpi-test ;;
    *) say "unknown tool $1" >&2 && exit 2 ;;
    esac
}

refuse() {
    say "missing: $missing"
    say "install the packages: $packages"
    case " $missing " in
    *" cargo "*) say "rustup, where it is not packaged, comes from https://rustup.rs" ;;
    esac
    exit 1
}

# rustup often installs where a fresh shell does not look yet.
if ! has cargo && [ -x "$HOME/.cargo/bin/cargo" ]; then
    say "add $HOME/.cargo/bin to PATH"
    exit 1
fi

missing=
packages=
for tool in "$@"; do
    package=$(package_of "$tool")
    if ! has "$tool"; then
        missing="$missing${missing:+ }$tool"
        packages="$packages${packages:+ }$package"
    fi
done

if [ -n "$missing" ]; then
    if [ "$(id -u)" -ne 0 ] || ! has apt-get; then
        refuse
    fi
    say "installing with apt-get: $packages"
    apt-get update -qq || refuse
    # The list of packages is words, not one name.
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages ||
        refuse
fi

# A first call makes rustup fetch the toolchain that rust-toolchain.toml names.
for tool in "$@"; do
    if [ "$tool" = cargo ]; then
        for command in "cargo" "cargo fmt" "cargo clippy"; do
            if ! $command --version >/dev/null; then
                say "\`$command\` does not work: rustup component add rustfmt clippy"
                exit 1
            fi
        done
    fi
done
say "present: $*"
