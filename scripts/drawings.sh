#!/bin/sh
# Draws docs/drawings/NAME.svg from NAME.pikchr and style.pikchr, where a drawing is not up to date.
# A drawing has the checksum of its sources and of itself in a comment.
#
# usage: scripts/drawings.sh [check]
#
# check draws nothing, and fails if a drawing is not up to date.
set -eu
cd "$(dirname "$0")/.."

say() { echo "drawings: $*"; }

folder=docs/drawings
tools="${CARGO_TARGET_DIR:-target}/drawings"
version=0.1.2

# Of the two sources, and of the drawing on the standard input without its own comment.
checksum_with() {
    { cat "$folder/style.pikchr" "$1" && grep -v '^<!-- sum '; } | sha256sum | cut -c1-64
}

is_up_to_date() {
    [ -f "$2" ] && grep -q "^<!-- sum $(checksum_with "$1" <"$2") -->$" "$2"
}

install_pikchr() {
    pikchr="$tools/bin/pikchr-cli"
    if ! "$pikchr" --version 2>/dev/null | grep -q "$version"; then
        scripts/deps.sh cargo cc
        cargo install -q --locked --root "$tools" "pikchr-cli@$version"
    fi
}

# A white card, because a book has light and dark pages, and a width by which texts of a drawing
# look like those around it.
draw() {
    cat "$folder/style.pikchr" "$1" >"$tools/source"
    "$pikchr" "$tools/source" >"$tools/drawn"
    sed -E '/^<svg/ {
        s/ style="[^"]*"//
        s/viewBox="0 0 ([0-9]+)[^"]*"/width="\1" &/
        s/>/ font-family="sans-serif" font-size="15">\
<rect width="100%" height="100%" rx="10" fill="#fff"\/>/
    }' "$tools/drawn" >"$tools/card"
    { cat "$tools/card" && echo "<!-- sum $(checksum_with "$1" <"$tools/card") -->"; } >"$2"
    say "$2"
}

stale=
for source in "$folder"/*.pikchr; do
    [ "$source" != "$folder/style.pikchr" ] || continue
    is_up_to_date "$source" "${source%.pikchr}.svg" || stale="$stale $source"
done
for drawing in "$folder"/*.svg; do
    [ ! -f "$drawing" ] || [ -f "${drawing%.svg}.pikchr" ] ||
        { say "$drawing has no source" && exit 1; }
done
[ -n "$stale" ] || exit 0
[ "${1:-}" != check ] || { say "scripts/drawings.sh must draw anew:$stale" && exit 1; }

mkdir -p "$tools"
install_pikchr
for source in $stale; do
    draw "$source" "${source%.pikchr}.svg"
done
