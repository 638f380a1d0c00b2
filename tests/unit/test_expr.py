"""Expressions: built once, rewritten, evaluated, shown, and printed as WGSL."""

from __future__ import annotations

import numpy as np
import pytest

from tensorgrad.dtypes import DType, bool_, f16, f32, i32, u32
from tensorgrad.errors import ShaderError
from tensorgrad.graph import Value
from tensorgrad.lower import evaluate as evaluation
from tensorgrad.lower.evaluate import OutOfRangeError, evaluate, evaluate_all
from tensorgrad.lower.expr import (
    Expr,
    below,
    both,
    const,
    expr,
    from_index,
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
from tensorgrad.wgsl.literal import literal

X, Y, OUT = Value(0), Value(1), Value(2)
I, K = Var("i0", 6), Var("k0", 100)
ROW = of_var(I) * 100 + of_var(K)


def op(name: str, *args: Expr, dtype: DType | None = None) -> Expr:
    return expr(name, args, dtype or args[0].dtype)


def softmax() -> Expr:
    """The logarithm of the sum of exponentials of each row."""
    x = load(X, ROW, f32)
    top = reduce("max", K, x)
    return op("add", op("log", reduce("sum", K, op("exp", op("sub", x, top)))), top)


def named(value: Value) -> str:
    return "xyz"[value.node]


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


# WGSL ------------------------------------------------------------------------------------


def new_body(**bound: str) -> Body:
    body = Body(lambda value, index: f"{named(value)}[{index}]")
    for name, var in {"i": I, "k": K}.items():
        if name in bound:
            body.bind(var, bound[name])
    return body


def text(body: Body) -> str:
    return body.text("")


def test_what_is_used_once_stands_where_it_is_used():
    body = new_body(i="i")
    body.store("z[i]", op("sqrt", op("mul", load(X, of_var(I), f32), const(0.5, f32))))
    assert text(body) == "z[i] = sqrt(x[i] * 0.5f);"


def test_what_is_used_twice_gets_a_name():
    body = new_body(i="i")
    x = load(X, of_var(I) + 3, f32)
    e = op("sqrt", x)
    body.store("z[i]", op("add", e, op("mul", e, x)))
    assert text(body) == "let v0 = x[i + 3u];\nlet v1 = sqrt(v0);\nz[i] = v1 + (v1 * v0);"


def test_announced_expressions_share_names():
    body = new_body(i="i")
    e = op("sqrt", load(X, of_var(I), f32))
    body.expect(e, op("neg", e))
    body.store("y[i]", e)
    body.store("z[i]", op("neg", e))
    assert text(body) == "let v0 = sqrt(x[i]);\ny[i] = v0;\nz[i] = -v0;"


def test_what_a_loop_does_not_change_stands_before_it():
    body = new_body(i="i")
    e = op("mul", load(X, ROW, f32), op("sqrt", load(Y, of_var(I), f32)))
    body.line("var total = 0f;")
    with body.loop("for (var k = 0u; k < 100u; k++)", {K: "k"}):
        body.line(f"total += {body.code(e)};")
    body.define(reduce("sum", K, e), "total")
    body.store("z[i]", reduce("sum", K, e))
    assert text(body).splitlines() == [
        "var total = 0f;",
        "let j0 = i * 100u;",
        "let v1 = sqrt(y[i]);",
        "for (var k = 0u; k < 100u; k++) {",
        "  total += x[j0 + k] * v1;",
        "}",
        "z[i] = total;",
    ]


def test_names_end_with_their_scope():
    body = new_body(i="i")
    x = load(X, ROW, f32)
    for _ in range(2):
        with body.loop("for (var k = 0u; k < 100u; k++)", {K: "k"}):
            body.line(f"total += {body.value(x)};")
    expected = ["let j0 = i * 100u;"]
    for n in (1, 2):
        expected += ["for (var k = 0u; k < 100u; k++) {", f"  let v{n} = x[j0 + k];", f"  total += v{n};", "}"]
    assert text(body).splitlines() == expected
    with pytest.raises(ShaderError, match="k0 of size 100 is not bound"):
        body.value(x)


def test_nothing_moves_out_of_a_block():
    body = new_body(i="i")
    with body.block("if (i < 3u)"):
        body.store("z[i]", op("sqrt", load(X, of_var(I), f32)))
        with body.loop("for (var k = 0u; k < 100u; k++)", {K: "k"}):
            body.store("z[k]", op("mul", load(X, ROW, f32), op("sqrt", load(Y, of_var(I), f32))))
    assert text(body).splitlines() == [
        "if (i < 3u) {",
        "  z[i] = sqrt(x[i]);",
        "  let j0 = i * 100u;",
        "  let v1 = sqrt(y[i]);",
        "  for (var k = 0u; k < 100u; k++) {",
        "    z[k] = x[j0 + k] * v1;",
        "  }",
        "}",
    ]


def test_a_reduction_without_a_result_is_an_error():
    with pytest.raises(ShaderError, match="no result is defined here for sum_k0"):
        new_body(i="i").value(softmax())


def test_a_variable_is_bound_once():
    body = new_body(i="i")
    with pytest.raises(ShaderError, match="i0 is already i"):
        body.bind(I, "j")


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (of_var(I), "i"),
        (of_var(I) + 7, "i + 7u"),
        (of_var(I) + -7, "i - 7u"),
        (of_var(I) * -1 + 5, "5u - i"),
        (of_var(I) * -2, "0u - i * 2u"),
        (of_var(I) * 4 + of_var(K), "i * 4u + k"),
        (of_var(K).divmod(10)[0], "j0"),
        (of_var(K).divmod(10)[1], "j0"),
        (of_var(I) * 0 + 3, "3u"),
        (of_var(Var("one", 1)), "0u"),
    ],
)
def test_indices(index, expected):
    body = new_body(i="i", k="k")
    assert body.index(index) == expected


def test_digits_divide_and_take_remainders_only_where_they_must():
    k = of_var(Var("k", 60))
    expected = {(0, 20): "k / 20u", (5, 4): "(k / 5u) % 4u", (1, 5): "k % 5u"}
    body = Body()
    body.bind(Var("k", 60), "k")
    body.index(k.divmod(20)[0])
    body.index(k.divmod(5)[0].divmod(4)[1])
    body.index(k.divmod(5)[1])
    assert [line.split(" = ")[1] for line in text(body).splitlines()] == [f"{e};" for e in expected.values()]


def test_opaque_indices_and_those_that_the_data_decides():
    body = new_body(i="i")
    at = load(Y, of_var(I), u32)
    body.store("z[i]", load(X, (of_var(I) * 5 + 2).divmod(7)[1] + dynamic(at, 9) * 3, f32))
    assert text(body) == "let j0 = (i * 5u + 2u) % 7u;\nlet v1 = y[i];\nz[i] = x[j0 + v1 * 3u];"


X_F32, X_I32, X_U32, X_BOOL = (load(X, of_var(I), t) for t in (f32, i32, u32, bool_))


@pytest.mark.parametrize(
    ("e", "expected"),
    [
        (op("shl", X_I32, const(2, i32)), "x[i] << u32(2i)"),
        (op("shr", X_U32, const(2, u32)), "x[i] >> 2u"),
        (op("neg", X_U32), "0u - x[i]"),
        (X_BOOL, "x[i] != 0u"),
        (op("not", X_BOOL), "!(x[i] != 0u)"),
        (op("xor", X_BOOL, const(True, bool_)), "(x[i] != 0u) != true"),
        (op("not", X_I32), "~x[i]"),
        (op("cast", X_BOOL, dtype=f32), "f32(x[i] != 0u)"),
        (op("bitcast", X_F32, dtype=u32), "bitcast<u32>(x[i])"),
        (op("tanh", X_F32), "tg_tanh(x[i])"),
        (op("add", X_F32, const(-1.5, f32)), "x[i] + (-1.5f)"),
        (op("maximum", X_I32, const(2, i32)), "max(x[i], 2i)"),
        (op("maximum", X_F32, const(2, f32)), "tg_maximum_f32(x[i], 2.0f)"),
        (where(X_BOOL, const(1, i32), const(2, i32)), "select(2i, 1i, x[i] != 0u)"),
    ],
    ids=str,
)
def test_operations_are_typed_as_wgsl_wants_them(e, expected):
    assert new_body(i="i").code(e) == expected


def test_bools_are_stored_as_numbers():
    body = new_body(i="i")
    body.store("z[i]", op("not", X_BOOL))
    assert text(body) == "z[i] = select(0u, 1u, !(x[i] != 0u));"


def test_functions_come_along():
    body = new_body(i="i")
    body.value(op("tanh", X_F32))
    assert body.functions["tg_tanh"].startswith("fn tg_tanh(x: f32) -> f32 {")
    assert not body.uses_f16


def test_half_floats_call_the_full_functions():
    body = new_body(i="i")
    assert body.code(op("tanh", load(X, of_var(I), f16))) == "f16(tg_tanh(f32(x[i])))"
    assert body.uses_f16


def test_the_functions_of_a_shader_are_declared_once():
    functions: dict[str, str] = {}
    for _ in range(2):
        body = Body(lambda value, index: f"x[{index}]", functions)
        body.bind(I, "i")
        body.value(op("log1p", load(X, of_var(I), f32)))
    assert sorted(functions) == ["tg_inf", "tg_log1p", "tg_nan", "tg_negative_inf"]


@pytest.mark.parametrize(
    ("number", "dtype", "expected"),
    [
        (0.1, f32, "0.1f"),
        (-0.1, f32, "(-0.1f)"),
        (1e30, f32, "1e+30f"),
        (16777216, f32, "16777216.0f"),
        (0.1, f16, "0.0999755859375h"),
        (3.4028235e38, f32, "3.4028234663852886e+38f"),
        (-5, i32, "(-5i)"),
        (-(2**31), i32, "i32(-2147483648)"),
        (2**32 - 1, i32, "(-1i)"),
        (-1, u32, "4294967295u"),
        (True, bool_, "true"),
        (float("inf"), f32, "bitcast<f32>(tg_inf)"),
        (1e300, f32, "bitcast<f32>(tg_inf)"),
        (float("-inf"), f32, "bitcast<f32>(tg_negative_inf)"),
        (float("nan"), f16, "f16(bitcast<f32>(tg_nan))"),
    ],
)
def test_literals(number, dtype, expected):
    declarations: dict[str, str] = {}
    assert literal(number, dtype, declarations) == expected
    assert all(name in expected for name in declarations)


def test_constants_are_evaluated_here_because_wgsl_rejects_what_overflows():
    body = new_body()
    assert body.code(op("mul", const(1e30, f32), const(1e30, f32))) == "bitcast<f32>(tg_inf)"
    assert body.code(op("div", const(1.0, f32), const(0.0, f32))) == "bitcast<f32>(tg_inf)"
    assert body.code(op("add", const(2**31 - 1, i32), const(1, i32))) == "i32(-2147483648)"


def test_an_index_as_a_number():
    body = new_body(i="i")
    assert body.code(op("cast", from_index(of_var(I) * 3 + -1), dtype=i32)) == "i32(i * 3u - 1u)"
    assert body.code(op("mul", from_index(of_var(I) + 1), const(2, u32))) == "(i + 1u) * 2u"
