"""Fusion: joins kernels that share an index space, then drops the buffers that nobody else reads.

A consumer joins the kernel of its producer where it reads the producer's result at its
own place only: the same element of a map, the same row of a row kernel, the same tile
element of a matmul. The load becomes the producer's expression. Siblings that read the
same tensors over one index space join too. Every step is checked on the indices
themselves, so it is legal by construction; what pays is decided by the few rules in
`_pays`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from tensorgrad.graph import Graph, Value
from tensorgrad.lower.expr import Expr, loads, rebuild, reductions
from tensorgrad.lower.index import Digit, Index, Var, digit_of, of_var, substitute
from tensorgrad.lower.kernel import Joined, Kernel, Store, at, invert, split_rows, store_vars
from tensorgrad.ops.arena import parts

MIN_ROWS = 64
"""A row kernel with fewer rows would leave a GPU idle: larger maps do not join it."""


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
    ) -> None:
        self.graph, self.outside, self.updates, self.max_buffers = graph, outside, updates, max_buffers
        self.replaces = {value: leaf for leaf, value in updates.items()} if hopeful else {}
        self.refused: dict[Value, str] = {}
        self.kernels: list[Kernel | None] = list(kernels)
        self.reads = [k.loads() for k in kernels]
        self.writer = {v: i for i, k in enumerate(kernels) for v in k.writes}
        self.readers: dict[Value, set[int]] = {}
        self.before: list[int] = []  # bit j of before[i]: kernel j runs before kernel i
        for i, reads in enumerate(self.reads):
            mask = 0
            for value in self._held(reads):
                self.readers.setdefault(value, set()).add(i)
                if value in self.writer:
                    j = self.writer[value]
                    mask |= 1 << j | self.before[j]
            self.before.append(mask)

    def run(self, join: bool = True) -> list[Kernel]:
        """The joined kernels (or the given ones, with `join` False) in the order in which they run."""
        if join:
            for i in range(len(self.kernels)):
                for j in self._producers(i):
                    if self._legal_order(j, i):
                        self._vertical(j, i)
            self._siblings()
            self._drop_unread()
        for leaf, value in self.updates.items():
            self._overwrite(leaf, value)
        return self._order()

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

    def _legal_order(self, j: int, i: int) -> bool:
        """No third kernel has to run after j and before i."""
        bit = 1 << j
        return not any(
            self.before[p] & bit for p in self._producers(i) if p != j
        )

    def _fits(self, a: Kernel, b: Kernel, i: int, j: int) -> bool:
        """The joined kernel's buffers are within the device's limit."""
        both = {i, j}
        written = [*a.writes, *b.writes]
        kept = [v for v in written if v in self.outside or self.readers.get(v, set()) - both]
        read = (set(self.reads[i]) | set(self.reads[j])) - set(written)
        return len({self.replaces.get(v, v) for v in kept} | read) <= self.max_buffers

    def _vertical(self, j: int, i: int) -> None:
        """Kernel i joins its producer j, if their indices and the rules of what pays allow."""
        producer, consumer = self.kernels[j], self.kernels[i]
        if producer is None or consumer is None:
            return
        shared = tuple(v for v in producer.writes if v in self.reads[i])
        joined = None
        if consumer.matmul:
            reason = "a matmul reads its operands from memory"
        elif not self._fits(producer, consumer, i, j):
            reason = f"together with its reader it would bind more than {self.max_buffers} buffers"
        else:
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
        self.reads[i] = joined.loads()
        for value in self._held(self.reads[i]):
            self.readers.setdefault(value, set()).add(i)
        for value in joined.writes:
            self.writer[value] = i
        bit_i, bit_j = 1 << i, 1 << j
        before = (self.before[i] | self.before[j]) & ~(bit_i | bit_j)
        self.before[j] = 0
        self.before[i] = 0
        for k in range(len(self.kernels)):
            if self.before[k] & (bit_i | bit_j):
                self.before[k] &= ~bit_j
                self.before[k] |= bit_i
        self._precede(before, i)

    def _precede(self, mask: int, i: int) -> None:
        """The kernels of `mask` run before kernel i, and so before all that run after it."""
        self.before[i] |= mask
        mask = self.before[i]
        for k in range(len(self.kernels)):
            if self.before[k] >> i & 1:
                self.before[k] |= mask

    def _siblings(self) -> None:
        """Joins independent kernels over one index space that read something in common."""
        spaces: dict[tuple[object, ...], list[int]] = {}
        for i, kernel in enumerate(self.kernels):
            if kernel is None or kernel.matmul:
                continue
            loops = frozenset(e.data[1].size for s in kernel.stores for e in reductions(s.expr))
            spaces.setdefault((kernel.kind, kernel.rows, kernel.cols, loops), []).append(i)
        for members in spaces.values():
            for n, i in enumerate(members):
                for j in members[:n]:
                    self._sibling(j, i)

    def _sibling(self, j: int, i: int) -> None:
        a, b = self.kernels[j], self.kernels[i]
        if a is None or b is None or not self._fits(a, b, i, j):
            return
        common = [v for v in self.reads[j].keys() & self.reads[i].keys() if self.graph.type(v).size >= a.size]
        if not common:
            return
        if self.before[i] >> j & 1 or self.before[j] >> i & 1:
            return
        # neither precedes the other, so no third kernel can stand between them
        joined = Kernel(b.rows, b.cols, [*a.stores, *b.stores], None, a.nodes | b.nodes)
        joined.joined = (*a.joined, *b.joined, Joined(None, tuple(sorted(common))))
        self._replace(j, i, joined)

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
        if any(v in self.reads[i] for v in self._held((leaf,)) if v != leaf):
            return  # it reads one of the packed leaves by itself: their buffer cannot be bound twice
        others = {k for v in self._held((leaf,)) for k in self.readers.get(v, ())} - {i}
        if any(self.before[k] >> i & 1 for k in others):
            return
        kernel.inplace[value] = leaf
        mask = 0
        for k in others:
            mask |= 1 << k | self.before[k]
        self._precede(mask, i)

    def _order(self) -> list[Kernel]:
        """Topological order, near the graph's own."""
        left = [i for i, k in enumerate(self.kernels) if k is not None and k.stores]
        waiting = sum(1 << i for i in left)
        out: list[Kernel] = []
        while left:
            ready = next(i for i in left if not self.before[i] & waiting)
            left.remove(ready)
            waiting &= ~(1 << ready)
            kernel = self.kernels[ready]
            assert kernel is not None
            out.append(kernel)
        return out


def _read_by_columns(kernel: Kernel, leaf: Value) -> bool:
    """Whether a store that runs along the rows' columns reads a value."""
    return any(leaf in loads(s.expr) for s in kernel.stores if kernel.cols in store_vars(s, kernel))


# Joining two kernels ----------------------------------------------------------------------------


def join(producer: Kernel, consumer: Kernel, reads: dict[Value, set[Index]]) -> Kernel | None:
    """One kernel that computes both, or None where the consumer reads the producer elsewhere than at its own place.

    Args:
        reads: what the consumer loads, and where.
    """
    shared = {v: reads[v] for v in producer.writes if v in reads}
    if not shared:
        return None
    inverses: dict[Value, dict[Var, Index]] = {}
    for store in producer.stores:
        if store.value in shared:
            variables = store_vars(store, producer)
            inverse = invert(store.index, math.prod(v.size for v in variables), variables)
            if inverse is None:
                return None
            inverses[store.value] = inverse
    if producer.matmul:
        return _into_matmul(producer, consumer, shared, inverses)
    return _into_rows(producer, consumer, shared, inverses)


def _into_matmul(
    producer: Kernel, consumer: Kernel, shared: dict[Value, set[Index]], inverses: dict[Value, dict[Var, Index]]
) -> Kernel | None:
    """A map over the matmul's result becomes an epilogue, whatever permutation its index is."""
    if consumer.kind != "map" or consumer.size != producer.size:
        return None
    value = next(iter(shared))
    places = shared[value]
    if len(places) != 1:
        return None
    inverse = invert(next(iter(places)), consumer.size, (consumer.rows,))
    if inverse is None:
        return None
    stored = {s.value: s for s in producer.stores}
    element = at(inverse[consumer.rows], stored[value].index)  # the consumer's element, in b, m and n
    return _merge(producer, consumer, element, shared, inverses, dict.fromkeys(producer.vars))


def _into_rows(
    producer: Kernel, consumer: Kernel, shared: dict[Value, set[Index]], inverses: dict[Value, dict[Var, Index]]
) -> Kernel | None:
    p_rows, c_rows = producer.kind == "row", consumer.kind == "row"
    if not p_rows and not c_rows:
        if producer.rows != consumer.rows:
            # a larger map may read the same place behind a condition, but then runs beyond the producer
            return None
        return _merge(producer, consumer, None, shared, inverses, {producer.rows: of_var(consumer.rows)})
    if p_rows and not c_rows:
        return _map_after_rows(producer, consumer, shared, inverses)
    if p_rows:
        if producer.rows != consumer.rows or (producer.cols and consumer.cols and producer.cols != consumer.cols):
            return None
        joined = _merge(producer, consumer, None, shared, inverses, {producer.rows: of_var(consumer.rows)})
        if joined:
            joined.cols = producer.cols or consumer.cols
        return joined
    return _map_before_rows(producer, consumer, shared, inverses)


def _map_after_rows(
    producer: Kernel, consumer: Kernel, shared: dict[Value, set[Index]], inverses: dict[Value, dict[Var, Index]]
) -> Kernel | None:
    """A map that reads a row's results joins the row kernel: its elements become columns."""
    value = next(iter(shared))
    row = at(inverses[value][producer.rows], next(iter(shared[value])))
    split = split_rows(consumer.rows, row, producer.rows.size)
    if split is None:
        return None
    element, r, c = split
    if producer.cols and c and producer.cols != c:
        return None
    if c and producer.rows.size < MIN_ROWS and consumer.size > 64 * 1024:
        return None
    if c and not _contiguous(element, c):
        return None
    joined = _merge(producer, consumer, element, shared, inverses, {producer.rows: of_var(r)})
    if joined:
        joined.rows, joined.cols = r, c or producer.cols
    return joined


def _map_before_rows(
    producer: Kernel, consumer: Kernel, shared: dict[Value, set[Index]], inverses: dict[Value, dict[Var, Index]]
) -> Kernel | None:
    """A map that a row kernel reduces joins it: it is computed a row at a time, along the reduction."""
    size = producer.size
    loops = {e.data[1] for s in consumer.stores for e in reductions(s.expr)}
    for index in next(iter(shared.values())):
        used = {a.var for a, _ in index.terms if isinstance(a, Digit)}
        loop = next(iter(used - {consumer.rows}), None)
        if loop is None:
            return None
        if len(used - {consumer.rows}) > 1 or not (loop in loops or loop == consumer.cols):
            return None
        c = Var("c", loop.size)
        if invert(index, size, (consumer.rows, loop)) is None:
            return None
        if consumer.cols and consumer.cols != c:
            return None
        if consumer.rows.size < MIN_ROWS and size > 64 * 1024:
            return None
        element = _rename(index, loop, c)
        if not _contiguous(element, c):
            return None
        spread = _remap(producer, element)
        inverse = {v: _inverse_through(index, loop, c, consumer.rows, size) for v in inverses}
        joined = _merge(spread, consumer, None, shared, inverse, {consumer.rows: of_var(consumer.rows)})
        if joined:
            joined.rows, joined.cols = consumer.rows, c
            return joined
    return None


def _contiguous(element: Index, c: Var) -> bool:
    """Neighbouring columns are neighbouring elements: the row is read along memory."""
    return any(isinstance(a, Digit) and a.var == c and coefficient == 1 for a, coefficient in element.terms)


def _rename(index: Index, old: Var, new: Var) -> Index:
    return substitute(index, lambda d: digit_of(of_var(new), d) if d.var == old else None, lambda e: e)


def _remap(kernel: Kernel, element: Index) -> Kernel:
    """A map kernel whose element number is given in other variables."""
    memo: dict[int, Expr] = {}
    stores = [
        Store(s.value, _through(s.index, kernel.rows, element), _moved(s.expr, kernel.rows, element, memo))
        for s in kernel.stores
    ]
    return Kernel(kernel.rows, None, stores, None, kernel.nodes)


def _through(index: Index, var: Var, value: Index) -> Index:
    return substitute(index, lambda d: digit_of(value, d) if d.var == var else None, lambda e: e)


def _moved(e: Expr, var: Var, value: Index, memo: dict[int, Expr]) -> Expr:
    return rebuild(e, lambda d: digit_of(value, d) if d.var == var else None, memo=memo)


def _inverse_through(index: Index, loop: Var, c: Var, rows: Var, size: int) -> dict[Var, Index]:
    """Row and column of a flat element, where `index` numbers elements by row and loop variable."""
    found = invert(index, size, (rows, loop))
    assert found is not None
    return {rows: found[rows], c: found[loop]}


def _merge(
    producer: Kernel,
    consumer: Kernel,
    element: Index | None,
    shared: dict[Value, set[Index]],
    inverses: dict[Value, dict[Var, Index]],
    required: dict[Var, Index | None],
) -> Kernel | None:
    """The consumer's stores, with its element number replaced and its loads of the producer's values resolved.

    Args:
        element: the consumer's element in the joined variables; None keeps its own.
        required: producer's variable -> what it must be at every such load (None: itself).
    """
    stored = {s.value: s for s in producer.stores}
    moved: dict[int, Expr] = {}
    memo: dict[int, Expr] = {}

    def resolve(e: Expr) -> Expr | None:
        if e.op != "load" or e.data[0] not in shared:
            return None
        value = e.data[0]
        # the index may itself depend on what is resolved here: `x[i]` where the producer computes both
        index = substitute(e.data[1], lambda d: None, lambda inner: memo[id(inner)])
        where = inverses[value]
        places = {var: at(i, index) for var, i in where.items()}
        for var, wanted in required.items():
            if var in places and places[var] != (of_var(var) if wanted is None else wanted):
                raise _Elsewhere
        return rebuild(
            stored[value].expr,
            lambda d: digit_of(places[d.var], d) if d.var in places else None,
        )

    try:
        stores = []
        for s in consumer.stores:
            index = s.index if element is None else _through(s.index, consumer.rows, element)
            body = s.expr if element is None else _moved(s.expr, consumer.rows, element, moved)
            stores.append(Store(s.value, index, rebuild(body, leaf=resolve, memo=memo)))
    except _Elsewhere:
        return None
    return Kernel(
        producer.rows if element is not None else consumer.rows,
        producer.cols,
        [*producer.stores, *stores],
        producer.matmul,
        producer.nodes | consumer.nodes,
    )


class _Elsewhere(Exception):
    """A load of the producer's value that is not at the consumer's own place."""
