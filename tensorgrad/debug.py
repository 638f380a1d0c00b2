"""`tg.debug(level)`: what each compilation made, as it happens."""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from tensorgrad.errors import InputError

if TYPE_CHECKING:
    from tensorgrad.compiled import Built

VARIABLE = "TENSORGRAD_DEBUG"
_HIGHEST = 4


def _from_environment() -> int:
    text = os.environ.get(VARIABLE, "0")
    return min(int(text), _HIGHEST) if text.isdigit() else 0


_level = _from_environment()
_stages: ContextVar[dict[str, float] | None] = ContextVar("stages", default=None)


def debug(level: int | None = None) -> int:
    """Sets how much each compilation tells on standard error; the environment's TENSORGRAD_DEBUG is the first setting.

    Args:
        level: 0 nothing; 1 a line: nodes, kernels, memory, seconds by stage; 2 the kernels as a table too;
            3 all about each kernel but its WGSL; 4 the WGSL too. None leaves it as it is.

    Returns:
        The level before.

    >>> import tensorgrad as tg
    >>> before = tg.debug(2)
    >>> tg.debug(before)
    2
    """
    global _level
    before = _level
    if level is not None:
        if not 0 <= level <= _HIGHEST:
            raise InputError(f"the debug level is 0 to {_HIGHEST}, got {level}")
        _level = int(level)
    return before


@contextmanager
def stage(name: str, *, waits: bool = False) -> Iterator[None]:
    """Times a stage of the compilation that runs in this task.

    Args:
        waits: other tasks run in the middle of it. Else the garbage collector pauses: a compilation makes a hundred
            thousand small objects that stay, and looking through them time and again took a fifth of its time.
    """
    collects = gc.isenabled() and not waits
    if collects:
        gc.disable()
    start = time.perf_counter()
    try:
        yield
    finally:
        if collects:
            gc.enable()
        if _level:
            found = dict(_stages.get() or {})
            found[name] = found.get(name, 0.0) + time.perf_counter() - start
            _stages.set(found)


def note(text: str) -> None:
    """Tells something on the way, at any level but 0."""
    if _level:
        print(f"tensorgrad: {text}", file=sys.stderr)


def report(program: Built, device: str) -> Built:
    """Tells about a program, as much as the level says; returns it."""
    stages = _stages.get() or {}
    _stages.set(None)
    if _level:
        print(_report(program, device, stages), file=sys.stderr)
    return program


def _report(program: Built, device: str, stages: dict[str, float]) -> str:
    from tensorgrad.inspect.program import shown
    from tensorgrad.inspect.tables import counted, show_bytes

    compiled = program.compiled
    times = ", ".join(f"{name} {seconds:.3f} s" for name, seconds in stages.items())
    parts = [] if compiled.cached else [counted(len(program.graph.nodes), "node")]
    if compiled.program is not None:
        kernels, plan = len(compiled.program.kernels), compiled.program.plan
    elif program.lowered is not None:
        kernels, plan = len(program.lowered.kernels), program.lowered.memory.plan
    else:
        kernels, plan = 0, None
    if plan is not None:
        parts.append(counted(kernels, "kernel"))
        parts.append(f"{show_bytes(plan.nbytes)} in {counted(len(plan.buffers), 'tensor')}")
    what = "from the plan cache, for" if compiled.cached else "compiled for"
    lines = [f"tensorgrad: {what} {device}: {', '.join(parts)}" + (f"; {times}" if times else "")]
    if _level > 1:
        kernels = shown(program).kernels
        lines.append(str(kernels))
        if _level > 2:
            lines += [kernel.show(wgsl=_level > 3) for kernel in kernels]
    return "\n".join(lines)
