"""Which block of the result one workgroup of a matmul computes, and how it is shared out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tensorgrad.device.base import Limits
from tensorgrad.lower.kernel import Matmul
from tensorgrad.wgsl.matmul_access import affine


@dataclass(frozen=True, slots=True)
class Tile:
    """A workgroup's share of the result, and a thread's.

    Attributes:
        m, n: rows and columns that a workgroup computes.
        k: steps of the inner loop between two barriers; 0 is the barrier-free kernel, in
            which every thread reads straight from global memory.
        tm, tn: rows and columns that a thread keeps in registers.
        slices: threads that share one block of registers' worth of outputs, each with its part
            of every `k` steps; their sums are added at the end. For few and small blocks.
    """

    m: int
    n: int
    k: int
    tm: int
    tn: int
    slices: int = 1
    quads: bool = False
    steps: int = 1

    def __str__(self) -> str:
        slices = f"/{self.slices}" if self.slices > 1 else "/4" if self.quads else ""
        return f"{self.m}x{self.n}x{self.k}{slices}" if self.k else f"direct {self.tm}x{self.tn}{slices}"

    def shares(self, letter: str) -> bool:
        """Whether the threads of a quad have the same rows (of `a`) or columns (of `b`), and load them together."""
        return self.quads and (letter == "a") == (self.n > self.tn)

    @property
    def threads(self) -> int:
        return (self.m // self.tm) * (self.n // self.tn) * self.slices

    @property
    def storage(self) -> int:
        """Bytes of workgroup memory."""
        return 4 * (self.k * (self.m + self.n) + self.slices // 2 * self.m * self.n)

    def fits(self, limits: Limits) -> bool:
        return (
            self.threads <= min(limits.invocations, limits.workgroup_size[0])
            and self.storage <= limits.workgroup_storage
        )


def choose(inner: Matmul, limits: Limits) -> Tile:
    """The tile for a matmul's sizes on a device.

    On a GPU a large block reads each operand less often and keeps the multipliers busy; but there have to be
    enough blocks for all of the GPU's cores, and what a block has outside the result is wasted. `_time` weighs
    these with measured speeds; `TILES` lists what it chooses from.
    """
    if limits.software:
        return _for_cpu(inner, "subgroups" in limits.features)
    sizes = (inner.batch.size, inner.m.size, inner.n.size, inner.k.size)
    slow = _lies_along_k(inner)
    return min(
        (t for t in TILES if t.fits(limits)), key=lambda t: _time(*sizes, t) * (1.2 if slow and t.m == 256 else 1)
    )


def estimate(batch: int, m: int, n: int, k: int, limits: Limits) -> float:
    """Nanoseconds that a matmul of these sizes takes with its best tile, on a large GPU."""
    return min(_time(batch, m, n, k, t) for t in TILES if t.fits(limits))


class Speed(NamedTuple):
    """How fast a core computes blocks of a kind.

    Attributes:
        alone: nanoseconds for one step of k of a block that has the core to itself.
        busy: nanoseconds for one step of each of several blocks.
        room: blocks that a core holds at once.
    """

    alone: float
    busy: float
    room: int


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

CORES = 132
"""Cores of that GPU. A GPU with fewer has more blocks to each, and then the difference hardly matters."""


def _time(batch: int, m: int, n: int, k: int, tile: Tile) -> float:
    """Estimated nanoseconds: the core with the most blocks is the last to finish."""
    blocks = -(-m // tile.m) * -(-n // tile.n) * batch
    alone, busy, room = TILES[tile]
    if blocks > CORES * room and room < 4:
        # the rest of the last round falls to few cores, which takes them as long as a whole round
        step = -(-blocks // (CORES * room)) * room * busy
    else:
        each = -(-blocks // CORES) if blocks < 6 * CORES else blocks / CORES
        step = max(alone, each * busy)
    return step * -(-max(k, 1) // tile.k) * tile.k


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
