"""The ways in which a kernel can be written: tiles of a matmul or an attention, shapes of a row kernel or a map.

All of them compute the same, up to the order in which sums are added up. The templates' `choose` takes one
by rules of thumb; `tensorgrad.tuning` measures them.
"""

from __future__ import annotations

from collections.abc import Iterable

from tensorgrad.device.base import Limits
from tensorgrad.lower.expr import reductions, walk
from tensorgrad.lower.index import dynamics
from tensorgrad.lower.kernel import Kernel
from tensorgrad.wgsl import attention_tiles, lines, matmul_tiles, rows
from tensorgrad.wgsl.maps import MAP
from tensorgrad.wgsl.matmul import oriented
from tensorgrad.wgsl.matmul_matrix import multiplies_halves
from tensorgrad.wgsl.matmul_tiles import Tile
from tensorgrad.wgsl.rows import Shape

Variant = Tile | Shape


def variants(kernel: Kernel, limits: Limits) -> tuple[Variant, ...]:
    """What a kernel can be written with, the template's own choice first; only that where the data decide the work."""
    if kernel.matmul:
        inner = oriented(kernel).matmul
        assert inner
        half = multiplies_halves(inner)
        own = matmul_tiles.choose(inner, limits, half)
        found: Iterable[Variant] = (own, *matmul_tiles.candidates(inner, limits, half))
    elif kernel.attention:
        found = (
            attention_tiles.choose(kernel.attention, limits),
            *attention_tiles.candidates(kernel.attention, limits),
        )
    elif kernel.line:
        found = lines.variants(kernel, limits)
    elif kernel.kind == "row":
        found = (rows.choose(kernel, limits), *_shapes(kernel, limits))
    else:
        found = (MAP, *_map_shapes(limits))
    found = tuple(dict.fromkeys(found))
    return found[:1] if _depends_on_data(kernel) else found


def _depends_on_data(kernel: Kernel) -> bool:
    """Whether numbers decide which elements are read or added, so that made-up ones would tell little."""
    return any(
        (e.op == "load" and dynamics(e.data[1])) or (e.op == "reduce" and rows.is_picked(e.args[0]))
        for root in kernel.expressions()
        for e in walk(root)
    )


def _map_shapes(limits: Limits) -> Iterable[Shape]:
    for size in (64, 128, 256):
        if size <= min(limits.invocations, limits.workgroup_size[0]):
            for each in (1, 2, 4):
                yield MAP._replace(rows=size, unroll=each)


def _shapes(kernel: Kernel, limits: Limits) -> Iterable[Shape]:
    """Shapes of a row kernel near the chosen one: with other lanes, and other rows in a workgroup."""
    own = rows.choose(kernel, limits)
    longest = max((e.data[1].size for s in kernel.stores for e in reductions(s.expr)), default=1)
    most = min(limits.invocations, limits.workgroup_size[0])
    group = limits.subgroup_size or 0
    times = (1,) if limits.software else (1 / 4, 1 / 2, 1, 2, 4)
    for lanes in (int(own.lanes * factor) for factor in times):
        if 1 <= lanes <= min(most, 2 * longest):
            for size in (max(lanes, size) for size in (64, own.size, 256) if size <= most):
                shape = own._replace(rows=size // lanes, lanes=lanes, subgroup=own.adjacent and 1 < lanes <= group)
                yield shape
                if lanes == 1:
                    yield shape._replace(unroll=1)
    if own.lanes > 1:
        yield own._replace(adjacent=not own.adjacent, subgroup=False)
