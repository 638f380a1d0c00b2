"""Which kernels run before which, while kernels are joined.

For each kernel all that run before it are the bits of one number, so that a question is one
operation. What a join or a new demand changes is passed on along direct successors, and only
as far as it is news: most of a network is in order already.
"""

from __future__ import annotations

from collections.abc import Iterable


class Order:
    """A partial order of kernels, by number. A joined kernel is all of its members."""

    def __init__(self) -> None:
        self._members: list[int] = []
        self._before: list[int] = []  # with a kernel all its members, and with it all that run before it
        self._after: list[set[int]] = []  # direct successors, perhaps by the number of a kernel that is joined
        self._into: list[int] = []  # the kernel that each is part of; itself, where it is still one

    def add(self, earlier: Iterable[int]) -> None:
        """The next kernel, which runs after these."""
        new = len(self._members)
        self._members.append(1 << new)
        self._before.append(0)
        self._after.append(set())
        self._into.append(new)
        self.put_before(earlier, new)

    def precedes(self, j: int, i: int) -> bool:
        """Whether kernel j has to run before kernel i."""
        return bool(self._before[i] & self._members[j])

    def put_before(self, earlier: Iterable[int], i: int) -> None:
        """These kernels run before kernel i, and so before all that run after it."""
        for k in earlier:
            self._after[k].add(i)
            self._before[i] |= self._members[k] | self._before[k]
        self._pass_on(i)

    def join(self, j: int, i: int) -> None:
        """Kernel j becomes a part of kernel i: no third one runs between them."""
        self._into[j] = i
        self._members[i] |= self._members[j]
        self._before[i] = (self._before[i] | self._before[j]) & ~self._members[i]
        self._after[i] |= self._after[j]
        self._pass_on(i)

    def sorted(self, kernels: Iterable[int]) -> list[int]:
        """Some kernels in an order in which they can run, near the given one."""
        left = list(kernels)
        waiting = 0
        for i in left:
            waiting |= self._members[i]
        out: list[int] = []
        while left:
            ready = next(i for i in left if not self._before[i] & waiting)
            left.remove(ready)
            waiting &= ~self._members[ready]
            out.append(ready)
        return out

    def _pass_on(self, start: int) -> None:
        """Everything after a kernel runs after all that run before it."""
        stack = [start]
        while stack:
            kernel = stack.pop()
            mask = self._members[kernel] | self._before[kernel]
            for k in self._successors(kernel):
                if mask & ~self._before[k]:
                    self._before[k] |= mask
                    stack.append(k)

    def _successors(self, kernel: int) -> set[int]:
        found = {self._whole(k) for k in self._after[kernel]}
        found.discard(kernel)
        self._after[kernel] = found
        return found

    def _whole(self, kernel: int) -> int:
        while self._into[kernel] != kernel:
            kernel = self._into[kernel]
        return kernel
