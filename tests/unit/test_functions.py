"""The scalar functions against float64, with a bound each; special values; the random bits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from function_cases import CASES, A, Case, formula, integer_values, special_values
from tensorgrad.dtypes import DType, bool_, f16, f32, i32, u32
from tensorgrad.lower.evaluate import evaluate
from tensorgrad.lower.expr import Expr, call, const, expr, load
from tensorgrad.lower.functions import FUNCTIONS, expand
from tensorgrad.lower.index import Var, of_var
from tensorgrad.lower.transcendental import erf_reference, erfc_reference


def apply(e: Expr, var: Var, *arrays: np.ndarray) -> np.ndarray:
    return evaluate(e, {var: np.arange(var.size)}, lambda value: arrays[value.node])


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_accuracy(case: Case):
    e, var = formula(case.op, f32, 1, case.x.size)
    got = apply(e, var, case.x)
    assert got.dtype == np.float32
    exact = case.exact(case.x.astype(np.float64))
    worst = np.argmax(np.abs(got - exact) - case.bound(exact, gpu=False))
    error = abs(got[worst] - exact[worst])
    assert error <= case.bound(exact, gpu=False)[worst], (
        f"{case.op}({case.x[worst]!r}) = {got[worst]!r}, not {exact[worst]!r}"
    )


@pytest.mark.parametrize(
    ("what", "e", "var", "arrays", "expected"),
    special_values(),
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_special_values(what: str, e: Expr, var: Var, arrays: list[np.ndarray], expected: np.ndarray):
    np.testing.assert_allclose(apply(e, var, *arrays), expected, rtol=2e-6, atol=1e-37, err_msg=what)


@pytest.mark.parametrize("dtype", [i32, u32], ids=str)
def test_integers(dtype: DType):
    for what, e, var, arrays, expected in integer_values(dtype):
        np.testing.assert_array_equal(apply(e, var, *arrays), expected, err_msg=what)


def test_integer_division_by_zero_is_zero():
    a = np.array([5, -5, 0], np.int32)
    for op in ("floor_divide", "remainder"):
        e, var = formula(op, i32, 2, 3)
        assert apply(e, var, a, np.zeros(3, np.int32)).tolist() == [0, 0, 0]


def test_the_sign_of_a_zero_survives_where_the_formula_allows():
    x = np.array([-0.0], np.float32)
    for op in ("erf", "atan", "log1p", "sqrt", "sign", "round"):
        e, var = formula(op, f32, 1, 1)
        assert math.copysign(1, apply(e, var, x)[0]) == -1, op


def test_sine_is_bounded_and_repeats_wherever_a_float_can_be():
    x = np.exp(np.linspace(math.log(1e5), math.log(3e38), 10_001)).astype(np.float32)
    for op in ("sin", "cos"):
        e, var = formula(op, f32, 1, x.size)
        assert np.abs(apply(e, var, x)).max() <= 1


def test_power_loses_digits_with_the_size_of_its_exponent_only():
    rng = np.random.default_rng(0)
    a = np.exp(rng.uniform(-5, 5, 50_000)).astype(np.float32)
    b = rng.uniform(-12, 12, 50_000).astype(np.float32)
    e, var = formula("pow", f32, 2, a.size)
    exact = a.astype(np.float64) ** b
    relative = np.abs(apply(e, var, a, b) - exact) / exact
    assert (relative / (1 + np.abs(np.log2(exact)))).max() < 2e-7


def test_whole_powers_of_negative_numbers():
    a = np.array([-2, -2, -2, -0.5, -3, -2, -1, -1], np.float32)
    b = np.array([3, 4, -1, -3, 0, 0.5, 2.0**24 + 2, 2.0**23 + 1], np.float32)
    e, var = formula("pow", f32, 2, a.size)
    np.testing.assert_allclose(apply(e, var, a, b), [-8, 16, -0.5, -8, 1, np.nan, 1, -1], rtol=1e-6)


def test_remainder_is_exact_where_the_quotient_fits():
    rng = np.random.default_rng(1)
    a = rng.uniform(-1000, 1000, 20_000).astype(np.float32)
    b = (rng.uniform(0.01, 10, 20_000) * rng.choice([-1, 1], 20_000)).astype(np.float32)
    for op, exact in (("remainder", np.remainder), ("floor_divide", np.floor_divide)):
        e, var = formula(op, f32, 2, a.size)
        np.testing.assert_array_equal(apply(e, var, a, b), exact(a, b), err_msg=op)


def test_random_bits_are_threefry():
    # known answers of Threefry-2x32 with 20 rounds, from the Random123 distribution (kat_vectors)
    known = [
        ((0, 0), (0, 0), 0x6B200159),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), 0x1CB996FC),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), 0xC4923A9C),
    ]
    for key, counter, word in known:
        e = call(FUNCTIONS["threefry2x32"], *(const(n, u32) for n in (*key, *counter)))
        assert evaluate(e, {}, lambda value: np.zeros(0)).item() == word


def test_half_floats_are_computed_in_full_and_rounded_once():
    x = np.linspace(-4, 4, 101).astype(np.float16)
    e, var = formula("tanh", f16, 1, x.size)
    got = apply(e, var, x)
    assert got.dtype == np.float16
    np.testing.assert_array_equal(got, np.tanh(x.astype(np.float64)).astype(np.float16))
    nan = expr("isnan", (load(A, of_var(var), f16),), bool_)
    assert expand(nan) is not None
    assert not apply(nan, var, x).any()


def test_constant_shifts_are_native():
    var = Var("i0", 4)
    x = load(A, of_var(var), u32)
    assert expand(expr("shl", (x, const(31, u32)), u32)) is None
    assert expand(expr("shl", (x, const(32, u32)), u32)) is not None
    assert expand(expr("shl", (x, x), u32)) is not None


@pytest.mark.parametrize(("dtype", "bound"), [(np.float32, 3e-7), (np.float64, 1e-15)])
def test_the_reference_of_erf_has_its_arrays_width(dtype: type, bound: float):
    x = np.concatenate([np.linspace(-7, 7, 5_001), [0.0, 1e-30, np.inf, -np.inf]]).astype(dtype)
    got = erf_reference(np, x)
    assert got.dtype == dtype
    exact = np.array([math.erf(v) for v in x])
    assert (np.abs(got - exact) <= bound * np.abs(exact)).all()
    exact = np.array([math.erfc(v) for v in x])
    # near 1 it is a difference; where it is small, what x * x loses by its rounding counts
    bounds = bound * np.where(np.isfinite(x), 3 + np.maximum(x, 0) ** 2, 1) * exact + np.finfo(dtype).tiny
    assert (np.abs(erfc_reference(np, x) - exact) <= bounds).all()
    for reference in (erf_reference, erfc_reference):
        assert np.isnan(reference(np, np.array([np.nan], dtype))).all()
