"""No kernel binds more buffers than the device allows, whatever was fused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from programs import assert_close, bound, lowered, on_interpret, on_numpy, program
from tensorgrad import ops
from tensorgrad.autodiff import append_grad
from tensorgrad.tensor import Tensor

RNG = np.random.default_rng(0)

MANY = [RNG.normal(size=(6, 5)).astype(np.float32) for _ in range(12)]


@pytest.mark.parametrize("limit", [7, 8, 10])
@pytest.mark.parametrize(
    "fn",
    [
        lambda *xs: sum(xs[1:], start=xs[0]),
        lambda *xs: ops.concat(xs),
        lambda *xs: ops.softmax(sum((x * x for x in xs), start=ops.zeros(()))),
        lambda *xs: [x * 2.0 for x in xs],
        lambda *xs: [ops.sum(x, 1) for x in xs],
        lambda *xs: append_grad(ops.sum(sum((ops.tanh(x) for x in xs), start=ops.zeros(()))), xs),
        lambda *xs: ops.where(xs[0] > xs[1], xs[2] * xs[3] + xs[4], xs[5]) * ops.concat([x[:1] for x in xs[6:]]),
        lambda *xs: ops.relu(xs[0] @ xs[1].T) @ xs[2] + sum(xs[3:], start=ops.zeros(())),
        lambda *xs: ops.sqrt(sum((ops.sum(ops.square(x)) for x in xs * 3), start=ops.zeros(()))),
    ],
    ids=["sum", "concat", "softmax", "maps", "rows", "gradients", "choice", "epilogue", "norm"],
)
def test_no_kernel_binds_more_than_the_device_allows(fn: Callable[..., Any], limit: int) -> None:
    p = program(fn, MANY)
    wanted = on_numpy(p)
    for fuse in (True, False):
        low = lowered(p, fuse, max_buffers=limit)
        assert max(map(bound, low.kernels)) <= limit
        for found, expected in zip(on_interpret(p, low), wanted, strict=True):
            assert_close(found, expected, 1e-5, 1e-5)


def test_slopes_that_the_forward_pass_stores_are_counted_by_all_their_readers() -> None:
    """A gate's slope, which the gradient reads through views, is stored after the views were counted."""

    def fn(*xs: Tensor) -> list[Tensor]:
        h = xs[0]
        for x, activation, turned, gate in (
            (xs[1], ops.tanh, True, xs[1]),
            (xs[2], ops.tanh, True, xs[1]),
            (xs[3], ops.silu, False, xs[1]),
            (xs[4], ops.tanh, True, xs[3]),
            (xs[5], lambda z: ops.gelu(z, "tanh"), False, xs[3]),
        ):
            product = h @ x
            y = activation(product)
            y = y.T.reshape(x.shape) if turned else y
            h = y * ops.sigmoid(gate) + (x * product if h is xs[0] else product)
        loss = ops.sum(h * h * 0.01)
        return [loss, *append_grad(loss, xs)]

    p = program(fn, [RNG.normal(size=(8, 8)).astype(np.float32) for _ in range(6)])
    low = lowered(p)
    assert max(map(bound, low.kernels)) <= 8
    for found, wanted in zip(on_interpret(p, low), on_numpy(p), strict=True):
        assert_close(found, wanted, 1e-4, 1e-4 * float(np.abs(wanted).max()))
