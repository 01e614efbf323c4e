#!/bin/sh
# Installs Ayre for C into a folder of its own, compiles the examples against it, and runs each:
# k-means on Fisher's irises, heat in a plate, primes by a work queue, a server with 1,000 clients.
set -eu
cd "$(dirname "$0")/.."

target=$(cargo metadata --format-version 1 --no-deps |
    sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
ranks="${RANKS:-2}"
home="$target/demo-c"

scripts/capi.sh install "$home" >/dev/null
cargo build -q --release -p ayre-cli
export PKG_CONFIG_PATH="$home/lib/pkgconfig" LD_LIBRARY_PATH="$home/lib"
export PATH="$target/release:$PATH"

run() {
    echo
    echo "demo-c: $*"
    "$@"
}

for name in kmeans halo work_queue server; do
    # shellcheck disable=SC2046 # several words
    cc -O2 -o "$home/$name" "capi/examples/$name.c" $(pkg-config --cflags --libs ayre) -lm
done
run ayre run -n "$ranks" -- "$home/kmeans" engine/examples/data/iris.csv 3
run ayre run -n "$ranks" -- "$home/halo"
run ayre run -n "$ranks" -- "$home/work_queue"
run "$home/server" 1000
