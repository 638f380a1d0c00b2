"""How gradients get to the optimizer on a GPU: bias sums inside matmuls, partial sums added up by the update."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from native import backend
from programs import assert_close, for_many_cores, lowered, on_interpret, on_numpy, program
from steps import compiled, on_gpu
from tensorgrad import nn, ops, optim
from tensorgrad.autodiff import append_grad
from tensorgrad.backend import Interpret, Numpy
from tensorgrad.device.base import Limits
from tensorgrad.graph import Graph
from tensorgrad.lower.index import dynamics
from tensorgrad.lower.lowering import lower
from tensorgrad.lower.totals import total_of
from tensorgrad.state import State
from tensorgrad.step import step_recipe
from tensorgrad.structure import Structure
from tensorgrad.tensor import Tensor
from tensorgrad.wgsl.generate import generate

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def layer_gradients(x: Tensor, w: Tensor, b: Tensor) -> list[Tensor]:
    y = ops.tanh(ops.linear(x, w, b))
    return append_grad(ops.sum(y * y), [w, b])


def transposed_gradients(x: Tensor, w: Tensor, b: Tensor) -> list[Tensor]:
    """As for a layer whose weight is [in, out]: the summed operand is the other one."""
    y = ops.tanh(x @ w.T.reshape(x.shape[-1], -1) + b)
    dw, db = append_grad(ops.sum(y * y), [w, b])
    return [dw.T, db]


@pytest.mark.parametrize("fn", [layer_gradients, transposed_gradients])
@pytest.mark.parametrize("rows", [(96,), (65,), (5, 13), (3, 4, 8)])
def test_a_bias_gradient_is_summed_by_the_weight_gradients_matmul(fn: Any, rows: tuple[int, ...]) -> None:
    p = program(fn, [normal(*rows, 12), normal(20, 12), normal(20)])
    low = lowered(p)
    joined = [k for k in low.kernels if total_of(k)]
    assert len(joined) == 1
    assert "total_" in low.formula(joined[0])
    assert not any(total_of(k) for k in lowered(p, totals=False).kernels)
    for n, (found, wanted) in enumerate(zip(on_interpret(p, low), on_numpy(p), strict=True)):
        assert_close(found, wanted, 1e-5, 1e-5, f"output {n}")
    (name,) = {s.name for s, k in zip(generate(low, Limits()), low.kernels, strict=True) if total_of(k)}
    assert name.startswith("matmul")


def test_a_sum_over_other_rows_is_no_bias_gradient() -> None:
    def fn(x: Tensor, y: Tensor) -> list[Tensor]:
        # y summed along its columns, and times 2: neither is what the product has in hand
        return [x @ y, y.sum(1), (y * 2.0).sum(0)]

    low = lowered(program(fn, [normal(8, 16), normal(16, 16)]))
    assert not any(total_of(k) for k in low.kernels)


# Parts in the gradients' arena -------------------------------------------------------------------


class Deep(nn.Module):
    """Odd sizes: slots end in the middle of a block, and one parameter has no parts."""

    def __init__(self) -> None:
        self.first, self.last = nn.Linear(5, 67), nn.Linear(67, 3)
        self.scale = nn.Parameter(np.float32(1.5))

    def forward(self, x: Tensor) -> Tensor:
        return self.last(tg.tanh(self.first(x))) * self.scale


def train_step(device: Any, optimizer: Any, keep_grads: bool = False) -> tuple[Any, list[float], dict[str, Any]]:
    nn.init.manual_seed(0)
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2048, 5)).astype(np.float32), rng.normal(size=(2048, 3)).astype(np.float32)
    specs = {"x": tg.f32[2048, 5], "y": tg.f32[2048, 3]}

    async def steps() -> tuple[Any, list[float], dict[str, Any]]:
        train = await tg.compile(
            Deep(),
            lambda m, x, y: tg.mse_loss(m(x), y),
            optimizer,
            specs,
            device=device,
            seed=0,
            keep_grads=keep_grads,
        )
        losses = [(await train.step(x=x, y=y)).loss for _ in range(3)]
        return train, losses, (await train.state_dict())["model"]

    return tg.sync(steps())


def pack_sizes(graph: Graph, kind: str) -> int:
    return sum(n.type.size for n in graph.nodes if n.op == "pack" and n.attrs["name"].endswith(kind))


OPTIONS: list[dict[str, Any]] = [
    {},
    {"clip_norm": 0.05},
    {"normalize": True},
    {"groups": [("*.bias", {"weight_decay": 0.5})]},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_parts_of_gradients_are_added_up_by_the_update(options: dict[str, Any]) -> None:
    plain = train_step("numpy", optim.AdamW(1e-2, **options))
    on_cores = train_step(on_gpu(Numpy()), optim.AdamW(1e-2, **options))
    by_kernels = train_step(on_gpu(Interpret()), optim.AdamW(1e-2, **options))
    sizes = {kind: pack_sizes(on_cores[0].graph, kind) for kind in ("param", "grad")}
    assert sizes["grad"] > sizes["param"], "no gradient is in parts"
    for other in (on_cores, by_kernels):
        # the same sums in another order
        np.testing.assert_allclose(other[1], plain[1], rtol=1e-5)
        for name, wanted in plain[2].items():
            # Adam's first steps divide a gradient by its own size, so rounding of the smallest is seen
            np.testing.assert_allclose(other[2][name], wanted, rtol=1e-3, atol=1e-5, err_msg=name)


def test_parts_of_gradients_fit_into_one_binding() -> None:
    """All parts together are more than this binding; the smaller ones are in it."""
    limits = Limits(binding_size=64 << 10)
    model = nn.Sequential(nn.Linear(16, 8), nn.Linear(8, 32), nn.Linear(32, 8))
    step = compiled(model, lambda m, x: tg.mean(m(x) ** 2), optim.SGD(0.1), {"x": tg.f32[65536, 16]}, limits)
    sizes = step.lowered.memory.plan.arenas
    assert sizes["optim.pack0.param"] < sizes["optim.pack0.grad"] <= limits.binding_size
    large = compiled(model, lambda m, x: tg.mean(m(x) ** 2), optim.SGD(0.1), {"x": tg.f32[65536, 16]}, Limits())
    assert large.lowered.memory.plan.arenas["optim.pack0.grad"] > limits.binding_size


def test_gradients_that_the_host_reads_are_whole() -> None:
    train, _, _ = train_step(on_gpu(Interpret()), optim.SGD(0.0), keep_grads=True)
    plain, _, _ = train_step("numpy", optim.SGD(0.0), keep_grads=True)
    found, wanted = tg.sync(train.gradients()), tg.sync(plain.gradients())
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-6, err_msg=name)


def test_an_update_takes_one_kernel_whatever_the_number_of_parts() -> None:
    backend = on_gpu(Numpy())
    state = State(Deep(), backend, 0)
    optimizer = optim.SGD(0.1)
    specs = Structure({"x": tg.f32[2048, 5]})
    with state.entering(optimizer):
        recipe = step_recipe(state.module, lambda m, x: tg.mean(m(x) ** 2), optimizer, specs, state)
    graph = recipe(state.spans("optim")).graph(Limits())
    low = lower(graph, {"loss": graph.outputs[0]})
    adding = [k for k in low.kernels if all(graph.node(v).op == "place" for v in k.writes) and k.kind == "map"]
    assert adding == []
    assert sum(any(v in graph.updates.values() for v in k.writes) for k in low.kernels) <= 2  # the pack, and the count


def test_sums_that_a_matmul_computes_are_cut_as_the_matmul_is() -> None:
    p = for_many_cores(program(layer_gradients, [normal(4096, 12), normal(20, 12), normal(20)]))
    low = lowered(p)
    product = next(k for k in low.kernels if total_of(k))
    assert product.matmul is not None
    assert product.matmul.batch.size > 1
    for found, wanted in zip(on_interpret(p, low), on_numpy(p), strict=True):
        assert_close(found, wanted, 1e-4, 1e-3)


@pytest.mark.parametrize("software", [False, True], ids=["gpu", "cpu"])
@pytest.mark.parametrize("shape", [(4, 4), (65, 33)])
def test_a_matmul_may_store_where_the_data_says(shape: tuple[int, int], software: bool) -> None:
    """The gradient of a sort puts what the next layer's product gives to where the sort took it from."""
    x, w = normal(*shape), normal(shape[1], shape[1])

    def fn(x: Tensor, w: Tensor) -> Tensor:
        return ops.sum(ops.sort(x @ w)[0] @ w * np.arange(shape[1], dtype=np.float32))

    kernels = lowered(program(lambda x, w: append_grad(fn(x, w), [x, w]), [x, w])).kernels
    assert any(k.matmul and any(dynamics(s.index) for s in k.stores) for k in kernels)
    grad = tg.grad(fn, argnums=(0, 1), device=backend(software=software))
    for found, wanted in zip(
        tg.sync(grad(x, w)), tg.sync(tg.grad(fn, argnums=(0, 1), device="numpy")(x, w)), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6 * np.abs(wanted).max())
