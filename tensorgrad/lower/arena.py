"""Arenas and batches: all parameters' updates in one kernel.

Parameters, their gradients and each kind of optimizer state live in arenas, one after
the other at the same offsets. Update kernels that differ in nothing but their tensors
then are one kernel over the arenas' ranges. The padding between slices is zero and
stays what the update makes of zero.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from tensorgrad.graph import Graph, Value
from tensorgrad.lower.expr import Expr
from tensorgrad.lower.index import Index, of_var
from tensorgrad.lower.kernel import Kernel
from tensorgrad.lower.memory import ALIGNMENT, Slot, storage_bytes

Slots = dict[str, Slot]


def layout(graph: Graph, limit: int) -> tuple[Slots, dict[str, int]]:
    """A place for each parameter, its gradient and its states.

    A state belongs to a parameter if its name ends with the parameter's and its shape is the same.

    Args:
        limit: bytes that one binding may cover; longer arenas are cut between tensors.

    Returns:
        leaf name or `grad NAME` -> slot, and arena -> bytes.
    """
    slots: Slots = {}
    arenas: dict[str, int] = {}
    states = graph.names_by_role("state")
    chunk, offset = 0, 0
    params = graph.names_by_role("param")
    kinds: dict[str, list[tuple[str, str]]] = {name: [("param", name)] for name in params}
    for name in graph.grads:
        kinds[name].append(("grad", f"grad {name}"))
    for state, value in states.items():
        for name, param in params.items():
            if state.endswith(f".{name}") and graph.type(value) == graph.type(param):
                kinds[name].append((state[: -len(name) - 1], state))
                break
    for name, value in params.items():
        nbytes = -(-storage_bytes(graph.type(value).nbytes) // ALIGNMENT) * ALIGNMENT
        if offset and offset + nbytes > limit:
            chunk, offset = chunk + 1, 0
        for kind, key in kinds[name]:
            arena = f"{kind}.{chunk}"
            slots[key] = Slot(arena, offset)
            arenas[arena] = offset + nbytes
        offset += nbytes
    return slots, arenas


def batch(graph: Graph, kernels: Sequence[Kernel], names: Mapping[Value, str], slots: Slots) -> list[Kernel]:
    """Joins map kernels of one form whose tensors are neighbours in arenas.

    Args:
        kernels: in the order in which they run.
        names: value -> the key of its slot.
    """
    groups: dict[Hashable, list[int]] = {}
    for i, kernel in enumerate(kernels):
        form = _form(kernel, names, slots)
        if form is not None:
            groups.setdefault(form[0], []).append(i)
    out: list[Kernel | None] = list(kernels)
    for members in groups.values():
        for run in _runs(graph, kernels, members, names, slots):
            if len(run) > 1 and _may_wait(kernels, run):
                for i in run[:-1]:
                    out[i] = None
                ordered = sorted(run, key=lambda i: _offset(kernels[i], names, slots))
                out[max(run)] = _join([kernels[i] for i in ordered], names, slots)
                for i in run:
                    if i != max(run):
                        out[i] = None
    return [k for k in out if k is not None]


def _form(kernel: Kernel, names: Mapping[Value, str], slots: Slots) -> tuple[Hashable, int] | None:
    """What a kernel computes with its own tensors taken as arenas, or None where it cannot be batched."""
    if kernel.kind != "map":
        return None
    identity = of_var(kernel.rows)
    offset: int | None = None
    memo: dict[int, Hashable] = {}

    def tensor(value: Value, index: Index) -> Hashable | None:
        nonlocal offset
        key = names.get(value)
        if index.terms == () and key not in slots:
            return (value, index.const)
        if index != identity or key is None or key not in slots:
            return None
        slot = slots[key]
        if offset not in (None, slot.offset):
            return None
        offset = slot.offset
        return slot.arena

    def form(e: Expr) -> Hashable | None:
        if id(e) in memo:
            return memo[id(e)]
        if e.op == "index":
            return None
        if e.op == "load":
            found: Hashable | None = tensor(*e.data)
        else:
            parts = [form(a) for a in e.args]
            found = None if None in parts else (e.op, repr(e.data), e.dtype, *parts)
        memo[id(e)] = found
        return found

    parts: list[Hashable] = []
    for store in kernel.stores:
        owner = kernel.inplace.get(store.value, store.value)
        if names.get(owner) not in slots:
            return None
        target, body = tensor(owner, store.index), form(store.expr)
        if target is None or body is None:
            return None
        parts.append((target, body))
    return (tuple(parts), offset or 0) if parts else None


def _offset(kernel: Kernel, names: Mapping[Value, str], slots: Slots) -> int:
    store = kernel.stores[0]
    return slots[names[kernel.inplace.get(store.value, store.value)]].offset


def _runs(
    graph: Graph, kernels: Sequence[Kernel], members: list[int], names: Mapping[Value, str], slots: Slots
) -> list[list[int]]:
    """The members cut where the arena holds something else between two of them."""
    ordered = sorted(members, key=lambda i: _offset(kernels[i], names, slots))
    runs: list[list[int]] = []
    end = -1
    for i in ordered:
        offset = _offset(kernels[i], names, slots)
        if offset != end:
            runs.append([])
        runs[-1].append(i)
        nbytes = storage_bytes(graph.type(kernels[i].stores[0].value).nbytes)
        end = offset + -(-nbytes // ALIGNMENT) * ALIGNMENT
    return runs


def _may_wait(kernels: Sequence[Kernel], run: list[int]) -> bool:
    """Whether all members can run where the last one does."""
    last, members = max(run), set(run)
    written: set[Value] = set()
    for i in range(min(run), last):
        if i in members:
            written.update(kernels[i].writes, kernels[i].inplace.values())
        elif written & (set(kernels[i].loads()) | set(kernels[i].writes)):
            return False
    return True


def _join(members: list[Kernel], names: Mapping[Value, str], slots: Slots) -> Kernel:
    first, last = members[0], members[-1]
    span = _offset(last, names, slots) - _offset(first, names, slots)
    joined = Kernel(first.rows, None, list(first.stores), batch=members)
    joined.nodes = set().union(*(m.nodes for m in members))
    joined.inplace = {v: leaf for m in members for v, leaf in m.inplace.items()}
    joined.span = span // 4 + last.rows.size
    return joined
