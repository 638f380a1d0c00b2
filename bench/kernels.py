"""What the folders of kernels for `timing.js` have in common: variants as it reads them, and the files."""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tensorgrad.device.base import Limits
from tensorgrad.graph import Value
from tensorgrad.plan import MAX_WORKGROUPS
from tensorgrad.wgsl.matmul_tiles import Tile
from tensorgrad.wgsl.shader import Source

LARGE = Limits(invocations=1024, workgroup_storage=49_152)
"""What a large GPU allows."""


def groups(source: Source) -> list[int]:
    """Workgroups in x and y."""
    count = -(-source.threads // source.workgroup_size)
    return [min(count, MAX_WORKGROUPS), -(-count // MAX_WORKGROUPS)]


def variant(tile: Tile, source: Source, name: Callable[[Value], str], chosen: bool, label: str = "") -> dict[str, Any]:
    """A kernel of a job.

    Args:
        name: what the page calls the buffer that holds a value.
        chosen: it is the library's own choice.
        label: by default the tile.
    """
    return {
        "label": label or f"{tile} {tile.tm}x{tile.tn}",
        "name": source.name,
        "wgsl": source.wgsl,
        "groups": groups(source),
        "bindings": [name(key) for key, _ in source.bindings],
        "chosen": chosen,
    }


def parser(description: str | None) -> argparse.ArgumentParser:
    """A parser for the folder that is written."""
    found = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("folder", type=Path)
    return found


def write(folder: Path, page: Path, jobs: Sequence[dict[str, Any]]) -> None:
    """The folder: `NAME.json` for a page `NAME.html`, and what the page needs."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / page.with_suffix(".json").name).write_text(json.dumps(jobs))
    for file in (page, Path(__file__).with_name("timing.js")):
        shutil.copy(file, folder)
    print(f"{sum(len(job.get('variants', [job])) for job in jobs)} kernels in {len(jobs)} jobs in {folder}")
