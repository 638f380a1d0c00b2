#!/bin/sh
# Build the wheel into dist/, and for the site, in build/site/pyodide/, its copy with bytecode and the lock file.
set -eu
cd "$(dirname "$0")"
rm -f build/.wheel
make --no-print-directory wheel site
sha256sum dist/tensorgrad_webgpu-*.whl
