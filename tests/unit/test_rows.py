"""How row kernels share out their work."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from programs import lowered, program
from tensorgrad.device.base import Limits
from tensorgrad.tensor import Tensor
from tensorgrad.wgsl.rows import Shape, choose

CPU = Limits(software=True, subgroup_size=4, features=frozenset({"subgroups"}))


def chosen(fn: Callable[[Tensor], Tensor], shape: tuple[int, ...], limits: Limits) -> Shape:
    (kernel,) = lowered(program(fn, [np.zeros(shape, np.float32)])).kernels
    return choose(kernel, limits)


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        ((1024, 128), Shape(64, 1, True)),
        ((16, 4096), Shape(1, 4, True, subgroup=True)),
        ((16, 8), Shape(1, 1, True)),
    ],
    ids=["many rows", "few rows", "few short rows"],
)
def test_a_cpu_gives_a_row_to_a_lane_or_to_the_lanes_of_an_instruction(shape: tuple[int, int], wanted: Shape) -> None:
    assert chosen(lambda x: x.sum(1), shape, CPU) == wanted
    plain = chosen(lambda x: x.sum(1), shape, Limits(software=True))
    assert (plain.rows, plain.lanes) == (wanted.rows, 1)


@pytest.mark.parametrize("limits", [CPU, Limits(software=True)], ids=["subgroups", "plain"])
@pytest.mark.parametrize("length", [32_768, 32_769, 500_000])
def test_no_lane_of_a_cpu_takes_more_rounds_than_llvmpipe_allows(length: int, limits: Limits) -> None:
    for rows in (1, 100):
        shape = chosen(lambda x: x.sum(1), (rows, length), limits)
        assert length / shape.lanes <= 32_768
        assert shape.lanes < 2 * max(4, length / 32_768)
