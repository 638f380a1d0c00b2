"""Which block of the result one workgroup of a matmul computes, and how it is shared out."""

from __future__ import annotations

from dataclasses import dataclass

from tensorgrad.device.base import Limits
from tensorgrad.lower.kernel import Matmul


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

    def __str__(self) -> str:
        slices = f"/{self.slices}" if self.slices > 1 else ""
        return f"{self.m}x{self.n}x{self.k}{slices}" if self.k else f"direct {self.tm}x{self.tn}"

    @property
    def threads(self) -> int:
        return (self.m // self.tm) * (self.n // self.tn) * self.slices

    @property
    def storage(self) -> int:
        """Bytes of workgroup memory."""
        reduction = (self.slices // 2) * self.m * self.n
        return 4 * max(self.k * (self.m + self.n), reduction)

    def fits(self, limits: Limits) -> bool:
        return (
            self.threads <= min(limits.invocations, limits.workgroup_size[0])
            and self.storage <= limits.workgroup_storage
        )


def choose(inner: Matmul, limits: Limits) -> Tile:
    return Tile(32, 32, 32, 4, 4)
