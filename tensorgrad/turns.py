"""One after the other: who uses a device's state, in the order in which they asked."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Iterator
from typing import Any


class _AtOnce:
    """Does not wait when it is awaited, in a third of the time of a coroutine that does nothing."""

    def __await__(self) -> Iterator[Any]:
        return iter(())


_AT_ONCE: Any = _AtOnce()


class Turns:
    """One user of the device state at a time, in the order in which they asked: `async with turns`.

    An interrupt can end a task anywhere, so the turn of a task that has ended is taken from it.
    """

    def __init__(self) -> None:
        self._holder: asyncio.Task[Any] | None = None
        self._queue: deque[tuple[asyncio.Future[None], asyncio.Task[Any] | None]] = deque()

    def __aenter__(self) -> Awaitable[None]:
        task = asyncio.current_task()
        if (holder := self._holder) is not None:
            if task is not None and holder.get_loop() is not task.get_loop():
                # each asyncio.run has a loop of its own, and with the last one its tasks have ended
                self._holder, self._queue = None, deque()
            elif holder.done():
                self._pass_on()
        if self._holder is None:
            self._holder = task
            return _AT_ONCE
        return self._wait(task)

    async def _wait(self, task: asyncio.Task[Any] | None) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._queue.append((turn, task))
        try:
            await turn
        except BaseException:
            if self._holder is task:  # cancelled after its turn had come
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        self._holder = None
        while self._queue:
            turn, task = self._queue.popleft()
            if not turn.done() and not (task and task.done()):
                self._holder = task
                turn.set_result(None)
                return

    def __aexit__(self, *error: object) -> Awaitable[None]:
        self._pass_on()
        return _AT_ONCE
