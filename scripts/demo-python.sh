#!/bin/sh
# Builds Ayre for Python, installs it into an environment of its own, and finds clusters in Fisher's
# irises with RANKS processes.
set -eu
cd "$(dirname "$0")/.."

target=$(cargo metadata --format-version 1 --no-deps |
    sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
home="$target/demo-python"

wheel=$(scripts/python-try.sh wheel | sed -n 's/^python-try: wheel: //p')
cargo build -q --release -p ayre-cli
if [ ! -x "$home/bin/python3" ]; then
    rm -rf "$home"
    "${PYTHON:-python3}" -m venv "$home"
fi
"$home/bin/pip" install -q --disable-pip-version-check --force-reinstall "$wheel"
set -- "$target/release/ayre" run -n "${RANKS:-2}" -- "$home/bin/python3" \
    python/examples/kmeans.py engine/examples/data/iris.csv 3
echo "demo-python: $*"
"$@"
