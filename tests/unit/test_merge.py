"""Matmuls that share an operand: which are merged, that the numbers stay, and that nothing is copied."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from merging import CASES, Case, Heads, Rounded, train
from steps import Compiled, compiled
from tensorgrad import backend, nn, optim, passes
from tensorgrad.backend import Interpret, Numpy
from tensorgrad.device.base import Limits
from tensorgrad.graph import Value
from tensorgrad.inspect.apart import apart
from tensorgrad.lower.lowering import lower
from tensorgrad.lower.memory import PlanError, verify
from tensorgrad.ops.arena import temporary_packs
from tensorgrad.passes.stacks import Stacks
from tensorgrad.passes.unite import unite
from tensorgrad.trace import tensor_input, trace


def on_gpu(device: Any, limits: Limits | None = None) -> Any:
    """The backend, which compiles as for a GPU."""
    device.limits = limits or Limits()
    return device


def matmuls(found: Any) -> int:
    return sum(k.matmul is not None for k in found.built.lowered.kernels)


@pytest.mark.parametrize("name", CASES)
def test_the_numbers_stay(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]
    plain = asyncio.run(train(case, "numpy"))
    merged = asyncio.run(train(case, on_gpu(Interpret())))
    by_rules = asyncio.run(train(case, on_gpu(Numpy())))
    monkeypatch.setattr(backend, "lower", lambda *args, **options: lower(*args, **{**options, "fuse": False}))
    unfused = asyncio.run(train(case, on_gpu(Interpret())))
    for other in (merged, by_rules, unfused):
        # the same sums in another order
        np.testing.assert_allclose(other[1], plain[1], rtol=1e-5)
        for weight, wanted in plain[2].items():
            np.testing.assert_allclose(other[2][weight], wanted, rtol=1e-4, atol=1e-5, err_msg=weight)
    monkeypatch.undo()
    monkeypatch.setattr(passes, "merge", lambda graph, limits: graph)
    apart = asyncio.run(train(case, on_gpu(Interpret()), steps=0))
    assert matmuls(apart[0]) - matmuls(merged[0]) == case.saved
    # biases of these sizes do not lie side by side: one kernel copies their gradients
    assert len(merged[0].built.lowered.kernels) <= len(apart[0].built.lowered.kernels) - case.saved + 1


class Layers(nn.Module):
    """Several attentions one after the other; nothing in them needs padding."""

    def __init__(self, count: int = 2, width: int = 64) -> None:
        self.layers = nn.ModuleList(Attention(width) for _ in range(count))

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        for layer in self.layers:
            x = x + layer(x)
        return x


class Attention(Heads):
    def __init__(self, width: int) -> None:
        super().__init__(width, (width, width, width))
        self.out = nn.Linear(width, width)


def step(model: nn.Module, limits: Limits | None = None) -> Compiled:
    specs = {"x": tg.f32[32, 8, 64]}
    return compiled(model, lambda m, x: tg.mean(m(x) ** 2), optim.SGD(0.1), specs, limits or Limits())


def test_no_kernel_only_copies_and_layers_share_their_source() -> None:
    found = step(Layers())
    copies = [k for k in found.lowered.kernels if k.kind == "map" and all(s.expr.op == "load" for s in k.stores)]
    assert copies == []
    products = [(i, k.matmul) for i, k in enumerate(found.lowered.kernels) if k.matmul]
    merged = [i for i, m in products if m.batch.size == 3 or m.k.size == 3 * 64]
    # forward and the gradients of the weights, in both layers; the first one's input needs no gradient
    assert len(merged) == 5
    assert len({found.kernels[i].wgsl for i in merged}) == 3


def test_gradients_of_all_layers_take_turns_in_one_arena() -> None:
    two, four = (step(Layers(count)).lowered for count in (2, 4))
    assert len(set(temporary_packs(four.graph).values())) == 4
    temporary = [[name for name in low.memory.plan.arenas if name.startswith("temp")] for low in (two, four)]
    assert [len(names) for names in temporary] == [1, 1]


def test_gradients_of_16_bits_lie_side_by_side_as_such() -> None:
    case = Case(lambda: Rounded(5, (64, 64, 64)), 4)
    plain, merged = (asyncio.run(train(case, device)) for device in ("numpy", on_gpu(Interpret())))
    # a number that is rounded the other way is off by a two-thousandth of itself
    np.testing.assert_allclose(merged[1], plain[1], rtol=1e-3)
    graph = merged[0].built.lowered.graph
    packs = temporary_packs(graph)
    assert len(packs) == 3
    assert {graph.type(value).dtype for value in (*packs, *packs.values())} == {tg.f16}


def test_a_check_reads_what_every_layer_put_into_the_arena() -> None:
    found = step(Layers())
    copy, packs = apart(found.lowered, found.kernels), temporary_packs(found.lowered.graph)
    assert packs.keys() <= copy.outputs.keys()
    places = {part: copy.plan.buffers[copy.plan.outputs[copy.outputs[part]]] for part in packs}
    assert len({(spec.arena, spec.offset) for spec in places.values()}) == len(packs)
    for kernel, spec in zip(found.lowered.kernels, copy.kernels, strict=True):
        for pack in set(packs.values()) & kernel.loads().keys():
            bound = (copy.plan.buffers[b.buffer] for b in spec.bindings)
            (whole,) = (b for b in bound if b.name == f"value {pack}")
            assert {whole.arena} == {places[part].arena for part in found.lowered.graph.node(pack).inputs}


def test_a_plan_in_which_an_arena_is_overwritten_too_early_is_refused() -> None:
    """The weights' gradients of one layer are computed when those of the next one are where its operands were."""
    low = step(Layers()).lowered
    kernels, owners = list(low.kernels), {v: v for v in low.memory.where}
    verify(low.graph, kernels, low.memory, owners)
    temporary = temporary_packs(low.graph)
    placed = {Value(n.id) for n in low.graph.nodes if n.op == "place"} - temporary.keys()
    weights = [k for k in kernels if placed.intersection(k.writes) and set(temporary.values()) & k.loads().keys()]
    kernels.remove(weights[0])
    kernels.insert(kernels.index(weights[1]), weights[0])
    with pytest.raises(PlanError, match=r"reads %\d+; temp\d+\.\d holds %\d+"):
        verify(low.graph, kernels, low.memory, owners)


def test_results_beyond_a_binding_are_not_merged() -> None:
    nbytes = 4 * 32 * 8 * 64
    batches = [
        {k.matmul.batch.size for k in step(Layers(), Limits(binding_size=size)).lowered.kernels if k.matmul}
        for size in (3 * nbytes, 3 * nbytes - 4)
    ]
    assert 3 in batches[0]
    assert 3 not in batches[1]


def test_stacks_that_need_each_other_are_left() -> None:
    def chains(x: tg.Tensor) -> list[tg.Tensor]:
        a, b = tg.exp(x), tg.sin(x)
        return [tg.sin(a), tg.exp(b)]

    graph = trace(lambda: chains(tensor_input("x", (3,), tg.f32)))
    a, b, c, d = (Value(n.id) for n in graph.nodes if n.op in ("exp", "sin"))
    stacks = Stacks(graph)
    stacks.joint |= dict.fromkeys((a, d), (a, d)) | dict.fromkeys((b, c), (b, c))
    assert unite(graph, stacks, {}) is graph
