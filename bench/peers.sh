#!/bin/bash
# Ours beside the peers on a software adapter: usage peers.sh PEERS [LIBRARIES [WORKLOADS]]; README.md says what PEERS is.
# OUT is the folder that it makes, PYTHON one with Playwright.
set -euo pipefail
peers=$(cd "$1" && pwd)
libraries=${2:-tensorgrad,borch?mode=compiled,tfjs}
workloads=${3:-sinmlp,mlp}
cd "$(dirname "$0")/.."
out=${OUT:-build/bench}
bash bench/pages.sh "$out/ours"
bash "$peers/build.sh" "$out/pages" "$out/ours"
cp -rL build/site/pyodide "$out/pages/"
"${PYTHON:-python3}" "$peers/run.py" --root "$out/pages" --libs "$libraries" --workloads "$workloads" --query tiny \
  --rounds 1 --steps 4 --lazy 0 --budget 4 --out "$out/results.json"
