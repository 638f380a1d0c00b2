"""What a kernel does: the graph nodes that it computes, its arithmetic and its memory traffic, estimated."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from tensorgrad.graph import Graph, Node, Value
from tensorgrad.lower.compose import LEAVES
from tensorgrad.lower.expr import Expr, walk
from tensorgrad.lower.functions import FUNCTIONS
from tensorgrad.lower.index import Var, digits
from tensorgrad.lower.kernel import Attention, Kernel, store_vars
from tensorgrad.lower.lowering import Lowered
from tensorgrad.lower.totals import total_of

_FREE = frozenset({"const", "index", "load", "acc", "total", "param", "cast", "bitcast", "reduce", "call"})


def computed(graph: Graph, wanted: Iterable[Value], known: Callable[[Value], bool]) -> list[Node]:
    """The nodes between what is known and what is wanted, in order; leaves count as known."""
    needed: set[int] = set()
    waiting = [value.node for value in wanted]
    while waiting:
        i = waiting.pop()
        if i in needed:
            continue
        needed.add(i)
        waiting += [v.node for v in graph.nodes[i].inputs if not known(v) and graph.node(v).op not in LEAVES]
    return [graph.nodes[i] for i in sorted(needed)]


def nodes_of(lowered: Lowered, kernel: Kernel) -> list[Node]:
    """The graph nodes that a kernel computes, from what it reads to what it stores."""
    return computed(lowered.graph, kernel.writes, kernel.loads().__contains__)


def flops(kernel: Kernel) -> int:
    """Arithmetic operations: each once for every value of the loop variables that it depends on.

    A fused multiply-add counts as two, `exp` as the operations that it is made of where it is the
    library's own and as one where it is the device's.
    """
    free = _Free(kernel)
    total = 0
    for e in _all(kernel):
        if e.op == "reduce":
            total += free.count(e.args[0])
        elif e.op == "call":
            total += free.count(e) * sum(x.op not in _FREE for x in walk(e.data.body))
        elif e.op not in _FREE:
            total += free.count(e)
    if kernel.matmul:
        m = kernel.matmul
        total += 2 * m.batch.size * m.m.size * m.n.size * m.k.size
        if added := total_of(kernel):
            total += m.batch.size * added.expr.data.size * m.k.size
    if kernel.attention:
        total += _attention(kernel.attention)
    if kernel.line:
        total += _line(kernel)
    return total


def _line(kernel: Kernel) -> int:
    """An operation an element of a scan (two of a recurrence), and the comparisons of a sorting network."""
    assert kernel.line
    assert kernel.cols
    if kernel.kind == "sort":
        depth = (kernel.cols.size - 1).bit_length()
        return kernel.rows.size * depth * (depth + 1) // 2 * (1 << depth) // 2
    return kernel.size * len(kernel.line.operands)


def _attention(a: Attention) -> int:
    """The products, of a causal attention those of about half of the scores, and an exponential of each score."""
    scores = a.batch.size * a.i.size * a.j.size
    if a.causal:
        seen = min(a.i.size, a.j.size)
        scores = a.batch.size * (seen * (seen + 1) // 2 + (a.i.size - seen) * a.j.size)
    widths = {"out": (1, 1), "dq": (2, 1), "dkv": (2, 2)}[a.part]
    exponential = sum(x.op not in _FREE for x in walk(FUNCTIONS["exp_weight"].body))
    return scores * (2 * (widths[0] * a.e.size + widths[1] * a.f.size) + exponential)


def traffic(lowered: Lowered, kernel: Kernel) -> int:
    """Bytes that are read and written, each tensor's elements once: what perfect caches would leave."""
    free, types = _Free(kernel), lowered.graph.type
    read: dict[Value, int] = {}
    for e in _all(kernel):
        if e.op == "load":
            value = e.data[0]
            read[value] = min(types(value).size, read.get(value, 0) + free.count(e))
    total = sum(count * types(value).dtype.itemsize for value, count in read.items())
    for store in kernel.stores:
        count = math.prod(v.size for v in store_vars(store, kernel))
        total += count * types(store.value).dtype.itemsize
    return total


def _all(kernel: Kernel) -> Iterable[Expr]:
    seen: set[int] = set()
    for root in kernel.expressions():
        yield from walk(root, seen)


class _Free:
    """The loop variables that an expression depends on."""

    def __init__(self, kernel: Kernel) -> None:
        self.matmul = frozenset(kernel.vars) if kernel.matmul or kernel.attention or kernel.line else frozenset[Var]()
        self.memo: dict[int, frozenset[Var]] = {}

    def count(self, e: Expr) -> int:
        """How many times it is computed."""
        return math.prod(v.size for v in self.variables(e))

    def variables(self, root: Expr) -> frozenset[Var]:
        if id(root) not in self.memo:
            for e in walk(root):
                if id(e) not in self.memo:
                    self.memo[id(e)] = self._one(e)
        return self.memo[id(root)]

    def _one(self, e: Expr) -> frozenset[Var]:
        if e.op == "acc":
            return self.matmul
        if e.op == "total":
            return frozenset({e.data})
        found = frozenset[Var]().union(*(self.memo[id(c)] for c in e.children))
        for index in e.indices:
            found |= {d.var for d in digits(index)}
        return found - {e.data[1]} if e.op == "reduce" else found
