"""How a row kernel shares out its work, by the number and length of its rows."""

from __future__ import annotations

import pytest

import tensorgrad as tg
from steps import LARGE
from tensorgrad.device.base import Limits
from tensorgrad.lower.lowering import lower
from tensorgrad.wgsl.rows import Shape, choose


def shape_of(rows: int, length: int, axis: int = 1, limits: Limits = LARGE) -> Shape:
    """What is chosen for the sums of a matrix along an axis."""
    graph = tg.trace(lambda: tg.tensor_input("x", (rows, length) if axis else (length, rows)).sum(axis))
    (kernel,) = lower(graph, {"y": graph.outputs[0]}).kernels
    return choose(kernel, limits)


@pytest.mark.parametrize(
    ("rows", "length", "expected"),
    [
        (64, 16_384, Shape(1, 1024, True, False, 8)),  # few rows: one workgroup has all the lanes that there are
        (256, 1024, Shape(1, 256, True, False, 8)),
        (512, 256, Shape(2, 128, True, False, 8)),
        (16, 10, Shape(16, 8, True, True, 8)),
        (1024, 128, Shape(8, 32, True, True, 8)),  # many: those of a subgroup, without a barrier
        (100_000, 16, Shape(16, 16, True, True, 8)),
    ],
)
def test_along_rows(rows: int, length: int, expected: Shape) -> None:
    assert shape_of(rows, length) == expected


@pytest.mark.parametrize(("rows", "length"), [(100_000, 16), (128, 1024)])
def test_across_rows_neighbours_read_neighbours(rows: int, length: int) -> None:
    shape = shape_of(rows, length, axis=0)
    assert (shape.adjacent, shape.subgroup) == (False, False)
    assert shape.rows >= 8  # of one workgroup, which read the elements of a cache line together


@pytest.mark.parametrize("rows", [1, 3, 64, 512, 5000])
@pytest.mark.parametrize("length", [1, 7, 1000, 16_384])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_workgroup_is_within_the_limits(rows: int, length: int, axis: int) -> None:
    for limits in (Limits(), LARGE, Limits(invocations=1024, workgroup_size=(512, 512, 64))):
        shape = shape_of(rows, length, axis, limits)
        assert 1 <= shape.size <= min(limits.invocations, limits.workgroup_size[0])
        assert shape.lanes & (shape.lanes - 1) == 0
        assert shape.lanes <= max(1, length)
