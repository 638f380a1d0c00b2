"""Raw errors from inside the library, while a function is traced, as errors of the call that the user wrote.

Functions check what is likely to be wrong, and say so. Whatever else an argument can be fails somewhere below, as a
TypeError on a line that the user never saw. The traceback still knows the call, so nothing has to be checked twice.
Imported by who caught such an error, and by nobody else.
"""

from __future__ import annotations

import inspect
from types import FrameType
from typing import Any, NamedTuple

from tensorgrad import ops
from tensorgrad.callsite import OTHERS, CallSite
from tensorgrad.checks import shown
from tensorgrad.errors import ArgumentError
from tensorgrad.nn.module import Module
from tensorgrad.tensor import Tensor


class _Entry(NamedTuple):
    frame: FrameType
    line: int

    @property
    def package(self) -> str:
        return str(self.frame.f_globals.get("__name__", "")).partition(".")[0]


def argument_error(error: Exception) -> ArgumentError | None:
    """What to raise in place of a raw error of a trace; None where it is the user's own.

    An error is the library's where the innermost frame is, but for NumPy's, and where the user's code called it.
    """
    entries: list[_Entry] = []
    at = error.__traceback__
    while at is not None:
        entries.append(_Entry(at.tb_frame, at.tb_lineno))
        at = at.tb_next
    while entries and (entries[-1].package == "numpy" or entries[-1].frame.f_code.co_name == "__getattr__"):
        entries.pop()  # who asks for an attribute that is not there is the frame before
    users = [i for i, entry in enumerate(entries) if entry.package not in OTHERS]
    if not users or users[-1] == len(entries) - 1:
        return None
    user, called = entries[users[-1]], [entry.frame for entry in entries[users[-1] + 1 :]]
    site = CallSite(user.frame.f_code.co_filename, user.line, user.frame.f_code.co_name)
    name, function, given = _call(called)
    arguments = f" with {', '.join(given)}" if given else ""
    takes = f". It takes {_parameters(function)}" if function else ""
    return ArgumentError(f"{name} does not work{arguments}: {error}{takes}", site)


def _call(frames: list[FrameType]) -> tuple[str, Any, list[str]]:
    """The name of what the first of these frames was called as, the function, and the arguments that it got."""
    first, rest = frames[0], frames[1:]
    if first.f_code is Module.__call__.__code__:
        module, args, kwargs = (first.f_locals[name] for name in ("self", "args", "kwargs"))
        return type(module).__name__, type(module).forward, [*map(_shown, args), *_pairs(kwargs)]
    name = first.f_code.co_name
    if rest and rest[0].f_code.co_name == name:  # the function within its wrapper
        first = rest[0]
    names, more, keywords, values = inspect.getargvalues(first)
    function = _function(first, name)
    usual = {name: p.default for name, p in inspect.signature(function).parameters.items()} if function else {}
    found = [(name, values[name]) for name in names if name != "self"]
    given = _pairs({name: value for name, value in found if value is not usual.get(name, ...)})
    given += map(_shown, values[more] if more else ())
    return name, function, [*given, *_pairs(values[keywords] if keywords else {})]


def _pairs(arguments: dict[str, Any]) -> list[str]:
    return [f"{name} = {_shown(value)}" for name, value in arguments.items()]


def _function(frame: FrameType, name: str) -> Any:
    """The function that a frame runs, by its name where it may be; None where it is not there."""
    owners = type(frame.f_locals.get("self")), ops
    candidates: list[Any] = [frame.f_globals.get(name), *(getattr(owner, name, None) for owner in owners)]
    for found in candidates:
        if frame.f_code in (getattr(found, "__code__", None), getattr(inspect.unwrap(found), "__code__", None)):
            return found
    return None


def _parameters(function: Any) -> str:
    """The parameters of a function as in its definition; annotations are strings, which would print with quotes."""
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name != "self"]
    return f"({', '.join(str(p).replace(repr(p.annotation), str(p.annotation)) for p in parameters)})"


def _shown(value: Any) -> str:
    if isinstance(value, Tensor):
        return repr(value.type)
    if isinstance(value, tuple | list) and any(isinstance(item, Tensor) for item in value):
        return f"({', '.join(map(_shown, value))})"
    return shown(value)
