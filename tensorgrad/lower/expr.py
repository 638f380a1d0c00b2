"""Value expressions: what one invocation of a kernel computes.

A tensor is a function from an index to a scalar; lowering composes those functions,
and the result is an `Expr`: a tree of scalar operations over loads. Equal expressions
are one object (they are interned), so what is computed twice is found by identity.

A reduction stands in an expression as `reduce`, with a loop variable of its own. The
result of a matmul's inner loop stands in its epilogue as `acc`; the sum over that loop of the
operand that has the variable n (or m) as `total` of that variable.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from tensorgrad.dtypes import DType, bool_, f16, f32, u32
from tensorgrad.graph import Value
from tensorgrad.lower.index import Digit, Index, Var, digit_of, digits, dynamics, substitute


class Expr:
    """A scalar expression.

    Attributes:
        op: `const`, `index`, `load`, `acc`, `total`, `param`, `reduce`, `call`, or an elementwise operation.
        args: its operands.
        dtype: of its value.
        data: const: the number; index: the Index; load: (Value, Index); acc: the Value; total: the Var;
            reduce: (operation, Var); call: the Function; param: its name.
    """

    __slots__ = ("__weakref__", "_digits", "_loads", "_reductions", "args", "children", "data", "depth", "dtype", "op")

    children: tuple[Expr, ...]
    """Operands, and the expressions inside its indices."""

    depth: int
    """The longest way down to an expression without children."""

    def __init__(self, op: str, args: tuple[Expr, ...], dtype: DType, data: Any) -> None:
        self.op, self.args, self.dtype, self.data = op, args, dtype, data
        self.children = args if op not in ("load", "index") else tuple(dynamics(self.indices[0]))
        self.depth = 1 + max([child.depth for child in self.children], default=-1)
        self._digits: frozenset[Digit] | None = None
        self._loads: tuple[tuple[Value, Index], ...] | None = None
        self._reductions: tuple[Expr, ...] | None = None

    @property
    def indices(self) -> tuple[Index, ...]:
        if self.op == "load":
            return (self.data[1],)
        return (self.data,) if self.op == "index" else ()

    @property
    def digits(self) -> frozenset[Digit]:
        """The free digits: those of loop variables that no `reduce` inside binds."""
        if self._digits is None:
            for e in walk(self):
                if e._digits is None:
                    e._digits = e._free_digits()
        assert self._digits is not None
        return self._digits

    def _free_digits(self) -> frozenset[Digit]:
        found = frozenset[Digit]().union(*(child._digits or () for child in self.children))
        for index in self.indices:
            found |= digits(index)
        if self.op == "reduce":
            var = self.data[1]
            found = frozenset(d for d in found if d.var != var)
        return found

    def __repr__(self) -> str:
        from tensorgrad.lower.show import show  # the printer reads expressions: no cycle at import

        return show(self)


class Function:
    """A scalar function with one definition for every printer: its body in terms of `param`s.

    There is one object of each, so they compare by identity.

    Args:
        define: makes the body, of one expression a parameter. It is called when the body is first asked for.
    """

    def __init__(
        self, name: str, params: tuple[tuple[str, DType], ...], dtype: DType, define: Callable[..., Expr]
    ) -> None:
        self.name, self.params, self.dtype, self._define = name, params, dtype, define

    @functools.cached_property
    def body(self) -> Expr:
        return self._define(*(expr("param", (), dtype, name) for name, dtype in self.params))


_interned: dict[tuple[Hashable, ...], Expr] = {}


def clear_interned() -> None:
    """Forgets the interned expressions; a lowering calls it when it is done."""
    _interned.clear()


def expr(op: str, args: tuple[Expr, ...], dtype: DType, data: Any = None) -> Expr:
    """The one expression with these parts."""
    # repr tells -0.0 from 0.0 and makes NaN equal to itself
    key = (op, tuple(map(id, args)), dtype, repr(data) if op == "const" else data)
    found = _interned.get(key)
    if found is None:
        found = _interned[key] = Expr(op, args, dtype, data)
    return found


def const(value: bool | int | float, dtype: DType) -> Expr:
    """A number. A float becomes an integer as `cast` does it: what does not fit stops at the end, NaN is 0."""
    if dtype is bool_:
        return expr("const", (), dtype, bool(value))
    if dtype.is_float:
        return expr("const", (), dtype, float(value))
    if isinstance(value, float):
        low, high = (0, 2**32 - 1) if dtype is u32 else (-(2**31), 2**31 - 1)
        value = 0 if value != value else int(max(low, min(high, value)))
    return expr("const", (), dtype, int(value))


def load(value: Value, index: Index, dtype: DType) -> Expr:
    return expr("load", (), dtype, (value, index))


def widened(e: Expr) -> Expr:
    """The f16 load that an expression widens to f32, or the expression itself."""
    wide = e.op == "cast" and e.dtype is f32 and e.args[0].op == "load" and e.args[0].dtype is f16
    return e.args[0] if wide else e


def from_index(index: Index) -> Expr:
    """The number that an index is, as a u32."""
    return const(index.const, u32) if not index.terms else expr("index", (), u32, index)


def reduce(op: str, var: Var, body: Expr) -> Expr:
    """`sum`, `prod`, `max`, `min`, or `argmax`/`argmin` (the first position, u32) of `body` over `var`."""
    return expr("reduce", (body,), u32 if op.startswith("arg") else body.dtype, (op, var))


def call(function: Function, *args: Expr) -> Expr:
    return expr("call", args, function.dtype, function)


def where(condition: Expr, a: Expr, b: Expr) -> Expr:
    if condition.op == "const":
        return a if condition.data else b
    return a if a is b else expr("where", (condition, a, b), a.dtype)


def both(a: Expr, b: Expr) -> Expr:
    if a.op == "const":
        return b if a.data else a
    if b.op == "const":
        return a if b.data else b
    return expr("and", (a, b), bool_)


def guarded(tests: Iterable[Expr], inside: Callable[[], Expr], fill: Expr) -> Expr:
    """`inside()` where all tests hold, else `fill`; what is known not to hold is not composed."""
    condition = functools.reduce(both, tests, const(True, bool_))
    return fill if condition.op == "const" and not condition.data else where(condition, inside(), fill)


def below(index: Index, size: int) -> Expr:
    """Whether an index that may lie outside is in `0 <= index < size`."""
    known = index.below(size)
    if known is not None:
        return const(known, bool_)
    return expr("less", (from_index(index), const(size, u32)), bool_)


def walk(root: Expr, seen: set[int] | None = None) -> Iterator[Expr]:
    """Every distinct expression below `root`, operands first."""
    seen = set() if seen is None else seen
    # None says that the expression under it has only its operands to wait for, which are done
    stack: list[Expr | None] = [root]
    while stack:
        e = stack.pop()
        if e is None:
            done = stack.pop()
            assert done is not None
            yield done
        elif id(e) not in seen:
            seen.add(id(e))
            if e.children:
                stack += (e, None, *reversed(e.children))
            else:
                yield e


def rebuild(
    root: Expr,
    digit: Callable[[Digit], Index | None] = lambda d: None,
    leaf: Callable[[Expr], Expr | None] = lambda e: None,
    memo: dict[int, Expr] | None = None,
) -> Expr:
    """The expression with its digits replaced, and any sub-expression for which `leaf` returns another."""
    memo = {} if memo is None else memo

    def again(x: Expr) -> Expr:
        return memo[id(x)]

    for e in walk(root):
        new = leaf(e)
        if new is None:
            if e.op == "load" or e.op == "index":
                old = e.indices[0]
                at = substitute(old, digit, again)
                if at is old:
                    new = e
                else:
                    new = load(e.data[0], at, e.dtype) if e.op == "load" else from_index(at)
            else:
                args = tuple([memo[id(a)] for a in e.args])
                new = e if args == e.args else _remade(e, args)
        memo[id(e)] = new
    return memo[id(root)]


def _remade(e: Expr, args: tuple[Expr, ...]) -> Expr:
    """The expression of other operands; a condition that they decide goes, and with it what is read in vain.

    That may be at a place that there is not, such as -1, which shader compilers refuse where they see it.
    """
    if e.op == "where":
        return where(*args)
    if e.op == "and" and e.dtype is bool_:
        return both(*args)
    if e.op == "less" and all(a.op == "const" and a.dtype is u32 for a in args):
        return const(args[0].data < args[1].data, bool_)
    return expr(e.op, args, e.dtype, e.data)


def replace_var(root: Expr, var: Var, index: Index) -> Expr:
    """The expression with a free loop variable replaced by an index."""
    return rebuild(root, lambda d: digit_of(index, d) if d.var == var else None)


def loads(root: Expr) -> dict[Value, set[Index]]:
    """Stored value -> the indices at which the expression reads it."""
    if root._loads is None:
        root._loads = tuple(e.data for e in walk(root) if e.op == "load")
    found: dict[Value, set[Index]] = {}
    for value, index in root._loads:
        found.setdefault(value, set()).add(index)
    return found


def reductions(root: Expr) -> tuple[Expr, ...]:
    """The `reduce` nodes below `root`, inner ones first."""
    if root._reductions is None:
        root._reductions = tuple(e for e in walk(root) if e.op == "reduce")
    return root._reductions
