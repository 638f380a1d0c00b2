"""Which block of scores one workgroup of an attention holds at a time, and how it is shared out.

A matmul's `Tile`, read so: `m` rows of scores belong to a workgroup for good (queries; keys in `dkv`), `n` columns
are met at a time, `k` elements of a head are multiplied between two barriers, and a thread has `tm` rows and `tn`
columns of the scores in registers. The same threads sum up the results: each its `tm` rows, and every so many of
their columns.
"""

from __future__ import annotations

from typing import NamedTuple

from tensorgrad.device.base import Limits
from tensorgrad.lower.index import Var
from tensorgrad.lower.kernel import Attention
from tensorgrad.wgsl.matmul_tiles import CORES, Tile

TILES: tuple[Tile, ...] = (
    Tile(32, 64, 16, 4, 8),
    Tile(64, 64, 16, 4, 4),
    Tile(64, 32, 16, 4, 4),
    Tile(32, 32, 16, 4, 4),
    Tile(32, 16, 16, 4, 4),
    Tile(16, 16, 8, 4, 4),
)
"""What `choose` chooses from, the best first where all of them fit, as measured on an H200."""


REGISTERS = 160
"""Numbers that a thread should hold at most: beyond, with what else it needs, some GPUs move them to memory."""


class Room(NamedTuple):
    """What a tile needs in workgroup memory.

    Attributes:
        steps: of the left tile; in `out` it also holds a number of each row from each thread across.
        columns: vec4s of a row of the right tile.
        nbytes: of both, and of the weights.
    """

    steps: int
    columns: int
    nbytes: int


def widths(inner: Attention) -> tuple[Var, ...]:
    """The columns of what a kernel sums up."""
    return {"out": (inner.f,), "dq": (inner.e,), "dkv": (inner.f, inner.e)}[inner.part]


def groups(tile: Tile, width: Var) -> int:
    """How many vec4s of a result's row a thread has."""
    across = tile.n // tile.tn
    return -(-width.size // (4 * across))


def room(tile: Tile, inner: Attention, padded: bool) -> Room:
    """The workgroup memory of a tile.

    Args:
        padded: rows are one vec4 longer than needed, against bank conflicts.
    """
    across, pad = tile.n // tile.tn, int(padded)
    columns = max(tile.n // 4, *(across * groups(tile, width) for width in widths(inner))) + pad
    steps = max(tile.k, across) if inner.part == "out" else tile.k
    rows = tile.m // 4 + pad
    return Room(steps, columns, 16 * (steps * rows + tile.k * columns + tile.n * rows))


def registers(tile: Tile, inner: Attention) -> int:
    """The scores and sums that a thread holds."""
    scores = (1 if inner.part == "out" else 2) * tile.tm * tile.tn
    return scores + sum(4 * tile.tm * groups(tile, width) for width in widths(inner))


def fits(tile: Tile, inner: Attention, limits: Limits, padded: bool = False) -> bool:
    """Whether a device has the threads and the workgroup memory for it, and its columns are whole steps."""
    threads = min(limits.invocations, limits.workgroup_size[0])
    return (
        tile.n % tile.k == 0
        and tile.threads <= threads
        and room(tile, inner, padded).nbytes <= limits.workgroup_storage
    )


def candidates(inner: Attention, limits: Limits) -> list[Tile]:
    """The tiles that a device can run."""
    return [t for t in TILES if fits(t, inner, limits)]


def choose(inner: Attention, limits: Limits) -> Tile:
    """The tile for an attention's sizes on a device.

    A large one reads operands less often. One that is larger than the rows there are wastes threads, one that leaves
    most cores without a block wastes those, and numbers that do not fit into registers cost more than either.
    """
    rows = (inner.j if inner.part == "dkv" else inner.i).size
    fitting = candidates(inner, limits)
    assert fitting, f"no tile for heads of {inner.e.size} and {inner.f.size}"
    fitting = [t for t in fitting if registers(t, inner) <= REGISTERS] or fitting

    def pays(tile: Tile) -> bool:
        blocks = -(-rows // tile.m) * inner.batch.size
        return tile.m < 2 * rows and (blocks >= CORES // 2 or tile.m <= 32)

    return next(filter(pays, fitting), fitting[-1])
