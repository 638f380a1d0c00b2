"""Matmuls on subgroup matrices without a GPU: when they are used, and what their text says.

What they compute is checked on a GPU: `bench/matmul/half.py` writes the page.
"""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

import matmul_cases as cases
from matmul_cases import OUT, A, B
from steps import LARGE, MATRICES, step
from tensorgrad.device.base import Limits
from tensorgrad.lower.index import Var
from tensorgrad.wgsl.matmul import generate
from tensorgrad.wgsl.matmul_access import affine, quarter_of
from tensorgrad.wgsl.matmul_matrix import multiplies_halves
from tensorgrad.wgsl.matmul_store import lay_out
from tensorgrad.wgsl.matmul_tiles import MATRICES as TILES
from tensorgrad.wgsl.matmul_tiles import Tile, choose

WHOLE = (2, 72, 136, 40)


def halved(sizes: tuple[int, int, int, int], layout: str, pad: int = 0) -> cases.Case:
    return cases.halved(cases.plain(sizes, layout, pad=pad))


# When -----------------------------------------------------------------------------------------------


def test_only_numbers_of_f16_are_multiplied_as_matrices() -> None:
    large = (1, 512, 512, 512)
    half, full = cases.halved(cases.plain(large)).kernel, cases.plain(large).kernel
    assert "by" in generate(half, MATRICES).name
    for kernel, limits in ((full, MATRICES), (half, LARGE), (half, MATRICES._replace(matrices=False))):
        assert "by" not in generate(kernel, limits).name
    found = {c.name.split(",")[0]: multiplies_halves(c.inner) for c in map(cases.halved, cases.operands((1, 8, 8, 8)))}
    assert found == {
        "relu and scale of an operand": False,
        "rows of a table": True,
        "a shifted": True,
        "k backwards": True,
        "an operand that is one number": False,
        "the same row for all": True,
    }


def test_every_choice_fits_the_device() -> None:
    for limits in (MATRICES, Limits()._replace(matrices=True)):
        for m, n, k in itertools.product((1, 64, 384, 2048), (1, 10, 1152), (1, 64, 8192)):
            tile = choose(cases.shape_only((1, m, n, k), "nt").inner, limits, half=True)
            assert tile.threads <= limits.invocations
            assert tile.storage <= limits.workgroup_storage


@pytest.mark.parametrize("tile", TILES, ids=str)
def test_a_tile_needs_what_its_text_declares(tile: Tile) -> None:
    sizes = {"vec4<f16>": 8, "vec4<u32>": 16, "vec4<f32>": 16}
    for layout in ("nn", "nt", "tn", "tt"):
        text = generate(halved(WHOLE, layout).kernel, MATRICES, tile=tile).wgsl
        found = re.findall(r"var<workgroup> \w+: array<(.*), (\d+)>;", text)
        assert len(found) == 3
        assert sum(sizes[kind] * int(count) for kind, count in found) <= tile.storage
        assert f"@workgroup_size({tile.threads})" in text
        assert tile.threads % 32 == 0


def test_large_products_get_large_tiles_and_few_rows_small_ones() -> None:
    def pick(m: int, n: int, k: int) -> Tile:
        return choose(cases.shape_only((1, m, n, k), "nn").inner, MATRICES, half=True)

    assert pick(4096, 4096, 4096).m * pick(4096, 4096, 4096).n >= 128 * 128
    assert pick(512, 512, 512).m <= 64
    assert pick(64, 64, 64).lanes == 32 or pick(64, 64, 64).m <= 32


# How operands are read ----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_operands_are_moved_as_they_lie_eight_numbers_at_a_time(layout: str) -> None:
    tile = next(iter(TILES))
    text = generate(halved(WHOLE, layout).kernel, MATRICES, tile=tile).wgsl
    assert text.count("array<vec4<u32>>") == 2
    assert "f32(buf" not in text
    left, right = (re.search(rf"subgroup_matrix_{side}<f16, 16, 16>, (\w+)>", text) for side in ("left", "right"))
    assert left is not None
    assert right is not None
    assert (left[1], right[1]) == (
        "row_major" if layout[0] == "n" else "col_major",
        "row_major" if layout[1] == "n" else "col_major",
    )


def test_what_is_not_aligned_in_eights_is_read_in_fours_or_one_by_one() -> None:
    fours, ones = halved((1, 68, 132, 36), "nn"), halved((1, 67, 131, 35), "nn")
    for case, kinds in ((fours, {"vec4<f16>"}), (ones, {"f16"})):
        text = generate(case.kernel, MATRICES, tile=next(iter(TILES))).wgsl
        assert set(re.findall(r"read> buf\d: array<(.*)>;", text)) == kinds


def test_a_buffer_that_the_epilogue_reads_too_has_no_eights() -> None:
    case = next(c for c in map(cases.halved, cases.epilogues((1, 64, 64, 64))) if "element" in c.name)
    widths = {b.key: b.width for b in lay_out(case.kernel, lambda v: v, eights=True).buffers}
    assert widths == {A: 4, B: 8, OUT: 4}


def test_runs_of_eight_are_what_enumeration_finds() -> None:
    rng = np.random.default_rng(0)
    for _ in range(40):
        shape = [int(rng.choice([1, 2, 3, 8, 16, 24])) for _ in range(3)]
        names = [Var(name, size) for name, size in zip("bmk", shape, strict=True)]
        order = rng.permutation(3)
        strides, step = [0, 0, 0], 1
        for at in order:
            strides[at], step = step, step * shape[at]
        from tensorgrad.lower.expr import load
        from tensorgrad.lower.index import Index, of_var

        index = sum((of_var(v) * s for v, s in zip(names, strides, strict=True)), Index(()))
        access = affine(load(A, index, cases.f16), names)
        assert access is not None
        for i, var in enumerate(names):
            aligned = all(s % 8 == 0 for j, s in enumerate(strides) if j != i and shape[j] > 1)
            runs = var.size % 8 == 0 and strides[i] == 1 and aligned
            assert access.in_runs(var, 8) == runs, (shape, strides, var)
            if runs:
                const, parts = access.quarter(var, 8)
                assert const == 0
                assert quarter_of(var, 8) in parts


def test_an_operands_sum_is_a_product_with_ones() -> None:
    for letter, other in (("a", "b0"), ("b", "a0")):
        case, _ = cases.with_total(halved(WHOLE, "nn"), letter)
        text = generate(case.kernel, MATRICES, tile=next(iter(TILES))).wgsl
        assert f"let ones = subgroup_matrix_{'right' if letter == 'a' else 'left'}<f16, 16, 16>(f16(1.0));" in text
        assert f"if ({other} == 0u)" in text
        assert "finish_total(" in text


# A whole step ---------------------------------------------------------------------------------------------


def test_the_matmuls_of_a_transformers_step_are_matrices_and_stay_few_kernels() -> None:
    half = step("character GPT", MATRICES, half=True)
    full = step("character GPT", LARGE)
    names = [k.name for k in half.kernels if k.name.startswith("matmul")]
    assert len(names) == sum(k.name.startswith("matmul") for k in full.kernels)
    assert sum(" by " in name for name in names) > 0.9 * len(names)
    # each weight's copy, the gradients' sum, and whether it is finite
    weights = 4 * 6 + 1
    assert len(half.kernels) - len(full.kernels) <= weights + 8
    assert half.lowered.memory.plan.nbytes < full.lowered.memory.plan.nbytes
