#!/bin/sh
# Compares schedules in the LogGOPS model with LogGOPSim, to the nanosecond, and their speed: $COUNT
# schedules by chance, of at most 10 ranks, then the usual ones. LogGOPSim is built in $WORK from
# the folder of its sources, with one change: the sort of operations that become ready at once is
# stable. It needs gengetopt, re2c, graphviz's headers and a C++ compiler.
#
# usage: [COUNT=500] [WORK=/tmp/goal] bench/goal.sh FOLDER
set -eu
sources=$(cd "${1:?usage: bench/goal.sh FOLDER, where LogGOPSim was unpacked}/src" && pwd)
cd "$(dirname "$0")/.."
work=${WORK:-/tmp/goal}
mkdir -p "$work"

cargo build --release -p ayre-sim --examples
target=$(cargo metadata --format-version 1 --no-deps |
    sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')/release/examples
cd "$work"
if [ ! -x LogGOPSim ] || [ ! -x txt2bin ]; then
    cp "$sources"/LogGOPSim/* .
    gengetopt -i loggopsim_cmdline.ggo -F loggopsim_cmdline
    gengetopt -i txt2bin_cmdline.ggo -F txt2bin_cmdline
    re2c -o txt2bin.cpp txt2bin.re
    sed -i 's/std::sort(free_ops/std::stable_sort(free_ops/' LogGOPSim.cpp
    for name in LogGOPSim:loggopsim_cmdline txt2bin:txt2bin_cmdline; do
        cc -O2 -w -c "${name#*:}.c"
        # shellcheck disable=SC2046
        c++ -O3 -w "${name%:*}.cpp" "${name#*:}.o" $(pkg-config --cflags --libs libcgraph) \
            -o "${name%:*}"
    done
fi

# Prints when each rank finishes, or the last one if there are many, by LogGOPSim.
theirs() {
    ./txt2bin -i s.goal -o s.bin >txt2bin.log
    # shellcheck disable=SC2046
    ./LogGOPSim -f s.bin $(echo "$@" | sed 's/\([A-Za-z]\)=/-\1 /g') | finishes
}

ours() {
    "$target/goal" s.goal "$@" 2>goal.log | finishes
}

finishes() {
    sed -n 's/^Host/&/p; s/^\(Maximum finishing time at host [0-9]*: [0-9]*\).*/\1/p' |
        awk '/^Host/ { hosts = 1 } !/^Max/ || !hosts'
}

equal=0 neither=0
for seed in $(seq 1 "${COUNT:-500}"); do
    "$target/goal_random" "$seed" >s.goal
    parameters=$(sed -n '1s,^// ,,p' s.goal)
    # shellcheck disable=SC2086
    theirs $parameters >theirs.txt
    # shellcheck disable=SC2086
    ours $parameters >ours.txt || true
    if ! cmp -s theirs.txt ours.txt; then
        echo "schedule $seed ($parameters) differs:"
        diff theirs.txt ours.txt || exit 1
    fi
    if [ -s ours.txt ]; then equal=$((equal + 1)); else neither=$((neither + 1)); fi
done
echo "equal: $equal schedules; without an end in both: $neither"

for pattern in "dissemination 32768 1024" "broadcast 32768 8" "doubling 4096 1024" \
    "ring 256 65536" "alltoall 128 8"; do
    # shellcheck disable=SC2086
    "$target/goal" write $pattern >s.goal
    theirs >theirs.txt
    ours >ours.txt
    cmp theirs.txt ours.txt
    echo "$pattern: $(cat ours.txt)"
    for program in "./LogGOPSim -b -f s.bin" "$target/goal s.goal" \
        "$target/goal s.goal times=11"; do
        # shellcheck disable=SC2016
        sh -c "$program >/dev/null; times" | awk -v program="${program##*/}" \
            'NR == 2 { print "  " $1 " CPU: " program }'
    done
done
