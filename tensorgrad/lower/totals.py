"""Sums of a matmul's operand over its inner axis, which the matmul can compute on the side.

A linear layer's weight gradient is `dy.T @ x`, and its bias gradient the sum of `dy` over the same rows:
the matmul has every element of `dy` in hand anyway.
"""

from __future__ import annotations

from tensorgrad.dtypes import f32
from tensorgrad.lower.expr import Expr, expr, widened
from tensorgrad.lower.index import Index, Var, digit_of, of_var, substitute
from tensorgrad.lower.kernel import Kernel, Matmul, Store


def operand_sum(row: Kernel, product: Kernel) -> Store | None:
    """What `row` stores as a store of the matmul `product`, if it is the sum over k of an operand, else None."""
    inner = product.matmul
    if inner is None or row.matmul or len(row.stores) != 1 or any(s.expr.op == "total" for s in product.stores):
        return None
    ((store,), summed) = row.stores, row.stores[0].expr
    if summed.op != "reduce" or summed.data[0] != "sum" or summed.dtype is not f32:
        return None
    if widened(summed.args[0]).op != "load":
        return None
    for operand, axis in ((inner.b, inner.n), (inner.a, inner.m)):
        if _is_sum(summed, row.rows, operand, axis, inner):
            index = _renamed(store.index, {row.rows: of_var(inner.batch) * axis.size + of_var(axis)})
            return Store(store.value, index, expr("total", (), f32, axis))
    return None


def _is_sum(summed: Expr, rows: Var, operand: Expr, axis: Var, inner: Matmul) -> bool:
    loop: Var = summed.data[1]
    operand = widened(operand)
    if operand.op != "load" or rows.size != inner.batch.size * axis.size or loop.size != inner.k.size:
        return False
    (value, index), (own, own_index) = operand.data, widened(summed.args[0]).data
    places = {rows: of_var(inner.batch) * axis.size + of_var(axis), loop: of_var(inner.k)}
    return value == own and _renamed(own_index, places) == index


def _renamed(index: Index, places: dict[Var, Index]) -> Index:
    return substitute(index, lambda d: digit_of(places[d.var], d) if d.var in places else None, lambda e: e)


def total_of(kernel: Kernel) -> Store | None:
    """The store of a matmul kernel that is the sum of an operand."""
    return next((s for s in kernel.stores if s.expr.op == "total"), None)
