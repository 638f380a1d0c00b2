"""Prints what `matmul.html` measured: for each shape the fastest kernels, and how far the chosen one is behind.

python bench/matmul/table.py RESULTS.json [--all]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any


def lines(results: dict[str, Any], most: int) -> list[str]:
    """A line for each kernel, the fastest of a shape first."""
    out = []
    for shape, rows in results.items():
        if not isinstance(rows, dict) or shape == "adapter":
            continue
        failed = [f"  {label}: {row['error']}" for label, row in rows.items() if isinstance(row.get("error"), str)]
        timed = {label: row for label, row in rows.items() if "ms" in row}
        ranked = sorted(timed.items(), key=lambda item: item[1]["ms"])
        out.append(shape)
        for rank, (label, row) in enumerate(ranked):
            if rank >= most and not row.get("chosen") and not row.get("WRONG"):
                continue
            behind = ranked[0][1]["ms"] / row["ms"]
            notes = ("  chosen" if row.get("chosen") else "") + ("  WRONG" if row.get("WRONG") else "")
            out.append(f"  {label:36} {row['ms']:9.4f} ms {row['tflops']:7.2f} TFLOP/s {behind:5.0%}{notes}")
        out += failed
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--all", action="store_true", help="every kernel, not only the three fastest")
    options = parser.parse_args()
    results = json.loads(options.results.read_text())
    print(results.get("adapter"))
    print("\n".join(lines(results, 10**6 if options.all else 3)))


if __name__ == "__main__":
    main()
