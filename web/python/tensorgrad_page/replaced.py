"""What means something else in a page: `input`, `help`, `exit`, `quit`, `time.sleep`, the end of an `asyncio.sleep`."""

from __future__ import annotations

import asyncio
import builtins
import functools
import pydoc
import time
from collections.abc import Callable
from typing import NoReturn

PIECE = 0.05
"""Seconds between two looks at whether a sleep is to stop."""


def replace(check_interrupt: Callable[[], object]) -> None:
    """Put the page's own in place of them.

    Args:
        check_interrupt: raises KeyboardInterrupt where somebody wants to stop what runs.
    """
    builtins.input = no_input
    builtins.help = Help()
    builtins.exit, builtins.quit = Leaver("exit"), Leaver("quit")
    time.sleep = in_pieces(time.sleep, check_interrupt)
    # what asyncio.sleep's timer calls; asyncio has no public place for it
    asyncio.futures._set_result_unless_cancelled = set_result_unless_done  # type: ignore[attr-defined]


class Help:
    """`help` of a value, or of a name in quotes; alone it would start a dialogue, which needs `input`."""

    def __repr__(self) -> str:
        return (
            "help(value) tells what a value is, help('name') what a module, keyword or topic is; help('topics') lists"
        )

    def __call__(self, *request: object) -> None:
        if request:
            pydoc.help(*request)
        else:
            print(
                f"{self!r}.\nFor example: help(len), help('for'), and, after import tensorgrad as tg, help(tg.compile)."
            )


class Leaver:
    """`exit` without what Python's own does first: it closes the standard input, which `help` needs open."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"{self._name}() ends an input; Restart starts Python afresh"

    def __call__(self, code: object = None) -> NoReturn:
        raise SystemExit(code)


def set_result_unless_done(future: asyncio.Future[object], result: object) -> None:
    """The end of an `asyncio.sleep`, which a stop may have ended before."""
    if not future.done():
        future.set_result(result)


def in_pieces(sleep: Callable[[float], None], check_interrupt: Callable[[], object]) -> Callable[[float], None]:
    """A `time.sleep` that can be stopped: it sleeps a little at a time."""

    @functools.wraps(sleep)
    def sleep_in_pieces(seconds: float, /) -> None:
        try:
            short = not seconds > PIECE
        except TypeError:
            short = True
        if short:
            return sleep(seconds)  # which also says what is wrong with it
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            sleep(min(left, PIECE))
            check_interrupt()
        return None

    return sleep_in_pieces


def no_input(prompt: object = "") -> NoReturn:
    raise RuntimeError("input() has nobody to ask in this page: assign the value to a name instead")
