"""Why a kernel is one kernel, and why what it stores owns a buffer: the decisions of fusion in words."""

from __future__ import annotations

from collections.abc import Sequence

from tensorgrad.graph import Value
from tensorgrad.inspect.tables import counted
from tensorgrad.inspect.work import nodes_of
from tensorgrad.lower.kernel import Joined, Kernel
from tensorgrad.lower.lowering import Lowered

_RULES = {
    ("map", "map"): "{values} is read at its reader's own element only, so both are one map",
    ("matmul", "map"): "a map reads {values} at its own place only, so it is computed as an epilogue on the sums",
    ("scan", "map"): "a map reads {values} at its own place only, so it is computed as each result is stored",
    ("sort", "map"): "a map reads {values} at its own place only, so it is computed as each result is stored",
    ("attention", "map"): "a map only moves {values}, so it says where that is stored",
    ("row", "map"): "a map reads {values} of its own row, so its elements became the row's columns",
    ("map", "row"): "a row kernel runs along {values}, which is computed within the row",
    ("row", "matmul"): "the matmul has every element of {values} in hand, so it adds them up on the side",
    ("row", "row"): "{values} is read by a kernel over the same rows, within each row",
}
_LISTED = 12
"""Operations that are named; the rest are counted."""


def why(lowered: Lowered, index: int, readers: dict[Value, list[int]]) -> list[str]:
    """The reasons for kernel `index`.

    Args:
        readers: stored value -> the kernels that read it.
    """
    kernel = lowered.kernels[index]
    lines = [_operations(lowered, kernel)]
    lines += dict.fromkeys(_join(lowered, join) for join in kernel.joined)
    if not kernel.joined:
        lines.append("nothing else joined it")
    lines += [_store(lowered, kernel, value, readers.get(value, ())) for value in kernel.writes]
    return lines


def readers_of(lowered: Lowered) -> dict[Value, list[int]]:
    """Stored value -> the kernels that read it."""
    readers: dict[Value, list[int]] = {}
    for i, kernel in enumerate(lowered.kernels):
        for value in kernel.loads():
            readers.setdefault(value, []).append(i)
    return readers


def describe(lowered: Lowered, value: Value) -> str:
    """`%14 matmul f32[8, 10]`."""
    return f"{value} {lowered.graph.node(value).op} {lowered.graph.type(value)}"


def _operations(lowered: Lowered, kernel: Kernel) -> str:
    nodes = nodes_of(lowered, kernel)
    ops = list(dict.fromkeys(node.op for node in nodes))
    names = ", ".join(ops[:_LISTED]) + (f" and {len(ops) - _LISTED} more" if len(ops) > _LISTED else "")
    return f"computes {counted(len(nodes), 'operation')} of the graph: {names}"


def _join(lowered: Lowered, join: Joined) -> str:
    values = ", ".join(describe(lowered, value) for value in join.values)
    if join.rule is None:
        return f"siblings over one index space read {values}, so they are one kernel"
    return _RULES[join.rule].format(values=values)


def _store(lowered: Lowered, kernel: Kernel, value: Value, readers: Sequence[int]) -> str:
    if value in kernel.inplace:
        leaf = lowered.name(kernel.inplace[value])
        return f"stores {describe(lowered, value)} over {leaf}, in place: each element is read only where it is written"
    reason = lowered.reasons.get(value)
    parts = [f"stores {describe(lowered, value)} in {lowered.name(value)}"]
    if reason:
        parts.append(f": {reason}")
    if readers:
        who = ", ".join(map(str, readers))
        parts.append(f"; kernel {who} reads it" if len(readers) == 1 else f"; kernels {who} read it")
        if value in lowered.refused:
            parts.append(f" ({lowered.refused[value]})")
    return "".join(parts)
