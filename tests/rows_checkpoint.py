"""Rows of activation checkpointing."""

from __future__ import annotations

import numpy as np

from rows_common import ORDER, RNG, SQUARE, SUMS
from table import EXACT, Case, listed, normal
from tensorgrad import ops
from tensorgrad.ops.checkpoint import after_p
from tensorgrad.tensor import Tensor
from tensorgrad.trace import bind

TALL = normal(RNG, (1025, 3))


def inner(x: Tensor, w: Tensor) -> Tensor:
    return ops.tanh(x @ w) * ops.exp(ops.mean(x, 1, keepdims=True))


def expected(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.tanh(x @ w) * np.exp(x.mean(1, keepdims=True))


CHECKPOINTS = [
    listed(
        "checkpoint",
        SUMS,
        Case("of a layer", lambda x, w: ops.checkpoint(inner, x, w), (TALL, SQUARE[:3]), expected, (0, 1), True),
        Case(
            "inside another",
            lambda x, w: ops.checkpoint(lambda x: ops.checkpoint(inner, x, w) * x.sum(), x),
            (ORDER * 0.1, SQUARE),
            lambda x, w: expected(x, w) * x.sum(),
            (0, 1),
            True,
        ),
        Case(
            "with two results",
            lambda x, w: ops.mul(*ops.checkpoint(lambda x: (inner(x, w), ops.sin(x)), x)) + x,
            (SQUARE, SQUARE.T),
            lambda x, w: expected(x, w) * np.sin(x) + x,
            (0, 1),
            True,
        ),
    ),
    listed(
        "after",
        EXACT,
        Case("a product", lambda x: bind(after_p, x, x * x), (ORDER,), lambda x: x, (0,), True),
        Case("of a view", lambda x: bind(after_p, x.T[1:], ops.sum(x)) * 2.0, (ORDER,), lambda x: x.T[1:] * 2, (0,)),
    ),
]
