"""Indexing, scattering and views: what NumPy has and PyTorch has not, messages, and the kernels that they become."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from programs import lowered, on_interpret, on_numpy, program
from tensorgrad import ops
from tensorgrad.autodiff import append_grad
from tensorgrad.dtypes import i32
from tensorgrad.errors import DtypeError, InputError, ShapeError
from tensorgrad.lower.lowering import Lowered
from tensorgrad.nn import functional as F
from tensorgrad.tensor import Tensor
from tensorgrad.trace import tensor_input, trace

NAN = np.nan
X = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)


def everywhere(fn: Callable[..., Any], *inputs: np.ndarray) -> list[np.ndarray]:
    """The results, which are equal by the reference rules and by the kernels."""
    p = program(fn, inputs)
    found = on_numpy(p)
    for a, b in zip(on_interpret(p, lowered(p)), found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
    return found


def compiled(fn: Callable[..., Any], *shapes: tuple[int, ...], ints: tuple[int, ...] = ()) -> Lowered:
    arrays = [np.zeros(shape, np.int32 if n in ints else np.float32) for n, shape in enumerate(shapes)]
    return lowered(program(fn, arrays))


# Indexing ----------------------------------------------------------------------------------------


def random_arrays(rng: np.random.Generator, shape: tuple[int, ...]) -> list[Any]:
    """A key with several arrays that broadcast, beside slices, new axes and an ellipsis."""
    common = tuple(rng.integers(1, 4, int(rng.integers(1, 3))).tolist())
    keys: list[Any] = []
    for n in shape[: int(rng.integers(2, len(shape) + 1))]:
        if rng.random() < 0.6:
            own = tuple(1 if rng.random() < 0.3 else m for m in common[int(rng.integers(len(common))) :])
            keys.append(rng.integers(-n, n, own, np.int32))
        else:
            keys.append(slice(None, None, int(rng.choice([1, 2, -1]))))
    if rng.random() < 0.3:
        keys.insert(int(rng.integers(len(keys) + 1)), None)
    if rng.random() < 0.3:
        keys.append(...)
    return keys


@pytest.mark.parametrize("seed", range(60))
def test_indexing_by_several_arrays_is_numpys(seed: int) -> None:
    rng = np.random.default_rng([seed, 11])
    x = rng.normal(size=tuple(rng.integers(1, 5, int(rng.integers(2, 5))).tolist())).astype(np.float32)
    keys = random_arrays(rng, x.shape)
    # every other array is an input, the rest are known
    given = [n for n, k in enumerate(keys) if isinstance(k, np.ndarray) and rng.random() < 0.5]
    wanted = x[tuple(keys)]
    slopes = np.arange(1, wanted.size + 1).reshape(wanted.shape)

    def fn(x: Tensor, *arrays: Tensor) -> list[Tensor]:
        found = dict(zip(given, arrays, strict=True))
        y = x[tuple(found.get(n, k) for n, k in enumerate(keys))]
        return [y, *append_grad(ops.sum(y * slopes), [x])]

    y, grad = everywhere(fn, x, *(keys[n] for n in given))
    np.testing.assert_array_equal(y, wanted)
    summed = np.zeros_like(x)
    np.add.at(summed, tuple(keys), slopes)
    np.testing.assert_allclose(grad, summed, rtol=1e-6)


def test_what_is_out_of_range_is_nan_and_gets_no_gradient() -> None:
    at = np.array([0, 3, -4, 2, -1], np.int32)

    def fn(x: Tensor, i: Tensor) -> list[Tensor]:
        y = x[i, ops.zeros((5,), i32), i]
        seen = ops.where(ops.isnan(y), 0.0, y)
        along = ops.gather(x[:, 0], 1, i[:3, None])
        written = ops.scatter_add(x[:, 0], 1, i[:3, None], ops.ones((3, 1)))
        return [y, append_grad(ops.sum(seen * 2.0), [x])[0], along, written]

    y, grad, along, written = everywhere(fn, X, at)
    np.testing.assert_array_equal(y, [X[0, 0, 0], NAN, NAN, X[2, 0, 2], X[2, 0, 4]])
    assert np.argwhere(grad).tolist() == [[0, 0, 0], [2, 0, 2], [2, 0, 4]]
    np.testing.assert_array_equal(along[:, 0], [X[0, 0, 0], X[1, 0, 3], NAN])
    assert np.argwhere(written != X[:, 0]).tolist() == [[0, 0], [1, 3]]


def test_of_updates_to_one_element_the_last_holds_and_gets_the_gradient() -> None:
    at = np.array([[1, 1, 0, 1]], np.int32)

    def fn(x: Tensor, i: Tensor, s: Tensor) -> list[Tensor]:
        y = ops.scatter(x, 1, i, s)
        put = ops.index_put(x[0], (i[0],), s[0])
        return [y, put, *append_grad(ops.sum(y * [[1, 2, 3]]), [x, s])]

    y, put, dx, ds = everywhere(fn, np.zeros((1, 3), "f"), at, np.array([[1, 2, 3, 4]], "f"))
    assert y.tolist() == [[3, 4, 0]]
    assert put.tolist() == [3, 4, 0]
    assert dx.tolist() == [[0, 0, 3]]
    assert ds.tolist() == [[0, 0, 1, 2]]


def test_updates_longer_than_the_index_are_left_out() -> None:
    y, z = everywhere(
        lambda x, i: [ops.scatter(x, 1, i, x * 0.0 + 9.0), ops.scatter_add(x, 0, i, x)],
        np.ones((2, 3), np.float32),
        np.array([[1]], np.int32),
    )
    assert y.tolist() == [[1, 9, 1], [1, 1, 1]]
    assert z.tolist() == [[1, 1, 1], [2, 1, 1]]


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_nothing_is_arranged(shape: tuple[int, ...]) -> None:
    def fn(x: Tensor) -> list[Tensor]:
        none = np.zeros((0,), np.int32)
        return [
            ops.roll(x, 1, 0),
            ops.tile(x, (2, 2)),
            ops.tril(x),
            ops.diagonal(x),
            ops.diag_embed(x),
            ops.gather(x, 0, np.zeros((0, 0), np.int32)),
            ops.index_add(x, 0, none, x[:0]),
            ops.index_copy(x, 1, none, x[:, :0]),
            x[none, none],
            ops.cat(ops.chunk(x, 2)),
        ]

    found = everywhere(fn, np.zeros(shape, np.float32))
    n, m = shape
    wanted = [shape, (2 * n, 2 * m), shape, (min(shape),), (n, m, m), (0, 0), shape, shape, (0,)]
    assert [a.shape for a in found[:9]] == wanted


def test_numpys_modes_of_padding() -> None:
    x = X[0]
    for mode in ("reflect", "edge", "wrap"):
        (found,) = everywhere(lambda x, mode=mode: ops.pad(x, ((2, 1), (0, 3)), mode=mode), x)
        np.testing.assert_array_equal(found, np.pad(x, ((2, 1), (0, 3)), mode=mode))


def test_functional_embedding_has_pytorchs_order_and_a_row_without_gradient() -> None:
    def fn(w: Tensor, i: Tensor) -> list[Tensor]:
        y = F.embedding(i, w, padding_idx=-1)
        return [y, *append_grad(ops.sum(y), [w])]

    y, grad = everywhere(fn, X[0], np.array([[3, 0], [0, 2]], np.int32))
    np.testing.assert_array_equal(y, X[0][[[3, 0], [0, 2]]])
    assert grad[:, 0].tolist() == [2, 0, 1, 0]


# Messages ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fn", "error", "text"),
    [
        (lambda x, i: x[x > 0], DtypeError, r"x\[mask\]: a boolean mask selects.*tg\.where"),
        (lambda x, i: ops.masked_select(x, x > 0), DtypeError, "masked_select: a boolean mask"),
        (lambda x, i: ops.index_put(x, (x > 0,), 0.0), DtypeError, "index_put: a boolean mask"),
        (lambda x, i: ops.where(x > 0), InputError, "needs both values"),
        (lambda x, i: x[i, np.array([0, 1])], ShapeError, r"shapes \[3\], \[2\] do not broadcast"),
        (lambda x, i: x[i, [5]], ShapeError, "index 5 is out of range for axis 1"),
        (lambda x, i: x[[0.5]], DtypeError, "indices must be integers, got an array of float64"),
        (lambda x, i: x[[True, False]], ShapeError, r"mask of shape \[2\] does not fit axes of sizes \[3\]"),
        (lambda x, i: x[..., [True]], ShapeError, r"mask of shape \[1\] does not fit axes of sizes \[4\]"),
        (lambda x, i: ops.gather(x, 0, i), ShapeError, r"the index i32\[3\] must have as many axes as f32\[3, 4\]"),
        (lambda x, i: ops.gather(x, 1, np.zeros((4, 1), int)), ShapeError, r"\[4, 1\] is longer .* along axis 0"),
        (lambda x, i: ops.gather(x, 1, x), DtypeError, "gather: indices must be integers"),
        (lambda x, i: ops.take_along_axis(x, np.zeros((2, 1), int), 1), ShapeError, "take_along_axis"),
        (lambda x, i: ops.scatter(x, 1, i[:, None], x[:, :0]), ShapeError, "longer than the updates along axis 1"),
        (lambda x, i: ops.scatter_add(x > 0, 1, i[:, None], True), InputError, "bools are not added"),
        (lambda x, i: ops.index_add(x, 0, i, x[:2]), ShapeError, r"source f32\[2, 4\] must be \[3, 4\]"),
        (lambda x, i: ops.index_select(x, 0, x), DtypeError, "index_select: indices must be integers"),
        (lambda x, i: ops.index_put(x, (i, i, i), 0.0), ShapeError, r"3 indices for \[3, 4\]"),
        (lambda x, i: ops.masked_fill(x, i > 0, 0.0), ShapeError, r"mask \[3\] does not broadcast to \[3, 4\]"),
        (lambda x, i: ops.masked_fill(x, x > 0, i), ShapeError, r"the value is a number, got i32\[3\]"),
        (lambda x, i: ops.tril(i), ShapeError, r"tril: needs a tensor with at least two axes, got i32\[3\]"),
        (lambda x, i: ops.movedim(x, (0, 1), 0), ShapeError, "different numbers of axes"),
        (lambda x, i: ops.movedim(x, (0, 0), (0, 1)), ShapeError, "named twice"),
        (lambda x, i: ops.tile(x, (2, -1)), ShapeError, "must not be negative"),
        (lambda x, i: ops.repeat_interleave(x, [1, 2], 0), ShapeError, r"or 3 of them for axis 0, got \[1, 2\]"),
        (lambda x, i: ops.roll(x, (1, 2), 0), ShapeError, "2 shifts for 1 axes"),
        (lambda x, i: ops.rot90(x, 1, (0, -2)), ShapeError, "two different axes"),
        (lambda x, i: ops.diagonal(x, 0, 1, -1), ShapeError, "two different axes, got 1 and -1"),
        (lambda x, i: ops.select(x, 0, 3), ShapeError, "index 3 is out of range"),
        (lambda x, i: ops.unflatten(x, 1, (3, -1)), ShapeError, "unflatten"),
        (lambda x, i: ops.chunk(x, 0), ShapeError, "number of parts must be positive"),
        (lambda x, i: ops.pad(x, 1, mode="mirror"), ShapeError, "mode is one of 'constant', 'reflect', 'edge', 'wrap'"),
        (lambda x, i: ops.pad(x, 3, mode="reflect"), ShapeError, "reflect padding of 3 and 3 along axis 0.*at most 2"),
        (lambda x, i: F.embedding(i, x, 3), ShapeError, "padding_idx 3 is outside the 3 rows"),
        (lambda x, i: F.pad(x, (1, 0, 0)), ShapeError, "two numbers for each padded axis"),
        (lambda x, i: F.pad(x, (1, 0), "reflect", 1.0), ShapeError, "mode 'reflect' takes no value"),
    ],
)
def test_wrong_calls_say_what_is_wrong(fn: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text) as caught:
        trace(lambda: fn(tensor_input("x", (3, 4)), tensor_input("i", (3,), i32)))
    assert "test_arranging.py" in str(caught.value)


# Kernels -----------------------------------------------------------------------------------------

IMAGE = (2, 3, 8, 8)
VIEWS: dict[str, Callable[[Tensor], Tensor]] = {
    "roll": lambda x: ops.roll(x, (3, -1), (2, 3)),
    "tile": lambda x: ops.tile(x, (1, 2, 1, 3)),
    "repeat_interleave": lambda x: ops.repeat_interleave(x, 2, 2),
    "rot90": lambda x: ops.rot90(x, 1, (2, 3)),
    "movedim": lambda x: ops.movedim(x, 1, -1),
    "diagonal": lambda x: ops.diagonal(x, 1, 2, 3),
    "diag_embed": lambda x: ops.diag_embed(x),
    "tril": lambda x: ops.tril(x, -1),
    "unflatten": lambda x: ops.unflatten(x, 2, (2, 4)),
    "reflect": lambda x: ops.pad(x, ((0, 0), (0, 0), (2, 1), (1, 3)), mode="reflect"),
    "wrap": lambda x: ops.pad(x, ((0, 0), (0, 0), (2, 1), (1, 3)), mode="wrap"),
    "stacked": lambda x: ops.hstack(ops.unbind(x, 1)[:2]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_are_part_of_their_readers_kernel(name: str) -> None:
    low = compiled(lambda x: ops.relu(VIEWS[name](x * 2.0) + 1.0), IMAGE)
    assert len(low.kernels) == 1


def test_the_gradient_of_roll_is_a_view_too() -> None:
    low = compiled(lambda x: append_grad(ops.sum(ops.square(ops.roll(x, 1, 0) + x)), [x])[0], (64, 64))
    assert len(low.kernels) == 1


@pytest.mark.parametrize(
    "picked",
    [
        lambda x, t: ops.gather(x, 1, t[:, None]),
        lambda x, t: ops.take_along_axis(x, t[:, None], 1),
        lambda x, t: x[ops.arange(32), t],
    ],
)
def test_a_loss_that_takes_one_score_of_each_row_is_two_kernels(picked: Any) -> None:
    """The rows with their gradient, and the mean: neither takes a sum over all scores for each of them."""

    def fn(x: Tensor, t: Tensor) -> list[Tensor]:
        loss = -ops.mean(picked(ops.log_softmax(x), t))
        return [loss, *append_grad(loss, [x])]

    assert len(compiled(fn, (32, 1000), (32,), ints=(1,)).kernels) == 2
