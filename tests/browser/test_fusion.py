"""Fused programs on WebGPU: random graphs, every division of a row's work, large dispatches, and states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from graphs import build
from programs import Program, assert_close, on_numpy, on_webgpu, program
from tensorgrad import ops
from tensorgrad.autodiff import append_grad
from tensorgrad.backend import open_backend
from tensorgrad.dtypes import f32
from tensorgrad.ops.indexing import summed_at
from tensorgrad.tensor import Tensor
from tensorgrad.trace import param_input, state_input, update_state
from tensorgrad.wgsl import generate, rows
from tensorgrad.wgsl.rows import Shape

pytestmark = pytest.mark.webgpu(timeout=300)

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


async def agrees(p: Program, rtol: float = 1e-5, atol: float = 1e-5, what: str = "") -> Any:
    found, built = await on_webgpu(p)
    for n, (a, b) in enumerate(zip(found, on_numpy(p), strict=True)):
        scale = float(np.abs(b[np.isfinite(b)]).max(initial=1.0)) if b.dtype.kind == "f" else 1.0
        assert_close(a, b, rtol, atol * scale, f"{what} result {n}")
    return built


@pytest.mark.parametrize("first", range(0, 48, 12))
async def test_random_graphs(first: int) -> None:
    for seed in range(first, first + 12):
        await agrees(program(*build(seed)), 2e-4, 3e-5, f"seed {seed}:")


# Rows ------------------------------------------------------------------------------------------

SHAPES = [
    Shape(1, 1, True),
    Shape(64, 1, True),
    Shape(1, 64, True),
    Shape(4, 16, True),
    Shape(1, 256, True),
    Shape(32, 2, False),
    Shape(8, 8, False),
    Shape(16, 16, False),
]


def row_programs(x: Tensor, t: Tensor, n: Tensor) -> list[Tensor]:
    """Every reduction, with rows stored once and along their columns, loops within loops, and NaN."""
    loss = ops.cross_entropy(x, t)
    odd = ops.where(n > 8, np.nan, x)
    return [
        ops.softmax(x),
        ops.log_softmax(x, 0),
        ops.layer_norm(x, x.shape[-1]),
        loss,
        *append_grad(loss, [x]),
        ops.sum(n, 1),
        ops.sum(n, 0),
        ops.max(n, 1),
        ops.min(odd, 1),
        ops.max(odd, 0),
        ops.argmax(odd, 1),
        ops.argmin(odd, 0),
        ops.argmax(n, 1),
        ops.argmin(n, 1),
        ops.var(x, 1),
        x - ops.max(x, 1, keepdims=True) * ops.mean(x, 0),
        summed_at(x, t, 0, 7),
        ops.sum(ops.softmax(x) * ops.log_softmax(x), 1),
    ]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: f"{s.rows}x{s.lanes}{'' if s.adjacent else ' across'}")
async def test_every_division_of_a_row(shape: Shape, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "choose", lambda kernel, limits: shape)
    # a software adapter takes long over barriers
    sizes = ((5, 37), (70, 64), (3, 1), (1, 300)) if shape.size < 256 else ((5, 37), (1, 300))
    for height, width in sizes:
        t = RNG.integers(0, min(width, 7), height).astype(np.int32)
        n = RNG.integers(-9, 10, (height, width)).astype(np.int32)
        built = await agrees(program(row_programs, [normal(height, width), t, n]), 1e-5, 1e-5, f"{height}x{width}:")
        assert any(k.name.startswith("row") and k.workgroup_size == shape.size for k in built.kernels)


@pytest.mark.parametrize("lanes", [2, 4])
async def test_rows_by_subgroup(lanes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = (await open_backend("webgpu")).limits
    if limits.subgroup_size is None or limits.subgroup_size < lanes:
        pytest.skip("this adapter has no subgroup operations of one size")
    monkeypatch.setattr(rows, "choose", lambda kernel, limits: Shape(64 // lanes, lanes, True, subgroup=True))
    t, n = RNG.integers(0, 7, 40).astype(np.int32), RNG.integers(-9, 10, (40, 33)).astype(np.int32)
    await agrees(program(row_programs, [normal(40, 33), t, n]))


# Limits --------------------------------------------------------------------------------------------


async def test_more_workgroups_than_a_dimension_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """`dispatch_limit`: every element is compared, so the last one is too."""
    # small workgroups, so that there are too many of them in 17 MB
    monkeypatch.setattr(generate, "MAP", Shape(64, 1, False))
    x = np.arange(65_535 * 64 + 1, dtype=np.int32)
    built = await agrees(program(lambda x: x * 3 + 1, [x]))
    assert max(k.workgroups[1] for k in built.kernels) == 2
    y = RNG.integers(-99, 99, (65_537, 3)).astype(np.int32)
    await agrees(program(lambda y: [ops.sum(y, 1), ops.argmax(y, 1)], [y]))


async def test_many_rows_and_many_products(monkeypatch: pytest.MonkeyPatch) -> None:
    x = normal(65_537, 3)
    await agrees(program(lambda x: [ops.softmax(x), ops.max(x, 1)], [x]))
    a, b = normal(65_536, 2, 2), normal(65_536, 2, 2)
    await agrees(program(lambda a, b: ops.relu(a @ b + 0.5), [a, b]))
    # one row a workgroup: more rows than workgroups of one dimension
    monkeypatch.setattr(rows, "choose", lambda kernel, limits: Shape(1, 2, True))
    built = await agrees(program(lambda x: ops.sum(x, 1), [x]))
    assert built.kernels[0].workgroups == (65_535, 2)


async def test_exact_sums_of_many_integers() -> None:
    """`int_sum`: 4,000,000 ones times 5."""
    built = await agrees(program(lambda x: ops.sum(x * 5), [np.ones(4_000_000, np.int32)]))
    assert built.kernels


MANY = [normal(6, 5) for _ in range(12)]


@pytest.fixture
def guaranteed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Makes a backend keep to the number of bindings that every device has."""
    return lambda backend: monkeypatch.setattr(backend, "limits", backend.limits._replace(storage_buffers=8))


async def test_more_inputs_than_bindings(guaranteed: Callable[[Any], None]) -> None:
    """`bindings_limit`."""
    guaranteed(await open_backend("webgpu"))
    for fn in (
        lambda *xs: sum(xs[1:], start=xs[0]),
        lambda *xs: ops.concat(xs),
        lambda *xs: [ops.exp(x) for x in xs],
        lambda *xs: append_grad(ops.sum(ops.tanh(ops.concat(xs, 1))), xs),
    ):
        built = await agrees(program(fn, MANY))
        assert max(len(k.bindings) for k in built.kernels) <= 8


async def test_a_gradient_norm_over_forty_parameters(guaranteed: Callable[[Any], None]) -> None:
    guaranteed(await open_backend("webgpu"))

    def fn(x: Tensor) -> Tensor:
        params = [param_input(f"p{n}", (3 + n % 4, 5)) for n in range(40)]
        grads = append_grad(sum((ops.sum(ops.tanh((p + 0.1) @ x[:5])) for p in params), start=ops.zeros(())), params)
        norm = ops.sqrt(sum((ops.sum(ops.square(g)) for g in grads), start=ops.zeros(())))
        for p, g in zip(params, grads, strict=True):
            update_state(p, p - g * (0.1 / norm))
        return norm

    p = program(fn, [normal(8, 8)], {f"p{n}": np.zeros((3 + n % 4, 5), np.float32) for n in range(40)})
    built = await agrees(p)
    assert max(len(k.bindings) for k in built.kernels) <= 8


# States ----------------------------------------------------------------------------------------------


def rotate() -> list[Tensor]:
    a, b, c = (state_input(name, (70,), f32, n) for n, name in enumerate("abc"))
    for old, new in ((a, b), (b, c), (c, a)):
        update_state(old, new)
    return [a, b + c]


def pass_on() -> list[Tensor]:
    a, b = state_input("a", (4,), f32, 1), state_input("b", (4,), f32, 2)
    update_state(b, b * 2.0)
    update_state(a, b)
    return [a, b.reshape(2, 2)]


def row_and_columns(x: Tensor) -> Tensor:
    s = state_input("s", (x.shape[0], 1), f32, 2)
    update_state(s, s + ops.sum(x, 1, keepdims=True))
    return x * s


def through_a_transpose(x: Tensor) -> Tensor:
    p = state_input("p", (65, 65), f32, 0.3)
    loss = ops.mean(((p + x) @ p.T) ** 2)
    update_state(p, p - append_grad(loss, [p])[0] * 0.1)
    return loss


@pytest.mark.parametrize(
    ("fn", "inputs"),
    [(rotate, []), (pass_on, []), (row_and_columns, [normal(70, 9)]), (through_a_transpose, [normal(65, 65)])],
    ids=lambda x: getattr(x, "__name__", ""),
)
async def test_states(fn: Callable[..., Any], inputs: Sequence[np.ndarray], monkeypatch: pytest.MonkeyPatch) -> None:
    await agrees(program(fn, inputs))
    monkeypatch.setattr(rows, "choose", lambda kernel, limits: Shape(2, 32, True))
    await agrees(program(fn, inputs))


# Products --------------------------------------------------------------------------------------------

TRANSPOSED: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "nn": lambda a, b: a @ b,
    "nt": lambda a, b: a @ b.T,
    "tn": lambda a, b: a.T @ b,
    "tt": lambda a, b: a.T @ b.T,
}


@pytest.mark.parametrize("layout", TRANSPOSED)
async def test_large_products_keep_blocks_in_registers(layout: str) -> None:
    for m, n, k in ((64, 64, 64), (65, 130, 97)):
        a, b = normal(*((m, k) if layout[0] == "n" else (k, m))), normal(*((k, n) if layout[1] == "n" else (n, k)))
        built = await agrees(program(lambda a, b: ops.relu(TRANSPOSED[layout](a, b) + 1.0), [a, b]))
        (kernel,) = built.kernels
        assert kernel.name.startswith("matmul ")
        assert f" {layout} " in kernel.name
        # each invocation computes several elements of the result, or each block is shared by few
        assert kernel.threads * 2 < m * n
