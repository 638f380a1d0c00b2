"""Indices against NumPy: every element of random chains of views, and the arithmetic itself."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorgrad.ops.indexing
import tensorgrad.ops.views  # noqa: F401  # registers the views
from tensorgrad.dtypes import f32, u32
from tensorgrad.graph import Value
from tensorgrad.lower.evaluate import evaluate
from tensorgrad.lower.expr import Expr, from_index, load, replace_var
from tensorgrad.lower.index import (
    ZERO,
    Digit,
    Index,
    Indices,
    Quotient,
    Remainder,
    Var,
    constant,
    digit_of,
    digits,
    make,
    of_var,
    ravel,
    substitute,
    unravel,
)
from tensorgrad.primitive import REGISTRY

X = Value(0)


def numbers(index: Index, *variables: Var) -> np.ndarray:
    """The index's value for every count of its variables, as u32."""
    grids = np.meshgrid(*(np.arange(v.size) for v in variables), indexing="ij")
    return evaluate(from_index(index), dict(zip(variables, grids, strict=True)), lambda value: np.zeros(0))


def axes_of(shape: tuple[int, ...]) -> tuple[tuple[Var, ...], Indices]:
    variables = tuple(Var(f"i{a}", n) for a, n in enumerate(shape))
    return variables, tuple(of_var(v) for v in variables)


# Arithmetic ------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1,), (7,), (2, 3), (4, 1, 6), (3, 5, 2, 2), (1, 1)])
def test_ravel_counts_in_row_major_order(shape):
    variables, idx = axes_of(shape)
    np.testing.assert_array_equal(numbers(ravel(idx, shape), *variables), np.arange(math.prod(shape)).reshape(shape))


@pytest.mark.parametrize("shape", [(24,), (2, 12), (2, 3, 4), (24, 1), (1, 24), (4, 3, 2), (2, 2, 2, 3)])
def test_unravel_of_one_count_gives_each_axis(shape):
    i = Var("i0", 24)
    for got, expected in zip(unravel(of_var(i), shape), np.unravel_index(np.arange(24), shape), strict=True):
        np.testing.assert_array_equal(numbers(got, i), expected)


def test_ravel_of_unravel_is_the_variable_itself():
    i = Var("i0", 24)
    for shape in [(2, 3, 4), (24,), (1, 24, 1), (2, 2, 2, 3)]:
        assert ravel(unravel(of_var(i), shape), shape) == of_var(i)


def test_a_split_and_merged_axis_costs_nothing():
    _, idx = axes_of((4, 6))
    flat = ravel(idx, (4, 6))
    assert ravel(unravel(flat, (4, 3, 2)), (4, 3, 2)) == flat
    assert unravel(flat, (4, 6)) == idx


@pytest.mark.parametrize("by", [1, 2, 3, 4, 5, 6, 7, 12, 24, 100])
def test_divmod_by_brute_force(by):
    i, j = Var("i0", 12), Var("i1", 5)
    a, b = of_var(i), of_var(j)
    shapes: list[Index] = [
        a,
        a + 3,
        a * 2,
        a * 2 + b * 24,
        a * 5 + b,
        a * 5 + b + 7,
        a * 3 + b * 2 + 1,
        a * -1 + 11,
    ]
    shapes += [a * 24 + b * -1 + 4, a.divmod(5)[0] + b, a.divmod(5)[1] * 3 + b, (a * 3 + b).divmod(4)[0] + a]
    for index in shapes:
        quotient, remainder = index.divmod(by)
        plain = numbers(index, i, j).astype(np.int64)
        assert plain.min() >= index.minimum
        assert plain.max() <= index.maximum
        np.testing.assert_array_equal(numbers(quotient, i, j), plain // by, err_msg=f"{index} // {by}")
        np.testing.assert_array_equal(numbers(remainder, i, j), plain % by, err_msg=f"{index} % {by}")


def test_a_quotient_and_a_remainder_of_one_size_do_not_add_up():
    i = Var("i0", 16)
    inner = of_var(i) * 3 + 1
    quotient, remainder = Quotient(inner, 7, 7), Remainder(inner, 7, 7)
    assert quotient != remainder
    both = make([(quotient, 1), (remainder, 1)])
    count = np.arange(16) * 3 + 1
    np.testing.assert_array_equal(numbers(both, i), count // 7 + count % 7)


def test_a_quotient_and_its_remainder_melt_below_zero_too():
    index = of_var(Var("i", 10)) + -3
    quotient, remainder = index.divmod(4)
    assert quotient * 4 + remainder == index
    assert make([*(quotient * 12).terms, *(remainder * 3).terms], 5) == index * 3 + 5
    assert quotient * 5 + remainder != index


def test_negative_indices_wrap_and_are_refused_by_one_comparison():
    i = Var("i0", 8)
    moved = of_var(i) + -3
    assert moved.below(4) is None
    assert moved.below(5) is None
    assert (of_var(i) + -8).below(5) is False
    assert of_var(i).below(8) is True
    np.testing.assert_array_equal(numbers(moved, i) < 4, (np.arange(8) >= 3) & (np.arange(8) < 7))


def test_substitute_replaces_digits_inside_opaque_atoms():
    i, j = Var("i0", 12), Var("i1", 6)
    index = (of_var(i) * 5 + 2).divmod(7)[0] * 3 + of_var(i).divmod(4)[1]
    assert not all(isinstance(atom, Digit) for atom, _ in index.terms)
    new = of_var(j) * 2 + 1
    got = substitute(index, lambda d: digit_of(new, d) if d.var == i else None, lambda e: e)
    count = np.arange(6) * 2 + 1
    np.testing.assert_array_equal(numbers(got, j), (count * 5 + 2) // 7 * 3 + count % 4)
    assert {d.var for d in digits(got)} == {j}


def test_replacing_a_variable_by_a_mixed_radix_number():
    i, r, c = Var("i0", 12), Var("r", 3), Var("c", 4)
    e = load(X, of_var(i).divmod(6)[1] * 2 + of_var(i).divmod(6)[0], f32)
    new = of_var(r) * 4 + of_var(c)
    stored = np.arange(12, dtype=np.float32)
    got = evaluate(replace_var(e, i, new), {r: np.arange(3)[:, None], c: np.arange(4)[None]}, lambda value: stored)
    count = np.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(got, stored[count % 6 * 2 + count // 6])


# Views -----------------------------------------------------------------------------------


class Operand:
    """What a lowering rule sees of an operand."""

    def __init__(self, shape: tuple[int, ...], at: Callable[[Indices], Expr]) -> None:
        self.shape, self.dtype, self.at = shape, f32, at

    def __call__(self, idx: Indices) -> Expr:
        assert len(idx) == len(self.shape)
        return self.at(idx)


Step = tuple[str, dict[str, Any]]


def chain(shape: tuple[int, ...], steps: list[Step]) -> tuple[np.ndarray, np.ndarray]:
    """A chain of views by its reference rules and by its lowering rules."""
    stored = np.arange(1, math.prod(shape) + 1, dtype=np.float32)
    expected = stored.reshape(shape)
    operand = Operand(shape, lambda idx: load(X, ravel(idx, shape), f32))
    for name, attrs in steps:
        rule = REGISTRY[name]
        expected = rule.eval(np, expected, **attrs)

        def at(idx: Indices, rule: Any = rule, below: Operand = operand, attrs: dict[str, Any] = attrs) -> Expr:
            assert rule.lower is not None
            return rule.lower(idx, below, **attrs)

        operand = Operand(expected.shape, at)
    variable = Var("r", expected.size)
    if expected.size == 0:
        return expected, np.zeros(expected.shape, dtype=np.float32)
    e = operand(unravel(of_var(variable), expected.shape))
    got = evaluate(e, {variable: np.arange(expected.size)}, lambda value: stored)
    return expected, got.reshape(expected.shape)


def factorings(n: int, rng: np.random.Generator) -> tuple[int, ...]:
    """A random shape of n elements."""
    shape = []
    while n > 1 and len(shape) < 4:
        divisors = [d for d in range(1, n + 1) if n % d == 0]
        shape.append(int(rng.choice(divisors)))
        n //= shape[-1]
    shape.append(n)
    return tuple(int(s) for s in rng.permutation(shape))


def random_step(shape: tuple[int, ...], rng: np.random.Generator) -> Step:
    size = math.prod(shape)
    kind = rng.choice(["reshape", "permute", "slice", "pad", "broadcast_to"])
    if kind == "reshape":
        return "reshape", {"shape": factorings(size, rng) if size else (*shape[::-1], 1)}
    if kind == "permute":
        return "permute", {"perm": tuple(int(a) for a in rng.permutation(len(shape)))}
    if kind == "slice":
        bounds = []
        for n in shape:
            step = int(rng.choice([1, 1, 2, 3, -1, -2]))
            some = slice(int(rng.integers(0, n)), None, step) if n and rng.random() < 0.6 else slice(None)
            start, stop, step = some.indices(n)
            count = len(range(start, stop, step))
            bounds.append((start if count else 0, count, step))
        return "slice", {"bounds": tuple(bounds)}
    if kind == "pad":
        config = []
        for n in shape:
            low, high, inner = int(rng.integers(0, 3)), int(rng.integers(0, 3)), int(rng.integers(0, 3))
            if rng.random() < 0.5:
                low, high, inner = 0, 0, 0
            if n > 2 and rng.random() < 0.3:
                low = -1  # cut off
            config.append((low, high, inner))
        return "pad", {"config": tuple(config), "value": -1.0}
    lead = (int(rng.integers(1, 3)),) if len(shape) < 4 else ()
    return "broadcast_to", {"shape": (*lead, *(int(rng.integers(1, 4)) if n == 1 else n for n in shape))}


@pytest.mark.parametrize("seed", range(300))
def test_random_chains_of_views(seed):
    rng = np.random.default_rng(seed)
    shape = [(24,), (6, 4), (2, 3, 4), (5, 7), (1,), (), (3, 0), (1, 12, 1), (16, 3)][seed % 9]
    steps: list[Step] = []
    current = shape
    for _ in range(int(rng.integers(1, 6))):
        name, attrs = random_step(current, rng)
        after = REGISTRY[name].eval(np, np.zeros(current, dtype=np.float32), **attrs).shape
        if math.prod(after) > 3_000:
            continue
        steps.append((name, attrs))
        current = after
    expected, got = chain(shape, steps)
    np.testing.assert_array_equal(got, expected, err_msg=f"{shape} {steps}")


@pytest.mark.parametrize(
    ("shape", "steps"),
    [
        ((4, 4), [("pad", {"config": ((1, 1, 0), (1, 1, 0)), "value": 0.0}), ("reshape", {"shape": (36,)})]),
        ((5,), [("pad", {"config": ((2, 1, 2),), "value": 9.0}), ("slice", {"bounds": ((15, 16, -1),)})]),
        (
            (3, 4),
            [("permute", {"perm": (1, 0)}), ("reshape", {"shape": (2, 6)}), ("permute", {"perm": (1, 0)})],
        ),
        ((6,), [("slice", {"bounds": ((5, 3, -2),)}), ("pad", {"config": ((0, 0, 1),), "value": 0.0})]),
        ((1, 1), [("broadcast_to", {"shape": (3, 2)}), ("reshape", {"shape": (6,)})]),
        ((), [("reshape", {"shape": (1, 1)}), ("broadcast_to", {"shape": (4, 2)})]),
    ],
)
def test_chains_that_once_were_hard(shape, steps):
    expected, got = chain(shape, steps)
    np.testing.assert_array_equal(got, expected)


def test_windows_of_all_small_convolutions():
    for n, kernel, stride, low in itertools.product((5, 6), (1, 3), (1, 2), (0, 1)):
        span = n + 2 * low
        out = (span - kernel) // stride + 1
        i, k = Var("i0", out), Var("k0", kernel)
        at = of_var(i) * stride + of_var(k) + -low
        pad = REGISTRY["pad"].lower
        assert pad is not None
        padded = pad(
            (of_var(i) * stride + of_var(k),),
            Operand((n,), lambda idx: load(X, idx[0], f32)),
            config=((low, low, 0),),
            value=0.0,
        )
        stored = np.arange(1, n + 1, dtype=np.float32)
        got = evaluate(padded, {i: np.arange(out)[:, None], k: np.arange(kernel)[None]}, lambda value: stored)  # noqa: B023
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(stored, low), kernel)[::stride]
        np.testing.assert_array_equal(got, windows)
        assert at.minimum == -low


def test_constants_and_empty_products():
    assert ravel((), ()) == ZERO
    assert unravel(constant(5), (7,)) == (constant(5),)
    assert unravel(ZERO, ()) == ()
    assert of_var(Var("i0", 1)) == ZERO
    assert from_index(constant(3)).dtype is u32
    assert of_var(Var("i0", 4)) * 0 == ZERO
