"""What an attention kernel multiplies and sums up: its operands by rows and columns of the scores."""

from __future__ import annotations

from typing import NamedTuple

from tensorgrad.lower.expr import Expr
from tensorgrad.lower.index import Var
from tensorgrad.lower.kernel import Attention, Kernel, result_of


class Operand(NamedTuple):
    """One of q, k, v and g: its name, and its row and column."""

    name: str
    expr: Expr
    row: Var
    column: Var


class Product(NamedTuple):
    """Products over a head: `name[rows, columns] = sum of left[rows, :] * right[columns, :]`."""

    name: str
    left: Operand
    right: Operand


class Sum(NamedTuple):
    """A result: `name[rows, :] += weights[rows, columns] * right[columns, :]`, where `weights` are a product's."""

    name: str
    weights: str
    right: Operand
    result: int


class Plan(NamedTuple):
    """What a kernel does with each block of scores."""

    rows: Var
    columns: Var
    products: tuple[Product, ...]
    sums: tuple[Sum, ...]


def plan(kernel: Kernel, a: Attention) -> Plan:
    q, k = Operand("q", a.q, a.i, a.e), Operand("k", a.k, a.j, a.e)
    v = Operand("v", a.v, a.j, a.f)
    if a.part == "out":
        return Plan(a.i, a.j, (Product("s", q, k),), (Sum("o", "s", v, 0),))
    assert a.g is not None
    g = Operand("g", a.g, a.i, a.f)
    if a.part == "dq":
        return Plan(a.i, a.j, (Product("s", q, k), Product("d", g, v)), (Sum("o", "d", k, 0),))
    stored = {result_of(s) for s in kernel.stores}
    sums = tuple(s for s in (Sum("o", "s", g, 2), Sum("u", "d", q, 1)) if s.result in stored)
    products = (Product("s", k, q), Product("d", v, g))
    return Plan(a.j, a.i, products if 1 in stored else products[:1], sums)
