"""Passes by their printed graphs before and after, and fused kernels by their formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from programs import for_many_cores, lowered, on_interpret, on_numpy, program
from tensorgrad import ops
from tensorgrad.autodiff import append_grad
from tensorgrad.dtypes import bool_, f32, i32
from tensorgrad.graph import Graph
from tensorgrad.passes import cse, dce, optimize, simplify
from tensorgrad.tensor import Tensor
from tensorgrad.trace import capture, state_input, tensor_input, trace, update_state

INF, NAN = float("inf"), float("nan")


def printed(graph: Graph) -> list[str]:
    """The printed graph without the notes of source lines, and with one space between words."""
    return [" ".join(line.split("#")[0].split()) for line in str(graph).splitlines()]


def lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.strip().splitlines()]


def of(fn: Callable[..., Any], *shapes: tuple[int, ...]) -> Graph:
    return trace(lambda: fn(*(tensor_input(name, shape) for name, shape in zip("xyz", shapes, strict=False))))


# simplify --------------------------------------------------------------------------------------


def test_simplify_composes_views_and_drops_what_is_neutral() -> None:
    graph = of(lambda x: ((x.reshape(6, 4).reshape(2, 12) * 1.0).T.T / 1 - 0).reshape(24), (4, 6))
    assert printed(graph) == lines("""
        %0: f32[4, 6] = input x
        %1: f32[6, 4] = reshape(%0)
        %2: f32[2, 12] = reshape(%1)
        %3: f32[] = const 1.0
        %4: f32[2, 12] = broadcast_to(%3)
        %5: f32[2, 12] = mul(%2, %4)
        %6: f32[12, 2] = permute(%5, perm=[1, 0])
        %7: f32[2, 12] = permute(%6, perm=[1, 0])
        %8: f32[] = const 1.0
        %9: f32[2, 12] = broadcast_to(%8)
        %10: f32[2, 12] = div(%7, %9)
        %11: f32[] = const 0.0
        %12: f32[2, 12] = broadcast_to(%11)
        %13: f32[2, 12] = sub(%10, %12)
        %14: f32[24] = reshape(%13)
        return %14
    """)
    assert printed(dce(simplify(graph))) == lines("""
        %0: f32[4, 6] = input x
        %1: f32[24] = reshape(%0)
        return %1
    """)


def test_simplify_folds_constants_through_views() -> None:
    graph = of(lambda x: x + ops.exp(ops.full((2, 3), 2.0).T.reshape(6) * 0.5 - 1.0), (6,))
    assert printed(dce(simplify(graph))) == lines("""
        %0: f32[6] = input x
        %1: f32[] = const 1.0
        %2: f32[6] = broadcast_to(%1)
        %3: f32[6] = add(%0, %2)
        return %3
    """)


@pytest.mark.parametrize(
    ("name", "fn"),
    [
        ("0 * x is NaN where x is", lambda x: x * 0.0),
        ("x + 0 turns -0 into 0", lambda x: x + 0.0),
        ("x - -0 turns -0 into 0", lambda x: x - ops.full((), -0.0)),
        ("x - x is NaN where x is", lambda x: x - x),
        ("x / x is NaN at 0", lambda x: x / x),
        ("x == x is False for NaN", lambda x: ops.cast(x == x, f32)),
        ("max(x, x)", lambda x: ops.maximum(x, x)),
        ("reshape of broadcast", lambda x: x[:1].broadcast_to(4, 1).reshape(4)),
        ("division by zero", lambda x: x + ops.full((), 1.0) / 0.0),
        ("0 / 0", lambda x: x + ops.full((), 0.0) / 0.0),
        ("where of constants", lambda x: ops.where(ops.full((), 1.0) > 2.0, x, -x)),
        ("integers wrap", lambda x: x * ops.cast(ops.full((), 2**31 - 1, i32) + 1, f32)),
        ("double negation", lambda x: ops.neg(ops.neg(x))),
        ("casts", lambda x: ops.cast(ops.cast(ops.cast(x, i32), f32), f32)),
    ],
)
def test_simplify_keeps_every_value(name: str, fn: Callable[[Tensor], Tensor]) -> None:
    x = np.array([NAN, INF, -INF, -0.0, 0.0, 1.5, -3, 7], np.float32)
    p = program(fn, [x])
    before, after = on_numpy(p, p.traced)[0], on_numpy(p)[0]
    np.testing.assert_array_equal(before, after)
    np.testing.assert_array_equal(np.signbit(before), np.signbit(after))


# cse --------------------------------------------------------------------------------------------


def test_cse_merges_equal_operations_on_equal_operands() -> None:
    graph = of(lambda x, y: (x + y) * (x + y) - ops.exp(x + y).sum(0) - ops.exp(x + y).sum(1), (3, 3), (3,))
    assert printed(cse(graph)) == lines("""
        %0: f32[3, 3] = input x
        %1: f32[3] = input y
        %2: f32[3, 3] = broadcast_to(%1)
        %3: f32[3, 3] = add(%0, %2)
        %4: f32[3, 3] = mul(%3, %3)
        %5: f32[3, 3] = exp(%3)
        %6: f32[3] = sum(%5, axes=[0])
        %7: f32[3, 3] = broadcast_to(%6)
        %8: f32[3, 3] = sub(%4, %7)
        %9: f32[3] = sum(%5, axes=[1])
        %10: f32[3, 3] = broadcast_to(%9)
        %11: f32[3, 3] = sub(%8, %10)
        return %11
    """)


def ops_of(graph: Graph, op: str) -> int:
    return sum(node.op == op for node in graph.nodes)


def test_cse_never_merges_random_numbers_nor_zeros_of_two_signs() -> None:
    drawn = cse(trace(lambda: ops.random_bits((4,)) ^ ops.random_bits((4,))))
    assert ops_of(drawn, "random_bits") == 2
    zeros = cse(
        trace(lambda: [ops.full((), 0.0), ops.full((), -0.0), ops.full((), 0.0), ops.full((), NAN), ops.full((), NAN)])
    )
    assert ops_of(zeros, "const") == 3
    numbers = cse(trace(lambda: [ops.full((), 1, i32), ops.full((), 1.0), ops.full((), True, bool_)]))
    assert ops_of(numbers, "const") == 3
    arrays = cse(trace(lambda: [ops.tensor([1.0, 2.0]), ops.tensor([1.0, 2.0]), ops.tensor([2.0, 1.0])]))
    assert ops_of(arrays, "array") == 2


# dce --------------------------------------------------------------------------------------------


def test_dce_keeps_leaves_and_all_that_is_seen_outside() -> None:
    def fn() -> Tensor:
        x, unused = tensor_input("x", (2,)), tensor_input("unused", (3,))
        count = state_input("count", (), f32)
        ops.exp(unused)
        update_state(count, count + 1)
        capture("square", x * x)
        return x - 2

    graph = trace(fn)
    assert ops_of(graph, "exp") == 1
    assert printed(dce(graph)) == lines("""
        %0: f32[2] = input x
        %1: f32[3] = input unused
        %2: f32[] = state count
        %3: f32[] = const 1.0
        %4: f32[] = add(%2, %3)
        %5: f32[2] = mul(%0, %0)
        %6: f32[] = const 2.0
        %7: f32[2] = broadcast_to(%6)
        %8: f32[2] = sub(%0, %7)
        return %8
        update count <- %4
        capture square = %5
    """)


def test_optimize_is_idempotent() -> None:
    graph = optimize(of(lambda x: append_grad(ops.sum(ops.softmax(x) * x), [x])[0], (5, 7)))
    assert printed(optimize(graph)) == printed(graph)


# split ------------------------------------------------------------------------------------------


RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("fn", "shapes", "parts"),
    [
        (lambda x: x.sum(), [(65_536,)], 2),
        (lambda x: x.sum((0, 1)), [(64, 1024)], 2),
        (lambda x: x.sum(0), [(8192, 3)], 2),
        (lambda x: x.sum(1), [(5, 4096)], 2),
        (lambda x: x.sum((0, 1)), [(32, 128, 7)], 2),
        (lambda x: ops.mean(x.T), [(2048, 32)], 2),
        (lambda x: x.sum(0), [(9999, 3)], 1),
        (lambda x: x.sum((0, 2)), [(64, 2, 64)], 1),
        (lambda x: x.sum(0), [(1024, 3)], 1),
        (lambda x, y: x @ y, [(8, 8192), (8192, 6)], 1),
        (lambda x, y: x.T @ y, [(8192, 8), (8192, 6)], 1),
        (lambda x, y: ops.relu(x @ y.T), [(3, 4, 4096), (7, 4096)], 1),
        (lambda x, y: x @ y, [(2, 5, 4096), (2, 4096, 3)], 1),
    ],
)
def test_split_cuts_long_sums_and_products(fn: Any, shapes: list[tuple[int, ...]], parts: int) -> None:
    inputs = [RNG.integers(-4, 5, shape).astype(np.float32) for shape in shapes]  # exact in any order
    whole = program(fn, inputs)
    cut = for_many_cores(whole)
    wanted = on_numpy(whole)[0]
    np.testing.assert_array_equal(on_numpy(cut)[0], wanted)
    for fuse in (True, False):
        np.testing.assert_array_equal(on_interpret(cut, lowered(cut, fuse))[0], wanted)
    products = ops_of(cut.graph, "matmul")
    assert products == ops_of(whole.graph, "matmul")
    if products:
        # the partial products are summed over their own new axis
        (product,) = (node for node in cut.graph.nodes if node.op == "matmul")
        assert len(product.type.shape) > 2
        assert ops_of(cut.graph, "sum") == 1
        assert cut.graph.type(product.inputs[0]).shape[-1] >= 128
    else:
        assert ops_of(cut.graph, "sum") == parts


# fused kernels ------------------------------------------------------------------------------------

ROWS = np.zeros((128, 16), np.float32)
FEATURES = np.zeros(16, np.float32)
TARGETS = np.zeros(128, np.int32)


def kernels(fn: Callable[..., Any], *inputs: np.ndarray) -> list[str]:
    return lines(str(lowered(program(fn, inputs))))


def test_softmax_is_one_kernel() -> None:
    assert kernels(ops.softmax, ROWS) == lines("""
        kernel 0: row 128 x 16
        v0 = where(max_k0(x0[k0 + r*16]) == -inf, 0, max_k0(x0[k0 + r*16]))
        0[c + r*16] = exp(x0[c + r*16] - v0) / sum_k0(exp(x0[k0 + r*16] - v0))
    """)


def test_the_gradient_of_softmax_is_one_kernel() -> None:
    assert kernels(lambda x, g: append_grad(ops.softmax(x), [x], g), ROWS, ROWS) == lines("""
        kernel 0: row 128 x 16
        v0 = where(max_k0(x0[k0 + r*16]) == -inf, 0, max_k0(x0[k0 + r*16]))
        v1 = sum_k0(exp(x0[k0 + r*16] - v0))
        0[c + r*16] = exp(x0[c + r*16] - v0) / v1 * \
            (x1[c + r*16] - sum_k0(x1[k0 + r*16] * (exp(x0[k0 + r*16] - v0) / v1)))
    """)


def test_layer_norm_is_one_kernel() -> None:
    assert kernels(lambda x, w, b: ops.layer_norm(x, 16, w, b), ROWS, FEATURES, FEATURES) == lines("""
        kernel 0: row 128 x 16
        v0 = sum_k0(x0[k0 + r*16]) * 0.0625
        0[c + r*16] = (x0[c + r*16] - v0) * \
            rsqrt(sum_k0((x0[k0 + r*16] - v0) * (x0[k0 + r*16] - v0)) * 0.0625 + 1e-05) * x1[c] + x2[c]
    """)


def test_cross_entropy_is_a_kernel_of_rows_and_one_of_their_mean() -> None:
    assert kernels(ops.cross_entropy, ROWS, TARGETS) == lines("""
        kernel 0: row 128
        v0 = x0[k0 + r*16] - where(max_k0(x0[k0 + r*16]) == -inf, 0, max_k0(x0[k0 + r*16]))
        temp3[r] = sum_k0(where(i32(k0) == x1[r], v0 - log(sum_k0(exp(v0))), 0))
        kernel 1: row 1
        0[0] = sum_k0(where(~(x1[k0] == -100), where(0 <= x1[k0] & x1[k0] < 16, -temp3[k0], nan), 0)) / \
            f32(sum_k0(i32(~(x1[k0] == -100))))
    """)


def test_views_cost_nothing_and_an_epilogue_joins_its_product() -> None:
    def head(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return ops.relu(ops.linear(x, w, b)).reshape(2, 64, 8).permute(1, 0, 2)

    weight = np.zeros((8, 16), np.float32)
    assert kernels(head, ROWS, weight, np.zeros(8, np.float32)) == lines("""
        kernel 0: matmul 1 x 128 x 8
        acc[m, n] = sum_k x0[k + m*16] * x1[k + n*16]
        0[(m%64)*16 + (m/64)*8 + n] = where(acc + x2[n] <= 0, 0, acc + x2[n])
    """)
