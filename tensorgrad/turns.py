"""One after the other: who uses a device's state, in the order in which they asked."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any


class Turns:
    """One user of the device state at a time, in the order in which they asked.

    An interrupt can end a task anywhere, so a lock whose holder has ended is taken from it.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._holder: asyncio.Task[Any] | None = None

    async def __aenter__(self) -> None:
        if self._loop is not (loop := asyncio.get_running_loop()):
            # each asyncio.run has a loop of its own, and with the last one its tasks have ended
            self._loop, self._lock = loop, asyncio.Lock()
        elif self._lock.locked() and self._holder is not None and self._holder.done():
            self._lock.release()
        await self._lock.acquire()
        self._holder = asyncio.current_task()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._holder = None
        self._lock.release()
