"""Writes a folder of attention kernels and the page that times them on a GPU.

    PYTHONPATH=.:bench:tests python bench/attention/make.py FOLDER

Serve the folder and open `attention.html`: it runs every tile of every kernel (`out`, `dq`, `dkv`) on every shape,
compares each result with a plain kernel's and posts [key, value] pairs to `/r`, the last one `DONE`. `?only=TEXT`
takes the shapes and kernels whose name has the text in it: `small` for an adapter that is a CPU.
`bench/matmul/table.py RESULTS.json` prints what was posted.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from kernels import LARGE, parser, variant, write

from attention_cases import Sizes, lower
from tensorgrad.graph import Value
from tensorgrad.inspect.work import flops
from tensorgrad.lower.kernel import Kernel
from tensorgrad.lower.lowering import Lowered
from tensorgrad.wgsl import attention
from tensorgrad.wgsl.attention_tiles import TILES, choose, fits
from tensorgrad.wgsl.matmul_tiles import Tile

SHAPES = {
    "baby": (Sizes(32, 6, 256, 256, 64, 64), True),
    "char": (Sizes(16, 4, 64, 64, 32, 32), True),
    "long": (Sizes(2, 8, 2048, 2048, 64, 64), True),
    "wide": (Sizes(4, 8, 512, 512, 128, 128), True),
    "cross": (Sizes(8, 8, 256, 512, 64, 64), False),
    "small causal": (Sizes(1, 2, 40, 40, 16, 16), True),
    "small cross": (Sizes(2, 1, 24, 33, 8, 12), False),
}

EXTRA = (
    Tile(128, 64, 16, 8, 8),
    Tile(128, 64, 16, 4, 8),
    Tile(128, 32, 16, 8, 4),
    Tile(64, 128, 16, 8, 8),
    Tile(64, 64, 8, 4, 8),
    Tile(64, 64, 16, 8, 4),
    Tile(64, 64, 16, 8, 8),
    Tile(64, 64, 32, 4, 8),
    Tile(64, 64, 32, 8, 8),
    Tile(64, 32, 16, 4, 8),
    Tile(64, 32, 16, 8, 4),
    Tile(64, 32, 32, 4, 4),
    Tile(32, 64, 16, 4, 8),
    Tile(32, 64, 32, 4, 8),
    Tile(32, 32, 16, 4, 8),
    Tile(32, 32, 32, 4, 4),
    Tile(32, 32, 32, 8, 4),
    Tile(16, 32, 16, 4, 4),
)

_RESULTS = {"attention": ("out", "lse"), "attention_vjp": ("dq", "dk", "dv")}
_LEAVES = {"x0": "q", "x1": "k", "x2": "v", "x3": "g"}


def name(low: Lowered, kernel: Kernel, value: Value) -> str:
    """What the page calls a buffer; a result may be stored as what its reader makes of it."""
    moved = {s.value: s.expr.data for s in kernel.stores}
    value = moved.get(value, value)
    node = low.graph.node(value)
    if node.op in _RESULTS:
        return _RESULTS[node.op][value.result]
    return _LEAVES[node.attrs["name"]] if node.op == "leaf" else "delta"


def variants(low: Lowered, kernel: Kernel, tiles: tuple[Tile, ...]) -> Iterator[dict[str, Any]]:
    """The kernel with each tile that fits."""
    inner = kernel.attention
    assert inner
    chosen = choose(inner, LARGE)
    rows = (inner.j if inner.part == "dkv" else inner.i).size
    for tile in dict.fromkeys(tiles):
        if not fits(tile, inner, LARGE) or (tile.m > 2 * rows and tile != chosen):
            continue
        source = attention.generate(kernel, LARGE, tile=tile)
        called = partial(name, low, kernel)
        writes = [called(key) for key, is_written in source.bindings if is_written]
        yield {**variant(tile, source, called, tile == chosen), "writes": writes}


def main() -> None:
    folder = parser(__doc__).parse_args().folder
    jobs = []
    for shape, (s, causal) in SHAPES.items():
        low, _ = lower(s, "split", causal=causal)
        # a CPU takes long to compile large ones
        tiles = TILES[-2:] if "small" in shape else (*TILES, *EXTRA) if shape in ("baby", "char") else TILES
        for kernel in low.kernels:
            if kernel.attention:
                sizes = [s.batch, s.heads, s.length, s.keys, s.size, s.width]
                jobs.append(
                    {
                        "name": f"{shape} {kernel.attention.part}",
                        "sizes": sizes,
                        "causal": causal,
                        "flops": flops(kernel),
                        "variants": list(variants(low, kernel, tiles)),
                    }
                )
    write(folder, Path(__file__).with_name("attention.html"), jobs)


if __name__ == "__main__":
    main()
