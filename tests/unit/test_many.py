"""`train.run_steps` on the devices without a GPU, and the device memory of batches."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad import nn, optim
from training import assert_same, batch, single, stacked, start


@pytest.mark.parametrize("device", ["numpy", "interpret"])
def test_many_steps_are_the_same_as_single_ones(device: str) -> None:
    async def run() -> None:
        data = stacked(range(3))
        one, many = await start(device), await start(device)
        expected = await single(one, data, 7)
        handle = await many.upload(data)
        data["x"][:] = 0  # a copy is what counts
        losses = np.concatenate([await many.run_steps(2, handle), await many.run_steps(5, stacked(range(2, 3)))])
        assert losses.dtype == np.float32
        assert losses[:2].tolist() == expected[:2]
        assert losses[2] == expected[2]
        assert many.state.steps == many.state.calls == 7
        again = await start(device)
        assert (await again.run_steps(7, stacked(range(3)))).tolist() == expected
        assert_same(await again.state_dict(), await one.state_dict())

    tg.sync(run())


def test_a_schedule_and_random_numbers_go_on_step_by_step() -> None:
    async def run() -> None:
        train = await start("numpy")
        assert len(set((await train.run_steps(6, stacked(range(1)))).tolist())) == 6

    tg.sync(run())


def test_a_model_without_inputs() -> None:
    class Point(nn.Module):
        def __init__(self) -> None:
            self.at = nn.Parameter(np.array([4.0]))

    async def run() -> None:
        train = await tg.compile(Point(), lambda model: tg.sum(model.at**2), optim.SGD(0.25), {}, device="numpy")
        assert (await train.run_steps(3, {})).tolist() == [16.0, 4.0, 1.0]

    tg.sync(run())


def test_what_does_not_fit_changes_nothing() -> None:
    async def run() -> None:
        train = await start("numpy")
        good = stacked(range(2))
        before = await train.state_dict()
        cases: list[tuple[Any, Any, str]] = [
            (0, good, "the number of steps must be a whole number, 1 or more, got 0"),
            (-3, good, "1 or more, got -3"),
            (2.0, good, r"a whole number, 1 or more, got 2\.0"),
            (True, good, "1 or more, got True"),
            (1, {"x": good["x"]}, r"missing \['t'\]"),
            (1, {**good, "x": good["x"][:1]}, r"same number of batches.*x of shape \[1, 8, 5\], t of shape \[2, 8\]"),
            (1, {"x": good["x"][:0], "t": good["t"][:0]}, "one or more, on its first axis"),
            (1, {**good, "t": np.int32(3)}, r"t of shape \[\]"),
            (
                1,
                {**good, "x": good["x"][:, :7]},
                r"the array of batches of 'x' has shape \[2, 7, 5\], expected",
            ),
            (1, batch(0), r"batches of 'x' has shape \[8, 5\], expected f32\[8, 8, 5\]"),
            (1, {**good, "t": good["t"].astype(np.float32)}, "batches of 't' has dtype float32"),
            (1, {**good, "t": good["t"].astype(np.int64) + 2**31}, "which i32 cannot store"),
            (1, {**good, "x": [[1.0], [1.0, 2.0]]}, "batches of 'x' are not an array"),
        ]
        for k, given, message in cases:
            with pytest.raises(tg.InputError, match=message) as caught:
                await train.run_steps(k, given)
            assert f"\n  at {__file__}" in str(caught.value)
        gone = await train.upload(good)
        gone.destroy()
        gone.destroy()
        with pytest.raises(tg.InputError, match="batches were destroyed"):
            await train.run_steps(1, gone)
        other = await tg.compile(
            nn.Linear(5, 1), lambda m, x: tg.mean(m(x)), optim.SGD(0.1), {"x": tg.f32[8, 5]}, device="numpy"
        )
        with pytest.raises(tg.InputError, match=r"hold x f32\[8, 5\], t i32\[8\], but a step takes x f32\[8, 5\]\n"):
            await other.run_steps(1, await train.upload(good))
        assert_same(await train.state_dict(), before)

    tg.sync(run())


def test_a_loss_that_is_not_finite_changes_nothing() -> None:
    async def run() -> None:
        data = stacked(range(4))
        data["x"][1, 2] = np.nan
        train = await start("numpy", dropout=0.0)
        losses = await train.run_steps(4, data)
        assert np.isfinite(losses).tolist() == [True, False, True, True]
        assert train.state.steps == 3
        other = await start("numpy", dropout=0.0)
        assert (await single(other, data, 4))[2:] == losses[2:].tolist()
        assert_same(await train.state_dict(), await other.state_dict())
        raising = await start("numpy", dropout=0.0, nonfinite="raise")
        with pytest.raises(tg.NonFiniteError, match="the loss of step 2 is nan"):
            await raising.run_steps(4, data)
        assert raising.state.steps == 1

    tg.sync(run())


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([1], "step 2 is nan; it changed nothing, but later steps of its chunk were made, 2 of them"),
        ([1, 2], "step 2 is nan; it changed nothing, but later steps of its chunk were made, 1 of them"),
        ([2, 3], "step 3 is nan; weights, optimizer state and step count are as before it"),
    ],
)
async def test_a_loss_that_is_not_finite_in_a_chunk(bad: list[int], message: str) -> None:
    data = stacked(range(4))
    data["x"][bad, 2] = np.nan
    train, other = await start("numpy", dropout=0.0, nonfinite="raise"), await start("numpy", dropout=0.0)
    for each in (train, other):
        executor: Any = each.built.executor
        each._chunk = executor.at_once = 4
    with pytest.raises(tg.NonFiniteError, match=message):
        await train.run_steps(4, data)
    await other.run_steps(4, data)
    assert train.state.steps == 4 - len(bad)
    assert_same(await train.state_dict(), await other.state_dict())


def test_snapshots_are_made_on_the_way() -> None:
    async def run() -> None:
        train = await start("numpy", snapshot_every=3)
        await train.run_steps(8, stacked(range(2)))
        assert train.snapshot is not None
        assert train.snapshot["calls"] == 6

    tg.sync(run())


def test_others_get_their_turn_between_chunks_and_a_cancelled_run_leaves_whole_steps() -> None:
    async def run() -> None:
        train = await start("numpy")
        running = asyncio.ensure_future(train.run_steps(10_000, stacked(range(2))))
        seen = (await train.state_dict())["calls"]
        while (await train.state_dict())["calls"] < seen + 3:
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        saved = await train.state_dict()
        done = int(saved["optimizer"]["optim.steps"])
        assert 3 <= done < 10_000
        other = await start("numpy")
        await other.run_steps(done, stacked(range(2)))
        assert_same(await other.state_dict(), saved, counters=False)

    tg.sync(run())
