#!/bin/sh
# Opens the pages and the charts of `ayre perf`, `ayre study`, `ayre sim` and `ayre top` in a
# browser as wide as a telephone that finds no other host, and checks how it lays them out: nothing
# too wide, cut off, too small or over each other. Other libraries have made-up figures. Needs
# chromium, perl, and the tool as `make test` builds it.
set -eu
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
cd "$here/.."
ayre="${CARGO_TARGET_DIR:-target}/checked/ayre"

for tool in chromium perl "$ayre"; do
    if ! command -v "$tool" >/dev/null; then
        echo "report: $tool is missing" >&2
        exit 1
    fi
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# A member's recording: one call in ten is slow, when much is sent over the link from 0 to 1.
recording() {
    awk 'BEGIN {
        print "# ayre recording 1: member 0 of 1"
        print "number\tbegin_ns\ttime_ns\tcollective\tschedule\tbytes\tsent:0>1\twaiting:0>1"
        for (call = 0; call < 400; call++) {
            load = call % 10 ? call % 7 : 200 + call % 13
            time = 100000 + 3000 * load + call % 11
            printf "%d\t0\t%d\tAllreduce\tDoubling\t1024\t%d\t%d\n", call, time, load, load / 3
        }
    }'
}

# A page around a chart that is a file of its own, as a README shows it.
framed() {
    echo '<!DOCTYPE html><meta name="viewport" content="width=device-width, initial-scale=1"/>'
    echo '<meta name="color-scheme" content="light dark"/>'
    echo '<body style="margin: 1rem; background: var(--paper)"><figure style="margin: 0">'
    cat "$1"
    echo '</figure>'
    echo '</body>'
}

# What the browser says of a page: its second argument is 0 for dark surroundings, 1 for light ones.
laid_out() {
    # The page itself allows no program to run.
    sed -e '/Content-Security-Policy/d; /default-src/d' "$1" | awk -v script="$here/report.js" '
        /<\/body>/ {
            print "<script>"
            while ((getline line < script) > 0) print line
            print "</script>"
        }
        { print }' >"$scratch/checked.html"
    # No window of a browser is as narrow.
    cat >"$scratch/telephone.html" <<'END'
<!DOCTYPE html>
<title>nothing</title>
<iframe src="checked.html" style="width: 390px; height: 1200px; border: 0"></iframe>
<script>addEventListener("message", told => { document.title = told.data; });</script>
END
    HOME="$scratch" timeout 60 chromium --headless --no-sandbox --disable-gpu --dump-dom \
        --user-data-dir="$scratch/profile" --virtual-time-budget=5000 \
        --host-resolver-rules="MAP * ~NOTFOUND" \
        --blink-settings="preferredColorScheme=$2" \
        "file://$scratch/telephone.html" 2>"$scratch/said" |
        sed -n 's/.*<title>\(.*\)<\/title>.*/\1/p'
}

# The page, how many charts it has at least, dark or light, and the number of that.
check() {
    title=$(laid_out "$1" "$4")
    charts=$(expr "$title" : '390 pixels, \([0-9]*\) charts, ' || true)
    case "$title" in
    *", $3: well") ;;
    *) charts=0 ;;
    esac
    if [ "${charts:-0}" -lt "$2" ] || grep -qE '(src|href|url)[=(]' "$1"; then
        echo "report: $1, $3: $title" >&2
        [ -n "$title" ] || cat "$scratch/said" >&2
        exit 1
    fi
    echo "report: ${1##*/}: $title"
}

mkdir "$scratch/peers"
for tool in ucx_info ucx_perftest fi_info fi_pingpong mpicc mpirun; do
    ln -s "$here/made-up-peer.pl" "$scratch/peers/$tool"
done
perf() {
    PATH="$scratch/peers:$PATH" "$ayre" perf --quick "$@" >/dev/null 2>"$scratch/said" || {
        cat "$scratch/said" >&2
        exit 1
    }
}

perf --reps 1 --op latency,bandwidth --report "$scratch/perf.html"
perf --chart "$scratch/latency.svg"
recording >"$scratch/recording.tsv"
"$ayre" study "$scratch/recording.tsv" --html "$scratch/study.html" --plots "$scratch" >/dev/null
# One load is too much: the page says so, and so does the status.
sweep() {
    page=$1
    shift
    "$ayre" sim sweep packets=4000 warmup=500 replicas=2 "$@" --html "$page" >/dev/null ||
        [ $? -eq 3 ]
}
sweep "$scratch/torus.html" topology=torus 'load=[0.2, 0.5, 1]' 'channels=[2, 4]'
sweep "$scratch/star.html" load=0.9
sweep "$scratch/tree.html" topology=tree 'pattern=["uniform", "tornado"]'
"$ayre" top --interval 0.05 --html "$scratch/top.html"

# All libraries have their places in the legend.
for peer in UCX libfabric MPI; do
    for drawn in perf.html latency.svg; do
        grep -q ">$peer</" "$scratch/$drawn" || {
            echo "report: $drawn has no $peer" >&2
            cat "$scratch/said" >&2
            exit 1
        }
    done
done

# A language without its library or package has its reason there.
for language in Rust C Python; do
    grep -Eq "<th>$language</th>|<dt>$language</dt>" "$scratch/perf.html" || {
        echo "report: perf.html has no $language" >&2
        exit 1
    }
done

check "$scratch/perf.html" 7 light 1
check "$scratch/perf.html" 7 dark 0
check "$scratch/study.html" 3 dark 0
# Four charts of all points, their parts, and five of each point.
check "$scratch/torus.html" 35 light 1
check "$scratch/torus.html" 35 dark 0
check "$scratch/star.html" 6 dark 0
check "$scratch/tree.html" 12 light 1
for chart in latency times correlations slow-1; do
    framed "$scratch/$chart.svg" >"$scratch/$chart.html"
    check "$scratch/$chart.html" 1 dark 0
done
check "$scratch/latency.html" 1 light 1
# There may be no link.
title=$(laid_out "$scratch/top.html" 1)
case "$title" in
"390 pixels, "*": well") echo "report: top.html: $title" ;;
*) echo "report: top.html: $title" >&2 && exit 1 ;;
esac
