"""Expressions printed as WGSL: names, loops, indices, operations, literals."""

from __future__ import annotations

import pytest

from expressions import ROW, I, K, X, Y, named, op, softmax
from tensorgrad.dtypes import bool_, f16, f32, i32, u32
from tensorgrad.errors import ShaderError
from tensorgrad.lower.expr import (
    const,
    from_index,
    load,
    reduce,
    where,
)
from tensorgrad.lower.index import Var, dynamic, of_var
from tensorgrad.wgsl.expression import Body
from tensorgrad.wgsl.literal import literal


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
