"""The matmul kernel on WebGPU against sums in float64, at sizes that no tile fits.

Without barriers, as it is for CPUs, in every variant. With barriers SwiftShader takes long to compile it: here a few
run, and the browser's compiler checks the text of all; `tests/unit/test_naga_matmul.py` runs the others.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

import matmul_cases as cases
from matmul_cases import Case
from matmul_variants import DIRECT, FITTING, SHARED, SMALL, TRANSPOSITIONS, transpositions, variants
from on_device import verify_matmuls
from runtime_browser import new_device, refused
from tensorgrad.wgsl.matmul_tiles import Tile, choose

pytestmark = pytest.mark.webgpu(timeout=400)


async def verify(kernels: Iterable[tuple[Case, Tile | None]]) -> list[str]:
    device = await new_device()
    names = await verify_matmuls(device, kernels)
    device.close()
    return names


async def test_the_browser_takes_every_variant() -> None:
    device = await new_device()
    found = await refused(device, {name: source.wgsl for name, source in variants(device.limits)})
    assert not found
    wrong = {
        "type": "@compute @workgroup_size(64) fn main() {\n  let x: f32 = 1u;\n}",
        "barrier": "@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {\n"
        "  if (i < 7u) { workgroupBarrier(); }\n}",
    }
    found = await refused(device, wrong)
    assert "line 2" in found["type"]
    assert "uniform control flow" in found["barrier"]
    device.close()


async def test_tiles() -> None:
    tiles = FITTING[::4]
    names = await verify(cases.spread(tiles))
    assert [name.split()[1] for name in names] == [str(t) for t in tiles]


@pytest.mark.parametrize("tile", [DIRECT[0], DIRECT[5]], ids=str)
async def test_transpositions_with_vectors_and_without(tile: Tile) -> None:
    names = await verify([(case, tile) for case in transpositions()])
    assert [name.split()[-1] for name in names] == [*TRANSPOSITIONS, *TRANSPOSITIONS]


@pytest.mark.parametrize("tile", DIRECT, ids=lambda t: f"{t.m}x{t.n}, {t.tm}x{t.tn} a thread, {t.steps} at a time")
async def test_odd_sizes_without_barriers(tile: Tile) -> None:
    await verify([(case, tile) for i, case in enumerate(cases.odd_sizes()) if i % len(DIRECT) == DIRECT.index(tile)])


@pytest.mark.parametrize("tile", [SMALL, SHARED, DIRECT[0]], ids=str)
async def test_no_inner_steps_give_zeros_and_few_are_enough(tile: Tile) -> None:
    await verify([(cases.plain((2, 20, 24, k), "nt", pad=k), tile) for k in (0, 1, 5)])


EVEN, ODD = (1, 36, 40, 20), (3, 17, 33, 10)


@pytest.mark.parametrize(("sizes", "tile"), [(EVEN, DIRECT[0]), (ODD, DIRECT[0]), (ODD, DIRECT[5])], ids=str)
async def test_epilogues_and_operands(sizes: tuple[int, int, int, int], tile: Tile) -> None:
    await verify([(case, tile) for case in (*cases.epilogues(sizes), *cases.operands(sizes))])


@pytest.mark.parametrize("tile", [SMALL, DIRECT[0], DIRECT[5]], ids=str)
async def test_heads_in_place(tile: Tile) -> None:
    sizes = ((2, 3, 24, 8),) if tile is SMALL else ((2, 3, 24, 8), (2, 3, 10, 5))
    await verify([(case, tile) for size in sizes for case in cases.heads(*size)])


@pytest.mark.parametrize("tile", [SMALL, DIRECT[0], DIRECT[6]], ids=str)
async def test_images_in_place(tile: Tile) -> None:
    await verify([(case, tile) for case in cases.images(2, 3, 6, 7, 20)])


async def test_more_blocks_than_one_dimension_has() -> None:
    await verify([(cases.plain((66_000, 3, 4, 4), "nt"), DIRECT[0])])


async def test_the_device_chooses() -> None:
    device = await new_device()
    case = cases.plain((1, 70, 90, 50), "nt")
    assert choose(case.inner, device.limits).k == 0, "the test browser's adapter is a CPU"
    device.close()
    (name,) = await verify([(case, None)])
    assert name.startswith("matmul direct")


async def test_f16() -> None:
    device = await new_device()
    features = device.limits.features
    device.close()
    if "shader-f16" not in features:
        pytest.skip("this adapter has no shader-f16")
    await verify([(case, tile) for tile in (SMALL, DIRECT[0]) for case in cases.halves((3, 17, 33, 10))])
