"""Views against NumPy, on random keys and shapes, with their gradients; and f16, whose width no view changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from programs import assert_close, lowered, on_interpret, on_numpy, program
from tensorgrad import ops
from tensorgrad.autodiff import append_grad
from tensorgrad.dtypes import f16, f32
from tensorgrad.tensor import Tensor


def random_key(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """An index that NumPy accepts: integers, slices, new axes, an ellipsis, at most one array (then no integer)."""
    keys: list[Any] = []
    array_at = int(rng.integers(len(shape))) if rng.random() < 0.3 else -1
    for axis, n in enumerate(shape):
        if rng.random() < 0.2:
            keys.append(None)
        if axis == array_at and n:
            keys.append(rng.integers(-n, n, (2, 2) if rng.random() < 0.5 else (3,)))
        elif rng.random() < 0.2 and n and array_at < 0:
            keys.append(int(rng.integers(-n, n)))
        elif rng.random() < 0.2:
            keys.append(slice(None))
        else:
            start, stop = (None if rng.random() < 0.3 else int(rng.integers(-n - 2, n + 3)) for _ in range(2))
            keys.append(slice(start, stop, int(rng.choice([1, 1, 2, 3, -1, -2]))))
    if rng.random() < 0.3 and array_at < 0:
        cut = int(rng.integers(len(keys) + 1))
        keys = [*keys[:cut], ...] if rng.random() < 0.5 else [..., *keys[-1:]] if keys else [...]
        keys = [k for i, k in enumerate(keys) if k is not Ellipsis or i == keys.index(Ellipsis)]
    while keys and keys[-1] is None and rng.random() < 0.5:
        keys.pop()
    return tuple(keys)


@pytest.mark.parametrize("seed", range(150))
def test_indexing_is_numpys(seed: int) -> None:
    rng = np.random.default_rng([seed, 5])
    shape = tuple(rng.integers(0 if seed % 10 == 0 else 1, 6, int(rng.integers(1, 5))).tolist())
    x = rng.normal(size=shape).astype(np.float32)
    key = random_key(rng, shape)
    wanted = np.asarray(x[key])

    def fn(x: Tensor) -> list[Tensor]:
        y = x[key]
        return [y, *append_grad(ops.sum(y * np.arange(1, y.size + 1).reshape(y.shape)), [x])]

    p = program(fn, [x])
    grad = np.zeros_like(x)
    np.add.at(grad, key, np.arange(1, wanted.size + 1).reshape(wanted.shape))
    for y, g in (on_numpy(p), on_interpret(p, lowered(p))):
        np.testing.assert_array_equal(y, wanted)
        np.testing.assert_allclose(g, grad, rtol=1e-6)


def half(fn: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The function computed in f16."""

    def computed(*xs: Tensor) -> Tensor:
        y = fn(*(ops.cast(x, f16) for x in xs))
        assert y.dtype is f16
        return ops.cast(y, f32)

    return computed


X, Y = (np.random.default_rng(n).normal(size=(6, 7)).astype(np.float32) for n in range(2))


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, y: x + y * 2,
        lambda x, y: ops.exp(x) / (ops.square(y) + 1),
        lambda x, y: ops.tanh(x) * ops.sin(y) + ops.log(ops.abs(x) + 1),
        lambda x, y: ops.erf(x) + ops.sigmoid(y) - ops.log1p(ops.abs(y)),
        lambda x, y: ops.maximum(x, y) - ops.minimum(x, 0.5),
        lambda x, y: ops.where(x > y, x, -y),
        lambda x, y: ops.max(x, 1) + ops.min(y, 1),
        lambda x, y: ops.pad(x.T, 1, 0.1)[::2],
        lambda x, y: ops.concat([x, y], 1) % 0.75,
        lambda x, y: ops.floor(x * 3) // 2,
        lambda x, y: ops.take(x, np.array([5, 0, 0]), 0) * 0.1,
        lambda x, y: ops.round(x * 4) ** 3,
        lambda x, y: ops.sqrt(ops.abs(x)) + ops.rsqrt(ops.abs(y) + 1),
    ],
)
def test_half_precision(fn: Callable[..., Tensor]) -> None:
    p = program(half(fn), [X, Y])
    wanted = on_numpy(p)
    # float16 has 11 bits; each operation rounds once, and devices round at other places
    assert_close(on_interpret(p, lowered(p))[0], wanted[0], 4e-3, 2e-3)


def test_constants_reach_half_precision_without_overflow_or_loss() -> None:
    def fn(x: Tensor) -> list[Tensor]:
        large = ops.full((), 1e6, f16)
        return [
            ops.cast(large, f32) + x * 0,
            ops.cast(ops.cast(x, f16) * 65504.0, f32),
            ops.cast(ops.cast(x * 1e6, f16), f32),
        ]

    p = program(fn, [np.array([1.0, 0.5], np.float32)])
    for found in (on_numpy(p), on_interpret(p, lowered(p))):
        np.testing.assert_array_equal(found[0], [np.inf, np.inf])
        np.testing.assert_array_equal(found[1], [65504, 32752])
        np.testing.assert_array_equal(found[2], [np.inf, np.inf])


def test_two_axes_are_exchanged_by_transpose() -> None:
    def fn(x: Tensor) -> list[Tensor]:
        return [x.transpose(0, 1), x.transpose(1, 0), x.T, x.transpose(), x.mT, x[None].transpose(-1, -2)[0]]

    for found in on_numpy(program(fn, [X])):
        np.testing.assert_array_equal(found, X.T)
