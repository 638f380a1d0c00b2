"""Arenas: tensors side by side in one buffer, so that one kernel updates all of them.

`pack` costs nothing: its operands live at its offsets from the start. They are leaves, or
results of `place`, which says that a value is computed into a place of its own. A pass may show some
neighbours in an arena as a pack from `start` on, and pack temporaries: those have no name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorgrad.callsite import call_site
from tensorgrad.errors import TraceError
from tensorgrad.graph import Graph, TensorType, Value
from tensorgrad.primitive import primitive
from tensorgrad.tensor import Tensor
from tensorgrad.trace import bind

ALIGNMENT = 256
"""Bytes; WebGPU's minimum alignment of a binding's offset."""


def slot_size(type_: TensorType) -> int:
    """Elements from a tensor's place in an arena to the next."""
    step = ALIGNMENT // type_.dtype.itemsize
    return -(-max(type_.size, 1) // step) * step


place_p = primitive(
    "place",
    shape=lambda x, slot: x,
    eval=lambda xp, x, slot: x,
    grad=lambda g, out, x, slot: (g,),
    lower=lambda idx, x, slot: x(idx),
)


def _pack_eval(xp: Any, *xs: Any, name: str, offsets: tuple[int, ...], size: int, start: int = 0) -> Any:
    out = xp.zeros((size,), dtype=xs[0].dtype)
    for x, offset in zip(xs, offsets, strict=True):
        out[offset : offset + x.size] = x.reshape(-1)
    return out


pack_p = primitive(
    "pack",
    shape=lambda *xs, name, offsets, size, start=0: TensorType((size,), xs[0].dtype),
    eval=_pack_eval,
)


def place(x: Tensor, slot: str = "") -> Tensor:
    """The same numbers in a buffer of their own, which `pack` can put where it wants; `slot` names it.

    Without a name it is a temporary's: what many kernels read then is one buffer, not all that it is computed from.
    """
    return bind(place_p, x, slot=slot)


def pack(tensors: Sequence[Tensor], name: str) -> Tensor:
    """Leaves or placed tensors of one dtype as one flat tensor; between them lie zeros.

    Args:
        tensors: each a leaf, or a result of `place`; each in one pack only.
        name: of the arena in which they live.

    Raises:
        TraceError: for a tensor that is neither.
    """
    offsets, end = [], 0
    for t in tensors:
        if t.graph.node(t.value).op not in ("leaf", "place"):
            raise TraceError(f"only leaves and placed tensors can be packed, not {t!r}", call_site())
        offsets.append(end)
        end += slot_size(t.type)
    return bind(pack_p, *tensors, name=name, offsets=tuple(offsets), size=end)


def parts(graph: Graph, value: Value) -> list[tuple[Value, int]]:
    """The operands of a pack with their offsets in elements; nothing for another value."""
    node = graph.node(value)
    return list(zip(node.inputs, node.attrs["offsets"], strict=True)) if node.op == "pack" else []


def temporary_packs(graph: Graph) -> dict[Value, Value]:
    """What lies in a pack of temporaries -> the pack."""
    packs = [Value(node.id) for node in graph.nodes if node.op == "pack" and not node.attrs["name"]]
    return {part: pack for pack in packs for part, _ in parts(graph, pack)}
