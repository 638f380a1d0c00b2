"""Tiles on which the tests run the cases of `matmul_cases`, and the text of every variant of the kernel."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from matmul_cases import Case, plain, shape_only
from tensorgrad.device.base import Limits
from tensorgrad.wgsl import matmul
from tensorgrad.wgsl.matmul_tiles import TILES, Tile
from tensorgrad.wgsl.shader import Source

SMALL = Tile(32, 32, 16, 4, 4)
"""What all tiles share is tested with a small one: large ones take long to compile."""
SHARED = Tile(16, 16, 64, 4, 4, 4)
"""The inner size is shared out too."""
DIRECT = (
    Tile(16, 16, 0, 4, 4),
    Tile(8, 32, 0, 8, 8, steps=4),
    Tile(64, 8, 0, 16, 8),
    Tile(4, 16, 0, 1, 4),
    Tile(2, 32, 0, 2, 8),
    Tile(16, 16, 0, 16, 4, quads=True, steps=4),
    Tile(32, 16, 0, 8, 16, quads=True, steps=4),
    Tile(8, 32, 0, 8, 8),
)
"""Without barriers."""
FITTING = tuple(tile for tile in TILES if tile.fits(Limits()))
"""What the limits that every device has allow."""
TRANSPOSITIONS = ("nn", "nt", "tn", "tt")


def transpositions() -> Iterator[Case]:
    """All four, of rows in whole vectors, of which one operand may be shared, and of others."""
    for i, layout in enumerate(TRANSPOSITIONS):
        yield plain((2, 64, 36, 40), layout, seed=i, batched="ab"[i % 2 :])
    for layout in TRANSPOSITIONS:
        yield plain((1, 35, 37, 39), layout, pad=1)


def variants(limits: Limits) -> Iterator[tuple[str, Source]]:
    """Every tile that a device has with all transpositions, of sizes that it meets exactly and of others in turn."""
    tiles = [tile for tile in (*TILES, *DIRECT) if tile.fits(limits)]
    sizes = ((2, 256, 256, 64), (1, 257, 131, 33))
    for (i, tile), (j, layout) in itertools.product(enumerate(tiles), enumerate(TRANSPOSITIONS)):
        case = shape_only(sizes[(i + j) % 2], layout)
        source = matmul.generate(case.kernel, limits, tile=tile)
        yield f"{source.name}, {case.name}, {tile!r}", source
