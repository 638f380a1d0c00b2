"""Inputs of kinds that broke other libraries, with the right answers, to be run on every device.

The numbers are PyTorch's (2.13, CPU, f32) unless the kind has none there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tensorgrad import ops
from tensorgrad.autodiff import append_grad
from tensorgrad.dtypes import i32
from tensorgrad.tensor import Tensor

INF, NAN = np.inf, np.nan


class Case(NamedTuple):
    """A function of named inputs and what it returns.

    Attributes:
        name: the kind.
        why: how others get it wrong.
        fn: from tensors to a list of tensors.
        inputs: arrays by the parameters of `fn`.
        expected: arrays, one for each result.
    """

    name: str
    why: str
    fn: Callable[..., list[Tensor]]
    inputs: dict[str, np.ndarray]
    expected: list[np.ndarray]


def f(values: Any) -> np.ndarray:
    return np.array(values, np.float32)


def i(values: Any) -> np.ndarray:
    return np.array(values, np.int32)


def with_grads(fn: Callable[..., Tensor], *wrt: str) -> Callable[..., list[Tensor]]:
    """`fn`, and the gradients of the sum of its result."""

    def both(**leaves: Tensor) -> list[Tensor]:
        y = fn(**leaves)
        return [y, *append_grad(ops.sum(y), [leaves[name] for name in wrt])]

    return both


LARGE = f([-1e30, -89, -45, -15, 0, 15, 45, 89, 1e30])
VERY_NEGATIVE = f([[-1e35, -1e35], [-3e38, 0], [-INF, 1]])


def _zero_size(none: Tensor, left: Tensor, right: Tensor, some: Tensor) -> list[Tensor]:
    return [
        ops.sum(none, 0),
        ops.sum(none, 1),
        ops.mean(none, 0),
        ops.concat([none, some, none]),
        left @ right,
        none * 2.0 + 1.0,
        ops.softmax(none, -1),
        *append_grad(ops.sum(ops.concat([none * 3.0, some])) + ops.sum(left @ right), [none, left, some]),
    ]


def _infinities(x: Tensor) -> list[Tensor]:
    nothing = ops.full((2,), INF) * 0.0
    return [ops.full((2,), INF) * 5, ops.clamp(x, 0, INF), ops.where(x > 0, INF, -INF), nothing, ops.isnan(nothing)]


CASES = [
    Case(
        "tanh_large",
        "some GPU compilers turn tanh of a large argument into NaN",
        with_grads(ops.tanh, "x"),
        {"x": LARGE},
        [f([-1, -1, -1, -1, 0, 1, 1, 1, 1]), f([0, 0, 0, 0, 1, 0, 0, 0, 0])],
    ),
    Case(
        "sigmoid_large",
        "the same inside sigmoid",
        with_grads(ops.sigmoid, "x"),
        {"x": LARGE},
        [
            f([0, 0, 2.862518609581133e-20, 3.0590223332183086e-07, 0.5, 0.9999996423721313, 1, 1, 1]),
            f([0, 0, 2.862518609581133e-20, 3.059021e-07, 0.25, 3.576278e-07, 0, 0, 0]),
        ],
    ),
    Case(
        "gelu_tanh_large",
        "the same inside the tanh form of gelu, and x ** 3 overflows",
        with_grads(lambda x: ops.gelu(x, "tanh"), "x"),
        {"x": LARGE},
        [f([0, 0, 0, 0, 0, 15, 45, 89, 1e30]), f([0, 0, 0, 0, 0.5, 1, 1, 1, 1])],
    ),
    Case(
        "inf_literal",
        "WGSL has no literal for infinity or NaN; a large finite stand-in is wrong",
        _infinities,
        {"x": f([-1, 2])},
        [f([INF, INF]), f([0, 2]), f([-INF, INF]), f([NAN, NAN]), np.array([True, True])],
    ),
    Case(
        "softmax_very_negative",
        "a running maximum that starts at -1e30 gives NaN or zeros",
        lambda x: [ops.softmax(x), ops.log_softmax(x)],
        {"x": VERY_NEGATIVE},
        [
            f([[0.5, 0.5], [0, 1], [0, 1]]),
            f([[-0.6931471824645996, -0.6931471824645996], [-3e38, 0], [-INF, 0]]),
        ],
    ),
    Case(
        "cross_entropy_masked_class",
        "0 * -inf: a masked class that is not the target must not make the loss or its gradient NaN",
        with_grads(lambda x, t: ops.cross_entropy(x, t), "x"),
        {"x": f([[-INF, 2, 1], [0.5, -INF, -1]]), "t": i([1, 0])},
        [
            f(0.2573375105857849),
            f([[0, -0.13447070121765137, 0.13447071611881256], [-0.09121277928352356, 0, 0.09121274948120117]]),
        ],
    ),
    Case(
        "embedding_duplicate_indices",
        "a parallel scatter of the gradient loses updates where indices repeat",
        with_grads(lambda w, i: ops.embedding(w, i), "w"),
        {"w": f(np.arange(12).reshape(4, 3)), "i": i([0, 0, 0, 1])},
        [f([[0, 1, 2]] * 3 + [[3, 4, 5]]), f([[3] * 3, [1] * 3, [0] * 3, [0] * 3])],
    ),
    Case(
        "embedding_nan_row",
        "a NaN in one row must not reach a lookup of another row",
        with_grads(lambda w, i: ops.embedding(w, i), "w"),
        {"w": f([[0, 1, 2], [3, 4, 5], [6, 7, 8], [NAN, 10, 11]]), "i": i([1, 2])},
        [f([[3, 4, 5], [6, 7, 8]]), f([[0] * 3, [1] * 3, [1] * 3, [0] * 3])],
    ),
    Case(
        "index_out_of_range",
        "an index that nobody can refuse on the GPU: NaN, and no gradient, instead of another row",
        with_grads(lambda w, i: ops.embedding(w, i), "w"),
        {"w": f([[1, 2], [3, 4]]), "i": i([0, 2, -1, 1])},
        [f([[1, 2], [NAN, NAN], [NAN, NAN], [3, 4]]), f([[1, 1], [1, 1]])],
    ),
    Case(
        "zero_size",
        "empty tensors are legal",
        _zero_size,
        {
            "none": f(np.zeros((0, 3))),
            "left": f(np.zeros((2, 0))),
            "right": f(np.zeros((0, 3))),
            "some": f([[1, 2, 3]]),
        },
        [
            f([0, 0, 0]),
            f([]),
            f([NAN, NAN, NAN]),
            f([[1, 2, 3]]),
            f(np.zeros((2, 3))),
            f(np.zeros((0, 3))),
            f(np.zeros((0, 3))),
            f(np.zeros((0, 3))),
            f(np.zeros((2, 0))),
            f([[1, 1, 1]]),
        ],
    ),
    Case(
        "int_sum",
        "integer sums stay exact: not done in f32",
        lambda x: [ops.sum(x * 5), ops.sum(ops.broadcast_to(x, 1_000_000, 4) * 5 + 1)],
        {"x": i([1, 1, 1, 1])},
        [i(20), i(24_000_000)],
    ),
    Case(
        "unused_input",
        "an input that folds away must not break the bind group; 0 * y is not folded",
        lambda x, y: [x + 0.0, x + ops.stop_gradient(y) * 0],
        {"x": f([1, 2, 3]), "y": f([NAN, INF, 5])},
        [f([1, 2, 3]), f([NAN, NAN, 3])],
    ),
    Case(
        "no_shortcuts",
        "compilers that assume finite numbers fold x - x, x / x, 0 * x and 0 / x",
        lambda x, y: [x - x, x / x, 0.0 * x, x * -0.0, 0.0 / x, (x - y) * 0.0, x + 0.0],
        {"x": f([NAN, INF, -INF, 0, -2]), "y": f([1, INF, 1, 1, 1])},
        [
            f([NAN, NAN, NAN, 0, 0]),
            f([NAN, NAN, NAN, NAN, 1]),
            f([NAN, NAN, NAN, 0, -0.0]),
            f([NAN, NAN, NAN, -0.0, 0]),
            f([NAN, 0, -0.0, NAN, -0.0]),
            f([NAN, NAN, NAN, -0.0, -0.0]),
            f([NAN, INF, -INF, 0, -2]),
        ],
    ),
    Case(
        "sqrt_behind_where",
        "the gradient of the side that was not chosen is 0 even where it is infinite, if the argument is guarded",
        with_grads(lambda x: ops.where(x > 0, ops.sqrt(ops.where(x > 0, x, 1.0)), 0.0), "x"),
        {"x": f([-1, 0, 4])},
        [f([0, 0, 2]), f([0, 0, 0.25])],
    ),
    Case(
        "pow_negative_base",
        "pow through exp and log gives NaN for every negative base",
        with_grads(lambda x: x**3 + ops.pow(x, ops.full(x.shape, 2.0)), "x"),
        {"x": f([-2, -0.5, 0, 1])},
        [f([-4, 0.125, 0, 2]), f([8, -0.25, 0, 5])],
    ),
    Case(
        "floor_of_negatives",
        "// and % of negative integers truncate in shaders, and floor in Python",
        lambda a, b: [a // b, a % b],
        {"a": i([7, -7, 7, -7, -2147483648]), "b": i([3, 3, -3, -3, 7])},
        [i([2, -3, -3, 2, -306783379]), i([1, 2, -2, -1, 5])],
    ),
    Case(
        "nan_comparisons",
        "compilers that assume no NaN turn x != x into false",
        lambda x: [ops.isnan(x), x != x, ops.isfinite(x), ops.maximum(x, 0.0), ops.relu(x), ops.max(x)],
        {"x": f([NAN, 1, INF])},
        [
            np.array([True, False, False]),
            np.array([True, False, False]),
            np.array([False, True, False]),
            f([NAN, 1, INF]),
            f([NAN, 1, INF]),
            f(NAN),
        ],
    ),
    Case(
        "ties",
        "argmax is the first of several; the gradient of amax is shared among them",
        lambda x: [ops.argmax(x, 1), ops.argmin(x, 1), *append_grad(ops.sum(ops.max(x, 1)), [x])],
        {"x": f([[1, 3, 3], [2, 2, 2]])},
        [i([1, 0]), i([0, 0]), f([[0, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3]])],
    ),
    Case(
        "casts",
        "floats to integers truncate; bools count",
        lambda x, n: [ops.cast(x, i32), ops.sum(x > 0), ops.cast(n, i32) * 1.5],
        {"x": f([-1.9, -0.5, 0.5, 1.9]), "n": np.array([True, False])},
        [i([-1, 0, 0, 1]), i(2), f([1.5, 0])],
    ),
]
