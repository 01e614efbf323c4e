#!/bin/sh
# Measures collectives of Ayre beside Open MPI's over its own transport: by turns, $ROUNDS rounds
# of each with 2, 4 and 8 ranks, and prints the medians and the ratio of each pair of rounds.
#
# usage: [ROUNDS=7] bench/collectives.sh
set -eu
cd "$(dirname "$0")/.."

say() { echo "bench-collectives: $*"; }

cargo build --release -p ayre-cli -p ayre --bins --example collectives
target=$(cargo metadata --format-version 1 --no-deps |
    sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mpicc.openmpi -O2 -Wall -o "$folder/collectives" bench/collectives.c

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_pml=ob1

# A round of a program, as `WHO COMMAND...`. Only lines with a unit are measures.
round() {
    who=$1
    shift
    if ! timeout 600 "$@" >"$folder/round" 2>"$folder/errors"; then
        cat "$folder/errors"
        exit 1
    fi
    sed -n "/ us\$/s/^/$who /p" "$folder/round" >>"$folder/rounds"
}

# $1 ranks, placed as $2 says; Open MPI's yield where there are more ranks than processors, as else
# a round takes minutes.
compare() {
    say "$1 ranks, $ROUNDS rounds of each"
    : >"$folder/rounds"
    for _ in $(seq "$ROUNDS"); do
        round ayre "$target/release/ayre" run -n "$1" --bind "$2" -- \
            "$target/release/examples/collectives" 400
        round own env "OMPI_MCA_mpi_yield_when_idle=$3" mpirun.openmpi --host "localhost:$1" \
            --bind-to "${2%s}" -n "$1" "$folder/collectives"
    done
    awk -f bench/summary.awk "$folder/rounds"
}

: "${ROUNDS:=7}"
compare 2 cores 0
compare 4 none 1
compare 8 none 1
