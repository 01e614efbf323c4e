#!/bin/sh
# Compiles the Rust blocks of the pages of the book and runs those of the shell, all of a page in
# one shell, as a reader would. scripts/blocks.awk has what a page can say of its blocks.
#
# What pages build is not built again: they get what `make test` has built, with PROFILE=checked.
#
# usage: scripts/pages.sh [PAGE...]
set -eu
cd "$(dirname "$0")/.."

say() { echo "pages: $*"; }

root=$PWD
profile="${PROFILE:-checked}"
built=$(realpath -m "${CARGO_TARGET_DIR:-target}")/$profile
[ "$profile" != dev ] || built="${built%dev}debug"
# Seconds for the shell blocks of a page.
limit=120

# Within the repository, whose toolchain it is to be.
mkdir -p target
work=$(mktemp -d "$root/target/pages.XXXXXX")
# For projects that pages make: no part of the repository.
elsewhere=$(mktemp -d)
trap 'rm -rf "$work" "$elsewhere"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

compile() {
    mkdir -p "$work/$(dirname "$1")"
    awk -v as=page -f scripts/blocks.awk "$1" >"$work/$1" || return
    grep -q '^ *```rust' "$work/$1" || return 0
    (cd "$work" && rustdoc --test "$1" --edition 2024 -L "dependency=$built/deps" \
        --extern ayre="$built/libayre.rlib")
}

# Puts a command, whose text is the standard input, before those of the system.
command_of_place() {
    cat >"$place/bin/$1"
    chmod +x "$place/bin/$1"
}

# A copy of the repository's files, so that nothing that a page writes is kept.
lay_place() {
    place="$work/place"
    rm -rf "$place"
    mkdir -p "$place/bin" "$place/home" "$place/target"
    git ls-files -z | xargs -0 cp -P --parents --target-directory="$place"
    for folder in release debug provider "$profile"; do
        ln -s "$built" "$place/target/$folder"
    done

    printf '#!/bin/sh\nexec "%s" "$@"\n' "$built/examples/hello" | command_of_place program
    # Builds nothing of the repository: says whether it is there. Runs what is. Builds the programs
    # of a project that the page makes.
    command_of_place cargo <<END_OF_COMMAND
#!/bin/sh
command="\$1"
if [ "\$command" = build ] && [ -d src/bin ]; then
    mkdir -p target/debug
    for main in src/bin/*.rs src/bin/*/main.rs; do
        name="\${main#src/bin/}" && name="\${name%.rs}" && name="\${name%/main}"
        [ -f "\$main" ] && [ ! "target/debug/\$name" -nt "\$main" ] || continue
        rustc --edition 2024 -L "dependency=$built/deps" --extern ayre="$built/libayre.rlib" \\
            -o "target/debug/\$name" "\$main" || exit
    done
    exit
fi
[ "\$command" = build ] || [ "\$command" = run ] || exec "$(command -v cargo)" "\$@"
program="$built/ayre"
while [ "\$#" -gt 0 ] && [ "\$1" != -- ]; do
    case "\$1" in
    --example) program="$built/examples/\$2" ;;
    ayre-pagerank) program="$built/ayre-pagerank" ;;
    esac
    shift
done
[ "\$#" -eq 0 ] || shift
[ "\$command" = run ] || { ls "\$program" >/dev/null; exit; }
exec "\$program" "\$@"
END_OF_COMMAND
    # Root, and fewer processors than ranks: Open MPI asks both to be allowed.
    command_of_place mpirun <<'END_OF_COMMAND'
#!/bin/sh
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
exec mpirun.openmpi --oversubscribe "$@"
END_OF_COMMAND
    printf '#!/bin/sh\nexec mpiexec.hydra "$@"\n' | command_of_place mpiexec
}

run() {
    {
        echo 'set -eE; trap '\''status=$?; [ $status = 0 ] || echo "$at: status $status"'\'' EXIT'
        awk -v as=shell -f scripts/blocks.awk "$1"
    } >"$work/blocks" || return
    grep -q '^at=' "$work/blocks" || return 0
    lay_place
    (
        export CARGO_HOME="${CARGO_HOME:-$HOME/.cargo}" RUSTUP_HOME="${RUSTUP_HOME:-$HOME/.rustup}"
        export HOME="$place/home" TMPDIR="$elsewhere" PROFILE="$profile"
        export PATH="$place/bin:$built:$PATH"
        cd "$place"
        timeout --kill-after=5 "$limit" bash "$work/blocks"
    )
}

failed=
pages=$(sed -n 's/.*](\(.*\.md\)).*/docs\/\1/p' docs/SUMMARY.md | sed 's/^docs\/\.\.\///')
for page in ${*:-$pages}; do
    if { compile "$page" && run "$page"; } >"$work/said" 2>&1 </dev/null; then
        grep -E '^(\+ |test result)' "$work/said" || true
    else
        cat "$work/said"
        failed="$failed $page"
    fi
done
[ -z "$failed" ] || { say "failed:$failed" && exit 1; }
