"""Arrays beside tensors: operators with an array on the left, NumPy's functions, assignment to elements."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad import nn

ARRAY = np.array([[1, 2], [3, 4]], np.float32)
OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow]
OPERATORS += [operator.matmul, operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]
BITS = [operator.and_, operator.or_, operator.xor]
INPLACE = [operator.iadd, operator.isub, operator.imul, operator.itruediv]


async def agrees(op: Any, left: Any, right: np.ndarray) -> None:
    found = await tg.jit(lambda x: op(left, x), device="numpy")(right)
    expected = op(left, right)
    assert found.dtype.kind == expected.dtype.kind, op
    np.testing.assert_allclose(found, expected, rtol=1e-6, err_msg=str(op))


async def test_an_operator_with_an_array_on_its_left() -> None:
    other = np.array([[2, 2], [1, 5]], np.float32)
    for op in OPERATORS:
        await agrees(op, ARRAY, other)
        if op is not operator.matmul:
            await agrees(op, np.float32(3), other)
            await agrees(op, ARRAY[0], other)
    for op in BITS:
        await agrees(op, ARRAY.astype(np.int32), other.astype(np.int32))
        await agrees(op, ARRAY > 2, other > 1)


async def test_an_update_in_place_of_an_array_makes_a_tensor_and_leaves_the_array() -> None:
    for op in INPLACE:
        array = ARRAY.copy()
        found = await tg.jit(lambda x, op=op, array=array: op(array, x), device="numpy")(np.full((2, 2), 2.0))
        np.testing.assert_array_equal(array, ARRAY)
        np.testing.assert_array_equal(found, op(array, np.full((2, 2), 2.0, np.float32)))


@pytest.mark.parametrize(
    ("fn", "error", "message"),
    [
        (lambda x: np.exp(x), tg.TraceError, r"np\.exp computes with arrays.*use tg\.exp, which records"),
        (lambda x: np.add(x, 1), tg.TraceError, r"use tg\.add"),
        (lambda x: np.add.reduce(x), tg.TraceError, r"np\.add computes"),
        (lambda x: np.spacing(x), tg.TraceError, r"np\.spacing computes with arrays.*use the functions of tg"),
        (lambda x: np.sum(x), tg.TraceError, r"np\.sum computes with arrays.*use tg\.sum"),
        (lambda x: operator.setitem(x, 0, 1), tg.TraceError, r"tensors do not change.*tg\.where\(mask, value, x\)"),
    ],
)
async def test_what_works_on_arrays_alone(fn: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        await tg.jit(fn, device="numpy")(ARRAY)
    assert error is TypeError or f"at {__file__}" in str(caught.value)


@pytest.mark.parametrize("largest", [lambda x: x.max(dim=1), lambda x: x.max(1), lambda x: tg.min(x, 0)])
def test_what_gives_values_alone_is_not_unpacked_as_if_positions_came_too(largest: Any) -> None:
    def both(x: tg.Tensor) -> tg.Tensor:
        _, which = largest(x)
        return which

    with pytest.raises(tg.ArgumentError, match=r"(max|min) gives the values alone.*those of arg(max|min)"):
        tg.sync(tg.jit(both, device="numpy")(np.ones((2, 2))))


def test_a_parameter_outside_a_trace() -> None:
    weight = nn.Parameter([1.0, 2.0])
    with pytest.raises(tg.TraceError, match=r"parameter\.data\[\.\.\.\] = value"):
        weight[0] = 3
    with pytest.raises(tg.TraceError, match="no trace is running"):
        _ = np.ones(2) * weight
    weight.data[0] = 3
    assert np.asarray(weight).tolist() == [3, 2]
