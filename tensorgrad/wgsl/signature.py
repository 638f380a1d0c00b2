"""When two kernels have the same text: equal but for which buffers they work on.

The layers of a network are alike, so most kernels of a training step are written once and used with
other buffers. A signature is a kernel with its values replaced by numbers in order of appearance.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from tensorgrad.graph import Value
from tensorgrad.lower.expr import Expr, walk
from tensorgrad.lower.index import Digit, Dynamic, Index, dynamics
from tensorgrad.lower.kernel import Kernel, result_of

Place = TypeVar("Place", bound=Hashable)


def signature(kernel: Kernel, place: Callable[[Value], Place]) -> tuple[Hashable, tuple[Place, ...]]:
    """What a kernel's text depends on, and the buffers that take part.

    Args:
        place: a value -> the buffer that holds it.

    Returns:
        a key, equal for kernels with equal text, and the buffers that they use, by number.
    """
    buffers: dict[Place, int] = {}
    parts: list[Hashable] = []
    seen: dict[int, int] = {}

    def number(value: Value) -> int:
        return buffers.setdefault(place(value), len(buffers))

    def write_index(index: Index) -> Hashable:
        return tuple((_atom(atom), c) for atom, c in index.terms), index.const

    def _atom(atom: object) -> Hashable:
        if isinstance(atom, Digit):
            return atom
        if isinstance(atom, Dynamic):
            return "dynamic", seen[id(atom.expr)], atom.size
        kind, (index, *rest) = type(atom).__name__, atom  # type: ignore[misc]  # a quotient or remainder
        return kind, write_index(index), *rest

    def write(root: Expr) -> int:
        for e in walk(root):
            if id(e) in seen:
                continue
            children = tuple(seen[id(child)] for child in e.children)
            data: Hashable = e.data
            if e.op == "load":
                data = number(e.data[0]), write_index(e.data[1])
            elif e.op == "index":
                data = write_index(e.data)
            elif e.op == "acc":
                data = None
            elif e.op == "const":
                data = repr(e.data)
            parts.append((e.op, e.dtype.name, data, children))
            seen[id(e)] = len(seen)
        return seen[id(root)]

    head = _head(kernel, write)
    stores = []
    for s in kernel.stores:
        for e in dynamics(s.index):
            write(e)
        stores.append((write(s.expr), number(s.value), write_index(s.index)))
    return (kernel.rows, kernel.cols, head, tuple(stores), tuple(parts)), tuple(buffers)


def _head(kernel: Kernel, write: Callable[[Expr], int]) -> Hashable:
    """What a template of its own goes by."""
    inner, scores, line = kernel.matmul, kernel.attention, kernel.line
    if inner:
        return inner.batch, inner.m, inner.n, inner.k, inner.dtype.name, write(inner.a), write(inner.b)
    if scores:
        operands = (scores.q, scores.k, scores.v, scores.bias, scores.g, scores.lse, scores.delta)
        wrote = tuple(None if e is None else write(e) for e in operands)
        sizes = scores.batch, scores.i, scores.j, scores.e, scores.f
        return scores.part, sizes, scores.scale, scores.causal, wrote, tuple(result_of(s) for s in kernel.stores)
    if line:
        return line.op, line.reverse, tuple(write(e) for e in line.operands)
    return None
