"""Writes a folder of matmul kernels and the page that times them on a GPU.

    PYTHONPATH=.:bench:tests python bench/matmul/make.py FOLDER [--quick]

Serve the folder and open `matmul.html`: it runs every variant on every shape, compares each result with
a plain kernel's and posts [key, value] pairs to `/r`, the last one `DONE`. `table.py` reads what was posted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kernels import LARGE, parser, variant, write

import matmul_cases as cases
from tensorgrad.device.base import Limits
from tensorgrad.wgsl import matmul
from tensorgrad.wgsl.matmul_tiles import MATRICES, TILES, Tile, choose

NAMES = {cases.A: "a", cases.B: "b", cases.OUT: "out"}

SHAPES: dict[str, tuple[tuple[int, int, int, int], tuple[str, ...]]] = {
    "1024": ((1, 1024, 1024, 1024), ("nn", "nt", "tn", "tt")),
    "2048": ((1, 2048, 2048, 2048), ("nn", "nt", "tn", "tt")),
    "4096": ((1, 4096, 4096, 4096), ("nn", "nt", "tn")),
    "512": ((1, 512, 512, 512), ("nn", "nt")),
    "baby qkv": ((1, 8192, 1152, 384), ("nt",)),
    "baby proj": ((1, 8192, 384, 384), ("nt", "nn")),
    "baby up": ((1, 8192, 1536, 384), ("nt", "nn")),
    "baby down": ((1, 8192, 384, 1536), ("nt", "nn")),
    "baby weight up": ((1, 1536, 384, 8192), ("tn",)),
    "baby weight up, split 8": ((8, 1536, 384, 1024), ("tn",)),
    "baby weight proj, split 16": ((16, 384, 384, 512), ("tn",)),
    "baby scores": ((192, 256, 256, 64), ("nt",)),
    "baby attend": ((192, 256, 64, 256), ("nn", "tn")),
    "char qkv": ((1, 1024, 384, 128), ("nt",)),
    "char proj": ((1, 1024, 128, 128), ("nt", "nn")),
    "char down": ((1, 1024, 128, 512), ("nt", "nn")),
    "char weight": ((1, 128, 128, 1024), ("tn",)),
    "char scores": ((64, 64, 64, 32), ("nt",)),
    "mnist 1": ((1, 128, 128, 784), ("nt",)),
    "mnist 2": ((1, 128, 10, 128), ("nt",)),
    "mnist weight 1": ((1, 128, 784, 128), ("tn",)),
    "odd": ((1, 1001, 1003, 1005), ("nn", "nt")),
}

EXTRA = (
    Tile(128, 128, 8, 8, 16),
    Tile(128, 128, 16, 16, 8),
    Tile(128, 128, 16, 8, 8),
    Tile(128, 128, 32, 8, 16),
    Tile(128, 256, 16, 16, 16),
    Tile(128, 64, 32, 8, 8),
    Tile(64, 64, 32, 8, 8),
    Tile(64, 64, 32, 8, 8, 4),
    Tile(64, 64, 16, 8, 8, 2),
    Tile(128, 64, 16, 8, 8, 2),
    Tile(64, 64, 16, 4, 4),
    Tile(32, 32, 64, 4, 4, 8),
    Tile(64, 32, 32, 4, 4),
)


HALF: tuple[Tile, ...] = ()
"""Tiles of matrices to try beside those that the library chooses from."""

SOFTWARE = Limits(software=True, subgroup_size=4, features=frozenset({"subgroups"}))

CPU = (
    Tile(16, 16, 0, 4, 4),
    Tile(8, 32, 0, 8, 8),
    Tile(32, 8, 0, 8, 8),
    Tile(16, 16, 0, 16, 4, quads=True),
    Tile(16, 16, 0, 16, 4, quads=True, steps=4),
    Tile(16, 32, 0, 16, 8, quads=True, steps=4),
    Tile(32, 32, 0, 32, 8, quads=True, steps=4),
    Tile(32, 16, 0, 8, 16, quads=True, steps=4),
)


def half_variants(case: cases.Case) -> Iterator[dict[str, Any]]:
    """What is compared where operands are f16: the tiles for matrices, and the best without."""
    chosen, without = (choose(case.inner, LARGE._replace(matrices=on), half=True) for on in (True, False))
    for tile in dict.fromkeys([chosen, *(t for t in (*MATRICES, *HALF) if _fair(case, t)), without]):
        source = matmul.generate(case.kernel, LARGE._replace(matrices=True), tile=tile)
        yield variant(tile, source, NAMES.__getitem__, tile == chosen)


def cpu_variants(case: cases.Case) -> Iterator[dict[str, Any]]:
    """What is compared where the adapter is a CPU."""
    chosen = choose(case.inner, SOFTWARE)
    for tile in dict.fromkeys([chosen, *(t for t in CPU if _fair(case, t))]):
        source = matmul.generate(case.kernel, SOFTWARE, tile=tile)
        label = f"{tile} {tile.m}x{tile.n}, {tile.steps} at a time"
        yield variant(tile, source, NAMES.__getitem__, tile == chosen, label)


def variants(name: str, case: cases.Case, quick: bool) -> Iterator[dict[str, Any]]:
    """Each kernel that is timed on a shape."""
    inner = case.inner
    chosen = choose(inner, LARGE)
    few = [t for t in TILES if _fair(case, t)]
    more = [] if quick or name in ("4096", "odd") else [t for t in EXTRA if _fair(case, t)]
    for tile in dict.fromkeys([chosen, *few, *more]):
        source = matmul.generate(case.kernel, LARGE, tile=tile)
        yield variant(tile, source, NAMES.__getitem__, tile == chosen)


def _fair(case: cases.Case, tile: Tile) -> bool:
    """Whether a tile is worth timing: little of it is waste, and there are neither far too many blocks nor few."""
    inner = case.inner
    covered = -(-inner.m.size // tile.m) * tile.m * (-(-inner.n.size // tile.n)) * tile.n
    area = inner.m.size * inner.n.size
    blocks = inner.batch.size * covered // (tile.m * tile.n)
    least = 16 if area > 1 << 16 else 1
    return covered <= max(1.5 * area, 2048) and least <= blocks <= 2304


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--quick", action="store_true", help="only the tiles that the library chooses from")
    arguments.add_argument("--cpu", action="store_true", help="small shapes and kernels for an adapter that is a CPU")
    arguments.add_argument("--half", action="store_true", help="operands of f16, on subgroup matrices and without")
    arguments.add_argument("--only", help="only shapes whose name has this in it")
    options = arguments.parse_args()
    jobs = []
    for name, (sizes, layouts) in SHAPES.items():
        if options.only and options.only not in name:
            continue
        if options.cpu and math.prod(sizes) > 1 << 26:
            continue
        for layout in layouts:
            case = cases.shape_only(sizes, layout)
            if options.half:
                case = cases.halved(case)
                found = half_variants(case)
            else:
                found = cpu_variants(case) if options.cpu else variants(name, case, options.quick)
            jobs.append(
                {
                    "name": f"{name} {layout}",
                    "sizes": sizes,
                    "layout": layout,
                    "half": options.half,
                    "variants": list(found),
                }
            )
    write(options.folder, Path(__file__).with_name("matmul.html"), jobs)


if __name__ == "__main__":
    main()
