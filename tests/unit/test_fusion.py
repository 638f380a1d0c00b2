"""Fusion changes the kernels and nothing else: random graphs with and without it, and the kernels that must result."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphs import build
from programs import assert_close, for_many_cores, lowered, on_interpret, on_numpy, program
from tensorgrad import ops
from tensorgrad.autodiff import append_grad
from tensorgrad.device.base import Limits
from tensorgrad.lower.compose import FREE, LEAVES
from tensorgrad.lower.fuse import DEEPEST
from tensorgrad.plan import KernelSpec
from tensorgrad.primitive import REGISTRY
from tensorgrad.tensor import Tensor
from tensorgrad.wgsl.generate import generate

SEEDS = (*range(300), 1912, 2941)
X = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_graphs(seed: int) -> None:
    fn, inputs = build(seed)
    p = program(fn, inputs)
    wanted = on_numpy(p)
    for a, b in zip(on_numpy(p, p.traced), wanted, strict=True):
        assert_close(a, b, 1e-6, 1e-6, "before and after the passes")
    for fuse in (True, False):
        for n, (a, b) in enumerate(zip(on_interpret(p, lowered(p, fuse)), wanted, strict=True)):
            scale = float(np.abs(b).max(initial=1.0))
            assert_close(a, b, 1e-4, 2e-5 * scale, f"output {n} with fuse={fuse}")


@pytest.mark.parametrize("seed", range(0, 300, 12))
def test_random_graphs_with_a_kernel_for_every_operation(seed: int) -> None:
    p = program(*build(seed))
    low = lowered(p, False, compose=False)
    kept = [n for n in p.graph.nodes if n.op not in LEAVES | FREE and n.types[0].size]  # nothing stores what is empty
    operations = [n for n in kept if not REGISTRY[n.op].view]
    assert len(low.kernels) >= len(operations)
    for found, wanted in zip(on_interpret(p, low), on_numpy(p), strict=True):
        assert_close(found, wanted, 1e-4, 2e-5 * float(np.abs(wanted).max(initial=1.0)))


def shapes(low: Any) -> dict[str, tuple[int, ...]]:
    plan = low.memory.plan
    return {name: plan.buffers[at].shape for name, at in plan.outputs.items()}


def test_a_reshaped_result_is_read_in_its_own_shape() -> None:
    def fn(x: Tensor) -> list[Tensor]:
        y = ops.exp(x)
        return [y.sum(1, keepdims=True), (x @ x).reshape(16), y, y.reshape(2, 8), y.reshape(8, 2)]

    p = program(fn, [X])
    low = lowered(p)
    assert shapes(low) == {"0": (4, 1), "1": (16,), "2": (4, 4), "3": (2, 8), "4": (8, 2)}
    for found, wanted in zip(on_interpret(p, low), on_numpy(p), strict=True):
        assert_close(found, wanted, 1e-6, 1e-6)


@pytest.mark.parametrize("seed", range(0, 300, 3))
def test_random_graphs_with_every_sum_and_product_cut(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["tensorgrad.passes.split"]
    monkeypatch.setattr(module, "SHORTEST_SUM", 1)
    monkeypatch.setattr(module, "SHORTEST_INNER", 1)
    whole = program(*build(seed))
    p = for_many_cores(whole)
    wanted = on_numpy(whole)
    for found in (on_numpy(p), on_interpret(p, lowered(p))):
        for n, (a, b) in enumerate(zip(found, wanted, strict=True)):
            scale = float(np.abs(b).max(initial=1.0))
            assert_close(a, b, 1e-4, 2e-5 * scale, f"output {n}")


# Products of 64 and more ---------------------------------------------------------------------------

TRANSPOSED = {
    "nn": lambda a, b: a @ b,
    "nt": lambda a, b: a @ b.T,
    "tn": lambda a, b: a.T @ b,
    "tt": lambda a, b: a.T @ b.T,
}
BLOCKED = re.compile(r"matmul (direct (\d+)x(\d+)(?:/4)?|(\d+)x(\d+)x(\d+)(/\d+)?) (nn|nt|tn|tt)( |$)")


QUADS = Limits(software=True, features=frozenset({"subgroups"}))


@pytest.mark.parametrize("limits", [Limits(), Limits(software=True), QUADS], ids=["gpu", "cpu", "cpu with subgroups"])
@pytest.mark.parametrize("size", [(64, 64, 64), (65, 67, 66), (512, 64, 128), (128, 784, 64)])
@pytest.mark.parametrize("layout", TRANSPOSED)
def test_large_products_are_register_blocked(layout: str, size: tuple[int, int, int], limits: Limits) -> None:
    m, n, k = size
    a = np.zeros((m, k) if layout[0] == "n" else (k, m), np.float32)
    b = np.zeros((k, n) if layout[1] == "n" else (n, k), np.float32)
    low = lowered(program(lambda a, b: ops.relu(TRANSPOSED[layout](a, b)), [a, b]))
    (spec,) = generate(low, limits)
    found = BLOCKED.match(spec.name)
    assert found is not None, spec.name
    assert found[8] == layout
    slices = int(found[7][1:]) if found[7] else 1
    assert m * n * slices / spec.threads >= 8, "elements of the result in an invocation's registers"


def test_shaders_that_take_long_begin_first_and_once() -> None:
    def fn(x: Tensor, w: Tensor) -> list[Tensor]:
        first, second = ops.sum(ops.exp(x)), ops.sum(ops.exp(ops.matmul(x, w)))
        return [first, second, ops.sum(ops.exp(ops.matmul(w, x)))]

    low = lowered(program(fn, [np.zeros((128, 128), np.float32), np.zeros((128, 128), np.float32)]))
    begun: list[KernelSpec] = []
    specs = generate(low, Limits(), begin=begun.append)
    assert not specs[0].name.startswith("matmul"), "in the order in which they run"
    products = [spec.name.startswith("matmul") for spec in begun]
    assert products == sorted(products, reverse=True)
    assert any(products)
    assert len(begun) == len({spec.wgsl for spec in specs}) < len(specs)
    assert {spec.wgsl for spec in begun} == {spec.wgsl for spec in specs}


def test_the_gradient_of_a_layer_uses_three_products_without_a_transpose() -> None:
    def fn(x: Tensor, w: Tensor) -> list[Tensor]:
        y = ops.tanh(ops.linear(x, w))
        return [y, *append_grad(ops.sum(y * y), [x, w])]

    low = lowered(program(fn, [np.zeros((96, 64), np.float32), np.zeros((80, 64), np.float32)]))
    layouts = sorted(found[8] for spec in generate(low, Limits()) if (found := BLOCKED.match(spec.name)))
    assert layouts == ["nn", "nt", "tn"]


@pytest.mark.parametrize(
    "step",
    [ops.tanh, lambda x: ops.flip(x, 0) + 0.5, lambda x: x + 0.1 * ops.sin(x)],
    ids=["tanh", "flip", "sums"],
)
def test_long_chains_are_cut(step: Callable[[Tensor], Tensor]) -> None:
    """Composing is recursive, and each join walks what is joined: neither may grow with the length of a program."""
    length = 400

    def fn(x: Tensor) -> list[Tensor]:
        y = x
        for _ in range(length):
            y = step(y)
        return [y, *append_grad(ops.sum(y), [x])]

    p = program(fn, [np.linspace(-1, 1, 17, dtype=np.float32)])
    low = lowered(p)
    assert max(kernel.depth for kernel in low.kernels) <= DEEPEST
    assert len(low.kernels) < length / 4
    for found, wanted in zip(on_interpret(p, low), on_numpy(p), strict=True):
        assert_close(found, wanted, 1e-4, 1e-6)
