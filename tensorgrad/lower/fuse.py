"""Fusion: joins kernels that share an index space, then drops the buffers that nobody else reads.

A consumer joins the kernel of its producer where it reads the producer's result at its
own place only: the same element of a map, the same row of a row kernel, the same tile
element of a matmul. The load becomes the producer's expression. Siblings that read the
same tensors over one index space join too. Every step is checked on the indices
themselves, so it is legal by construction; `join` decides which pairs may, and what pays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from tensorgrad.graph import Graph, Value
from tensorgrad.lower.expr import loads, reductions
from tensorgrad.lower.join import join
from tensorgrad.lower.kernel import Joined, Kernel, store_vars
from tensorgrad.lower.order import Order
from tensorgrad.lower.totals import operand_sum
from tensorgrad.ops.arena import parts

DEEPEST = 128
"""Operations, one on the result of the other, of a joined kernel; each join looks at all of them again."""


class Fuser:
    """Joins the kernels of one graph.

    Args:
        graph: the kernels' graph.
        kernels: in topological order; changed in place.
        outside: values that somebody outside the kernels reads.
        updates: state leaf -> the stored value that replaces it.
        max_buffers: storage buffers that a kernel may bind.
        hopeful: count an update and the state that it replaces as one buffer, before it is known
            whether the update can be in place.
        totals: let matmuls sum their operands on the side.

    Attributes:
        refused: why a reader of a value did not join the kernel that computes it, where that was tried last.
    """

    def __init__(
        self,
        graph: Graph,
        kernels: list[Kernel],
        outside: set[Value],
        updates: Mapping[Value, Value],
        max_buffers: int = 8,
        hopeful: bool = True,
        totals: bool = True,
    ) -> None:
        self.graph, self.outside, self.updates, self.max_buffers = graph, outside, updates, max_buffers
        self.replaces = {value: leaf for leaf, value in updates.items()} if hopeful else {}
        self.totals = totals
        self.refused: dict[Value, str] = {}
        self.kernels: list[Kernel | None] = list(kernels)
        self.reads = [k.loads() for k in kernels]
        self.waits = [set(k.waits) for k in kernels]
        self.writer = {v: i for i, k in enumerate(kernels) for v in k.writes}
        self.readers: dict[Value, set[int]] = {}
        self.arena: dict[Value, object] = {}
        for pack in (node for node in graph.nodes if node.op == "pack"):
            whole = Value(pack.id)
            held = [whole, *(v for v, _ in parts(graph, whole) if v not in updates)]
            self.arena.update(dict.fromkeys(held, pack.attrs["name"] or whole))
        self.order = Order()
        for i, reads in enumerate(self.reads):
            for value in self._held(reads):
                self.readers.setdefault(value, set()).add(i)
            self.order.add(self._earlier(i))

    def run(self, join: bool = True) -> list[Kernel]:
        """The joined kernels (or the given ones, with `join` False) in the order in which they run."""
        if join:
            for i in range(len(self.kernels)):
                for j in self._producers(i):
                    if self._legal_order(j, i):
                        self._vertical(j, i)
            self._siblings()
            self._drop_unread()
            if self.totals:
                self._operand_sums()
        for leaf, value in self.updates.items():
            self._overwrite(leaf, value)
        left = {i: k for i, k in enumerate(self.kernels) if k is not None and k.stores}
        # near the graph's own order of their first operations
        return [left[i] for i in self.order.sorted(sorted(left, key=lambda i: min(left[i].nodes)))]

    def _held(self, values: Iterable[Value]) -> Iterator[Value]:
        """The values, and those that lie in the packs among them."""
        for value in values:
            yield value
            for part, _ in parts(self.graph, value):
                yield part

    # Who may join ---------------------------------------------------------------------------

    def _producers(self, i: int) -> list[int]:
        """The kernels whose results kernel i reads, the latest first."""
        return sorted({self.writer[v] for v in self._held(self.reads[i]) if v in self.writer}, reverse=True)

    def _earlier(self, i: int) -> set[int]:
        """The kernels whose results kernel i reads or waits for."""
        return {*self._producers(i), *(self.writer[v] for v in self.waits[i] if v in self.writer)} - {i}

    def _legal_order(self, j: int, i: int) -> bool:
        """No third kernel has to run after j and before i."""
        return not any(self.order.precedes(j, p) for p in self._earlier(i) if p != j)

    def _unfit(self, a: Kernel, b: Kernel, i: int, j: int) -> str | None:
        """Why the device could not bind the buffers of the joined kernel, if it could not."""
        both = {i, j}
        written = [*a.writes, *b.writes]
        kept = [v for v in written if v in self.outside or self.readers.get(v, set()) - both]
        read = (set(self.reads[i]) | set(self.reads[j])) - set(written)
        if len({self.replaces.get(v, v) for v in kept} | read) > self.max_buffers:
            return f"together with its reader it would bind more than {self.max_buffers} buffers"
        if not self._arenas(kept).isdisjoint(self._arenas(read)):
            return "together with its reader it would read an arena and write to it"
        return None

    def _arenas(self, values: Iterable[Value]) -> set[object]:
        return {self.arena[v] for v in values if v in self.arena}

    def _vertical(self, j: int, i: int) -> None:
        """Kernel i joins its producer j, if their indices and the rules of what pays allow."""
        producer, consumer = self.kernels[j], self.kernels[i]
        if producer is None or consumer is None:
            return
        shared = tuple(v for v in producer.writes if v in self.reads[i])
        joined = None
        if consumer.matmul or consumer.attention or consumer.line:
            reason = f"{'an' if consumer.attention else 'a'} {consumer.kind} reads its operands from memory"
        elif producer.depth + consumer.depth > DEEPEST:
            reason = "together with its reader it would be a very long program"
        elif not (reason := self._unfit(producer, consumer, i, j)):
            joined = join(producer, consumer, self.reads[i])
            reason = "its reader needs it at other places than its own, or a row is too short to share"
        if joined is None:
            self.refused.update(dict.fromkeys(shared, reason))
            return
        joined.joined = (*producer.joined, *consumer.joined, Joined((producer.kind, consumer.kind), shared))
        self._replace(j, i, joined)

    def _replace(self, j: int, i: int, joined: Kernel) -> None:
        """The joined kernel takes the later place i; j is gone."""
        for place in (i, j):
            for value in self._held(self.reads[place]):
                self.readers[value].discard(place)
        self.kernels[j], self.kernels[i] = None, joined
        self.reads[j] = {}
        self.waits[i] |= self.waits[j]
        self.reads[i] = joined.loads()
        for value in self._held(self.reads[i]):
            self.readers.setdefault(value, set()).add(i)
        for value in joined.writes:
            self.writer[value] = i
        self.order.join(j, i)

    def _siblings(self) -> None:
        """Joins independent kernels over one index space that read something in common, or that copy weights to f16."""
        spaces: dict[tuple[object, ...], list[int]] = {}
        for i, kernel in enumerate(self.kernels):
            if kernel is None or kernel.matmul or kernel.attention or kernel.line:
                continue
            loops = frozenset(e.data[1].size for s in kernel.stores for e in reductions(s.expr))
            spaces.setdefault((kernel.kind, kernel.rows, kernel.cols, loops), []).append(i)
        for members in spaces.values():
            for n, i in enumerate(members):
                for j in members[:n]:
                    self._sibling(j, i)

    def _sibling(self, j: int, i: int) -> None:
        a, b = self.kernels[j], self.kernels[i]
        # where neither precedes the other, no third kernel can stand between them
        if a is None or b is None or self.order.precedes(j, i) or self.order.precedes(i, j):
            return
        common = [v for v in self.reads[j].keys() & self.reads[i].keys() if self.graph.type(v).size >= a.size]
        if not (common or (self._copies(a) and self._copies(b))) or self._unfit(a, b, i, j):
            return
        joined = Kernel(b.rows, b.cols, [*a.stores, *b.stores], None, a.nodes | b.nodes)
        joined.joined = (*a.joined, *b.joined, Joined(None, tuple(sorted(common))))
        self._replace(j, i, joined)

    def _copies(self, kernel: Kernel) -> bool:
        """Whether all that a kernel does is to store leaves in another dtype: work for a dispatch, not for several."""
        return all(
            s.expr.op == "cast" and s.expr.args[0].op == "load" and self.graph.node(s.expr.args[0].data[0]).op == "leaf"
            for s in kernel.stores
        )

    def _operand_sums(self) -> None:
        """Sums of a matmul's operand join the matmul."""
        products = [i for i, k in enumerate(self.kernels) if k is not None and k.matmul]
        for i, kernel in enumerate(self.kernels):
            if kernel is None or kernel.kind != "row" or len(kernel.stores) != 1:
                continue
            for j in products:
                product = self.kernels[j]
                if product is None or not self.reads[i].keys() <= self.reads[j].keys():
                    continue
                store = operand_sum(kernel, product)
                if store is None or self.order.precedes(j, i) or self.order.precedes(i, j):
                    continue
                if self._unfit(product, kernel, j, i):
                    continue
                joined = replace(product, stores=[*product.stores, store], nodes=product.nodes | kernel.nodes)
                joined.joined = (*product.joined, Joined(("row", "matmul"), tuple(self.reads[i])))
                first, last = min(i, j), max(i, j)
                self._replace(first, last, joined)
                products = [last if p == j else p for p in products]
                break

    # What is left ------------------------------------------------------------------------------

    def _drop_unread(self) -> None:
        """Removes stores that no other kernel and nobody outside reads."""
        for i, kernel in enumerate(self.kernels):
            if kernel is not None:
                kernel.stores = [
                    s for s in kernel.stores if s.value in self.outside or self.readers.get(s.value, set()) - {i}
                ]

    def _overwrite(self, leaf: Value, value: Value) -> None:
        """Updates a state in its own buffer, where that is safe.

        The kernel reads the old state at the element that it writes and nowhere else, and every
        other reader of the old state can run before it.
        """
        i = self.writer.get(value)
        kernel = None if i is None else self.kernels[i]
        if i is None or kernel is None or leaf in self.outside or value in kernel.inplace:
            return
        store = next(s for s in kernel.stores if s.value == value)
        if not self.reads[i].get(leaf, set()) <= {store.index}:
            return
        if kernel.cols and kernel.cols not in store_vars(store, kernel) and _read_by_columns(kernel, leaf):
            return  # one lane would overwrite what the row's other lanes still read
        if (kernel.attention or kernel.line) and leaf in self.reads[i]:
            return  # its operands are read until the end
        if not self._arenas((leaf,)).isdisjoint(self._arenas(v for v in self.reads[i] if v != leaf)):
            return  # it reads some of the packed leaves by themselves: their buffer cannot be bound twice
        others = {k for v in self._held((leaf,)) for k in self.readers.get(v, ())} - {i}
        if any(self.order.precedes(i, k) for k in others):
            return
        kernel.inplace[value] = leaf
        self.order.put_before(others, i)


def _read_by_columns(kernel: Kernel, leaf: Value) -> bool:
    """Whether a store that runs along the rows' columns reads a value."""
    return any(leaf in loads(s.expr) for s in kernel.stores if kernel.cols in store_vars(s, kernel))
