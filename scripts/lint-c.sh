#!/bin/sh
# Looks at the sources in C and C++ for mistakes, by clang-tidy: `capi/.clang-tidy` has the checks.
set -eu
cd "$(dirname "$0")/../capi"

# Beside mistakes, which go to the output, it counts warnings that are left out.
noise=$(mktemp)
trap 'rm -f "$noise"' EXIT
look() {
    standard="$1"
    shift
    clang-tidy --quiet "$@" -- "-std=$standard" -D_GNU_SOURCE -Iinclude 2>"$noise" || {
        cat "$noise"
        exit 1
    }
}
look c11 examples/*.c driver/*.c tests/c/*.c measurements/*.c
look c++17 examples/*.cpp tests/c/*.cpp
