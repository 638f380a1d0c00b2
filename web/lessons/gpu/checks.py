"""The checks of lesson 6's exercises: they ask the compiler."""

from __future__ import annotations

from typing import Any

import numpy as np

import tensorgrad as tg
from tensorgrad_page.checking import Work, Wrong, number

SHAPE = 256, 64


def _kernels(work: Work, fn: Any, **given: np.ndarray) -> Any:
    """The kernels that a function of arrays compiles to, with fusion."""
    return work.compiled(fn, given, True).kernels


async def one(work: Work) -> str:
    """A softmax that is one kernel."""
    x = work.numbers(*SHAPE)
    kernels = _kernels(work, work.my_softmax, x=x)
    got = np.asarray(await tg.jit(work.my_softmax)(x))
    expected = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    if got.shape != expected.shape or not np.allclose(got, expected, atol=1e-5):
        raise Wrong(f"It is no softmax of the rows: row 0 adds up to {got[0].sum():.4g}, and should to 1.")
    if len(kernels) != 1:
        names = ", ".join(kernel.name.strip() for kernel in kernels)
        raise Wrong(f"Right numbers, in {len(kernels)} kernels: {names}. A matmul wants its operands in memory.")
    return f"Right: one kernel, {kernels[0].name.strip()}. The powers and their sum are stored nowhere."


def bytes(work: Work) -> str:
    """The traffic of a chain of operations."""
    given = {"x": work.numbers(1000, 256), "y": work.numbers(1000, 256)}
    for name, fusion in (("fused_bytes", True), ("apart_bytes", False)):
        mine = number(f"`{name}`", getattr(work, name))
        right = work.compiled(lambda x, y: tg.exp(x * y) + x, given, fusion).kernels.nbytes
        if mine == right:
            continue
        arrays = mine / given["x"].nbytes
        if mine * 4 == right:
            raise Wrong(f"`{name}` counts numbers; each has 4 bytes.")
        raise Wrong(f"`{name}` is {mine:,.0f}: as much as {arrays:.3g} such arrays. Count again who reads and writes.")
    return "Right: 3 arrays against 8. Between the kernels each result goes to memory and comes back."


def two(work: Work) -> str:
    """A function whose kernels cannot be joined."""
    kernels = _kernels(work, work.two, x=work.numbers(*SHAPE))
    if len(kernels) != 2:
        names = ", ".join(kernel.name.strip() for kernel in kernels)
        raise Wrong(f"It compiles to {len(kernels)}: {names}. What must be finished before what comes next can begin?")
    return f"Right: {kernels[0].name.strip()}, then {kernels[1].name.strip()}, which needs all of the first."
