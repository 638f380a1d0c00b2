"""A training's life on the numpy device: steps, queued steps, interrupts, and what is left after them."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad import nn, optim
from tensorgrad.device.base import LOSS_RING
from training import LINE, ONES, SPECS, assert_same, batch, line, loss_fn, losses, squares, start

NAN = ONES * np.float32("nan")


# Queued steps ---------------------------------------------------------------------------------------


def counting(model: nn.Linear, x: tg.Tensor) -> tg.Tensor:
    """The input's first number, whatever the weights are."""
    return tg.sum(model.weight) * 0.0 + x[0, 0]


async def test_queued_steps_give_their_losses_in_order_and_the_last_1024_of_them() -> None:
    train = await line(counting)
    assert LOSS_RING == 1024
    for first, last in ((0, 3), (3, 3), (3, 9 + LOSS_RING)):
        for i in range(first, last):
            await train.submit(x=ONES * i)
        found = await train.losses()
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, np.arange(first, last)[-LOSS_RING:])
    assert train.state.steps == 9 + LOSS_RING


async def test_losses_are_of_the_queued_steps_only() -> None:
    train = await line(counting)
    await train.submit(x=ONES)
    assert (await train.step(x=2 * ONES)).loss == 2
    await train.submit(x=3 * ONES)
    np.testing.assert_array_equal(await train.losses(), [1, 3])
    assert (await train.losses()).size == 0


async def test_queued_steps_are_steps() -> None:
    train, twin = await start("numpy"), await start("numpy")
    for i in range(3):
        await train.submit(batch(i))
    np.testing.assert_array_equal(await train.losses(), np.array(await losses(twin, 0, 3), np.float32))
    assert_same(await train.state_dict(), await twin.state_dict())


# Losses that are not finite -------------------------------------------------------------------------


async def adam(**options: Any) -> tg.Train:
    return await line(optimizer=optim.Adam(optim.StepLR(0.1, 2)), **options)


@pytest.mark.parametrize("ask", ["losses", "state_dict"])
async def test_a_queued_loss_that_is_not_finite_is_no_step(ask: str) -> None:
    train, twin = await adam(), await adam()
    await train.submit(x=NAN)
    assert train.state.steps == 1, "nobody asked the device yet"
    await getattr(train, ask)()
    assert train.state.steps == 0
    for factor in (1, 2, 3):  # bias corrections and the schedule follow the steps that were made
        assert (await train.step(x=ONES * factor)).loss == (await twin.step(x=ONES * factor)).loss
    assert_same(await train.state_dict(), await twin.state_dict(), counters=False)


async def test_the_count_is_right_after_a_bad_loss_that_was_queued_and_then_a_good_step() -> None:
    train = await adam()
    await train.submit(x=NAN)
    assert np.isfinite((await train.step(x=ONES)).loss)
    assert not np.isfinite(await train.losses()).any()
    assert train.state.steps == int((await train.state_dict())["optimizer"]["optim.steps"]) == 1


async def test_the_count_is_right_after_a_bad_loss_that_was_forgotten() -> None:
    train = await line(counting)
    await train.submit(x=NAN)
    for _ in range(LOSS_RING):
        await train.submit(x=ONES)
    assert np.isfinite(await train.losses()).all()
    assert train.state.steps == LOSS_RING


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
async def test_a_loss_that_is_not_finite_changes_nothing_and_may_raise(bad: float) -> None:
    poisoned = batch(1)
    poisoned["x"][2] = bad
    skips, raises = await start("numpy", dropout=0.0), await start("numpy", dropout=0.0, nonfinite="raise")
    for train in (skips, raises):
        await losses(train, 0, 1)
        before = await train.state_dict()
        if train is skips:
            assert not np.isfinite((await train.step(poisoned)).loss)
        else:
            with pytest.raises(tg.NonFiniteError, match=r"the loss of step 2 is nan; weights.* as before it"):
                await train.step(poisoned)
        assert_same(await train.state_dict(), before, counters=False)
        assert train.state.steps == 1
    assert await losses(skips, 1, 3) == await losses(raises, 1, 3)


# Steps at once, interrupts ----------------------------------------------------------------------------


async def test_steps_at_once_are_steps_in_sequence() -> None:
    expected = await losses(await start("numpy"), 0, 6)
    train = await start("numpy")
    both = await asyncio.gather(train.step(batch(0)), train.step(batch(1)))
    assert [result.loss for result in both] == expected[:2]
    assert train.state.steps == 2
    mixed = await asyncio.gather(train.submit(batch(2)), train.state_dict(), train.step(batch(3)), train.losses())
    assert int(mixed[1]["optimizer"]["optim.steps"]) == mixed[1]["calls"] == 3
    assert mixed[2].loss == expected[3]
    np.testing.assert_array_equal(mixed[3], np.array(expected[2:3], np.float32))


async def cancelled(awaitable: Awaitable[Any], turns: int) -> None:
    """Begins it, and cancels it after some turns of the event loop."""
    task = asyncio.ensure_future(awaitable)
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("turns", [0, 1])
@pytest.mark.parametrize("call", ["step", "submit", "profile"])
async def test_a_step_that_is_cancelled_was_made_or_not(call: str, turns: int) -> None:
    train, twin = await start("numpy", dropout=0.0), await start("numpy", dropout=0.0)
    assert await losses(train, 0, 1) == await losses(twin, 0, 1)
    await cancelled(getattr(train, call)(batch(9)), turns)
    saved = await train.state_dict()
    assert train.state.steps == int(saved["optimizer"]["optim.steps"]) == 1
    assert_same(saved, await twin.state_dict(), counters=False)
    await cancelled(getattr(train, call)(batch(9)), turns)
    assert await losses(train, 1, 3) == await losses(twin, 1, 3), "the next step finds out by itself"
    assert train.state.steps == 3


async def test_an_interrupt_in_the_middle_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    train, twin = await start("numpy", dropout=0.0), await start("numpy", dropout=0.0)
    executor: Any = train.built.executor

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(executor, "_evaluate", interrupt)
        with pytest.raises(KeyboardInterrupt):
            await train.step(batch(0))
    assert await losses(train, 0, 2) == await losses(twin, 0, 2)
    assert_same(await train.state_dict(), await twin.state_dict(), counters=False)


async def test_a_schedule_that_fails_makes_no_step() -> None:
    train = await start("numpy")
    before = await train.state_dict()

    def schedule(step: int) -> float:
        raise RuntimeError("no rate today")

    lr = train.optimizer.lr
    train.set_lr(schedule)
    with pytest.raises(RuntimeError, match="no rate today"):
        await train.step(batch(0))
    assert_same(await train.state_dict(), before)
    train.set_lr(lr)
    assert await losses(train, 0, 2) == await losses(await start("numpy"), 0, 2)


# The end of a training, and its return ------------------------------------------------------------------


async def test_a_destroyed_training_leaves_its_state() -> None:
    train, twin = await start("numpy"), await start("numpy")
    await losses(train, 0, 2)
    await losses(twin, 0, 2)
    predict = await train.attach(lambda model, x: model(x), (SPECS["x"],))
    train.destroy()
    train.destroy()
    calls: list[Callable[[], Awaitable[Any]]] = [
        lambda: train.step(batch(2)),
        lambda: train.submit(batch(2)),
        lambda: train.profile(batch(2)),
        lambda: train.check(batch(2)),
        train.losses,
    ]
    for call in calls:
        with pytest.raises(tg.TensorgradError, match="was destroyed; compile again") as caught:
            await call()
        assert f"\n  at {__file__}" in str(caught.value)
    assert_same(await train.state_dict(), await twin.state_dict())
    assert (await predict(batch(0)["x"])).shape == (8, 3)
    again = await tg.compile(train.state.module, loss_fn, train.optimizer, SPECS, state=train.state)
    assert (await again.step(batch(2))).loss == (await losses(twin, 2, 3))[0]
    await again.reset()
    assert await losses(again, 0, 2) == await losses(await start("numpy"), 0, 2)


class Counter(nn.Module):
    """A buffer and states that do not begin at zero, and a weight."""

    def __init__(self) -> None:
        self.weight = nn.Parameter([1.0, 2.0])
        self.seen = nn.Buffer([5.0])
        self.marks = nn.Buffer(np.array([True, False]))


def counter_loss(model: Counter, x: tg.Tensor) -> tg.Tensor:
    half, seven = tg.state_input("half", (2,), initial=0.5), tg.state_input("seven", (), tg.i32, initial=7)
    for name, state, new in (
        ("half", half, half * 2.0),
        ("seven", seven, seven + 1),
        ("seen", model.seen, model.seen + 1.0),
        ("marks", model.marks, tg.logical_not(model.marks)),
    ):
        tg.update_state(state, tg.capture(name, new))
    return tg.sum((model.weight * x) ** 2)


async def test_reset_goes_back_to_initial_values_of_every_kind() -> None:
    model, specs = Counter(), {"x": tg.f32[2]}
    train = await tg.compile(model, counter_loss, optim.SGD(0.1, momentum=0.9), specs, device="numpy", seed=4)
    first = await train.state_dict()
    assert first["optimizer"]["seven"].dtype == np.int32
    runs = []
    for _ in range(2):
        results = [await train.step(x=np.ones(2, np.float32)) for _ in range(3)]
        assert [int(r.captures["seven"]) for r in results] == [8, 9, 10]
        assert [float(r.captures["half"][0]) for r in results] == [1, 2, 4]
        assert [r.captures["marks"].tolist() for r in results[:2]] == [[False, True], [True, False]]
        assert float(results[-1].captures["seen"][0]) == 8
        runs.append([r.loss for r in results])
        await train.reset()
        assert_same(await train.state_dict(), first)
        assert train.state.counts == {"optim": 0}
    assert runs[0] == runs[1]
    assert runs[0][0] > runs[0][1]


async def test_a_restored_training_goes_on_from_its_snapshot() -> None:
    expected = await losses(await start("numpy"), 0, 7)
    train = await start("numpy", snapshot_every=2)
    with pytest.raises(tg.InputError, match="no snapshot to restore"):
        await train.restore()
    assert await losses(train, 0, 5) == expected[:5]
    await train.restore()
    assert train.state.steps == 4
    assert await losses(train, 4, 7) == expected[4:]


@pytest.mark.parametrize("end", ["destroyed", "forgotten"])
async def test_a_restore_does_without_a_training_that_is_gone(end: str) -> None:
    first = await line(optimizer=optim.Adam(0.1))
    state = first.state
    second = await tg.compile(state.module, squares, optim.Adam(0.1), LINE, state=state, snapshot_every=1)
    await first.step(x=ONES)
    await second.step(x=ONES)
    if end == "destroyed":
        first.destroy()
    del first
    gc.collect()
    for steps in (1, 2, 3):
        await second.restore()
        assert state.counts == {"optim": 0, "optim2": steps}
        before = (await second.state_dict())["model"]["weight"]
        assert np.isfinite((await second.step(x=ONES)).loss)
        assert not np.array_equal((await second.state_dict())["model"]["weight"], before)
