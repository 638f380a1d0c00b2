"""Expressions: built once, rewritten, evaluated and shown."""

from __future__ import annotations

import numpy as np
import pytest

from expressions import ROW, I, K, X, Y, named, op, softmax
from tensorgrad.dtypes import bool_, f32, i32, u32
from tensorgrad.graph import Value
from tensorgrad.lower import evaluate as evaluation
from tensorgrad.lower.evaluate import OutOfRangeError, evaluate, evaluate_all
from tensorgrad.lower.expr import (
    below,
    both,
    const,
    expr,
    load,
    loads,
    rebuild,
    reduce,
    reductions,
    replace_var,
    walk,
    where,
)
from tensorgrad.lower.index import Var, dynamic, of_var
from tensorgrad.lower.show import show, show_index
from tensorgrad.wgsl.expression import Body

# Building --------------------------------------------------------------------------------


def test_equal_expressions_are_one_object():
    assert softmax() is softmax()
    assert const(0.0, f32) is not const(-0.0, f32)
    assert const(float("nan"), f32) is const(float("nan"), f32)
    assert const(1, i32) is not const(1, u32)
    inner = of_var(I) * 5 + 1
    (quotient, remainder) = inner.divmod(6)
    assert load(X, quotient, f32) is not load(X, remainder, f32)


def test_free_digits_leave_out_what_a_reduction_binds():
    e = softmax()
    assert {d.var for d in e.digits} == {I}
    assert {d.var for d in reductions(e)[0].args[0].digits} == {I, K}


def test_reductions_come_inner_ones_first():
    operations = [r.data[0] for r in reductions(softmax())]
    assert operations == ["max", "sum"]


def test_walk_gives_each_expression_once_and_operands_first():
    order = list(walk(softmax()))
    assert len(order) == len(set(order))
    place = {e: n for n, e in enumerate(order)}
    assert all(place[c] < place[e] for e in order for c in e.children)


def test_walk_and_digits_of_a_chain_longer_than_the_stack():
    e = load(X, of_var(I), f32)
    for n in range(5_000):
        e = op("add", e, const(n, f32))
    assert sum(1 for _ in walk(e)) == 10_001
    assert {d.var for d in e.digits} == {I}
    assert evaluate(op("mul", e, const(0.0, f32)), {I: np.arange(6)}, lambda v: np.ones(6, np.float32)).sum() == 0
    assert len(show(e, limit=50)) == 53
    body = Body(lambda value, index: f"x[{index}]")
    body.bind(I, "i")
    assert body.value(e)


def test_conditions_fold():
    a, b = load(X, of_var(I), f32), const(1.0, f32)
    yes, no = const(True, bool_), const(False, bool_)
    condition = below(of_var(I) + -2, 3)
    assert where(yes, a, b) is a
    assert where(no, a, b) is b
    assert where(condition, a, a) is a
    assert both(yes, condition) is condition
    assert both(condition, no) is no
    assert below(of_var(I), 6) is yes


def test_rebuild_replaces_leaves_and_keeps_what_does_not_change():
    e = softmax()
    assert rebuild(e) is e
    twice = rebuild(e, leaf=lambda x: op("mul", x, const(2.0, f32)) if x.op == "load" else None)
    assert len(loads(twice)[X]) == 1
    stored = np.random.default_rng(0).normal(size=600).astype(np.float32)
    got = evaluate(twice, {I: np.arange(6)}, lambda value: stored)
    exact = np.log(np.exp(2 * stored.reshape(6, 100).astype(np.float64)).sum(1))
    np.testing.assert_allclose(got, exact, rtol=1e-6)


def test_replacing_a_variable_reaches_data_dependent_indices():
    j = Var("j", 3)
    e = load(Y, dynamic(load(X, of_var(I), u32), 50) * 2, f32)
    moved = replace_var(e, I, of_var(j) * 2)
    assert {d.var for d in moved.digits} == {j}
    places, stored = np.array([5, 0, 3, 0, 9, 0], np.uint32), np.arange(100, dtype=np.float32)
    got = evaluate(moved, {j: np.arange(3)}, lambda value: stored if value == Y else places)
    assert got.tolist() == [10, 6, 18]


# Evaluation ------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [1 << 22, 13 * 6, 1])
def test_reductions_in_chunks(chunk, monkeypatch):
    monkeypatch.setattr(evaluation, "CHUNK", chunk)
    stored = np.random.default_rng(0).normal(size=600).astype(np.float32)
    stored[205] = np.nan
    x, rows = load(X, ROW, f32), stored.reshape(6, 100)
    for name in ("max", "min", "argmax", "argmin"):
        got = evaluate(reduce(name, K, x), {I: np.arange(6)}, lambda value: stored)
        np.testing.assert_array_equal(got, getattr(np, name)(rows, axis=1), err_msg=name)
    total = evaluate(reduce("sum", K, x), {I: np.arange(6)}, lambda value: stored)
    np.testing.assert_allclose(total, rows.astype(np.float64).sum(1), atol=2e-5)
    ties = np.zeros(600, np.float32)
    assert not evaluate(reduce("argmax", K, x), {I: np.arange(6)}, lambda value: ties).any()


def test_a_reduction_of_a_reduction():
    j = Var("k1", 4)
    e = reduce("sum", j, op("mul", reduce("max", K, load(X, ROW, f32)), load(Y, of_var(j) + of_var(I), f32)))
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=600).astype(np.float32), rng.normal(size=9).astype(np.float32)
    got = evaluate(e, {I: np.arange(6)}, lambda value: x if value == X else y)
    windows = np.lib.stride_tricks.sliding_window_view(y, 4)
    np.testing.assert_allclose(got, x.reshape(6, 100).max(1) * windows.sum(1), rtol=1e-5)


def test_sums_of_integers_wrap_and_stay_integers():
    x = load(X, of_var(K), i32)
    got = evaluate(reduce("sum", K, x), {}, lambda value: np.full(100, 2**30, np.int32))
    assert got.dtype == np.int32
    assert got.item() == (100 * 2**30 + 2**31) % 2**32 - 2**31


def test_an_acc_leaf_is_given():
    e = op("add", expr("acc", (), f32, X), load(Y, of_var(I), f32))
    acc = np.arange(24, dtype=np.float32).reshape(4, 6)
    got = evaluate(e, {I: np.arange(6)}, lambda value: np.ones(6, np.float32), {X: acc})
    np.testing.assert_array_equal(got, acc + 1)


def test_a_load_outside_its_buffer_is_an_error_only_where_it_is_used():
    moved = of_var(I) + -2
    guarded = where(below(moved, 4), load(X, moved, f32), const(7.0, f32))
    stored = np.arange(4, dtype=np.float32)
    assert evaluate(guarded, {I: np.arange(6)}, lambda value: stored).tolist() == [7, 7, 0, 1, 2, 3]
    bare = load(X, moved, f32)
    with pytest.raises(OutOfRangeError, match="outside its buffer"):
        evaluate(bare, {I: np.arange(6)}, lambda value: stored)
    assert evaluate(bare, {I: np.arange(6)}, lambda value: stored, strict=False).tolist() == [3, 3, 0, 1, 2, 3]
    with pytest.raises(OutOfRangeError):
        evaluate(reduce("max", I, bare), {}, lambda value: stored)
    with pytest.raises(OutOfRangeError):
        evaluate(op("exp", bare), {I: np.arange(6)}, lambda value: stored)


def test_a_false_condition_hides_what_the_other_read_outside():
    moved = of_var(I) + -2
    inside = below(moved, 4)
    at = load(X, moved, u32)
    condition = both(inside, expr("less", (at, const(2, u32)), bool_))
    e = where(condition, load(Y, dynamic(at, 2), f32), const(-1.0, f32))
    places, stored = np.array([1, 9, 0, 1], np.uint32), np.array([5, 6], np.float32)
    got = evaluate(e, {I: np.arange(6)}, lambda value: stored if value == Y else places)
    assert got.tolist() == [-1, -1, 6, -1, 5, 6]


def test_several_expressions_share_their_work():
    reads: list[Value] = []

    def read(value: Value) -> np.ndarray:
        reads.append(value)
        return np.ones(6, np.float32)

    x = load(X, of_var(I), f32)
    a, b = evaluate_all((op("exp", x), op("add", x, x)), {I: np.arange(6)}, read)
    assert (a.shape, b.shape, len(reads)) == ((6,), (6,), 1)


def test_casts_stop_at_the_ends_of_the_integers():
    x = load(X, of_var(I), f32)
    stored = np.array([-1.9, 1.9, 3e9, -3e9, np.nan, np.inf], np.float32)
    got = evaluate(op("cast", x, dtype=i32), {I: np.arange(6)}, lambda value: stored)
    assert got.tolist() == [-1, 1, 2**31 - 1, -(2**31), 0, 2**31 - 1]
    got = evaluate(op("cast", x, dtype=u32), {I: np.arange(6)}, lambda value: stored)
    assert got.tolist() == [0, 1, 3_000_000_000, 0, 0, 2**32 - 1]
    got = evaluate(op("cast", x, dtype=bool_), {I: np.arange(6)}, lambda value: stored)
    assert got.tolist() == [True] * 6


# Formulas --------------------------------------------------------------------------------


def test_formulas_read_like_formulas():
    x = "x[i0*100 + k0]"
    assert show(softmax(), named) == f"log(sum_k0(exp({x} - max_k0({x})))) + max_k0({x})"
    a, b = load(X, of_var(I), f32), load(Y, of_var(I), f32)
    assert show(op("mul", op("sub", a, op("sub", a, b)), op("neg", b)), named) == "(x[i0] - (x[i0] - y[i0])) * -y[i0]"
    assert show(op("div", const(0.1, f32), op("mul", a, b)), named) == "0.1 / (x[i0] * y[i0])"
    assert show(where(below(of_var(I) + -1, 3), a, const(0.0, f32)), named) == "where(i0 - 1 < 3, x[i0], 0)"
    assert show(op("cast", a, dtype=i32), named) == "i32(x[i0])"
    assert repr(a) == "%0[i0]"
    assert show_index(of_var(I).divmod(3)[1] * 5 + of_var(I).divmod(3)[0] * -1 + 4) == "(i0%3)*5 - (i0/3) + 4"
