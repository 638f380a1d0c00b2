"""Waiting for a coroutine from code that is not one."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Awaitable
from typing import TypeVar

from tensorgrad.callsite import call_site
from tensorgrad.errors import TraceError

T = TypeVar("T")


def sync(awaitable: Awaitable[T]) -> T:
    """Waits for an awaitable and returns its result, where that can be done.

    In a browser this needs JavaScript Promise Integration (Chromium has it), and not right after
    `await train.step(...)` in the same task, which goes on within a callback of the browser's: use
    `await` there, or `await asyncio.sleep(0)` before. Elsewhere it needs that no event loop runs
    in this thread.

    Raises:
        TraceError: where it cannot wait; `await` always can.

    >>> import tensorgrad as tg
    >>> double = tg.jit(lambda x: x * 2, device="numpy")
    >>> float(tg.sync(double(4.0)))
    8.0
    """
    if sys.platform == "emscripten":
        return _in_page(awaitable)
    if _loop_runs():
        _close(awaitable)
        raise TraceError("tg.sync cannot wait inside a running event loop; write `await ...` instead", call_site())
    return asyncio.run(_await(awaitable))  # not where an exception is handled, which an error in it would name


def _loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _await(awaitable: Awaitable[T]) -> T:
    return await awaitable


def _in_page(awaitable: Awaitable[T]) -> T:
    from pyodide.ffi import can_run_sync, run_sync  # exists in Pyodide

    if not can_run_sync():
        _close(awaitable)
        raise TraceError(
            "tg.sync cannot wait here: this browser has no JavaScript Promise Integration, or Python was called "
            "from plain JavaScript, as it is right after `await train.step(...)`; write `await ...` instead",
            call_site(),
        )
    return run_sync(awaitable)


def _close(awaitable: object) -> None:
    """A coroutine that nobody will await is closed, so that Python does not warn of it."""
    if inspect.iscoroutine(awaitable):
        awaitable.close()
