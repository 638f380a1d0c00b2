#!/bin/bash
# Our benchmark pages for the peers' harness: usage pages.sh FOLDER (which gets *.html, *.js and tensorgrad.zip).
# `make site` comes first: the pages get its wheel, and bytecode of their own modules, made by its Pyodide.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "$1"
cp bench/*.html bench/*.js "$1/"
exchange=$(mktemp -d)
trap 'rm -rf "$exchange"' EXIT
mkdir "$exchange/in" "$exchange/out"
python3 - "$exchange/in/tensorgrad_webgpu-bench.zip" <<'P'
import pathlib, sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as archive:
    for path in [*pathlib.Path("bench").glob("*.py"), pathlib.Path("tests/half_cases.py")]:
        archive.write(path, path.name)
P
node tools/bytecode.mjs build/site/pyodide "$exchange"
python3 - build/site/pyodide/tensorgrad_webgpu-*.whl "$exchange/out/tensorgrad_webgpu-bench.zip" "$1/tensorgrad.zip" <<'P'
import shutil, sys, zipfile
wheel, modules, out = sys.argv[1:]
shutil.copy(wheel, out)
with zipfile.ZipFile(modules) as source, zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as archive:
    for name in source.namelist():
        archive.writestr(name, source.read(name))
P
