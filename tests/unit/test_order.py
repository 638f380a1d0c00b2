"""The order of kernels, against paths in the graph of its demands."""

from __future__ import annotations

import random

import pytest

from tensorgrad.lower.order import Order


class Paths:
    """The same by definition: an edge for each demand, joined kernels under one name, and a search."""

    def __init__(self) -> None:
        self.edges: set[tuple[int, int]] = set()

    def precedes(self, j: int, i: int) -> bool:
        seen, waiting = set[int](), [j]
        while waiting:
            at = waiting.pop()
            waiting += [b for a, b in self.edges if a == at and b not in seen]
            seen.update(b for a, b in self.edges if a == at)
        return i in seen

    def join(self, j: int, i: int) -> None:
        moved = {(i if a == j else a, i if b == j else b) for a, b in self.edges}
        self.edges = {(a, b) for a, b in moved if a != b}


@pytest.mark.parametrize("seed", range(20))
def test_joins_and_demands_keep_the_order(seed: int) -> None:
    chance, count = random.Random(seed), 14
    order, paths, alive = Order(), Paths(), list(range(14))
    for i in range(count):
        earlier = chance.sample(range(i), min(i, chance.randrange(3)))
        order.add(earlier)
        paths.edges |= {(j, i) for j in earlier}
    for _ in range(12):
        j, i = chance.sample(alive, 2)
        between = any(paths.precedes(j, k) and paths.precedes(k, i) for k in alive)
        if paths.precedes(i, j) or between:
            continue
        if chance.random() < 0.6:
            order.join(j, i)
            paths.join(j, i)
            alive.remove(j)
        else:
            order.put_before([j], i)
            paths.edges.add((j, i))
        for a in alive:
            for b in alive:
                assert order.precedes(a, b) == (a != b and paths.precedes(a, b)), (a, b)
    chosen = chance.sample(alive, len(alive) // 2)
    found = order.sorted(chosen)
    assert sorted(found) == sorted(chosen)
    assert all(not paths.precedes(b, a) for n, a in enumerate(found) for b in found[n + 1 :])
