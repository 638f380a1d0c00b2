"""Writes a folder with kernels that multiply f16 and a page that checks each of them on a GPU against float64.

    PYTHONPATH=.:bench:tests python bench/matmul/half.py FOLDER

Serve the folder and open `half.html`: it runs every tile with and without subgroup matrices at sizes that no tile
meets exactly, in all four transpositions, batched, with epilogues, in place, with sums of operands, and posts how far
each written buffer is off: [key, value] pairs to `/r`, the last one `DONE`. A browser without subgroup matrices
skips those.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from kernels import LARGE, groups, parser, write

import matmul_cases as cases
from tensorgrad.wgsl.matmul import generate
from tensorgrad.wgsl.matmul_matrix import multiplies_halves
from tensorgrad.wgsl.matmul_tiles import MATRICES, Tile

LIMITS = LARGE._replace(matrices=True)

SCALAR = (Tile(32, 32, 16, 4, 4), Tile(16, 16, 64, 4, 4, 4), Tile(128, 128, 16, 8, 16), Tile(16, 16, 0, 4, 4))


def variants() -> Iterator[tuple[cases.Case, Tile, dict[Any, np.ndarray]]]:
    """Cases with a tile, and what the buffers that they write hold afterwards.

    Each tile meets every transposition with and without vectors, the tiles take turns at the rest.
    """
    layouts = ("nn", "nt", "tn", "tt")
    sizes = ((65, 129, 33), (200, 65, 5), (129, 200, 16), (64, 64, 100), (17, 65, 64), (136, 24, 40), (1, 3, 200))
    rest = [*cases.operands((3, 17, 33, 10)), *cases.images(2, 3, 6, 7, 20), *cases.heads(2, 3, 24, 8)]
    rest += [cases.plain((2, 20, 24, k), "nt", pad=8 * k) for k in (0, 1, 5)]
    for sizes_ in ((1, 36, 40, 24), (3, 17, 33, 10), (1, 72, 136, 48)):
        rest += cases.epilogues(sizes_)
    halves = [cases.halved(case) for case in rest] + [c for c in cases.halves((3, 17, 33, 10)) if c.name == "f16"]
    for turn, tile in enumerate((*MATRICES, *SCALAR)):
        chosen = [cases.plain((2, 72, 136, 40), layout, batched="ab"[i % 2 :]) for i, layout in enumerate(layouts)]
        chosen += [
            cases.plain((1 + 2 * (i % 2), *sizes[(i + turn) % 7]), layout, pad=(0, 8, 4, 3)[(i + turn) % 4], seed=turn)
            for i, layout in enumerate(layouts)
        ]
        for case in [*map(cases.halved, chosen), *halves[turn % 3 :: 3]]:
            if tile.lanes == 1 or multiplies_halves(case.inner):
                yield case, tile, case.expected()
        for i, letter in enumerate("ab" if tile.k else ""):
            base = cases.halved(cases.plain((1 + i, 72, 136, 50), layouts[(2 * turn + i) % 4], seed=i))
            case, sums = cases.with_total(base, letter)
            yield case, tile, base.expected() | {cases.SECOND: sums}


def job(case: cases.Case, tile: Tile, expected: dict[Any, np.ndarray]) -> dict[str, Any]:
    source = generate(case.kernel, LIMITS, tile=tile)
    buffers = []
    for key, written in source.bindings:
        buffer: dict[str, Any] = {"data": _text(case.arrays[key])}
        if written:
            buffer |= {"expected": _text(expected[key]), "dtype": str(expected[key].dtype)}
        buffers.append(buffer)
    return {
        "name": f"{source.name}: {case.name}",
        "matrices": tile.lanes > 1,
        "wgsl": source.wgsl,
        "groups": groups(source),
        "buffers": buffers,
    }


def _text(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


def main() -> None:
    folder: Path = parser(__doc__).parse_args().folder
    write(folder, Path(__file__).with_name("half.html"), [job(*variant) for variant in variants()])


if __name__ == "__main__":
    main()
