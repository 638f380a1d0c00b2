"""What to do in the page about an error that is nobody's mistake: a lost GPU, a full memory."""

from __future__ import annotations

LOST = (
    "The browser took the GPU away: a driver was reset, the machine slept, or another page asked too much of it. "
    'Run the program again: compiling opens the GPU anew, and fit(..., autosave="name") goes on where it was saved.'
)
GPU_FULL = "The GPU's memory is full. Smaller batches or a smaller model fit; Restart gives back what is held."
FULL = (
    "Python's memory is full; a page gets at most 4 GB, and less on a phone. Delete what is large and not needed, or "
    "Restart (in a lesson, load the page again), which gives all of it back."
)


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
    return FULL if isinstance(error, MemoryError) else ""
