#!/bin/sh
# Builds the book of docs/, target/book/docs/index.html, with mdBook.
set -eu
cd "$(dirname "$0")/.."
scripts/drawings.sh

say() { echo "book: $*"; }

if ! command -v mdbook >/dev/null; then
    say "mdbook is missing: cargo install mdbook"
    exit 1
fi
mdbook build

# Pages also name files of the repository, which are no pages of the book. They are laid beside it;
# mdBook makes .html of the .md in links.
grep -ho '](\.\./[^)#]*' docs/*.md | sed 's/^](\.\.\///' | sort -u | while read -r file; do
    [ -f "$file" ] || continue
    case "$file" in
    *.md) to="target/book/${file%.md}.html" ;;
    *) to="target/book/$file" ;;
    esac
    mkdir -p "$(dirname "$to")"
    case "$file" in
    *.md)
        {
            echo '<!doctype html><meta charset="utf-8"><pre style="white-space: pre-wrap">'
            sed 's/&/\&amp;/g; s/</\&lt;/g' "$file"
            echo '</pre>'
        } >"$to"
        ;;
    *) cp "$file" "$to" ;;
    esac
done
say "target/book/docs/index.html"
