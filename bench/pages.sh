#!/bin/bash
# Our benchmark pages for the peers' harness: usage pages.sh FOLDER (which gets *.html, *.js and tensorgrad.zip).
# `make site` comes first: the pages get bytecode, as the site has it, made by its Pyodide.
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
    for path in sorted(pathlib.Path("tensorgrad").rglob("*")):
        if path.suffix in (".py", ".js") and "testing" not in path.parts:
            archive.write(path)
    for path in [*pathlib.Path("bench").glob("*.py"), pathlib.Path("tests/half_cases.py")]:
        archive.write(path, path.name)
P
node tools/bytecode.mjs build/site/pyodide "$exchange"
cp "$exchange/out/tensorgrad_webgpu-bench.zip" "$1/tensorgrad.zip"
