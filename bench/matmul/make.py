"""Writes a folder of matmul kernels and the page that times them on a GPU.

    python bench/matmul/make.py FOLDER [--quick]

Serve the folder and open `matmul.html`: it runs every variant on every shape, compares each result with
a plain kernel's and posts [key, value] pairs to `/r`, the last one `DONE`. `table.py` reads what was posted.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[1] / "tests")]

import matmul_cases as cases  # noqa: E402  # found through the line above
from tensorgrad.device.base import Limits  # noqa: E402
from tensorgrad.wgsl import matmul  # noqa: E402
from tensorgrad.wgsl.matmul_tiles import TILES, Tile, choose  # noqa: E402

LARGE = Limits(invocations=1024, workgroup_storage=49_152)

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


def cpu_variants(case: cases.Case) -> Iterator[dict[str, object]]:
    """What is compared where the adapter is a CPU."""
    chosen = choose(case.inner, SOFTWARE)
    for tile in dict.fromkeys([chosen, *(t for t in CPU if _fair(case, t))]):
        source = matmul.generate(case.kernel, SOFTWARE, tile=tile)
        yield _variant(f"{tile} {tile.m}x{tile.n}, {tile.steps} at a time", source, tile == chosen)


def variants(name: str, case: cases.Case, quick: bool) -> Iterator[dict[str, object]]:
    """Each kernel that is timed on a shape."""
    inner = case.inner
    chosen = choose(inner, LARGE)
    few = [t for t in TILES if _fair(case, t)]
    more = [] if quick or name in ("4096", "odd") else [t for t in EXTRA if _fair(case, t)]
    for tile in dict.fromkeys([chosen, *few, *more]):
        source = matmul.generate(case.kernel, LARGE, tile=tile)
        yield _variant(str(tile) + f" {tile.tm}x{tile.tn}", source, tile == chosen)


def _fair(case: cases.Case, tile: Tile) -> bool:
    """Whether a tile is worth timing: little of it is waste, and there are neither far too many blocks nor few."""
    inner = case.inner
    covered = -(-inner.m.size // tile.m) * tile.m * (-(-inner.n.size // tile.n)) * tile.n
    area = inner.m.size * inner.n.size
    blocks = inner.batch.size * covered // (tile.m * tile.n)
    least = 16 if area > 1 << 16 else 1
    return covered <= max(1.5 * area, 2048) and least <= blocks <= 2304


def _variant(label: str, source: matmul.Source, chosen: bool) -> dict[str, object]:
    count = -(-source.threads // source.workgroup_size)
    names = {cases.A: "a", cases.B: "b", cases.OUT: "out"}
    return {
        "label": label,
        "name": source.name,
        "wgsl": source.wgsl,
        "groups": [min(count, 65_535), -(-count // 65_535)],
        "bindings": [names[key] for key, _ in source.bindings],
        "chosen": chosen,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--quick", action="store_true", help="only the tiles that the library chooses from")
    parser.add_argument("--cpu", action="store_true", help="small shapes and kernels for an adapter that is a CPU")
    parser.add_argument("--only", help="only shapes whose name has this in it")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    jobs = []
    for name, (sizes, layouts) in SHAPES.items():
        if options.only and options.only not in name:
            continue
        if options.cpu and math.prod(sizes) > 1 << 26:
            continue
        for layout in layouts:
            case = cases.shape_only(sizes, layout)
            jobs.append(
                {
                    "name": f"{name} {layout}",
                    "sizes": sizes,
                    "layout": layout,
                    "variants": list(cpu_variants(case) if options.cpu else variants(name, case, options.quick)),
                }
            )
    (options.folder / "matmul.json").write_text(json.dumps(jobs))
    for page in (HERE / "matmul.html", HERE.parent / "timing.js"):
        shutil.copy(page, options.folder)
    print(f"{sum(len(j['variants']) for j in jobs)} kernels on {len(jobs)} shapes in {options.folder}")


if __name__ == "__main__":
    main()
