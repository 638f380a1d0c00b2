#!/bin/bash
# Our benchmark pages for the peers' harness: usage pages.sh FOLDER (which gets *.html, *.js and tensorgrad.zip).
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "$1"
cp bench/*.html bench/*.js "$1/"
rm -f "$1/tensorgrad.zip"
python3 - "$1/tensorgrad.zip" <<'P'
import pathlib, sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as archive:
    for path in sorted(pathlib.Path("tensorgrad").rglob("*")):
        if path.suffix in (".py", ".js") and "testing" not in path.parts:
            archive.write(path)
    for path in pathlib.Path("bench").glob("*.py"):
        archive.write(path, path.name)
P
