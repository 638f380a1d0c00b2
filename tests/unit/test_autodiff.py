"""Gradients of every differentiable primitive, and their gradients, against float64 finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from reference.stored import f, run
from tensorgrad import ops
from tensorgrad.autodiff import append_grad, connected_grads
from tensorgrad.device.numpy import Evaluator, evaluate
from tensorgrad.dtypes import f16, f32, i32
from tensorgrad.errors import ShapeError, TraceError
from tensorgrad.graph import Graph
from tensorgrad.ops.arena import place
from tensorgrad.ops.indexing import summed_at
from tensorgrad.ops.sorting import unsort_p
from tensorgrad.ops.windows import Slide, overlap_add
from tensorgrad.primitive import REGISTRY
from tensorgrad.tensor import Tensor
from tensorgrad.trace import bind, tensor_input, trace

STEP = 1e-5
# central differences with this step are off by its square times the third derivative
RTOL, ATOL = 1e-5, 1e-6


class Case(NamedTuple):
    """A function of float tensors; `op` is the primitive whose gradient it is about."""

    op: str
    fn: Callable[..., Tensor]
    inputs: tuple[np.ndarray, ...]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def positive(*shape: int, seed: int = 0) -> np.ndarray:
    return np.abs(normal(*shape, seed=seed)) + 0.3


X, Y, P = normal(3, 4), normal(3, 4, seed=1), positive(3, 4)
DISTINCT = np.random.default_rng(3).permutation(12).reshape(3, 4) * 0.7 - 3.1
INDEX = np.array([[2, 0], [2, 1]], np.int32)
CONDITION = np.arange(12).reshape(3, 4) % 3 == 0

CURVED = "tan sinh cosh asinh exp2 sinc elu selu celu softplus logsigmoid mish softsign tanhshrink"


def unsorted(a: Tensor, order: np.ndarray) -> Tensor:
    return bind(unsort_p, a, ops.tensor(order))


CASES = [
    *(Case(n, getattr(ops, n), (X,)) for n in ("neg", "abs", "exp", "expm1", "sin", "cos", "tanh", "sigmoid", "erf")),
    *(Case(n, getattr(ops, n), (X,)) for n in ("erfc", "atan")),
    *(Case(n, getattr(ops, n), (P,)) for n in ("sqrt", "rsqrt", "log", "log1p")),
    *(Case(n, getattr(ops, n), (X,)) for n in ("sign", "floor", "ceil", "round")),
    *(Case(n, getattr(ops, n), (X, Y)) for n in ("add", "sub", "mul", "maximum", "minimum")),
    Case("div", ops.div, (X, P)),
    Case("div", lambda a, b: a / b, (normal(3, 1), positive(4))),
    Case("mul", lambda a: a * a * a, (X,)),
    Case("pow", ops.pow, (P, Y)),
    Case("remainder", ops.remainder, (X * 4, np.full((3, 4), 1.7))),
    Case("floor_divide", lambda a: ops.floor_divide(a, 1.7), (X * 4,)),
    Case("where", lambda a, b: ops.where(CONDITION, a, b * b), (X, Y)),
    Case("reshape", lambda a: a.reshape(2, 6) * 2, (X,)),
    Case("permute", lambda a: a.permute(2, 0, 1), (normal(2, 3, 4),)),
    Case("broadcast_to", lambda a: a.broadcast_to(2, 3, 4), (normal(3, 1),)),
    Case("slice", lambda a: a[1:, ::2], (X,)),
    Case("slice", lambda a: a[::-1, -1:0:-2], (X,)),
    Case("slice", lambda a: a[2:2], (X,)),
    Case("slice", lambda a: a[-1, None, 3:0:-1], (X,)),
    Case("pad", lambda a: ops.pad(a, ((1, 0), (2, 3)), 0.5), (X,)),
    Case("window", lambda a: ops.window(a, (2, 2), 2, padding=1), (X,)),
    Case("fold", lambda a: overlap_add(a, (6,), (Slide(4, 1),)), (X,)),
    Case("window", lambda a, w: ops.conv2d(a, w, padding=1), (normal(2, 2, 3, 4), normal(3, 2, 2, 3))),
    Case("concat", lambda a, b: ops.concat([a, b, a * 2], 1), (X, normal(3, 2))),
    Case("place", lambda a: place(a * a, "held"), (X,)),
    Case("sum", lambda a: a.sum((0, 2)), (normal(2, 3, 4),)),
    Case("sum", lambda a: a.sum(), (X,)),
    *(Case(n, lambda a, n=n: getattr(ops, n)(a, 1), (DISTINCT,)) for n in ("max", "min")),
    *(Case(n, lambda a, n=n: getattr(ops, n)(a), (DISTINCT,)) for n in ("max", "min")),
    *(Case("prod", lambda a, axis=axis: ops.prod(a, axis), (normal(2, 3, 4),)) for axis in ((0, 2), 1, None)),
    Case("gather", lambda a: ops.take(a, INDEX, 0), (X,)),
    Case("gather", lambda a: ops.take(a, INDEX, 1), (X,)),
    Case("scatter_add", lambda a: summed_at(a, ops.tensor(INDEX), 1, 3), (normal(2, 2, 2, 3),)),
    Case("matmul", lambda a, b: a @ b, (X, normal(4, 2))),
    Case("matmul", lambda a, b: a @ b, (normal(2, 1, 3, 4), normal(3, 4, 2))),
    Case("matmul", lambda a, b: a @ b, (normal(4), normal(4, seed=1))),
    Case("matmul", lambda a: a @ a.T, (X,)),
    Case("attention", ops.scaled_dot_product_attention, tuple(normal(2, 3, 4, seed=n) for n in range(3))),
    Case(
        "attention_vjp",
        lambda a, b, c: append_grad(ops.sum(ops.sin(ops.scaled_dot_product_attention(a, b, c))), [b])[0],
        (normal(3, 4), normal(5, 4), normal(5, 4, seed=1)),
    ),
    # what is made of primitives, where the pieces could fit badly
    Case("custom_grad", lambda a: ops.softmax(a), (X,)),
    Case("custom_grad", lambda a: ops.log_softmax(a, 0), (X,)),
    Case("checkpoint", lambda a, w: ops.checkpoint(lambda a: ops.sin(a @ w) * a, a), (normal(4), normal(4, seed=1))),
    Case("after", lambda a: ops.checkpoint(lambda a: ops.checkpoint(ops.sin, a) * a, a), (X,)),
    Case("log", lambda a: ops.logsumexp(a), (X,)),
    Case("rsqrt", lambda a, w, b: ops.layer_norm(a, 4, w, b), (X, normal(4), normal(4, seed=1))),
    Case("erf", ops.gelu, (X,)),
    Case("sigmoid", lambda a: ops.gelu(a, "tanh"), (X,)),
    Case("sigmoid", ops.silu, (X,)),
    Case("where", ops.relu, (X,)),
    Case("where", lambda a: ops.clamp(a, -0.5, 0.5), (X,)),
    Case("sqrt", lambda a: ops.std(a, 1), (X,)),
    Case("where", lambda a: ops.cross_entropy(a, np.array([1, 0, 3])), (X,)),
    Case("mul", lambda a: a**-3 + a**5, (P,)),
    Case("cumsum", lambda a: ops.cumsum(a * a, 1), (X,)),
    Case("cumprod", lambda a: ops.cumprod(a, 1), (X,)),
    Case("cummax", lambda a: ops.cummax(a, 1).values, (DISTINCT,)),
    Case("cummin", lambda a: ops.cummin(a, 0).values, (DISTINCT,)),
    Case("linear_scan", lambda a, b: ops.linear_scan(a, b), (X, Y)),
    Case("sort", lambda a: ops.sort(a, 1).values * Y, (DISTINCT,)),
    Case("unsort", lambda a: unsorted(a * a, np.array([[2, 0, 3, 1]] * 3, np.int32)), (X,)),
    *(Case("custom_grad", getattr(ops, n), (X * 0.8,)) for n in CURVED.split()),
    *(Case("custom_grad", getattr(ops, n), (P / (P + 0.5),)) for n in ("asin", "acos", "atanh", "logit")),
    Case("custom_grad", ops.acosh, (P + 1,)),
    *(Case("custom_grad", getattr(ops, n), (X, Y)) for n in ("atan2", "hypot", "logaddexp", "logaddexp2")),
    Case("custom_grad", ops.xlogy, (X, P)),
    Case("custom_grad", lambda a: ops.var(a, 0), (X,)),
    *(Case("custom_grad", lambda a, p=p: ops.norm(a, p, 1), (X,)) for p in (2, 3, 1.5)),
    Case("custom_grad", lambda a, w: ops.rms_norm(a, 4, w), (X, normal(4))),
    Case("custom_grad", lambda a: ops.group_norm(a, 2), (X,)),
    Case("custom_grad", ops.normalize, (X,)),
    Case("pow", lambda a: ops.local_response_norm(a, 3, 0.5), (normal(2, 4, 2),)),
    Case("log", lambda a: ops.logsumexp(a, (0, 1)), (X,)),
    Case("sigmoid", ops.swiglu, (X,)),
]

WITHOUT_DIFFERENCES = {
    "cast": "narrows what finite differences need; see test_casts_pass_gradients_between_floats",
    "argmax": "gives integers",
    "argmin": "gives integers",
    "random_bits": "takes integers",
    "searchsorted": "gives integers",
}


def test_every_differentiable_primitive_has_a_case() -> None:
    differentiable = {name for name, p in REGISTRY.items() if p.grad is not None}
    assert differentiable - {case.op for case in CASES} - WITHOUT_DIFFERENCES.keys() == set()


def weighted(y: Tensor, shift: float = 0.0) -> Tensor:
    """A sum in which no two elements count the same."""
    return ops.sum(y * np.cos(np.arange(y.size) + shift).reshape(y.shape))


def traced(case: Case, order: int) -> Graph:
    """The weighted sum of the function (order 1) or of its gradients (order 2), and the gradients of that."""

    def fn() -> list[Tensor]:
        leaves = [tensor_input(f"x{at}", a.shape) for at, a in enumerate(case.inputs)]
        value = weighted(case.fn(*leaves))
        for again in range(order - 1):
            grads = append_grad(value, leaves)
            value = sum((weighted(g, 0.3 + at + again) for at, g in enumerate(grads)), start=ops.zeros(()))
        return [value, *append_grad(value, leaves)]

    return trace(fn)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.op)
def test_gradients(case: Case, order: int) -> None:
    graph = traced(case, order)
    assert order > 1 or any(node.op == case.op for node in graph.nodes)
    values = {f"x{at}": a.astype(np.float64) for at, a in enumerate(case.inputs)}
    results = evaluate(graph, values, exact=False)
    found = [results[value] for value in graph.outputs[1:]]
    height = Evaluator(graph, wanted=graph.outputs[:1], exact=False)
    for name, grad in zip(values, found, strict=True):
        np.testing.assert_allclose(grad, differences(height, values, name), RTOL, ATOL, err_msg=name)


def differences(height: Evaluator, values: dict[str, np.ndarray], name: str) -> np.ndarray:
    grad = np.zeros_like(values[name])
    for at in np.ndindex(grad.shape):
        sides = []
        for sign in (1, -1):
            moved = values[name].copy()
            moved[at] += sign * STEP
            sides.append(float(next(iter(height({**values, name: moved}).values()))))
        grad[at] = (sides[0] - sides[1]) / (2 * STEP)
    return grad


def test_float32_gradients_have_the_declared_types() -> None:
    for case in CASES:
        graph = traced(case, 2)
        evaluate(graph, {f"x{at}": a.astype(np.float32) for at, a in enumerate(case.inputs)})


def test_third_derivative() -> None:
    def fn(x: Tensor) -> Tensor:
        y = ops.sum(ops.sin(x))
        for _ in range(3):
            y = ops.sum(append_grad(y, [x])[0])
        return y

    assert run(fn, x=f([0.3])) == pytest.approx(-np.cos(0.3), rel=1e-6)


def test_casts_pass_gradients_between_floats() -> None:
    def fn(x: Tensor) -> list[Tensor]:
        half = append_grad(ops.sum(ops.cast(ops.cast(x, f16) * 3.0, f32)), [x])[0]
        whole = append_grad(ops.sum(x * ops.cast(ops.cast(x, i32), f32)), [x])[0]
        return [half, whole]

    half, whole = run(fn, x=f([1.5, -2.5]))
    np.testing.assert_array_equal(half, [3, 3])
    np.testing.assert_array_equal(whole, [1, -2])


def test_what_gradients_stop_at() -> None:
    def fn(x: Tensor, y: Tensor) -> list[Tensor]:
        return append_grad(ops.sum(ops.stop_gradient(x) * y + ops.cast(x > 0, f32)), [x, y])

    gx, gy = run(fn, x=f([2, -3]), y=f([5, 7]))
    np.testing.assert_array_equal(gx, [0, 0])
    np.testing.assert_array_equal(gy, [2, -3])


def test_none_stands_for_no_connection() -> None:
    def fn() -> Tensor:
        leaves = [tensor_input(name, (2,)) for name in "abcd"]
        a, b, c, _ = leaves
        loss = ops.sum(a * ops.stop_gradient(b) + ops.where(c > 0, 1.0, 2.0))
        found = connected_grads(loss, leaves)
        assert [grad is None for grad in found] == [False, True, True, True]
        return ops.concat(append_grad(loss, leaves))

    trace(fn)


def test_gradients_of_inner_values_and_of_a_value_itself() -> None:
    def fn(x: Tensor) -> list[Tensor]:
        inner = x * 3.0
        out = ops.sum(inner * inner + x)
        return append_grad(out, [inner, x, out])

    inner, x, out = run(fn, x=f([1, 2]))
    np.testing.assert_array_equal(inner, [6, 12])
    np.testing.assert_array_equal(x, [19, 37])
    assert out == 1


def test_one_target_does_not_hide_another_behind_it() -> None:
    def fn(x: Tensor) -> list[Tensor]:
        middle = x * 2.0
        return append_grad(ops.sum(middle * middle), [middle, x])

    middle, x = run(fn, x=f([3.0]))
    assert (middle, x) == (12, 24)


def test_a_seed_weighs_the_elements() -> None:
    def fn(x: Tensor, seed: Tensor) -> list[Tensor]:
        return append_grad(x * x, [x], seed)

    (grad,) = run(fn, x=f([1, 2]), seed=f([10, 100]))
    np.testing.assert_array_equal(grad, [20, 400])


def test_what_has_no_gradient_is_refused() -> None:
    def vector() -> Tensor:
        x = tensor_input("x", (3,))
        return append_grad(x * 2, [x])[0]

    def integers() -> Tensor:
        return append_grad(tensor_input("n", (), i32), [tensor_input("x", ())])[0]

    with pytest.raises(ShapeError, match=r"f32\[3\] needs a scalar.*sum"):
        trace(vector)
    with pytest.raises(TraceError, match="gradients are of floats"):
        trace(integers)


def test_a_wrong_seed_is_refused() -> None:
    def fn() -> Tensor:
        x = tensor_input("x", (3,))
        return append_grad(x * 2, [x], ops.ones((2,)))[0]

    with pytest.raises(ShapeError, match=r"seed.*\[2\].*\[3\]"):
        trace(fn)


def test_the_graph_says_where_the_user_called(tmp_path: Any) -> None:
    def fn() -> Tensor:
        x = tensor_input("x", (3,))
        return append_grad(ops.sum(ops.exp(x)), [x])[0]

    graph = trace(fn)
    assert all(node.site is not None and node.site.function == "fn" for node in graph.nodes)
