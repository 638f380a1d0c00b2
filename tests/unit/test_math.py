"""Elementwise functions, activations, norms and reductions that are composites: kernels, dtypes, methods, errors.

Their values and gradients are compared with PyTorch's in `test_ops`, their second derivatives with differences in
`test_autodiff`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from programs import lowered, program
from reference.stored import run
from tensorgrad import nn, ops
from tensorgrad.autodiff import append_grad
from tensorgrad.dtypes import bool_, f16, f32, i32
from tensorgrad.errors import DtypeError, InputError, ShapeError
from tensorgrad.methods import Method, Methods
from tensorgrad.tensor import Tensor
from tensorgrad.trace import tensor_input, trace


def test_the_slope_of_sinc_keeps_its_digits_beside_zero() -> None:
    x = np.array([-1e-3, -1e-6, 0, 1e-9, 1e-2], np.float32)
    grad = run(lambda x: append_grad(ops.sum(ops.sinc(x)), [x])[0], x=x)
    angle = np.pi * x.astype(np.float64)
    np.testing.assert_allclose(grad, np.pi * (-angle / 3 + angle**3 / 30), rtol=5e-7, atol=0)  # a few roundings


# Kernels ------------------------------------------------------------------------------------

ELEMENTWISE_NAMES = """
    acos acosh addcmul asin asinh atan atan2 atanh celu copysign cosh deg2rad elu erfc exp2 fmax fmin fmod frac
    hardshrink hardsigmoid hardswish hardtanh hypot isclose isneginf leaky_relu log10 log2 logaddexp logical_xor
    logit logsigmoid mish nan_to_num prelu reciprocal relu6 selu signbit sinc sinh softplus softshrink softsign
    tan tanhshrink trunc xlogy
"""
OF_TWO = "atan2 copysign fmax fmin fmod hypot isclose logaddexp logical_xor prelu xlogy"
MAPS = ELEMENTWISE_NAMES.split()
OPERANDS: dict[str, int] = dict.fromkeys(OF_TWO.split(), 2)
ROWS = [
    "all(x, 1)",
    "any(x, 1)",
    "aminmax(x, 1)[0]",
    "count_nonzero(x, 1)",
    "glu(x)",
    "group_norm(x, 2)",
    "logsumexp(x, 1)",
    "nanmean(x, 1)",
    "norm(x, 3, 1)",
    "normalize(x)",
    "pairwise_distance(x, x[:1])",
    "prod(x, 1)",
    "rms_norm(x, 6)",
    "softmin(x)",
    "std(x, 1)",
    "swiglu(x)",
]


@pytest.mark.parametrize("name", MAPS)
def test_an_elementwise_function_and_its_gradient_are_one_kernel(name: str) -> None:
    count = {"addcmul": 3}.get(name, OPERANDS.get(name, 1))
    shapes = [(3, 4), (4,), (3, 1)] if name != "prelu" else [(3, 4), (1,)]
    inputs = [np.full(shape, 0.5, np.float32) for shape in shapes[:count]]

    def fn(*xs: Tensor) -> list[Tensor]:
        y = getattr(ops, name)(*xs)
        return [y, *append_grad(y, xs[:1], seed=xs[0] * 2)] if y.dtype.is_float else [y]

    assert len(lowered(program(fn, inputs)).kernels) == 1


@pytest.mark.parametrize("text", ROWS)
def test_a_function_over_rows_is_one_kernel(text: str) -> None:
    p = program(lambda x: eval(text, {**vars(ops), "x": x}), [np.ones((3, 6), np.float32)])
    assert len(lowered(p).kernels) == 1


# Dtypes and names --------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [*(f"{name}({', '.join('xxx'[: OPERANDS.get(name, 1)])})" for name in MAPS), *ROWS])
def test_halves_stay_halves(text: str) -> None:
    def dtype(given: Any) -> Any:
        names = {**vars(ops), "addcmul": lambda x: ops.addcmul(x, x, x), "prelu": lambda x, w: ops.prelu(x, w[0, :1])}
        graph = trace(lambda: eval(text, {**names, "x": tensor_input("x", (2, 6), given)}))
        return graph.type(graph.outputs[0]).dtype

    assert dtype(f16) is (f16 if dtype(f32) is f32 else dtype(f32))


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("sum(b, dtype=f32)", f32),
        ("mean(n, dtype=f16)", f16),
        ("prod(n)", i32),
        ("prod(b)", i32),
        ("any(n)", bool_),
        ("allclose(n, x)", bool_),
        ("norm(n)", f32),
        ("var(n)", f32),
        ("fmod(n, 2)", i32),
        ("fmod(n, 2.5)", f32),
        ("div(n, 2, rounding_mode='trunc')", i32),
        ("nan_to_num(n)", i32),
        ("trunc(n)", i32),
        ("frac(n)", f32),
        ("hypot(n, b)", f32),
        ("copysign(n, n)", f32),
        ("logical_and(n, x)", bool_),
        ("full_like(n, 2.5)", i32),
        ("full_like(n, 2.5, f32)", f32),
        ("zeros_like(x, i32)", i32),
        ("ones(2, 3, dtype=bool_)", bool_),
        ("zeros((2, 3), i32)", i32),
        ("randn_like(x)", f32),
        ("x.float().half()", f16),
        ("relu(x, inplace=True)", f32),
        ("threshold(x, 0.5, 2, True)", f32),
        ("x.int()", i32),
        ("n.bool()", bool_),
    ],
)
def test_dtypes(text: str, dtype: Any) -> None:
    def traced() -> Tensor:
        leaves = {"n": tensor_input("n", (3,), i32), "x": tensor_input("x", (3,)), "b": tensor_input("b", (3,), bool_)}
        return eval(text, {**vars(ops), "f16": f16, "f32": f32, "i32": i32, "bool_": bool_, **leaves})

    graph = trace(traced)
    assert graph.type(graph.outputs[0]).dtype is dtype


def test_methods_are_the_functions() -> None:
    x = np.array([[-0.7, 0.2], [0.5, 0.9]], np.float32)
    bound = {name for name, found in vars(Methods).items() if isinstance(found, Method)}
    assert {"tan", "prod", "logical_not", "gather", "roll", "chunk", "bmm"} <= bound
    assert all(getattr(tg.Tensor, name) is getattr(ops, name) for name in bound)
    by_hand, halves, pair, chosen = run(
        lambda x: [x.atan2(x + 1), x.chunk(2, dim=1)[1], x.aminmax(dim=1)[1], x.where(x > 0, -1.0)], x=x
    )
    np.testing.assert_allclose(by_hand, np.arctan2(x, x + 1), rtol=1e-6)
    np.testing.assert_array_equal(halves, x[:, 1:])
    np.testing.assert_array_equal(pair, x.max(1))
    np.testing.assert_array_equal(chosen, np.where(x > 0, x, -1))


def test_functional_has_them() -> None:
    for name in ("elu", "group_norm", "gumbel_softmax", "normalize", "prelu", "rms_norm", "softplus"):
        assert getattr(nn.functional, name) is getattr(ops, name)


# Random ones ------------------------------------------------------------------------------------


def test_gumbel_softmax_draws_by_the_probabilities() -> None:
    logits = np.log(np.array([0.7, 0.2, 0.1], np.float32))
    soft, hard, grad_soft, grad_hard = run(
        lambda x: _gumbel(ops.broadcast_to(x, 2000, 3)),
        x=logits,
    )
    np.testing.assert_allclose(soft.sum(1), 1, rtol=1e-6)
    assert set(np.unique(hard)) == {0, 1}
    np.testing.assert_array_equal(hard.sum(1), 1)
    # a frequency of 2,000 draws is off by 0.01, its standard deviation; three of them
    np.testing.assert_allclose(hard.mean(0), [0.7, 0.2, 0.1], atol=0.031)
    assert np.isfinite(grad_soft).all()
    assert grad_hard.any()


def _gumbel(logits: Tensor) -> list[Tensor]:
    soft = ops.gumbel_softmax(logits, 0.5)
    hard = ops.gumbel_softmax(logits, 0.5, hard=True)
    weights = np.arange(3, dtype=np.float32)
    return [soft, hard, *(append_grad((y * weights).sum(), [logits])[0] for y in (soft, hard))]


def test_names_of_corrections() -> None:
    x = np.array([1, 2, 4], np.float32)
    found = run(lambda x: [ops.var(x, unbiased=False), ops.std(x, ddof=1), x.var(correction=2)], x=x)
    np.testing.assert_allclose(found, [x.var(), x.std(ddof=1), x.var(ddof=2)], rtol=1e-6)


def test_sizes_may_stand_one_by_one() -> None:
    draws = run(lambda: [ops.rand(2, 3), ops.randn((2, 3)), ops.rand_like(ops.zeros(2, 3)), ops.empty(2, 3)])
    assert [y.shape for y in draws] == [(2, 3)] * 4
    assert not draws[3].any()


# Errors ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("sum(x, keep=True)", TypeError, "sum: unexpected keyword 'keep'"),
        ("var(x, dims=1)", TypeError, "var: unexpected keyword 'dims'"),
        ("any(x, 2)", ShapeError, "any: axis 2"),
        ("norm(x, 'nuc')", InputError, "p must be a number or 'fro', got 'nuc'"),
        ("aminmax(x[:0], 0)", ShapeError, "no elements"),
        ("glu(x[:, :3])", ShapeError, r"glu: axis 1 of f32\[2, 3\] has no two halves"),
        ("elu(n)", DtypeError, "elu needs a floating-point tensor"),
        ("prelu(x, x[0, :3])", ShapeError, r"prelu: .* each of 4 channels, got f32\[3\]"),
        ("group_norm(x, 3)", InputError, "num_groups must be a divisor of the 4 channels, got 3"),
        ("group_norm(x, 2, x[0, :3])", ShapeError, "weight .* each of 4 channels"),
        ("instance_norm(x)", ShapeError, "three axes or more"),
        ("instance_norm(x[None], use_input_stats=False)", ShapeError, "needs running_mean and running_var"),
        ("instance_norm(x[..., None])", ShapeError, "one element a channel has no variance"),
        ("l1_loss(x, x, weight=x[0])", ShapeError, "l1_loss: the input .* and the weight .* must have one shape"),
        ("huber_loss(x, x, weight=x[0])", ShapeError, "huber_loss: the input .* and the weight"),
        ("margin_ranking_loss(x, x[0], x)", ShapeError, "must have the same number of axes"),
        ("triplet_margin_loss(x, x, x, margin=0)", InputError, "margin must be positive, got 0"),
        ("triplet_margin_loss(x, x[0], x)", ShapeError, "must have the same number of axes"),
        ("multi_margin_loss(x, n)", ShapeError, r"\[N, C\] with targets \[N\]"),
        ("multi_margin_loss(x, n[:2], p=3)", InputError, "p must be 1 or 2, got 3"),
        ("multi_margin_loss(x, n[:2], weight=n)", ShapeError, "one for each class"),
        ("multi_margin_loss(x, x[:, 0])", DtypeError, "indices must be integers"),
        ("multilabel_margin_loss(x, n)", ShapeError, r"input and target are \[N, C\] or \[C\]"),
        ("gaussian_nll_loss(x, x, x[:, :3])", ShapeError, "do not go with the input"),
        ("gaussian_nll_loss(x, x, x, eps=0)", InputError, "eps must be positive"),
        ("scatter_reduce(x, 0, n, x, 'max')", InputError, "reduce must be 'sum', 'prod', 'mean', 'amax' or 'amin'"),
        ("scatter_reduce(x > 0, 0, n, x > 0, 'sum')", InputError, "scatter_reduce: bools are not added"),
        ("nearest_upsample2d(x, 2)", ShapeError, r"needs images \[N, C, H, W\]"),
        ("rms_norm(x, 3)", ShapeError, r"rms_norm: the last axes of f32\[2, 4\]"),
        ("local_response_norm(x, 2)", ShapeError, "three axes or more"),
        ("gumbel_softmax(x, 0)", InputError, "tau must be positive, got 0"),
        ("softshrink(x, -1)", InputError, "lambd must be 0 or more, got -1"),
        ("hardtanh(x, 1, 0)", InputError, "max_val must be min_val"),
        ("div(x, x, rounding_mode='up')", InputError, "'floor' or 'trunc', got 'up'"),
        ("linspace(0, 1, -1)", InputError, "steps must be 0 or more"),
        ("bitwise_not(x)", DtypeError, "not is not defined for f32"),
        ("hypot(x, n)", ShapeError, "hypot: shapes"),
        ("rand_like(n)", DtypeError, "rand_like"),
    ],
)
def test_wrong_calls_say_what_is_wrong(text: str, error: type[Exception], message: str) -> None:
    def traced() -> Tensor:
        return eval(text, {**vars(ops), "x": tensor_input("x", (2, 4)), "n": tensor_input("n", (3,), i32)})

    with pytest.raises(error, match=message):
        trace(traced)
