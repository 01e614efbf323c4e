#!/bin/sh
# rustdoc with the options that are not stable. Cargo itself runs without them: build scripts of
# dependencies look for RUSTC_BOOTSTRAP, and all would be built twice.
RUSTC_BOOTSTRAP=1 exec rustdoc "$@"
