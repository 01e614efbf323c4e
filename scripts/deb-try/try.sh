#!/bin/sh
# Installs packages, uses them as a person would, and removes them. To be run in a mount namespace
# of its own: what is installed lies in memory above the system's folders, where nobody sees it.
#
# usage: unshare --mount scripts/deb-try/try.sh RING PACKAGE...
#   RING  a program of Open MPI that says how many ranks it has counted
set -eu

ring="$1"
shift

fail() {
    echo "deb: $*"
    exit 1
}

over=$(mktemp -d)
mount -t tmpfs tmpfs "$over"
for folder in usr etc var; do
    mkdir -p "$over/$folder/upper" "$over/$folder/work"
    mount -t overlay overlay "/$folder" \
        -o "lowerdir=/$folder,upperdir=$over/$folder/upper,workdir=$over/$folder/work"
done
unset FI_PROVIDER_PATH MANPATH

dpkg -i "$@" >"$over/log" 2>&1 || fail "dpkg -i: $(cat "$over/log")"
files=$(dpkg -L ayre libayre0 libayre-dev)

ayre info >"$over/info" || fail "ayre info fails"
loaded=$(ayre sockets -- sh -c 'grep -c libayre-sockets.so /proc/self/maps') ||
    fail "ayre sockets loads no library"
[ "$loaded" -gt 0 ] || fail "ayre sockets: $loaded"
fi_info -p ayre >"$over/offers" || fail "libfabric does not find the provider"
grep -q 'provider: ayre' "$over/offers" || fail "fi_info: $(cat "$over/offers")"
# The images of containers may leave out manuals, and the program that shows them.
if [ -e /usr/share/man/man1/ayre.1.gz ]; then
    for page in ayre ayre-run ayre-info; do
        ! command -v man >/dev/null || man -w "$page" >/dev/null || fail "no page $page"
    done
else
    grep -rqs '^path-exclude *= */usr/share/man' /etc/dpkg/dpkg.cfg.d || fail "no manual"
fi
bash -c '. /usr/share/bash-completion/completions/ayre && complete -p ayre' >/dev/null ||
    fail "bash does not complete"

# These leave Open MPI no other transport to fall back on.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
counted=$(OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi OMPI_MCA_opal_common_ofi_provider_include=ayre \
    mpirun.openmpi --oversubscribe -n 2 "$ring" 2>&1) || fail "mpirun: $counted"
[ "$counted" = "counted 2 of 2" ] || fail "mpirun: $counted"

examples=/usr/share/doc/libayre-dev/examples
greets() {
    ayre run -n 2 -- "$1" >"$over/said" || fail "$1: $(cat "$over/said")"
    [ "$(grep -c 'hello, neighbour' "$over/said")" = 2 ] || fail "$1: $(cat "$over/said")"
}
# shellcheck disable=SC2046 # several words
cc -o "$over/hello" $examples/hello.c $(pkg-config --cflags --libs ayre) || fail "no program in C"
greets "$over/hello"
cat >"$over/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.13)
project(hello C CXX)
set(CMAKE_CXX_STANDARD 17)
find_package(ayre 0.1 REQUIRED)
add_executable(shared $examples/hello.cpp)
target_link_libraries(shared ayre::ayre)
add_executable(static $examples/hello.c)
target_link_libraries(static ayre::static)
END
{ cmake -S "$over" -B "$over/build" && cmake --build "$over/build"; } >"$over/log" 2>&1 ||
    fail "cmake: $(cat "$over/log")"
greets "$over/build/shared"
greets "$over/build/static"

dpkg -P ayre libayre0 libayre-dev >"$over/log" || fail "dpkg -P: $(cat "$over/log")"
for file in $files; do
    [ ! -f "$file" ] || fail "$file is still there"
done
