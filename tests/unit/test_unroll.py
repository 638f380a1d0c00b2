"""A kernel's loop written out: the same products in the same order."""

from __future__ import annotations

import re

import numpy as np

import matmul_cases as cases
from native import native
from on_device import run_sources
from steps import LARGE
from tensorgrad.device.base import Limits
from tensorgrad.wgsl import matmul
from tensorgrad.wgsl.matmul_tiles import TILES, Tile
from tensorgrad.wgsl.unroll import REMARK, unrolled

CASE = cases.plain((1, 70, 66, 37), "nt")


def text(tile: Tile, limits: Limits = LARGE) -> str:
    return matmul.generate(CASE.kernel, limits, tile=tile).wgsl


def test_every_step_is_there_once_and_reads_before_the_one_before_is_multiplied() -> None:
    tile = Tile(64, 64, 16, 8, 8)
    looped = text(tile)
    full = unrolled(looped)
    assert full is not None
    assert not re.search(r"\bkk\b", full)
    assert full.count("fma(") == tile.k * looped.count("fma(")
    assert [int(n) for n in re.findall(r"let p0_(\d+) = tile_a\[(?=\1u\])", full)] == list(range(tile.k))
    places = {n: full.index(f"let p0_{n} =") for n in range(tile.k)}
    last = {n: full.rindex(f"(p0_{n}.") for n in range(tile.k)}
    assert all(places[n + 1] < full.index(f"(p0_{n}.") and last[n] < places[n + 2] for n in range(tile.k - 2))
    assert unrolled(full) is None


def test_small_blocks_stay_loops() -> None:
    assert {tile.tm * tile.tn >= 32 for tile in TILES if unrolled(text(tile))} == {True}
    assert {tile.tm * tile.tn < 32 for tile in TILES if not unrolled(text(tile))} == {True}


async def test_the_bits_are_the_same() -> None:
    device = native()
    items = []
    for tile in (Tile(64, 64, 16, 8, 8), Tile(32, 64, 32, 4, 8)):
        source = matmul.generate(CASE.kernel, device.limits, tile=tile)
        assert unrolled(source.wgsl)
        looped = source._replace(wgsl=source.wgsl.replace(f" {REMARK}", ""))
        assert unrolled(looped.wgsl) is None
        items += [("written out", source, CASE.arrays), ("loop", looped, CASE.arrays)]
    results = await run_sources(device, items)
    for full, looped in zip(results[::2], results[1::2], strict=True):
        for key, data in full.items():
            np.testing.assert_array_equal(data, looped[key])
