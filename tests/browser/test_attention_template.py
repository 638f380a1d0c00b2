"""Every variant of the attention kernels on WebGPU against their formulas, at sizes that no block fits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from attention_cases import HEADS, LAYOUTS, MASKS, Case, Sizes, in_layout, make, variants
from on_device import verify_attentions
from runtime_browser import new_device, refused
from tensorgrad.wgsl.attention_tiles import TILES, fits
from tensorgrad.wgsl.matmul_tiles import Tile

pytestmark = pytest.mark.webgpu(timeout=400)

SMALL = Tile(8, 8, 4, 4, 4)
"""Large blocks take SwiftShader long: what all of them share is tested with a small one."""


async def verify(kernels: Iterable[tuple[Case, Tile | None]], tolerance: float = 3e-5) -> list[str]:
    device = await new_device()
    names = await verify_attentions(device, kernels, tolerance)
    device.close()
    return names


def with_tile(cases: Sequence[Case], tile: Tile) -> list[tuple[Case, Tile | None]]:
    return [(case, tile) for case in cases]


async def test_the_browser_takes_every_variant() -> None:
    device = await new_device()
    sources = {name: source.wgsl for name, source in variants((*TILES, SMALL), device.limits)}
    assert len(sources) > 100
    assert not await refused(device, sources)
    device.close()


@pytest.mark.parametrize("length", [1, 5, 63, 64, 65, 200])
async def test_odd_lengths(length: int) -> None:
    causal = length % 2 == 0 or length == 65
    await verify(with_tile(make(Sizes(1, 2, length, length, 4, 4), "split", causal=causal), SMALL))


# what a large head adds is more of the same, which takes long to compile
PARTS = {32: ("out",), 100: ("dkv",), 128: ("dq",)}


@pytest.mark.parametrize("size", HEADS)
async def test_head_sizes(size: int) -> None:
    cases = make(Sizes(1, 1, 19, 21, size, HEADS[size]), "split")
    parts = PARTS.get(size, ("out", "dkv", "dq"))
    names = await verify(with_tile([c for c in cases if c.part in parts], SMALL))
    assert sorted(name.split()[1] for name in names) == sorted(parts)


@pytest.mark.parametrize("tile", TILES, ids=str)
async def test_every_tile(tile: Tile) -> None:
    device = await new_device()
    limits = device.limits
    device.close()
    causal = TILES.index(tile) % 2 == 1
    cases = make(Sizes(1, 2, 70, 67, 20, 24), "split", causal=causal)
    todo = [c for c in cases if c.kernel.attention and fits(tile, c.kernel.attention, limits)]
    assert todo, "a tile that nothing can test"
    await verify(with_tile(todo, tile))


@pytest.mark.parametrize("layout", LAYOUTS)
async def test_operands_in_place(layout: str) -> None:
    await verify(with_tile(make(in_layout(layout), layout), SMALL))


@pytest.mark.parametrize("mask", MASKS)
async def test_masks(mask: str) -> None:
    await verify(with_tile(make(Sizes(2, 2, 18, 35, 4, 4), "split", mask), SMALL))


@pytest.mark.parametrize(("length", "keys"), [(7, 40), (40, 7), (1, 33), (33, 1)])
async def test_causal_with_other_lengths(length: int, keys: int) -> None:
    await verify(with_tile(make(Sizes(1, 2, length, keys, 4, 4), "split", causal=True), SMALL))


async def test_large_scores_stay_finite() -> None:
    cases = make(Sizes(1, 2, 20, 20, 8, 8), "split", magnitude=30.0)
    # the scores are as large as 3e4, and so are their roundings
    await verify(with_tile(cases, SMALL), 2e-2)


async def test_nan_and_infinity_spoil_their_rows_and_no_others() -> None:
    cases = make(Sizes(2, 2, 20, 24, 8, 8), "split", spoilt=True)
    spoilt = np.isnan(cases[0].expected[cases[0].kernel.writes[0]]).mean()
    assert spoilt == 2 / 80, "one row of two heads"
    await verify(with_tile(cases, SMALL))


async def test_more_blocks_than_one_dimension_has() -> None:
    await verify(with_tile(make(Sizes(1, 66_000, 1, 2, 4, 4), "split"), SMALL))
