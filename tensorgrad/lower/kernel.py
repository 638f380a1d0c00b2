"""A kernel before it is text: loop variables, what it stores, and the operands of what has a template of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from tensorgrad.dtypes import DType
from tensorgrad.graph import Value
from tensorgrad.lower.expr import Expr, loads, reductions
from tensorgrad.lower.index import Digit, Index, Var, digit_of, digits, dynamics, of_var

FLAT = "t"
"""The variable that counts the elements of a stored tensor in row-major order, where an index is inverted."""


@dataclass(frozen=True, slots=True)
class Store:
    """`value[index] = expr`, both in terms of the kernel's variables.

    The index may be one that the data decides, if no two elements have the same.
    """

    value: Value
    index: Index
    expr: Expr


class Matmul(NamedTuple):
    """`acc[b, m, n] = sum over k of a(b, m, k) * b(b, k, n)`, the inner loop of a matmul kernel."""

    node: int
    batch: Var
    m: Var
    n: Var
    k: Var
    a: Expr
    b: Expr
    dtype: DType

    def of(self, axis: Var) -> Expr:
        """The operand that has m, or n."""
        return self.a if axis == self.m else self.b


AttentionPart = Literal["out", "dq", "dkv"]


class Attention(NamedTuple):
    """One pass over the scores of all queries and keys, block by block.

    With `score(b, i, j) = sum over e of q(b, i, e) * k(b, j, e) * scale + bias(b, i, j)`, its softmax over j `p`
    and `d(b, i, j) = p * (sum over f of g(b, i, f) * v(b, j, f) - delta(b, i))`, the results are

    - `out`: sum over j of p * v, and each query's log-sum-exp of the scores;
    - `dq`: scale * sum over j of d * k;
    - `dkv`: scale * sum over i of d * q, and sum over i of p * g.

    Attributes:
        part: which of these.
        node: the graph's node.
        batch, i, j, e, f: queries, keys, and the sizes of a head in q and k and in v.
        g, lse, delta: the output's gradient, each query's log-sum-exp and sum of output times gradient; None in `out`.
        causal: scores of j > i do not count.
    """

    part: AttentionPart
    node: int
    batch: Var
    i: Var
    j: Var
    e: Var
    f: Var
    q: Expr
    k: Expr
    v: Expr
    bias: Expr | None
    g: Expr | None
    lse: Expr | None
    delta: Expr | None
    scale: float
    causal: bool

    @property
    def operands(self) -> tuple[Expr, ...]:
        found = (self.q, self.k, self.v, self.bias, self.g, self.lse, self.delta)
        return tuple(e for e in found if e is not None)

    def space(self, result: int) -> tuple[Var, ...]:
        """The variables of a result of the node."""
        b, i, j, e, f = self.batch, self.i, self.j, self.e, self.f
        if self.part == "out":
            return ((b, i, f), (b, i))[result]
        return ((b, i, e), (b, j, e), (b, j, f))[result]


class Line(NamedTuple):
    """What takes a whole row at once: `acc[r, c]` is decided by the operands at all columns of row r.

    Attributes:
        node: the graph's node.
        op: the primitive: a scan (`cumsum`, ...), whose result at c is of the columns up to c, or `sort`, whose
            result at c is the column whose key comes c-th.
        operands: in terms of the kernel's rows and cols; of `sort` one, the key, u32.
        reverse: a scan runs from the last column to the first.
    """

    node: int
    op: str
    operands: tuple[Expr, ...]
    reverse: bool = False

    @property
    def template(self) -> str:
        return "sort" if self.op == "sort" else "scan"


class Joined(NamedTuple):
    """Why two kernels became one.

    Attributes:
        rule: the templates of both, producer first (`matmul`, `row` or `map`); None: siblings, neither reads the other.
        values: what the consumer reads of the producer, or what the siblings read in common.
    """

    rule: tuple[str, str] | None
    values: tuple[Value, ...]


@dataclass(slots=True, eq=False)
class Kernel:
    """One dispatch.

    Attributes:
        rows: the variable that its invocations (or workgroups) count: all elements of a map, the rows
            of a row kernel.
        cols: the elements within a row; None where every store is one element a row.
        stores: what it writes. An expression with `cols` in it is computed for each element of a row.
        matmul: the inner product whose result `acc` the stores use; its variables replace rows and cols.
        nodes: the graph nodes that it computes.
        inplace: stored value -> the state whose buffer it overwrites.
        joined: how it grew from kernels of one store each, first join first.
        attention: the pass over scores whose results the stores hold; its variables replace rows and cols.
        line: what takes a row at once, with the result `acc` that the stores use; `cols` count its columns.
        waits: values that have to be stored before it runs, though it does not read them.
    """

    rows: Var
    cols: Var | None
    stores: list[Store]
    matmul: Matmul | None = None
    nodes: set[int] = field(default_factory=set)
    inplace: dict[Value, Value] = field(default_factory=dict)
    joined: tuple[Joined, ...] = ()
    attention: Attention | None = None
    line: Line | None = None
    waits: frozenset[Value] = frozenset()

    @property
    def kind(self) -> str:
        """The template that it uses: `matmul`, `attention`, `scan`, `sort`, `row` or `map`."""
        if self.matmul:
            return "matmul"
        if self.attention:
            return "attention"
        if self.line:
            return self.line.template
        return "row" if self.cols or any(reductions(s.expr) for s in self.stores) else "map"

    @property
    def vars(self) -> tuple[Var, ...]:
        if self.matmul:
            return self.matmul.batch, self.matmul.m, self.matmul.n
        if self.attention:
            return self.attention.batch, self.attention.i, self.attention.j
        return (self.rows, self.cols) if self.cols else (self.rows,)

    @property
    def size(self) -> int:
        """Elements of its index space."""
        total = 1
        for var in self.vars:
            total *= var.size
        return total

    def expressions(self) -> Iterable[Expr]:
        for s in self.stores:
            yield s.expr
            yield from dynamics(s.index)
        if self.matmul:
            yield from (self.matmul.a, self.matmul.b)
        if self.attention:
            yield from self.attention.operands
        if self.line:
            yield from self.line.operands

    def loads(self) -> dict[Value, set[Index]]:
        """Stored value -> the indices at which the kernel reads it."""
        found: dict[Value, set[Index]] = {}
        for e in self.expressions():
            for value, indices in loads(e).items():
                found.setdefault(value, set()).update(indices)
        return found

    @property
    def depth(self) -> int:
        """The length of the longest chain of operations."""
        return max((e.depth for e in self.expressions()), default=0)

    @property
    def writes(self) -> list[Value]:
        return [s.value for s in self.stores]


def store_vars(store: Store, kernel: Kernel) -> tuple[Var, ...]:
    """The variables over which a store runs: without `cols` where it is one element a row."""
    if kernel.matmul and store.expr.op == "total":
        return kernel.matmul.batch, store.expr.data
    if kernel.attention:
        return kernel.attention.space(result_of(store))
    if kernel.matmul or kernel.line or kernel.cols is None:
        return kernel.vars
    used = digits(store.index).union(*(e.digits for e in dynamics(store.index)))
    return kernel.vars if any(d.var == kernel.cols for d in used) else (kernel.rows,)


def result_of(store: Store) -> int:
    """Which result of an attention a store holds."""
    assert store.expr.op == "acc"
    return store.expr.data.result


def invert(index: Index, total: int, variables: Iterable[Var]) -> dict[Var, Index] | None:
    """The variables as functions of the flat index `t`, if `index` is a one-to-one map onto `0 <= t < total`.

    It is one where the coefficients are the places of a mixed radix and every digit of every variable occurs once.
    """
    if index.const or not all(isinstance(atom, Digit) for atom, _ in index.terms):
        return None
    flat = Var(FLAT, total)
    place = 1
    parts: dict[Var, list[tuple[int, int, Index]]] = {v: [] for v in variables}
    for atom, coefficient in sorted(index.terms, key=lambda term: term[1]):
        assert isinstance(atom, Digit)
        if coefficient != place or atom.var not in parts:
            return None
        digit = Index(((Digit(flat, place, atom.size), 1),))
        parts[atom.var].append((atom.div, atom.size, digit))
        place *= atom.size
    if place != total:
        return None
    found: dict[Var, Index] = {}
    for var, pieces in parts.items():
        value, div = Index(()), 1
        for start, size, digit in sorted(pieces, key=lambda p: p[0]):
            if start != div:
                return None
            value, div = value + digit * div, div * size
        if div != var.size:
            return None
        found[var] = value
    return found


def at(index: Index, flat: Index) -> Index:
    """An index in terms of `t`, with `t` replaced."""
    from tensorgrad.lower.index import substitute

    return substitute(index, lambda d: digit_of(flat, d) if d.var.name == FLAT else None, lambda e: e)


def split_rows(element: Var, row: Index, rows: int) -> tuple[Index, Var, Var | None] | None:
    """The element number from (row, column), where `row` is the row number of each element.

    Returns:
        the element's Index in terms of the variables `r` and `c`, and those; None where `row` does not
        number rows `0 <= row < rows` by digits of the element's variable.
    """
    if row.const or not all(isinstance(a, Digit) and a.var == element for a, _ in row.terms):
        return None
    r = Var("r", rows)
    value, place = Index(()), 1
    used: list[tuple[int, int]] = []
    for atom, coefficient in sorted(row.terms, key=lambda term: term[1]):
        assert isinstance(atom, Digit)
        if coefficient != place:
            return None
        value = value + _digit(r, place, atom.size) * atom.div
        used.append((atom.div, atom.size))
        place *= atom.size
    if place != rows or element.size % rows:
        return None
    c = Var("c", element.size // rows)
    div, column = 1, 1
    for start, size in [*sorted(used), (element.size, 1)]:
        if start % div or start < div:
            return None
        if start > div:
            value, column = value + _digit(c, column, start // div) * div, column * (start // div)
        div = start * size
    if c.size == 1:
        return value, r, None
    return value, r, c


def _digit(var: Var, div: int, size: int) -> Index:
    if div == 1 and size == var.size:
        return of_var(var)
    return Index(((Digit(var, div, size), 1),)) if size > 1 else Index(())
