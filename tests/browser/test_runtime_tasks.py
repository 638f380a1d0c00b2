"""Tasks that step the same runtime: they may be cancelled, interrupted or fail, and none keeps the others waiting."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from runtime_browser import LOSSES, X, make, soon
from runtime_plans import descent

pytestmark = pytest.mark.webgpu


async def test_a_cancelled_step_leaves_a_whole_step() -> None:
    runtime = await make(descent())
    assert await runtime.step({"x": X}) == LOSSES[0]
    task = asyncio.ensure_future(runtime.step({"x": X}))
    while not runtime._program._waiting:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await soon(runtime.step({"x": X})) == LOSSES[2]
    np.testing.assert_array_equal(await runtime.losses(), np.array(LOSSES[1:2], np.float32))
    assert (await runtime.download_states())["steps"] == 3
    runtime.destroy()


async def test_an_interrupt_in_the_callback_reaches_the_caller() -> None:
    """A keyboard interrupt strikes in whatever Python code runs next: while awaiting, in `wake`."""

    class Struck:
        def __init__(self, answer: Any) -> None:
            self.answer, self.strikes = answer, 1

        def deliver(self, status: int, value: int) -> bool:
            if self.strikes:
                self.strikes -= 1
                raise KeyboardInterrupt
            return self.answer.deliver(status, value)

    runtime = await make(descent())

    async def attempt() -> str:
        try:
            await runtime.step({"x": X})
        except KeyboardInterrupt:
            return "interrupted"
        return "went on"

    task = asyncio.ensure_future(attempt())
    waiting = runtime._program._waiting
    while not waiting:
        await asyncio.sleep(0)
    ((ticket, answer),) = waiting.items()
    waiting[ticket] = Struck(answer)
    assert await soon(task) == "interrupted"
    assert await soon(runtime.step({"x": X})) == LOSSES[1]
    np.testing.assert_array_equal(await runtime.losses(), np.array(LOSSES[:1], np.float32))
    runtime.destroy()


async def test_a_task_that_an_interrupt_kept_from_waking_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interrupt may also strike when the answer is there and its task does not run yet."""
    from tensorgrad.device import webgpu

    struck = []

    class Answer(webgpu._Answer):
        def set_result(self, result: tuple[int, int]) -> None:
            super().set_result(result)
            if not struck:
                struck.append(result)
                raise KeyboardInterrupt

    monkeypatch.setattr(webgpu, "_Answer", Answer)
    runtime = await make(descent())
    assert await soon(runtime.step({"x": X})) == LOSSES[0]
    assert len(struck) == 1
    assert await soon(runtime.step({"x": X})) == LOSSES[1]
    runtime.destroy()


async def test_what_a_task_does_after_a_step_is_its_own_affair() -> None:
    """The task goes on inside the callback of the step's promise: its errors and waits must not reach that."""
    runtime = await make(descent())

    async def fails() -> None:
        await runtime.step({"x": X})
        raise ValueError("mine")

    async def sleeps(count: int) -> list[float]:
        found = []
        for _ in range(count):
            found.append(await runtime.step({"x": X}))
            await asyncio.sleep(0)
        return found

    ended = await soon(asyncio.gather(fails(), sleeps(2), runtime.step({"x": X}), return_exceptions=True))
    assert str(ended[0]) == "mine"
    assert sorted([*ended[1], ended[2]], reverse=True) == LOSSES[1:]
    runtime.destroy()


async def test_other_tasks_run_while_one_steps() -> None:
    runtime = await make(descent())
    turns, done = 0, asyncio.Event()

    async def other() -> None:
        nonlocal turns
        while not done.is_set():
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.ensure_future(other())
    for _ in range(20):
        await runtime.step({"x": X})
    for _ in range(200):
        await runtime.submit({"x": X})
    done.set()
    await soon(task)
    assert turns > 20
    runtime.destroy()


async def test_a_lock_whose_holder_was_killed_is_taken_over() -> None:
    runtime = await make(descent())

    async def killed() -> None:
        await runtime._turns.__aenter__()  # an interrupt struck before the matching __aexit__

    await asyncio.ensure_future(killed())
    assert await soon(runtime.step({"x": X})) == LOSSES[0]
    assert not runtime._turns._lock.locked()
    runtime.destroy()
