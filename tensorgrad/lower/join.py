"""Joins a kernel with the kernel of what it reads, where their indices allow it."""

from __future__ import annotations

import math
from dataclasses import replace

from tensorgrad.graph import Value
from tensorgrad.lower.expr import Expr, rebuild, reductions
from tensorgrad.lower.index import Digit, Index, Var, digit_of, of_var, substitute
from tensorgrad.lower.kernel import Kernel, Store, at, invert, split_rows, store_vars

MIN_ROWS = 64
"""A row kernel with fewer rows would leave a GPU idle: larger maps do not join it."""


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
    if producer.matmul or producer.line:
        return _into_results(producer, consumer, shared, inverses)
    if producer.attention:
        return _moved_result(producer, consumer, shared)
    return _into_rows(producer, consumer, shared, inverses)


def _into_results(
    producer: Kernel, consumer: Kernel, shared: dict[Value, set[Index]], inverses: dict[Value, dict[Var, Index]]
) -> Kernel | None:
    """A map over the result of a template becomes an epilogue, whatever permutation its index is."""
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


def _moved_result(producer: Kernel, consumer: Kernel, shared: dict[Value, set[Index]]) -> Kernel | None:
    """A map that only moves an attention's result says where that is stored."""
    (value, places), *more = shared.items()
    store = next(s for s in producer.stores if s.value == value)
    size = math.prod(v.size for v in store_vars(store, producer))
    moves = all(s.expr.op == "load" and s.expr.data[0] == value for s in consumer.stores)
    if consumer.kind != "map" or not moves or more or len(places) != 1 or consumer.size != size:
        return None
    inverse = invert(next(iter(places)), size, (consumer.rows,))
    if inverse is None:
        return None
    element = at(inverse[consumer.rows], store.index)
    moved = [Store(s.value, _through(s.index, consumer.rows, element), store.expr) for s in consumer.stores]
    return replace(producer, stores=[*producer.stores, *moved], nodes=producer.nodes | consumer.nodes)


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
    return substitute(
        index, lambda d: digit_of(value, d) if d.var == var else None, lambda e: _moved(e, var, value, {})
    )


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
            index = substitute(index, lambda d: None, lambda e: rebuild(e, leaf=resolve, memo=memo))
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
        line=producer.line,
    )


class _Elsewhere(Exception):
    """A load of the producer's value that is not at the consumer's own place."""
