"""Which block of the result one workgroup of a matmul computes, and how it is shared out."""

from __future__ import annotations

import functools
from typing import NamedTuple

from tensorgrad.device.base import Limits
from tensorgrad.lower.kernel import Matmul
from tensorgrad.wgsl.matmul_access import affine

UNIT = 16
"""Rows, columns and steps of a subgroup matrix."""

PAD = 8
"""Numbers of f16 after each row of a tile for matrices, against bank conflicts: without, 340 us for 130 (at 2048)."""


class Tile(NamedTuple):
    """A workgroup's share of the result, and a thread's.

    Attributes:
        m, n: rows and columns that a workgroup computes.
        k: steps of the inner loop between two barriers; 0 is the barrier-free kernel, in
            which every thread reads straight from global memory.
        tm, tn: rows and columns that a thread keeps in registers.
        slices: threads that share one block of registers' worth of outputs, each with its part
            of every `k` steps; their sums are added at the end. For few and small blocks.
        lanes: more than 1: `tm` rows and `tn` columns are what a subgroup of so many lanes keeps, as matrices.
        quads: four neighbouring threads load together what they share (of the barrier-free kernel).
        steps: how many steps of k a sum takes up at once (of the barrier-free kernel).
    """

    m: int
    n: int
    k: int
    tm: int
    tn: int
    slices: int = 1
    lanes: int = 1
    quads: bool = False
    steps: int = 1

    def __str__(self) -> str:
        if self.lanes > 1:
            return f"{self.m}x{self.n}x{self.k} by {self.tm}x{self.tn}"
        slices = f"/{self.slices}" if self.slices > 1 else "/4" if self.quads else ""
        return f"{self.m}x{self.n}x{self.k}{slices}" if self.k else f"direct {self.tm}x{self.tn}{slices}"

    def shares(self, letter: str) -> bool:
        """Whether the threads of a quad have the same rows (of `a`) or columns (of `b`), and load them together."""
        return self.quads and (letter == "a") == (self.n > self.tn)

    @property
    def threads(self) -> int:
        return self.subgroups * self.slices * self.lanes

    @property
    def subgroups(self) -> int:
        """Threads (with matrices, subgroups) that share the block."""
        return (self.m // self.tm) * (self.n // self.tn)

    @property
    def storage(self) -> int:
        """Bytes of workgroup memory, at most."""
        if self.lanes > 1:
            tiles = sum(max(self.k * (e + PAD), e * (self.k + PAD)) for e in (self.m, self.n))
            return 2 * tiles + 4 * self.subgroups * UNIT * UNIT
        return 4 * (self.k * (self.m + self.n) + self.slices // 2 * self.m * self.n)

    def fits(self, limits: Limits) -> bool:
        return (
            self.threads <= min(limits.invocations, limits.workgroup_size[0])
            and self.storage <= limits.workgroup_storage
        )


def choose(inner: Matmul, limits: Limits, half: bool = False) -> Tile:
    """The tile for a matmul's sizes on a device; `half`: its operands are numbers of f16.

    On a GPU a large block reads each operand less often and keeps the multipliers busy; but there have to be
    enough blocks for all of the GPU's cores, and what a block has outside the result is wasted. `_time` weighs
    these with measured speeds; `TILES` lists what it chooses from, `MATRICES` what there is besides for f16.
    """
    if limits.software:
        return _for_cpu(inner, "subgroups" in limits.features)
    sizes = (inner.batch.size, inner.m.size, inner.n.size, inner.k.size)
    slow = _lies_along_k(inner)
    return min(
        _fitting(limits, half), key=lambda t: _time(*sizes, t) * (1.2 if slow and t.m == 256 and t.lanes == 1 else 1)
    )


def candidates(inner: Matmul, limits: Limits, half: bool) -> list[Tile]:
    """Tiles that may be the fastest: on a GPU those not far from it by the estimate. `half` as in `choose`."""
    if limits.software:
        work = (Tile(tm, 4 * tn, 0, tm, tn) for _, (tm, tn) in _CPU_BLOCKS)
        return [tile for tile in work if tile.tm <= inner.m.size and tile.tn <= inner.n.size]
    sizes = (inner.batch.size, inner.m.size, inner.n.size, inner.k.size)
    times = {t: _time(*sizes, t) for t in _fitting(limits, half)}
    return [t for t, time in times.items() if time <= FAR * min(times.values())]


FAR = 2.0
"""How many times as long as the best a tile may take by the estimate, and still be worth a measurement."""


@functools.lru_cache(4096)  # the layers of a model have the same sizes
def estimate(batch: int, m: int, n: int, k: int, limits: Limits, half: bool = False) -> float:
    """Nanoseconds that a matmul of these sizes takes with its best tile, on a large GPU."""
    return min(_time(batch, m, n, k, t) for t in _fitting(limits, half))


@functools.lru_cache(16)
def _fitting(limits: Limits, half: bool) -> tuple[Tile, ...]:
    """The tiles that a device can run, those for f16 among them where `half`."""
    known = [*TILES, *MATRICES] if half and limits.matrices else TILES
    return tuple(t for t in known if t.fits(limits))


class Speed(NamedTuple):
    """How fast a core computes blocks of a kind.

    Attributes:
        alone: nanoseconds for one step of k of a block that has the core to itself.
        busy: nanoseconds for one step of each of several blocks.
        room: blocks that a core holds at once.
        ends: nanoseconds that a block takes besides its steps.
    """

    alone: float
    busy: float
    room: int
    ends: float = 0


TILES: dict[Tile, Speed] = {
    Tile(128, 64, 16, 8, 8): Speed(57, 50, 3),
    Tile(128, 128, 16, 8, 16): Speed(150, 102, 2),
    Tile(256, 128, 16, 8, 16): Speed(200, 200, 1),
    Tile(64, 128, 16, 8, 8): Speed(62, 57, 3),
    Tile(64, 64, 16, 8, 8): Speed(60, 29, 8),
    Tile(64, 64, 16, 4, 8): Speed(50, 32, 4),
    Tile(32, 64, 32, 4, 8): Speed(35, 20, 8),
    Tile(64, 32, 32, 8, 4): Speed(35, 20, 8),
    Tile(32, 32, 32, 4, 4): Speed(25, 14, 16),
    Tile(32, 32, 32, 4, 4, 4): Speed(20, 14.5, 4),
    Tile(16, 64, 32, 4, 4): Speed(26, 14, 16),
    Tile(64, 16, 32, 4, 4): Speed(26, 14, 16),
    Tile(16, 16, 64, 4, 4, 4): Speed(11.5, 4.9, 16),
    Tile(16, 16, 64, 4, 4, 8): Speed(8.8, 8, 8),
}
"""Measured on an H200 in Chromium; of equally fast ones the first is taken. On a smaller GPU all of them are slower,
in like proportion."""

MATRICES: dict[Tile, Speed] = {
    Tile(128, 128, 32, 64, 64, lanes=32): Speed(30, 19.8, 2, 9000),
    Tile(64, 64, 64, 32, 32, lanes=32): Speed(14, 7.6, 6, 1100),
    Tile(64, 64, 32, 32, 32, lanes=32): Speed(20, 9.2, 8, 900),
    Tile(32, 32, 64, 16, 16, lanes=32): Speed(8, 4.2, 8, 300),
}
"""Tiles for subgroup matrices, measured in the same way; but the first one's ends are set so that it is for large
products only. By itself it is as fast as the second for those of a transformer's step, or faster. Within the step (on
an H200, 6 layers of width 384) it was not, nor were 128x128x64 and 256x128x32. It takes twice as long to compile."""

CORES = 132
"""Cores of that GPU. A GPU with fewer has more blocks to each, and then the difference hardly matters."""


def _time(batch: int, m: int, n: int, k: int, tile: Tile) -> float:
    """Estimated nanoseconds: the core with the most blocks is the last to finish."""
    blocks = -(-m // tile.m) * -(-n // tile.n) * batch
    alone, busy, room, ends = TILES.get(tile) or MATRICES[tile]
    steps = -(-max(k, 1) // tile.k) * tile.k
    if blocks > CORES * room and room < 4:
        # the rest of the last round falls to few cores, which takes them as long as a whole round
        each = -(-blocks // (CORES * room)) * room
        return each * busy * steps + each * ends
    each = -(-blocks // CORES) if blocks < 6 * CORES else blocks / CORES
    return max(alone, each * busy) * steps + each * ends


def _lies_along_k(inner: Matmul) -> bool:
    """Whether the right operand has to be transposed on its way, which takes registers that the largest tile lacks."""
    access = affine(inner.b, (inner.batch, inner.k, inner.n))
    return access is not None and access.in_fours(inner.k)


def _for_cpu(inner: Matmul, quads: bool) -> Tile:
    """The barrier-free kernel; more work gets larger blocks, which are faster but take longer to compile.

    `bench/RESULTS.md` has times.

    Args:
        quads: the device has subgroup operations.
    """
    work = inner.batch.size * inner.m.size * inner.n.size * inner.k.size
    if quads and inner.m.size > 8 and inner.n.size > 8:
        tm, tn, steps = next((size for most, size in _CPU_QUADS if work <= most), (32, 8, 4))
        return Tile(tm, 4 * tn, 0, tm, tn, quads=True, steps=steps)
    tm, tn = next((size for most, size in _CPU_BLOCKS if work <= most), (8, 8))
    tm = next(t for t in (1, 2, 4, 8) if t >= min(inner.m.size, tm))
    tn = next(t for t in (4, 8) if t >= min(inner.n.size, tn))
    # the four lanes of an instruction are neighbours in the longer direction
    return Tile(tm, tn * 4, 0, tm, tn) if inner.n.size > 2 * tn else Tile(tm * 4, tn, 0, tm, tn)


_CPU_QUADS = ((1 << 24, (16, 4, 1)), (1 << 26, (16, 4, 4)), (1 << 29, (16, 8, 4)))
_CPU_BLOCKS = ((1 << 18, (4, 4)), (1 << 22, (4, 8)))
"""Up to so many multiplications: rows, columns (and steps) of a thread. Beyond, a long compilation pays."""
