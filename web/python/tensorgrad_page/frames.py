"""Tracebacks that show the user's lines only.

A frame is hidden by the name of its module, never by its path: the library, this page,
Pyodide and the event loop under them. What the user calls otherwise (NumPy, the standard
library, a module of theirs) stays.
"""

from __future__ import annotations

import traceback
from types import TracebackType

HIDDEN = ("tensorgrad", "pyodide", "_pyodide", "asyncio")


def is_hidden(module: str) -> bool:
    """Whether frames of the module called `module` are left out.

    Example:
        >>> is_hidden("tensorgrad.ops.matmul"), is_hidden("tensorgrad_page.console"), is_hidden("__main__")
        (True, True, False)
    """
    top = module.partition(".")[0]
    return top in HIDDEN or top.startswith("tensorgrad_")


def format_exception(error: BaseException) -> str:
    """The text of `error` and of what caused it, with the user's frames only."""
    report = traceback.TracebackException.from_exception(error)
    _hide(report, error)
    text = "".join(report.format())
    if _raised_by_accident(error):
        text += "This was raised inside tensorgrad. All frames: import traceback; traceback.print_last()\n"
    return text


def line_in(error: BaseException, filename: str) -> int | None:
    """The line of a file that `error` was raised in, or that called what raised it."""
    if isinstance(error, SyntaxError) and error.filename == filename:
        return error.lineno
    lines = [tb.tb_lineno for tb in _walk(error.__traceback__) if tb.tb_frame.f_code.co_filename == filename]
    return lines[-1] if lines else None


def _hide(report: traceback.TracebackException, error: BaseException) -> None:
    """Take hidden frames out of a report, in step with the exceptions that it was made from."""
    modules = [_module(tb) for tb in _walk(error.__traceback__)]
    kept = [frame for frame, module in zip(report.stack, modules, strict=False) if not is_hidden(module)]
    report.stack = traceback.StackSummary.from_list(kept)
    if report.__cause__ is not None and error.__cause__ is not None:
        _hide(report.__cause__, error.__cause__)
    if report.__context__ is not None and error.__context__ is not None:
        _hide(report.__context__, error.__context__)
    if report.exceptions and isinstance(error, BaseExceptionGroup):
        for inner_report, inner in zip(report.exceptions, error.exceptions, strict=False):
            _hide(inner_report, inner)


def _walk(tb: TracebackType | None) -> list[TracebackType]:
    found: list[TracebackType] = []
    while tb is not None:
        found.append(tb)
        tb = tb.tb_next
    return found


def _module(tb: TracebackType) -> str:
    return str(tb.tb_frame.f_globals.get("__name__", ""))


def _raised_by_accident(error: BaseException) -> bool:
    """Whether the library failed without meaning to: its own errors say what to do, others do not."""
    if isinstance(error, KeyboardInterrupt | SystemExit):
        return False
    if any(kind.__module__.partition(".")[0] == "tensorgrad" for kind in type(error).__mro__):
        return False
    walked = _walk(error.__traceback__)
    return bool(walked) and _module(walked[-1]).partition(".")[0] == "tensorgrad"
