"""Every variant of the matmul kernel on WebGPU against sums in float64, at sizes that no tile fits."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

import matmul_cases as cases
from matmul_cases import Case
from on_device import verify_matmuls
from tensorgrad.device.base import Limits
from tensorgrad.wgsl.matmul_tiles import TILES, Tile, choose

pytestmark = pytest.mark.webgpu(timeout=400)

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
SMALL = Tile(32, 32, 16, 4, 4)
"""Tiles take SwiftShader a second to compile: what all of them share is tested with a small one."""


async def verify(kernels: Iterable[tuple[Case, Tile | None]]) -> list[str]:
    from tensorgrad.device.webgpu import request_device

    device = await request_device()
    names = await verify_matmuls(device, kernels)
    device.close()
    return names


@pytest.mark.parametrize("part", range(4))
async def test_every_tile(part: int) -> None:
    tiles = [t for t in TILES if t.fits(Limits())][part::4]
    names = await verify(cases.spread(tiles, part))
    assert [name.split()[1] for name in names] == [str(t) for t in tiles]


@pytest.mark.parametrize("tile", [SMALL, DIRECT[0], DIRECT[5]], ids=str)
async def test_transpositions_with_vectors_and_without(tile: Tile) -> None:
    layouts = ("nn", "nt", "tn", "tt")
    whole = [
        (cases.plain((2, 64, 36, 40), layout, seed=i, batched="ab"[i % 2 :]), tile) for i, layout in enumerate(layouts)
    ]
    names = await verify(whole + [(cases.plain((1, 35, 37, 39), layout, pad=1), tile) for layout in layouts])
    assert [name.split()[-1] for name in names] == [*layouts, *layouts]


@pytest.mark.parametrize("tile", DIRECT, ids=lambda t: f"{t.m}x{t.n}, {t.tm}x{t.tn} a thread, {t.steps} at a time")
async def test_odd_sizes_without_barriers(tile: Tile) -> None:
    await verify([(case, tile) for i, case in enumerate(cases.odd_sizes()) if i % len(DIRECT) == DIRECT.index(tile)])


@pytest.mark.parametrize("tile", [SMALL, Tile(16, 16, 64, 4, 4, 4), DIRECT[0]], ids=str)
async def test_no_inner_steps_give_zeros_and_few_are_enough(tile: Tile) -> None:
    await verify([(cases.plain((2, 20, 24, k), "nt", pad=k), tile) for k in (0, 1, 5)])


EVEN, ODD = (1, 36, 40, 20), (3, 17, 33, 10)
WITHOUT_BARRIERS = ((EVEN, DIRECT[0]), (ODD, DIRECT[0]), (ODD, DIRECT[5]))


@pytest.mark.parametrize(
    ("sizes", "tile"), [(EVEN, SMALL), (EVEN, DIRECT[0]), (ODD, DIRECT[0]), (ODD, DIRECT[5])], ids=str
)
async def test_epilogues(sizes: tuple[int, int, int, int], tile: Tile) -> None:
    await verify([(case, tile) for case in cases.epilogues(sizes)])


@pytest.mark.parametrize(
    ("sizes", "tile"), [(ODD, SMALL), (EVEN, DIRECT[0]), (ODD, DIRECT[0]), (ODD, DIRECT[5])], ids=str
)
async def test_operands(sizes: tuple[int, int, int, int], tile: Tile) -> None:
    await verify([(case, tile) for case in cases.operands(sizes)])


@pytest.mark.parametrize("tile", [SMALL, DIRECT[0], DIRECT[5]], ids=str)
async def test_heads_in_place(tile: Tile) -> None:
    sizes = ((2, 3, 24, 8),) if tile is SMALL else ((2, 3, 24, 8), (2, 3, 10, 5))
    await verify([(case, tile) for size in sizes for case in cases.heads(*size)])


@pytest.mark.parametrize("tile", [SMALL, Tile(16, 16, 64, 4, 4, 4), DIRECT[0], DIRECT[6]], ids=str)
async def test_images_in_place(tile: Tile) -> None:
    await verify([(case, tile) for case in cases.images(2, 3, 6, 7, 20)])


async def test_more_blocks_than_one_dimension_has() -> None:
    await verify([(cases.plain((66_000, 3, 4, 4), "nt"), DIRECT[0])])


async def test_the_device_chooses() -> None:
    from tensorgrad.device.webgpu import request_device

    device = await request_device()
    case = cases.plain((1, 70, 90, 50), "nt")
    assert choose(case.inner, device.limits).k == 0, "the test browser's adapter is a CPU"
    device.close()
    (name,) = await verify([(case, None)])
    assert name.startswith("matmul direct")


async def test_f16() -> None:
    from tensorgrad.device.webgpu import request_device

    device = await request_device()
    features = device.limits.features
    device.close()
    if "shader-f16" not in features:
        pytest.skip("this adapter has no shader-f16")
    await verify([(case, tile) for tile in (SMALL, DIRECT[0]) for case in cases.halves((3, 17, 33, 10))])
