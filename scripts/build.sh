#!/bin/sh
# Builds a package. With PROFILE=checked it takes what the tests have built, and so builds the whole
# workspace: for one package alone cargo chooses fewer features of what it stands on, and would
# compile the library once more.
#
# usage: [PROFILE=checked] scripts/build.sh PACKAGE
set -eu
cd "$(dirname "$0")/.."

profile="${PROFILE:-release}"
if [ "$profile" = checked ]; then
    cargo build -q --workspace --profile checked
else
    cargo build -q -p "$1" --profile "$profile"
fi
