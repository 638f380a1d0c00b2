"""Fusion changes the kernels and nothing else: random graphs with and without it, and the kernels that must result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphs import build
from programs import assert_close, lowered, on_interpret, on_numpy, program
from tensorgrad import ops
from tensorgrad.tensor import Tensor

SEEDS = (*range(300), 1912, 2941)
X = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_graphs(seed: int) -> None:
    fn, inputs = build(seed)
    p = program(fn, inputs)
    wanted = on_numpy(p)
    for a, b in zip(on_numpy(p, p.traced), wanted, strict=True):
        assert_close(a, b, 1e-6, 1e-6, "before and after the passes")
    for fuse in (True, False):
        for n, (a, b) in enumerate(zip(on_interpret(p, lowered(p, fuse)), wanted, strict=True)):
            scale = float(np.abs(b).max(initial=1.0))
            assert_close(a, b, 1e-4, 2e-5 * scale, f"output {n} with fuse={fuse}")


def shapes(low: Any) -> dict[str, tuple[int, ...]]:
    plan = low.memory.plan
    return {name: plan.buffers[at].shape for name, at in plan.outputs.items()}


def test_a_reshaped_result_is_read_in_its_own_shape() -> None:
    def fn(x: Tensor) -> list[Tensor]:
        y = ops.exp(x)
        return [y.sum(1, keepdims=True), (x @ x).reshape(16), y, y.reshape(2, 8), y.reshape(8, 2)]

    p = program(fn, [X])
    low = lowered(p)
    assert shapes(low) == {"0": (4, 1), "1": (16,), "2": (4, 4), "3": (2, 8), "4": (8, 2)}
    for found, wanted in zip(on_interpret(p, low), on_numpy(p), strict=True):
        assert_close(found, wanted, 1e-6, 1e-6)
