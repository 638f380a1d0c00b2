"""Partial sums of gradients, added up by the optimizer's kernel.

`split` leaves a gradient as a sum of a few partial ones. A kernel that does nothing but add them
up would cost a dispatch a parameter. Instead the parts themselves go into the gradients' arena,
one after the other, and whoever reads the arena adds them up: a table tells, for each block of
64 elements, where its first part lies, how far it is to the next, and how many there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tensorgrad import ops
from tensorgrad.device.base import Limits
from tensorgrad.graph import Graph, Node, Value
from tensorgrad.ops.arena import ALIGNMENT, pack, place
from tensorgrad.passes.rewrite import rewrite
from tensorgrad.tensor import Tensor
from tensorgrad.trace import trace_into

MOST_BYTES = 8 << 20
"""Parts of a gradient larger than this together are added up at once, which frees their memory early."""

MOST_TOGETHER = 128 << 20
"""Nor are more than this in one arena, which holds all of them until the update."""

MOST_STEPS = 1 << 26
"""Nor are they where the reader has more to go through: it takes for every element of the pack as many steps as the
gradient with the most parts has. Of 10.7 million with 8 parts, 445 us, the sums by themselves take less."""

BLOCK = ALIGNMENT // 4
"""Elements of f32 between two places of an arena: a block belongs to one parameter."""


Partial = tuple[Value, int, list[Node]]


def defer(graph: Graph, limits: Limits) -> Graph:
    """The graph with gradients' partial sums left to the readers of their pack.

    Nothing changes where the host reads gradients. The parts of a pack are within one binding, small ones first.
    """
    if graph.grads:
        return graph
    most = min(limits.binding_size, MOST_TOGETHER)
    return rewrite(graph, lambda new, node: _defer(new, node, most))


def _defer(graph: Graph, node: Node, most: int) -> Value | None:
    if node.op != "pack" or graph.type(node.inputs[0]).dtype.name != "f32":
        return None
    if any(graph.node(v).op != "place" for v in node.inputs):
        return None
    found = _fitting(graph, [_partial(graph, v) for v in node.inputs], most - node.type.nbytes)
    counts = [graph.type(partial[0]).shape[partial[1]] for partial in found if partial]
    if not counts or max(counts) * node.type.size > MOST_STEPS:
        return None
    return trace_into(graph, lambda: _added(graph, node, found)).value


def _fitting(graph: Graph, found: Sequence[Partial | None], room: int) -> list[Partial | None]:
    """Those of the parts that have room together, the smallest first."""
    fitting: list[Partial | None] = [None] * len(found)
    sizes = {i: graph.type(partial[0]).nbytes + ALIGNMENT for i, partial in enumerate(found) if partial}
    for i in sorted(sizes, key=sizes.__getitem__):
        if (room := room - sizes[i]) < 0:
            break
        fitting[i] = found[i]
    return fitting


def _partial(graph: Graph, placed: Value) -> Partial | None:
    """The value whose sum over an axis a placed gradient is, that axis, and the views of the sum, outermost first."""
    value, views = graph.node(placed).inputs[0], []
    while graph.node(value).op in ("reshape", "permute"):
        views.append(graph.node(value))
        value = graph.node(value).inputs[0]
    node = graph.node(value)
    if node.op != "sum" or len(node.attrs["axes"]) != 1:
        return None
    (x,), (axis,) = node.inputs, node.attrs["axes"]
    if graph.node(x).op not in ("matmul", "sum", "scatter_add") or not 0 < graph.type(x).nbytes <= MOST_BYTES:
        return None
    return x, axis, views


def _added(graph: Graph, node: Node, found: Sequence[Partial | None]) -> Tensor:
    """The pack as one flat tensor, with the parts of each gradient added up."""
    placed, counts = [], []
    for value, partial in zip(node.inputs, found, strict=True):
        tensor, count = _parts(graph, *partial) if partial else (Tensor(graph, graph.node(value).inputs[0]), 1)
        placed.append(place(tensor, graph.node(value).attrs["slot"]))
        counts.append(count)
    parts = pack(placed, node.attrs["name"])
    offsets = graph.node(parts.value).attrs["offsets"]
    rows = _table(node, [t.size // count for t, count in zip(placed, counts, strict=True)], offsets, counts)
    shape = (max(counts), len(rows), BLOCK)
    table = ops.tensor(rows)
    start, stride, count, live = (ops.broadcast_to(table[:, i : i + 1], shape) for i in range(4))
    part, lane = ops.iota(shape, 0), ops.iota(shape, 2)
    picked = ops.where((part < count) & (lane < live), ops.take(parts, start + part * stride + lane), 0.0)
    return ops.reshape(ops.sum(picked, 0), node.type.size)


def _parts(graph: Graph, x: Value, axis: int, views: Sequence[Node]) -> tuple[Tensor, int]:
    """The parts in front, each in the shape that the views give to their sum."""
    whole = Tensor(graph, x)
    others = [i for i in range(whole.ndim) if i != axis]
    result = ops.permute(whole, (axis, *others))
    count = whole.shape[axis]
    for view in reversed(views):
        if view.op == "permute":
            result = ops.permute(result, (0, *(i + 1 for i in view.attrs["perm"])))
        else:
            result = ops.reshape(result, count, *view.attrs["shape"])
    return result, count


def _table(node: Node, sizes: Sequence[int], offsets: Sequence[int], counts: Sequence[int]) -> np.ndarray:
    """Start, stride, number of parts and length of each block of the pack that was: i32 `[blocks, 4]`."""
    rows: list[tuple[int, int, int, int]] = []
    for size, offset, count in zip(sizes, offsets, counts, strict=True):
        starts = range(0, max(size, 1), BLOCK)
        rows += [(offset + start, size, count, min(BLOCK, size - start)) for start in starts]
    table = np.array(rows, np.int32)
    assert len(table) == math.ceil(node.type.size / BLOCK)
    return table
