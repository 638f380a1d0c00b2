"""Operations under the reference rules, against what PyTorch computes and against the agreed cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from reference.agree import case_agrees, operation, operation_agrees
from reference.cases import CASES, Case
from reference.stored import array, arrays, pytorch, run
from tensorgrad import ops
from tensorgrad.dtypes import bool_, f32, i32, u32
from tensorgrad.errors import DtypeError, InputError, ShapeError, TraceError
from tensorgrad.tensor import Tensor
from tensorgrad.trace import tensor_input, trace

# relative and absolute; NumPy and PyTorch round differently, and sum in another order
TOLERANCES = {"sin": (2e-6, 1e-6), "cos": (2e-6, 1e-6)}
DEFAULT = (3e-6, 1e-6)


@pytest.mark.parametrize("case", pytorch()["operations"], ids=lambda case: case["name"])
def test_agrees_with_pytorch(case: dict[str, Any]) -> None:
    y, *grads = run(operation(case), arrays(case["inputs"]))
    rtol, atol = TOLERANCES.get(case["name"], DEFAULT)
    expected = array(case["y"])
    assert y.shape == expected.shape
    assert y.dtype.kind == ("i" if expected.dtype.kind == "u" else expected.dtype.kind)
    np.testing.assert_allclose(y, expected, rtol, atol)
    for (name, expected), grad in zip(case.get("grads", {}).items(), grads, strict=True):
        np.testing.assert_allclose(grad, array(expected), 10 * rtol, atol, err_msg=f"the gradient of {name}")


@pytest.mark.parametrize("case", pytorch()["operations"], ids=lambda case: case["name"])
def test_kernels_agree_with_pytorch(case: dict[str, Any]) -> None:
    tg.sync(operation_agrees(case, "interpret"))


@pytest.mark.parametrize("case", [c for c in CASES if c.name != "int_sum"], ids=lambda case: case.name)
def test_kernels_agree_on_the_cases(case: Case) -> None:
    tg.sync(case_agrees(case, "interpret"))  # without the sum of 4,000,000: index by index it takes long


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_agreed_cases(case: Case) -> None:
    results = run(case.fn, case.inputs)
    for result, expected in zip(results, case.expected, strict=True):
        assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(result, expected, 3e-6, 1e-7)


def test_pytorch_and_numpy_spell_arguments_differently() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    pairs = [
        (lambda t: t.sum(dim=1, keepdim=True), lambda t: t.sum(axis=1, keepdims=True)),
        (lambda t: t.mean(dim=0), lambda t: t.mean(axis=0)),
        (lambda t: t.max(dim=1), lambda t: t.max(axis=1)),
        (lambda t: t.argmax(dim=1, keepdim=True), lambda t: t.argmax(axis=1, keepdims=True)),
        (lambda t: t.var(dim=0), lambda t: t.var(axis=0)),
        (lambda t: t.softmax(dim=0), lambda t: t.softmax(axis=0)),
        (lambda t: ops.concat([t, t], dim=1), lambda t: ops.concat([t, t], axis=1)),
        (lambda t: ops.stack([t, t], dim=1), lambda t: ops.stack([t, t], axis=1)),
        (lambda t: ops.flip(t, dims=(0,)), lambda t: ops.flip(t, axis=0)),
        (lambda t: t.view(4, 3), lambda t: t.reshape((4, 3))),
        (lambda t: t.to(i32), lambda t: t.astype(i32)),
        (lambda t: t.unsqueeze(0), lambda t: ops.expand_dims(t, 0)),
    ]
    for torch_way, numpy_way in pairs:
        a, b = run(lambda x, p=torch_way, n=numpy_way: [p(x), n(x)], x=x)
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("fn", "dtype"),
    [
        (lambda n, x, b: n + 1, i32),
        (lambda n, x, b: n + 1.5, f32),
        (lambda n, x, b: n / 2, f32),
        (lambda n, x, b: n * x, f32),
        (lambda n, x, b: b + 1, i32),
        (lambda n, x, b: b & (n > 0), bool_),
        (lambda n, x, b: ops.sum(b), i32),
        (lambda n, x, b: ops.sum(n), i32),
        (lambda n, x, b: ops.mean(n), f32),
        (lambda n, x, b: n > 1.5, bool_),
        (lambda n, x, b: x**2, f32),
        (lambda n, x, b: n**2, i32),
        (lambda n, x, b: n**-1, f32),
        (lambda n, x, b: ops.where(b, n, x), f32),
        (lambda n, x, b: ops.where(b, 1, 0), i32),
        (lambda n, x, b: x + np.float64(2), f32),
        (lambda n, x, b: x + np.arange(3.0), f32),
        (lambda n, x, b: np.arange(3.0) - x, f32),
        (lambda n, x, b: ops.argmax(x), i32),
        (lambda n, x, b: ops.random_bits((3,)), u32),
        (lambda n, x, b: n @ n, i32),
    ],
)
def test_promotion(fn: Any, dtype: Any) -> None:
    def traced() -> Tensor:
        return fn(tensor_input("n", (3,), i32), tensor_input("x", (3,)), tensor_input("b", (3,), bool_))

    graph = trace(traced)
    assert graph.type(graph.outputs[0]).dtype is dtype


@pytest.mark.parametrize(
    ("fn", "error", "text"),
    [
        (lambda x, n: x + ops.zeros((3,)), ShapeError, r"\[2, 4\].*\[3\]"),
        (lambda x, n: x @ x, ShapeError, r"matmul.*\[2, 4\].*\[2, 4\]"),
        (lambda x, n: x.reshape(3, 3), ShapeError, "reshape"),
        (lambda x, n: x.sum(2), ShapeError, "axis 2"),
        (lambda x, n: x[5], ShapeError, "out of range"),
        (lambda x, n: x[0, 0, 0], ShapeError, "3 indices"),
        (lambda x, n: x[x > 0], DtypeError, "where"),
        (
            lambda x, n: ops.cross_entropy(x, x, ignore_index=1),
            InputError,
            "ignore_index must be left out",
        ),
        (lambda x, n: ops.cross_entropy(x, x[0]), ShapeError, "cross_entropy: the input .* must have one shape"),
        (lambda x, n: ops.cross_entropy(x, x[:, 0]), DtypeError, r"class labels must be integers, i32\[.*, got f32\["),
        (lambda x, n: ops.cross_entropy(x, n > 0), DtypeError, "cross_entropy: targets are class numbers"),
        (lambda x, n: ops.cross_entropy(n, n), DtypeError, "cross_entropy"),
        (lambda x, n: ops.cross_entropy(x, n, weight=[1, 2]), ShapeError, "one number for each of the 4 classes"),
        (lambda x, n: ops.cross_entropy(x, n, label_smoothing=1.5), InputError, "label_smoothing must be from 0 to 1"),
        (lambda x, n: ops.cross_entropy(x, n, reduction="avg"), InputError, "'none', 'sum' or 'mean', got 'avg'"),  # pyright: ignore
        (lambda x, n: ops.nll_loss(x, x), DtypeError, "nll_loss: targets are class numbers"),
        (lambda x, n: ops.cross_entropy(x[0, 0], n[0]), ShapeError, "do not fit inputs"),
        (lambda x, n: ops.l1_loss(x, x[0]), ShapeError, "l1_loss: the input .* must have one shape"),
        (lambda x, n: ops.smooth_l1_loss(x, x, beta=-1), InputError, "beta must be 0 or more, got -1"),
        (lambda x, n: ops.huber_loss(x, x, delta=0), InputError, "delta must be positive, got 0"),
        (lambda x, n: ops.binary_cross_entropy(x, x[:1]), ShapeError, "must have one shape"),
        (lambda x, n: ops.binary_cross_entropy(n, n), DtypeError, "binary_cross_entropy"),
        (lambda x, n: ops.binary_cross_entropy(x, x, weight=n), ShapeError, "broadcast"),
        (lambda x, n: ops.kl_div(x, x, reduction="batch"), InputError, "kl_div: reduction must be"),  # pyright: ignore
        (lambda x, n: ops.cosine_similarity(x, x, dim=2), ShapeError, "cosine_similarity"),
        (lambda x, n: ops.cosine_embedding_loss(x, x, x), ShapeError, r"inputs are \[N, D\] with targets \[N\]"),
        (lambda x, n: ops.cross_entropy(x, n[:1]), ShapeError, r"\[2\]"),
        (lambda x, n: ops.softmax(n), DtypeError, "astype"),
        (lambda x, n: ops.max(x[:0], 0), ShapeError, "no elements"),
        (lambda x, n: n + ops.random_bits((2,)), DtypeError, "astype"),
        (lambda x, n: bool(x[0, 0] > 0), TraceError, "tg.where"),
        (lambda x, n: float(x.sum()), TraceError, "capture"),
        (lambda x, n: np.asarray(x), TraceError, "array"),
        (lambda x, n: ops.randint(3, 3, (2,)), ShapeError, "no whole number"),
        (lambda x, n: ops.dropout(x, 1.5, True), ShapeError, "probability"),
        (lambda x, n: x + np.array([2**40]), DtypeError, "fit"),
        (lambda x, n: x + np.array(["a"]), DtypeError, "float, integer or bool"),
    ],
)
def test_wrong_calls_say_what_is_wrong_and_where(fn: Any, error: type[Exception], text: str) -> None:
    def traced() -> Tensor:
        return fn(tensor_input("x", (2, 4)), tensor_input("n", (2,), i32))

    with pytest.raises(error, match=text) as caught:
        trace(traced)
    assert "test_ops.py" in str(caught.value)


def test_random_numbers() -> None:
    bits, again, unit, normal, whole, coin = run(
        lambda: [
            ops.random_bits((4,)),
            ops.random_bits((4,)),
            ops.uniform((1000,)),
            ops.normal((1000,), 2.0, 3.0),
            ops.randint(-2, 3, (1000,)),
            ops.bernoulli(0.25, (1000,)),
        ]
    )
    # Threefry-2x32 with 20 rounds, key and counter 0: the published first word
    assert bits[0] == 0x6B200159
    assert (bits != again).all()
    assert unit.min() >= 0
    assert unit.max() < 1
    assert unit.mean() == pytest.approx(0.5, abs=0.03)
    assert normal.mean() == pytest.approx(2, abs=0.3)
    assert normal.std() == pytest.approx(3, abs=0.2)
    assert np.isfinite(normal).all()
    assert set(whole) == {-2, -1, 0, 1, 2}
    assert coin.mean() == pytest.approx(0.25, abs=0.05)
    assert run(lambda: ops.uniform(())).shape == ()


def test_dropout_scales_what_stays_and_asks_the_trace() -> None:
    x = np.ones(1000, np.float32)
    kept = run(lambda x: ops.dropout(x, 0.2), training=True, x=x)
    assert set(np.unique(kept)) == {0, np.float32(1.25)}
    assert (kept == 0).mean() == pytest.approx(0.2, abs=0.05)
    np.testing.assert_array_equal(run(lambda x: ops.dropout(x, 0.2), training=False, x=x), x)
    np.testing.assert_array_equal(run(lambda x: ops.dropout(x, 1.0), training=True, x=x), 0 * x)
