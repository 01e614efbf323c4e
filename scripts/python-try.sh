#!/bin/sh
# Builds Ayre for Python as a wheel, installs it into an environment of its own, and checks it
# there: ruff, mypy, the tests, the conformance suite, the example under `ayre run`.
# PROFILE=checked takes what the tests have built, PYTHON=python3.13 another interpreter.
#
# usage: scripts/python-try.sh [wheel | all]
#   wheel   builds the wheel, says where it is, and ends
#   all     runs the long cases of the suite, too
set -eu
cd "$(dirname "$0")/.."

say() { echo "python-try: $*"; }

profile="${PROFILE:-release}"
python="${PYTHON:-python3}"
target=$(cargo metadata --format-version 1 --no-deps |
    sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
home="$target/python/$version"

if ! "$python" -c 'import ensurepip' 2>/dev/null; then
    scripts/deps.sh python3-venv
fi
if [ ! -x "$home/bin/python3" ]; then
    rm -rf "$home"
    "$python" -m venv "$home"
fi
"$home/bin/pip" install -q --disable-pip-version-check -r python/requirements.txt

# Before 3.11 the limited interface has no buffers: the library is this interpreter's alone.
features=
if [ "${version#3.}" -lt 11 ]; then
    features=--no-default-features
fi
wheels="$target/python/wheels-$version"
rm -rf "$wheels"
# shellcheck disable=SC2086 # no word, or one
"$home/bin/maturin" build -q -m python/Cargo.toml --profile "$profile" $features \
    -i "$home/bin/python3" -o "$wheels"
wheel=$(ls "$wheels"/ayre-*.whl)
say "wheel: $wheel"
[ "${1:-}" != wheel ] || exit 0
"$home/bin/pip" install -q --disable-pip-version-check --force-reinstall --no-deps "$wheel"

"$home/bin/ruff" check -q python
"$home/bin/ruff" format -q --check python
(cd python && "$home/bin/mypy" ayre examples driver bench)
"$home/bin/python3" -m mypy.stubtest ayre --allowlist python/tests/stubtest.txt \
    --ignore-unused-allowlist
say "ruff, mypy: good"

PROFILE="$profile" scripts/build.sh ayre-cli
# The tests and the example find the tool on the path. They and their children take the package that
# is installed, as no folder here has its name.
export PATH="$target/$profile:$PATH"
"$home/bin/pytest" -c python/pyproject.toml --rootdir python python/tests
ayre run -n 2 -- "$home/bin/python3" python/examples/hello.py >"$home/said"
for rank in 0 1; do
    grep -q "rank $rank: hello, neighbour" "$home/said" || {
        say "the example said: $(cat "$home/said")"
        exit 1
    }
done
say "the example greets"

# Of the workspace, so that what the tests have built is taken.
long=
[ "${1:-}" != all ] || long="-- --include-ignored"
# shellcheck disable=SC2086 # no words, or two
PYTHON_WITH_AYRE="$home/bin/python3" cargo test -q --workspace --profile "$profile" --test python \
    $long
