"""Random orders and draws, and sums in the order of indices: what is built on sorts and scans."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from native import backend
from programs import Program, lowered, on_interpret, on_numpy, program
from table import Case, f32s, weighted
from table_rows import TABLE
from tensorgrad.autodiff import append_grad
from tensorgrad.device.base import Limits
from tensorgrad.passes import optimize

RNG = np.random.default_rng(0)


def run(fn: Callable[..., Any], *arrays: Any, device: str = "numpy") -> Any:
    return tg.sync(tg.jit(fn, device=device)(*arrays))


# Sums in the order of indices ---------------------------------------------------------------------


ROWS = [row for row in TABLE if row.op in ("scatter_add", "gather")]
SCATTERED = [case for row in ROWS for case in row.cases if "long" not in case.name]


def for_cpu(p: Program) -> Program:
    return Program(p.traced, optimize(p.traced, Limits(software=True)), p.values)


@pytest.mark.parametrize("case", SCATTERED, ids=lambda case: case.name)
def test_sums_in_the_order_of_their_indices_are_the_same(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    def fn(*leaves: tg.Tensor) -> list[tg.Tensor]:
        y = case.fn(*leaves)
        return [y, *(append_grad(weighted(y), [leaves[n] for n in case.grads]) if case.grads else ())]

    monkeypatch.setattr(import_module("tensorgrad.passes.expand"), "COMPARISONS_ON_CPU", 0)
    p = program(fn, case.inputs)
    wanted, other = on_numpy(p), for_cpu(p)
    for found in (on_numpy(other), on_interpret(other, lowered(other))):
        for a, b in zip(found, wanted, strict=True):
            # f32 sums in another order
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_the_gradient_of_a_large_table_is_summed_in_the_order_of_the_indices() -> None:
    table, at = np.zeros((10_000, 8), np.float32), RNG.integers(-3, 10_003, 700).astype(np.int32)
    weights = RNG.integers(-4, 5, (700, 8)).astype(np.float32)
    weights[5] = np.inf, np.nan, *weights[5, 2:]

    def grad(table: tg.Tensor, at: tg.Tensor, weights: tg.Tensor) -> tg.Tensor:
        y = tg.embedding(table, at)
        return append_grad(y, [table], weights)[0]

    p = program(grad, [table, at, weights])
    assert {"scatter_add"} == {node.op for node in p.graph.nodes} & {"scatter_add", "linear_scan"}
    assert {"linear_scan"} == {node.op for node in for_cpu(p).graph.nodes} & {"scatter_add", "linear_scan"}
    wanted = np.zeros_like(table)
    inside = (at >= 0) & (at < 10_000)
    np.add.at(wanted, at[inside], weights[inside])
    for found in (on_numpy(for_cpu(p))[0], tg.sync(tg.jit(grad, device=backend(software=True))(table, at, weights))):
        np.testing.assert_array_equal(found, wanted)


# Random orders and draws -----------------------------------------------------------------------


def drawn(fn: Callable[[], Any], device: str = "numpy", seed: int = 0) -> Any:
    return tg.sync(tg.jit(fn, device=device, seed=seed)())


def test_a_random_order_is_one_and_the_same_on_every_device() -> None:
    orders = [drawn(lambda: tg.randperm(500), device) for device in ("numpy", "interpret")]
    np.testing.assert_array_equal(*orders)
    np.testing.assert_array_equal(np.sort(orders[0]), np.arange(500))
    assert (orders[0] == np.arange(500)).sum() < 10
    assert (drawn(lambda: tg.randperm(500), seed=1) != orders[0]).any()
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    rows = run(tg.permutation, x)
    np.testing.assert_array_equal(np.sort(rows[:, 0]), x[:, 0])
    np.testing.assert_array_equal(rows, x[(rows[:, 0] / 4).astype(int)])


def test_draws_have_the_probabilities() -> None:
    p = f32s(0, 0.5, 0.2, 0.3)
    count = 20_000
    logits = np.log(np.maximum(p, 1e-30)).astype(np.float32)
    logits[0] = -np.inf
    several = {
        "categorical": lambda: tg.categorical(tg.tensor(logits).broadcast_to(count, 4)),
        "with replacement": lambda: tg.multinomial(tg.tensor(p * 7), count, replacement=True),
        "without": lambda: tg.multinomial(tg.tensor(p).broadcast_to(count, 4), 3)[:, 0],
    }
    for name, fn in several.items():
        shares = np.bincount(drawn(fn), minlength=4) / count
        assert shares[0] == 0, name
        # 5 standard deviations of a share
        np.testing.assert_allclose(shares, p, atol=5 * 0.5 / count**0.5, err_msg=name)


def test_draws_without_replacement_differ() -> None:
    found = drawn(lambda: tg.multinomial(tg.tensor(np.array([[1, 2, 3, 4], [4, 1, 1, 0.1]], np.float32)), 4))
    np.testing.assert_array_equal(np.sort(found), [[0, 1, 2, 3]] * 2)


def test_every_random_operation_counts() -> None:
    a, b = drawn(lambda: [tg.randperm(50), tg.randperm(50)])
    assert (a != b).any()
