"""Several programs on one state, on a device whose tensors have places: what lies together, and what moves."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from array_device import ArrayDevice, Idle
from tensorgrad import nn, optim
from tensorgrad.backend import WebGPU
from tensorgrad.device.base import Limits
from training import LINE, ONES, assert_same, squares

STEP = {"x": tg.f32[4, 3]}


def device(limits: Limits | None = None) -> Any:
    """Its kernels do nothing; it says where things are."""
    array = ArrayDevice(Idle())
    array.limits = limits or array.limits
    return WebGPU(array)


def normalized() -> nn.Module:
    return nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 3), nn.BatchNorm1d(3))


def places(program: Any) -> dict[str, Any]:
    """Where a program has its parameters and states."""
    runtime = program.built.executor
    return {name: runtime._slices[at] for name, at in (runtime.plan.params | runtime.plan.states).items()}


def assert_agree(*programs: Any) -> None:
    """They have the same tensors at the same places."""
    held: dict[str, Any] = {}
    for program in programs:
        for name, place in places(program).items():
            assert held.setdefault(name, place) == place, name


def arenas(program: Any) -> dict[str, int]:
    return program.built.kernels and program.built.compiled.program.plan.arenas


# Programs that are made at the same time -------------------------------------------------------------


async def test_programs_that_are_compiled_at_once_agree_on_places() -> None:
    predict = await tg.compile_forward(nn.Linear(2, 1), lambda m, x: m(x), {"x": tg.f32[None, 2]}, device=device())
    state = predict.state
    compiled = [
        tg.compile(state.module, squares, make(0.1), LINE, state=state) for make in (optim.SGD, optim.Adam, optim.Adam)
    ]
    first, second, third = await asyncio.gather(*compiled)
    assert_agree(first, second, third)
    assert state.placed >= {"weight", "bias", "optim.steps", "optim2.steps", "optim3.steps"}
    for train in (first, second, third):
        assert (await train.step(x=ONES)).loss == 0.0


@pytest.mark.parametrize("first", ["prediction", "training"])
async def test_a_prediction_while_a_training_is_compiled(first: str) -> None:
    predict = await tg.compile_forward(nn.Linear(2, 1), lambda m, x: m(x), {"x": tg.f32[None, 2]}, device=device())
    work: list[Awaitable[Any]] = [
        predict(x=ONES),
        tg.compile(predict.state.module, squares, optim.Adam(0.1), LINE, state=predict.state),
    ]
    _, train = found = await asyncio.gather(*(work if first == "prediction" else reversed(work)))
    train = train if first == "prediction" else found[0]
    assert_agree(predict, train)
    assert ("optim.pack0.param" in arenas(train)) == (first == "training")


async def test_of_two_losses_with_one_optimizer_the_one_that_fails_takes_nothing_from_the_other() -> None:
    predict = await tg.compile_forward(nn.Linear(2, 1), lambda m, x: m(x), {"x": tg.f32[None, 2]}, device=device())
    state, optimizer = predict.state, optim.SGD(0.1)

    def build(loss: Any, optimizer: Any = optimizer) -> Any:
        return tg.compile(state.module, loss, optimizer, LINE, state=state)

    # while the first is compiled, the others wait for their turn
    work = build(squares, optim.Adam(0.1)), build(lambda m, x: x.sum()), build(squares)
    _, failed, train = await asyncio.gather(*work, return_exceptions=True)
    assert isinstance(failed, tg.TraceError)
    assert isinstance(train, tg.Train)
    await train.step(x=ONES)
    assert state.counts.keys() == {"optim", "optim2"}


async def test_two_losses_share_what_the_first_has_laid_together() -> None:
    model = normalized()
    first = await tg.compile(model, squares, optim.SGD(0.1), STEP, device=device())
    second = await tg.compile(model, squares, optim.SGD(0.1), STEP, state=first.state)
    third = await tg.compile(model, squares, first.optimizer, STEP, state=first.state)
    assert {"buffers.f32", "optim.pack0.param"} <= arenas(first).keys()
    assert_agree(first, second, third)


# Moves -------------------------------------------------------------------------------------------------


async def together(model: nn.Module, **where: Any) -> list[Any]:
    return [await tg.compile(model, squares, optim.Adam(0.1), STEP, **where)]


async def the_first_is_gone(model: nn.Module, **where: Any) -> list[Any]:
    """The second optimizer's tensors lie by themselves, and then the first optimizer comes again."""
    first = await tg.compile(model, squares, optim.Adam(0.1), STEP, **where)
    second = await tg.compile(model, squares, optim.Adam(0.2), STEP, state=first.state)
    first.destroy()
    return [second, await tg.compile(model, squares, first.optimizer, STEP, state=first.state)]


async def after_a_prediction(model: nn.Module, **where: Any) -> list[Any]:
    """One optimizer, whose losses train different parameters: by themselves, nothing speaks against it."""
    predict = await tg.compile_forward(model, lambda m, x: m(x), STEP, **where)
    await predict(x=np.ones((4, 3), np.float32))
    optimizer, state = optim.Adam(0.1), predict.state
    whole = await tg.compile(model, squares, optimizer, STEP, state=state)
    part = await tg.compile(model, lambda m, x: squares(list(m.children())[1], x), optimizer, STEP, state=state)
    return [whole, part]


async def with_an_optimizer_each(model: nn.Module, **where: Any) -> list[Any]:
    first = await tg.compile(model, squares, optim.SGD(0.1), STEP, **where)
    more = [await tg.compile(model, squares, make(0.1), STEP, state=first.state) for make in (optim.SGD, optim.Adam)]
    return [first, *more, await tg.compile(model, squares, first.optimizer, STEP, state=first.state)]


HISTORIES = [together, the_first_is_gone, after_a_prediction, with_an_optimizer_each]


async def numbered(state: Any) -> dict[str, Any]:
    """The state dict, after every number was made another one."""
    saved = await state.state_dict()
    for part in ("model", "optimizer"):
        for n, name in enumerate(saved[part]):
            array = saved[part][name]
            saved[part][name] = (np.arange(array.size).reshape(array.shape) + n + 1).astype(array.dtype)
    await state.load_state_dict(saved)
    return saved


@pytest.mark.parametrize("limits", [Limits(), Limits(binding_size=512)], ids=["same", "small"])
@pytest.mark.parametrize("history", HISTORIES)
async def test_every_legal_history_can_move(history: Callable[..., Any], limits: Limits) -> None:
    trains = await history(normalized(), device=device())
    state, programs = trains[0].state, [t.built for t in trains]
    saved = await numbered(state)
    trains[0].snapshot = saved
    laid = [set(arenas(t)) for t in trains]
    await trains[0].restore(device(limits))
    assert_same(await state.state_dict(), saved)
    assert_agree(*trains)
    for train, program, before in zip(trains, programs, laid, strict=True):
        assert train.built is not program
        assert max(arenas(train).values(), default=0) <= limits.binding_size
        if limits == Limits():
            assert set(arenas(train)) == before
        with pytest.raises(tg.TensorgradError, match="destroyed"):
            await program.executor.step({})
        await train.step(x=np.ones((4, 3), np.float32))


@pytest.mark.parametrize("history", HISTORIES)
async def test_a_move_that_fails_leaves_everything_where_it_was(history: Callable[..., Any]) -> None:
    trains = await history(normalized(), device=device())
    state, built = trains[0].state, [t.built for t in trains]
    saved = await numbered(state)
    trains[0].snapshot = saved
    counts = dict(state.counts)
    assert any(counts.values())
    other = device()
    whole, other.device.compile = other.device.compile, _fails_after(other.device.compile, len(trains) - 1)
    with pytest.raises(tg.ShaderError, match="no more"):
        await trains[0].restore(other)
    assert [t.built for t in trains] == built
    assert state.counts == counts
    assert_same(await state.state_dict(), saved)
    await trains[0].step(x=np.ones((4, 3), np.float32))
    other.device.compile = whole
    await trains[0].restore(other)
    assert_same(await state.state_dict(), saved)
    assert_agree(*trains)


def _fails_after(compile_: Any, programs: int) -> Any:
    made = []

    async def compile_few(recording: Any) -> Any:
        if len(made) == programs:
            raise tg.ShaderError("no more")
        made.append(recording)
        return await compile_(recording)

    return compile_few


async def test_another_model_goes_on_the_same_device() -> None:
    """Its tensors are its own, and those of the model that it replaces are freed with the last reference."""
    one = await tg.compile(normalized(), lambda m, x: tg.mean(m(x) ** 2), optim.Adam(0.1), STEP, device=device())
    backend: Any = one.state.backend
    held = set(backend.device.memory)
    other = await tg.compile(
        nn.Linear(3, 3), lambda m, x: tg.mean(m(x) ** 2), optim.Adam(0.1), STEP, device=one.state.backend
    )
    assert other.state.backend is backend
    assert other.state.store is not one.state.store
    assert held < set(backend.device.memory)
    assert not {p.buffer for p in places(one).values()} & {p.buffer for p in places(other).values()}
    before = await one.state_dict()
    await other.reset()
    assert_same(await one.state_dict(), before)
    del one, before
    gc.collect()
    assert not held & set(backend.device.memory)
    await other.step(x=np.ones((4, 3), np.float32))
