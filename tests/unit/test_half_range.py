"""f16 operands whose squares, exponentials and sums are beyond 65504: composites give what f32 gives, rounded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad.nn import functional as F

VALUES = np.array([[300, -400, 120, 5], [12, 15, -9, 0.5], [30000, -20000, 4, 1]], np.float16)
ABOVE_ONE = np.array([[300, 30000, 1, 60000], [2, 9, 40, 1.5], [7, 11, 13, 700]], np.float16)
IMAGE = np.stack([np.concatenate([VALUES, VALUES[:1]])] * 2)[None]

ROWS: list[tuple[str, Callable[[Any], Any], np.ndarray]] = [
    *(
        (name, getattr(F, name), VALUES)
        for name in (
            "elu",
            "celu",
            "selu",
            "softplus",
            "silu",
            "gelu",
            "mish",
            "hardswish",
            "logsigmoid",
            "softsign",
            "tanhshrink",
        )
    ),
    *((name, getattr(tg, name), VALUES) for name in ("asinh", "sinc", "sinh", "cosh", "tan", "logsumexp")),
    ("acosh", tg.acosh, ABOVE_ONE),
    ("glu", lambda x: F.glu(x, -1), VALUES),
    ("softmax", lambda x: tg.softmax(x, -1), VALUES),
    ("log_softmax", lambda x: tg.log_softmax(x, -1), VALUES),
    ("layer_norm", lambda x: F.layer_norm(x, (4,)), VALUES),
    ("rms_norm", lambda x: F.rms_norm(x, (4,)), VALUES),
    ("group_norm", lambda x: F.group_norm(x, 1), IMAGE),
    ("instance_norm", F.instance_norm, IMAGE),
    ("normalize", lambda x: F.normalize(x, dim=1), VALUES),
    ("norm", lambda x: tg.norm(x, dim=1), VALUES),
    ("mean", lambda x: tg.mean(tg.abs(x), 1), VALUES),
    ("std", lambda x: tg.std(x, 1), VALUES),
    ("var", lambda x: tg.var(x / 16, 1), VALUES),
    ("cosine_similarity", lambda x: F.cosine_similarity(x, x * 0.5 + 1, dim=1), VALUES),
    ("pairwise_distance", lambda x: F.pairwise_distance(x, -x * 0.5), VALUES),
    ("cdist", lambda x: tg.cdist(x, x[:2]), VALUES),
    ("hypot", lambda x: tg.hypot(x, x * 0.5), VALUES),
    ("lerp", lambda x: tg.lerp(x, -x, 0.25), VALUES),
    ("avg_pool2d", lambda x: F.avg_pool2d(tg.abs(x), 2), IMAGE),
    ("lp_pool2d", lambda x: F.lp_pool2d(x / 16, 2.0, 2), IMAGE),
    ("adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(tg.abs(x), 1), IMAGE),
    ("smooth_l1_loss", lambda x: F.smooth_l1_loss(x, x * 0.5, beta=1000.0), VALUES),
    ("mse_loss", lambda x: F.mse_loss(x / 64, x * 0, weight=x * 0 + 0.5), VALUES),
    ("poisson_nll_loss", lambda x: F.poisson_nll_loss(x / 5000, x * 0 + 2, full=True), VALUES),
    ("gaussian_nll_loss", lambda x: F.gaussian_nll_loss(x, x * 0.5, x * 0 + 60000.0), VALUES),
    ("multi_margin_loss", lambda x: F.multi_margin_loss(x / 64, np.array([1, 0, 2]), 2), VALUES),
    ("cross_entropy", lambda x: F.cross_entropy(x, np.array([1, 0, 2])), VALUES),
    ("binary_cross_entropy_with_logits", lambda x: F.binary_cross_entropy_with_logits(x, x * 0 + 0.5), VALUES),
]


@pytest.mark.parametrize(("name", "function", "x"), ROWS, ids=[row[0] for row in ROWS])
def test_intermediates_are_f32(name: str, function: Callable[[Any], Any], x: np.ndarray) -> None:
    """The value, and the gradient of its sum with small weights, which f16 holds."""

    def run(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        def value(x: tg.Tensor) -> tg.Tensor:
            out = function(x)
            assert out.dtype is x.dtype
            return out

        def weighed(x: tg.Tensor) -> tg.Tensor:
            return tg.sum(value(x).astype(tg.f32) * 0.25)

        return tg.sync(tg.jit(value, device="numpy")(x)), tg.sync(tg.jit(tg.grad(weighed), device="numpy")(x))

    with np.errstate(over="ignore"):
        found, wanted = run(x), run(x.astype(np.float32))
        for what, half, single in zip(("value", "gradient"), found, wanted, strict=True):
            # x / 2 and the like are rounded to f16 before the function sees them
            np.testing.assert_allclose(half, single.astype(np.float16), rtol=4e-3, atol=2e-3, err_msg=f"{name}: {what}")


def test_f16_with_f32_is_f32() -> None:
    out = tg.sync(tg.jit(lambda a, b: F.mse_loss(a, b), device="numpy")(VALUES[1], VALUES[1].astype(np.float32) + 1))
    assert out.dtype == np.float32
    assert out == 1


def test_lists_are_operands_too() -> None:
    out = tg.sync(tg.jit(lambda a: F.mse_loss(a, [[1e5] * 4] * 3, "none"), device="numpy")(VALUES))
    assert out.dtype == np.float32
    assert np.isfinite(out).all()


@pytest.mark.parametrize("number", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_numpys_numbers_are_plain_hyper_parameters(dtype: Any, number: Any) -> None:
    def both(x: Any) -> list[Any]:
        return [
            (F.huber_loss(x, x * 0.5, delta=one(2)), F.softplus(x, beta=one(2)), tg.norm(x, one(2), 1))
            for one in (float, number)
        ]

    plain, others = tg.sync(tg.jit(both, device="numpy")(VALUES[:2].astype(dtype)))
    for found, wanted in zip(others, plain, strict=True):
        assert found.dtype == wanted.dtype == dtype
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("device", ["numpy", "interpret"])
def test_scattered_sums_do_not_stop_at_2048(device: str) -> None:
    places = np.zeros(6000, np.int32)
    grad = tg.grad(lambda x: tg.sum(x[places].astype(tg.f32)), device=device)
    assert tg.sync(grad(np.ones(3, np.float16))).tolist() == [6000, 0, 0]
