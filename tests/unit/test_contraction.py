"""Contractions and transformer helpers: messages, positions, and the kernels that they become."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from programs import lowered, on_interpret, on_numpy, program
from tensorgrad import ops
from tensorgrad.autodiff import append_grad
from tensorgrad.device.base import Limits
from tensorgrad.dtypes import i32
from tensorgrad.errors import DtypeError, ShapeError
from tensorgrad.tensor import Tensor
from tensorgrad.trace import tensor_input, trace
from tensorgrad.wgsl.generate import generate


def zeros(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    return [np.zeros(shape, np.float32) for shape in shapes]


@pytest.mark.parametrize(
    ("fn", "error", "text"),
    [
        (lambda x, v: ops.einsum("ij,jk", x), ShapeError, "einsum 'ij,jk': 2 terms for 1 operands"),
        (lambda x, v: ops.einsum("ijk", x), ShapeError, r"einsum 'ijk': 'ijk' does not name the 2 axes of f32\[3, 4\]"),
        (lambda x, v: ops.einsum("i->i", x), ShapeError, "einsum 'i->i': 'i' does not name the 2 axes"),
        (lambda x, v: ops.einsum("ij,ji->ij", x, x), ShapeError, "einsum 'ij,ji->ij': 'j' is 4 and 3"),
        (lambda x, v: ops.einsum("ij->ik", x), ShapeError, "the result names 'k', which no operand has"),
        (lambda x, v: ops.einsum("ij->ii", x), ShapeError, "the result names 'i' twice"),
        (lambda x, v: ops.einsum("i1->i", x), ShapeError, "'i1' is not made of letters"),
        (lambda x, v: ops.einsum("......", x), ShapeError, "is not made of letters and at most one '...'"),
        (lambda x, v: ops.einsum("...i->i", x), ShapeError, "axes under '...' and the result has none"),
        (lambda x, v: ops.einsum("...i,...i->...", x, x[:2]), ShapeError, "an axis under '...' is 3 and 2"),
        (lambda x, v: ops.einsum("ii", x), ShapeError, r"the axes 'i' of \[3, 4\] differ in size"),
        (lambda x, v: ops.einsum(""), ShapeError, "1 terms for 0 operands"),
        (lambda x, v: ops.tensordot(x, x, 1), ShapeError, r"axis 1 of f32\[3, 4\] and axis 0 of f32\[3, 4\] differ"),
        (lambda x, v: ops.tensordot(x, x, ([0], [0, 1])), ShapeError, "different numbers of axes"),
        (lambda x, v: ops.mm(x, v), ShapeError, r"mm: needs operands with 2 and 2 axes, got f32\[3, 4\] and f32\[4\]"),
        (lambda x, v: ops.bmm(x[None], ops.zeros((2, 4, 1))), ShapeError, "different numbers of matrices"),
        (lambda x, v: ops.addmm(x, x, x.T), ShapeError, r"summand \[3, 4\] does not broadcast to the product \[3, 3\]"),
        (lambda x, v: ops.bilinear(x, x, x), ShapeError, r"a weight \[out, in1, in2\], got f32\[3, 4\]"),
        (lambda x, v: ops.cdist(x, v), ShapeError, "cdist: needs rows of one size"),
        (lambda x, v: ops.split_heads(x, 3), ShapeError, r"3 heads do not divide the last axis of f32\[3, 4\]"),
        (lambda x, v: ops.merge_heads(x), ShapeError, "merge_heads: needs at least three axes"),
        (lambda x, v: ops.rope(x[:, :3]), ShapeError, r"an even number of features .*got 3 of f32\[3, 3\]"),
        (lambda x, v: ops.rope(x, v), DtypeError, r"the offset is a whole number, got f32\[4\]"),
    ],
)
def test_wrong_calls_say_what_is_wrong(fn: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text) as caught:
        trace(lambda: fn(tensor_input("x", (3, 4)), tensor_input("v", (4,))))
    assert "test_contraction.py" in str(caught.value)


@pytest.mark.parametrize("equation", ["ij,jk->ik", "bij,bjk->bik", "ij,j->i", "i,j->ij", "ij->j", "ij,ij->"])
def test_a_contraction_over_nothing_and_of_nothing(equation: str) -> None:
    rng = np.random.default_rng(0)
    for empty in "ijb":
        sizes = {c: 0 if c == empty else n for c, n in {"i": 3, "j": 4, "k": 2, "b": 2}.items()}
        terms = equation.split("->")[0].split(",")
        inputs = [rng.normal(size=[sizes[c] for c in t]).astype(np.float32) for t in terms]
        p = program(lambda *xs: ops.einsum(equation, *xs), inputs)
        for found in (on_numpy(p), on_interpret(p, lowered(p))):
            np.testing.assert_allclose(found[0], np.einsum(equation, *inputs), rtol=1e-5, atol=1e-6)


EQUATIONS = {
    "bqd,bkd->bqk": "ab",
    "bqd,bkd->kq": "ab",
    "bqd,bkd": "ab",
    "bqd,bkd->bd": "ab",
    "bqd,bkd->bqkd": "ab",
    "bqd,bkd->": "ab",
    "bqd,qbd->b": "at",
    "ii": "c",
    "ii->i": "c",
    "ij->ji": "c",
    "ba": "c",
    "ijk->k": "a",
    "bqd,de,bke->bqk": "acb",
    "bqd,de,eef->bqf": "acf",
    "...d,de->...e": "ac",
    "...qd,...kd->...qk": "ab",
    "...,...": "as",
    "bqd,kd->bqk": "as",
    "i,j,k->kij": "vvv",
    "i,i,i": "vvv",
    "iij,jii->i": "fg",
    "bid,bjd,bkd->bijk": "aba",
    "i,ij,jk,k->": "vccv",
}
ARRAYS = {
    name: np.random.default_rng(ord(name)).normal(size=shape).astype(np.float32)
    for name, shape in {
        "a": (2, 3, 4),
        "b": (2, 5, 4),
        "t": (3, 2, 4),
        "c": (4, 4),
        "f": (4, 4, 3),
        "g": (3, 4, 4),
    }.items()
} | {"s": np.ones((1, 4), np.float32) * 0.5, "v": np.arange(4, dtype=np.float32)}


@pytest.mark.parametrize("equation", EQUATIONS)
def test_equations_are_numpys(equation: str) -> None:
    inputs = [ARRAYS[name] for name in EQUATIONS[equation]]
    p = program(lambda *xs: ops.einsum(equation, *xs), inputs)
    for found in (on_numpy(p), on_interpret(p, lowered(p))):
        np.testing.assert_allclose(found[0], np.einsum(equation, *inputs), rtol=1e-5, atol=1e-5)


def test_products_by_name_are_numpys() -> None:
    a, b, c, v = (ARRAYS[name] for name in "abcv")

    def fn(a: Tensor, b: Tensor, c: Tensor, v: Tensor) -> list[Tensor]:
        return [
            ops.tensordot(a, b, 0),
            ops.tensordot(a, b, ([2], [2])),
            ops.tensordot(a, c, dims=1),
            ops.tensordot(a, a[1], ((-2, -1), (0, 1))),
            ops.inner(a, b),
            ops.vdot(v, a[0, 1]),
            ops.mv(c, v),
            ops.mm(a[0], c),
            ops.bmm(a, b.mT),
        ]

    wanted = [
        np.tensordot(a, b, 0),
        np.tensordot(a, b, ([2], [2])),
        np.tensordot(a, c, 1),
        np.tensordot(a, a[1], ((-2, -1), (0, 1))),
        np.inner(a, b),
        np.vdot(v, a[0, 1]),
        c @ v,
        a[0] @ c,
        a @ b.transpose(0, 2, 1),
    ]
    p = program(fn, [a, b, c, v])
    for results in (on_numpy(p), on_interpret(p, lowered(p))):
        for found, array in zip(results, wanted, strict=True):
            np.testing.assert_allclose(found, array, rtol=1e-5, atol=1e-5)


def test_integers_are_exact() -> None:
    a = np.array([[2**20, 3], [5, 7]], np.int32)
    p = program(lambda a: ops.einsum("ij,jk->ik", a, a.T), [a])
    np.testing.assert_array_equal(on_numpy(p)[0], np.einsum("ij,jk->ik", a, a.T))


def test_the_scores_of_an_attention_are_one_product_that_reads_in_place() -> None:
    q, k = zeros((2, 4, 64, 32), (2, 4, 48, 32))
    low = lowered(program(lambda q, k: ops.einsum("bhqd,bhkd->bhqk", q, k) * 0.5, [q, k]))
    (spec,) = generate(low, Limits())
    assert spec.name.startswith("matmul")
    assert " nt" in spec.name


def test_a_chain_is_contracted_by_its_cheapest_product_first() -> None:
    p = program(lambda a, b, v: ops.einsum("ij,jk,k->i", a, b, v), zeros((64, 64), (64, 64), (64,)))
    sizes = [n.type.shape for n in p.graph.nodes if n.op == "matmul"]
    assert all(np.prod(shape) == 64 for shape in sizes), "matrix times vector, twice"
    assert len(sizes) == 2


def test_elements_of_vectors_are_multiplied_in_one_kernel() -> None:
    p = program(lambda a, b: ops.relu(ops.einsum("bi,bj->bij", a, b)), zeros((8, 4), (8, 5)))
    assert len(lowered(p).kernels) == 1
    assert not any(n.op == "matmul" for n in p.graph.nodes)


# Heads and positions -----------------------------------------------------------------------------


def test_split_and_merged_heads_are_read_in_place() -> None:
    def fn(x: Tensor, w: Tensor) -> Tensor:
        return ops.merge_heads(ops.split_heads(x, 4) * 2.0) @ w

    low = lowered(program(fn, zeros((2, 16, 32), (32, 8))))
    assert len(low.kernels) <= 2, "the doubled operand and the product"
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    p = program(lambda x: [ops.split_heads(x, 2), ops.merge_heads(ops.split_heads(x, 2))], [x])
    by_head, merged = on_numpy(p)
    np.testing.assert_array_equal(by_head, x.reshape(2, 3, 2, 2).transpose(0, 2, 1, 3))
    np.testing.assert_array_equal(merged, x)


def test_positions_from_a_tensor_are_those_that_are_known() -> None:
    x = np.random.default_rng(0).normal(size=(2, 5, 6)).astype(np.float32)

    def fn(x: Tensor, at: Tensor) -> list[Tensor]:
        known, given = ops.rope(x, 7), ops.rope(x, at)
        return [known, given, ops.rope(ops.zeros((12, 6)) + x[0, 0], 0)[7], *append_grad(ops.sum(given * x), [x])]

    p = program(fn, [x, np.array(7, np.int32)])
    for known, given, row, grad in (on_numpy(p), on_interpret(p, lowered(p))):
        # f32 rounds an angle of 12 to 1e-6
        np.testing.assert_allclose(given, known, rtol=1e-5, atol=4e-6)
        np.testing.assert_allclose(row, known[0, 0], rtol=1e-5, atol=1e-6)
        # the derivative of x . R x is (R + R^T) x: twice the cosines' part
        cos = np.cos((np.arange(5) + 7)[:, None] * 10000.0 ** (-np.tile(np.arange(3), 2) / 3))
        np.testing.assert_allclose(grad, 2 * cos * x, rtol=1e-4, atol=1e-5)


def test_a_rotation_is_one_kernel_and_its_gradient_too() -> None:
    def fn(x: Tensor) -> list[Tensor]:
        y = ops.rope(x)
        return [y, *append_grad(ops.sum(y * x.detach()), [x])]

    assert len(lowered(program(fn, zeros((2, 4, 16, 8)))).kernels) <= 2


def test_the_offset_of_a_rotation_may_move() -> None:
    x = np.ones((3, 2), np.float32)
    p = program(lambda x, i: ops.rope(x, ops.sum(i)), [x, np.array([1, 1], np.int32)])
    assert p.graph.type(p.graph.leaves["x1"]).dtype is i32
    np.testing.assert_allclose(on_numpy(p)[0][0], [np.cos(2) - np.sin(2), np.cos(2) + np.sin(2)], rtol=1e-5)
