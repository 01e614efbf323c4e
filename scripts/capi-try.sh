#!/bin/sh
# Installs Ayre for C and C++ into a folder of its own, builds the example against it by pkg-config
# and by CMake, and runs it. PROFILE=checked takes what the tests have built.
set -eu
cd "$(dirname "$0")/.."

say() { echo "capi-try: $*"; }

profile="${PROFILE:-release}"
target=$(cargo metadata --format-version 1 --no-deps |
    sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

scripts/capi.sh install "$work/usr" >/dev/null
PROFILE="$profile" scripts/build.sh ayre-cli

greets() {
    LD_LIBRARY_PATH="$work/usr/lib" "$target/$profile/ayre" run -n 2 -- "$1" >"$work/said"
    for rank in 0 1; do
        grep -q "rank $rank: hello, neighbour" "$work/said" || {
            say "$1 said: $(cat "$work/said")"
            exit 1
        }
    done
}

PKG_CONFIG_PATH="$work/usr/lib/pkgconfig"
export PKG_CONFIG_PATH
# shellcheck disable=SC2046 # several words
cc -std=c11 -o "$work/hello" capi/examples/hello.c $(pkg-config --cflags --libs ayre)
greets "$work/hello"
# shellcheck disable=SC2046 # several words
c++ -std=c++17 -o "$work/hello" capi/examples/hello.cpp $(pkg-config --cflags --libs ayre)
greets "$work/hello"
say "pkg-config: the examples in C and in C++ greet"

cat >"$work/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.13)
project(hello C CXX)
set(CMAKE_CXX_STANDARD 17)
find_package(ayre 0.1 REQUIRED)
add_executable(shared hello.cpp)
target_link_libraries(shared ayre::ayre)
add_executable(static hello.c)
target_link_libraries(static ayre::static)
END
cp capi/examples/hello.c capi/examples/hello.cpp "$work/"
cmake -S "$work" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/usr" >"$work/log" 2>&1 &&
    cmake --build "$work/build" >>"$work/log" 2>&1 || {
    cat "$work/log"
    exit 1
}
greets "$work/build/shared"
greets "$work/build/static"
say "CMake: the examples greet, in C++ with the shared library and in C with the archive"

# A program finds the functions of the header in the library, and no others.
nm -D --defined-only "$work/usr/lib/libayre.so" | awk '$2 == "T" { print $3 }' |
    sed 's/@.*//' | sort >"$work/exported"
sed -n 's/^[a-z].* \**\(ayre_[a-z_]*\)(.*/\1/p' capi/include/ayre.h | sort >"$work/declared"
diff "$work/declared" "$work/exported"
say "the library has the $(wc -l <"$work/declared") functions of the header"
