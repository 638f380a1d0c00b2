"""Print how large the parts of the site are, and with `--write` keep the table in `bench/SIZES.md`.

Each part as it lies in `build/site`, and as hosts send it: with gzip (level 6) or brotli (quality 5), which is what
they do on the fly. Archives are compressed already.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path

from paths import ROOT, SITE, run

TABLE = ROOT / "bench" / "SIZES.md"
HEAD = """# Sizes by part

Made by `.venv/bin/python tools/sizes.py --write`, in kB (1000 bytes): files as they are, and as hosts send them, with
gzip (level 6) or brotli (quality 5). The browser keeps all of it; a second visit only asks whether it has changed.
What the last row has comes once Python is there, so that the whole site works without a network.

"""
BROTLI = """
const { brotliCompressSync, constants } = require('zlib'), { readFileSync } = require('fs');
const params = { [constants.BROTLI_PARAM_QUALITY]: 5 };
const size = (file) => brotliCompressSync(readFileSync(file), { params }).length;
console.log(JSON.stringify(process.argv.slice(1).map(size)));
"""


def playground() -> dict[str, list[Path]]:
    """The files that a visit to the playground loads, by part."""
    page = (SITE / "index.html").read_text(encoding="utf-8")
    links = [SITE / name for name in re.findall(r'(?:href|src)="\./([^"]+\.(?:css|js|json|svg))"', page)]
    own = [file for file in links if file.parent.name != "vendor" and file.suffix != ".json"]
    pyodide = SITE / "pyodide"
    return {
        "the page: HTML, style, JavaScript": [SITE / "index.html", *own],
        "uPlot": [file for file in links if file.parent.name == "vendor"],
        "the recorded run": [file for file in links if file.suffix == ".json"],
        "the worker and the page's Python": [
            *SITE.glob("worker/*"),
            *SITE.glob("python/**/*.py"),
            *SITE.glob("tensorgrad/*"),
        ],
        "CodeMirror, once Python is there": [SITE / "vendor" / "codemirror.js", *SITE.glob("js/code_*.js")],
        "Pyodide: JavaScript": [*pyodide.glob("*.mjs"), pyodide / "pyodide-lock.json"],
        "Pyodide: WebAssembly": [pyodide / "pyodide.asm.wasm"],
        "Python's library": [pyodide / "python_stdlib.zip"],
        "NumPy": [*pyodide.glob("numpy-*.whl")],
        "tensorgrad": [*pyodide.glob("tensorgrad_webgpu-*.whl")],
    }


def offline(parts: dict[str, list[Path]]) -> dict[str, list[Path]]:
    """The other files that the service worker keeps, as one part."""
    kept = json.loads((SITE / "files.json").read_text(encoding="utf-8"))["files"]
    loaded = {file for part in parts.values() for file in part}
    others = {SITE / name for name in kept} - loaded
    return {"lessons, documentation and packages, in the background": sorted(others)}


def rows(parts: dict[str, list[Path]]) -> list[tuple[str, int, int, int, int]]:
    """For each part and their sum: files, bytes, bytes with gzip, bytes with brotli."""
    files = [file for part in parts.values() for file in part]
    brotli = dict(zip(files, json.loads(run(["node", "-e", BROTLI, *files])), strict=True))
    found = []
    for name, part in parts.items():
        zipped = sum(len(gzip.compress(file.read_bytes(), 6)) for file in part)
        found.append(
            (name, len(part), sum(file.stat().st_size for file in part), zipped, sum(brotli[file] for file in part))
        )
    sums = [sum(row[column] for row in found) for column in (1, 2, 3, 4)]
    return [*found, ("together", sums[0], sums[1], sums[2], sums[3])]


def table(found: list[tuple[str, int, int, int, int]]) -> str:
    """The rows as Markdown."""
    lines = ["| part | files | as they are | gzip | brotli |", "|---|---:|---:|---:|---:|"]
    for name, count, *sizes in found:
        lines.append("| " + " | ".join([name, str(count), *(f"{size / 1e3:,.0f}" for size in sizes)]) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the table, and write it where that is asked for."""
    parts = playground()
    text = table([*rows(parts), rows(offline(parts))[0]])
    print(text, end="")
    if "--write" in sys.argv[1:]:
        TABLE.write_text(HEAD + text, encoding="utf-8")


if __name__ == "__main__":
    main()
