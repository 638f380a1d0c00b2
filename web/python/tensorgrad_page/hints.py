"""What to do about an error whose message does not say it: a lost GPU, a full memory, a forgotten `await`."""

from __future__ import annotations

from collections.abc import Coroutine

LOST = (
    "The browser took the GPU away: a driver was reset, the machine slept, or another page asked too much of it. "
    'Run the program again: compiling opens the GPU anew, and fit(..., autosave="name") goes on where it was saved.'
)
GPU_FULL = "The GPU's memory is full. Smaller batches or a smaller model fit; Restart gives back what is held."
FULL = (
    "Python's memory is full; a page gets at most 4 GB, and less on a phone. Delete what is large and not needed, or "
    "Restart (in a lesson, load the page again), which gives all of it back."
)
FORGOTTEN = "What is used there has not run yet: write await before the call that made it, as in await train.step(...)."


def hint(error: BaseException) -> str:
    """A remark for below the traceback, or nothing.

    Example:
        >>> hint(MemoryError())[:13], hint(ValueError("x"))
        ("Python's memo", '')
    """
    from tensorgrad import DeviceLostError, OutOfMemoryError

    if isinstance(error, DeviceLostError):
        return LOST
    if isinstance(error, OutOfMemoryError):
        return GPU_FULL
    if isinstance(error, AttributeError) and isinstance(error.obj, Coroutine):
        return FORGOTTEN
    return FULL if isinstance(error, MemoryError) else ""
