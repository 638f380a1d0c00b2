"""Expressions evaluated with NumPy on whole grids of indices: what a kernel computes, without a GPU.

Loop variables are arrays; every expression becomes an array over their common shape, in
its exact dtype. A `reduce` gives its body one more axis, in chunks where that is large.
Index arithmetic wraps as u32, as on the GPU.

A load outside its buffer is no accident of the oracle: padding computes such indices and
then selects another value. The GPU reads some element there (it never leaves the
buffer); here the last one. In strict mode each element also remembers whether it
depends on such a load, and a result that does is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tensorgrad.dtypes import DType, bool_
from tensorgrad.errors import TensorgradError
from tensorgrad.graph import Value
from tensorgrad.lower.expr import Expr, walk
from tensorgrad.lower.functions import expand
from tensorgrad.lower.index import Digit, Dynamic, Index, Quotient, Var

CHUNK = 1 << 22
"""Elements of a reduction's body that are held at once."""

Array = np.ndarray
Read = Callable[[Value], Array]


class OutOfRangeError(TensorgradError):
    """A result depends on an element outside its buffer."""


class Checked(NamedTuple):
    """An array, and where it depends on a load outside its buffer (None: nowhere)."""

    array: Array
    bad: Array | None = None


def evaluate(
    root: Expr,
    variables: Mapping[Var, Array],
    read: Read,
    acc: Mapping[Any, Array] | None = None,
    strict: bool = True,
) -> Array:
    """The array of an expression's values.

    Args:
        root: the expression.
        variables: an array of whole numbers for each free loop variable; they broadcast.
        read: the stored elements of a value, flat.
        acc: for each `acc` or `total` leaf, by its data, the array that it stands for, of the variables' common shape.
        strict: raise where an element depends on a load outside its buffer.

    Returns:
        An array of the variables' common shape and the expression's dtype.

    Raises:
        OutOfRangeError: see `strict`.
    """
    return evaluate_all((root,), variables, read, acc, strict)[0]


def evaluate_all(
    roots: tuple[Expr, ...],
    variables: Mapping[Var, Array],
    read: Read,
    acc: Mapping[Any, Array] | None = None,
    strict: bool = True,
) -> list[Array]:
    """`evaluate` for several expressions over the same variables; what they share is computed once."""
    grids = {var: np.asarray(a).astype(np.uint32) for var, a in variables.items()}
    arrays = [*grids.values(), *(acc or {}).values()]
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    grids = {var: a.reshape((1,) * (len(shape) - a.ndim) + a.shape) for var, a in grids.items()}
    top = _Frame(None, grids, shape, _Leaves(read, acc or {}, strict))
    out = []
    with np.errstate(all="ignore"):
        for root in roots:
            found = top.value(root)
            if strict and found.bad is not None and found.bad.any():
                raise OutOfRangeError(f"an element depends on a load outside its buffer: {root!r}")
            out.append(np.broadcast_to(found.array, shape))
    return out


class _Leaves(NamedTuple):
    read: Read
    acc: Mapping[Any, Array]
    strict: bool


class _Frame:
    """The values of expressions where some loop variables are bound; a reduction's body has a frame inside."""

    def __init__(
        self, parent: _Frame | None, variables: Mapping[Var, Array], shape: tuple[int, ...], leaves: _Leaves
    ) -> None:
        self.parent, self.variables, self.shape, self.leaves = parent, variables, shape, leaves
        self.memo: dict[int, Checked] = {}
        self.index_memo: dict[Index, Checked] = {}

    def value(self, root: Expr) -> Checked:
        found = self.memo.get(id(root))
        if found is None:
            # a reduction's body has its frame's memo, so it is left out here
            for e in _in_order(root, self.memo):
                self.memo[id(e)] = self._compute(e)
            found = self.memo[id(root)]
        return found

    def _compute(self, e: Expr) -> Checked:
        if self.parent is not None and not any(d.var in self.variables for d in e.digits):
            return _deeper(self.parent.value(e))
        if e.op == "const":
            return Checked(_filled(e.data, e.dtype, len(self.shape)))
        if e.op == "index":
            return self._index(e.data)
        if e.op == "load":
            return self._load(e)
        if e.op in ("acc", "total"):
            array = self.leaves.acc[e.data]
            return Checked(array.reshape((1,) * (len(self.shape) - array.ndim) + array.shape))
        if e.op == "reduce":
            return self._reduce(e)
        expansion = e if e.op == "call" else expand(e)
        if expansion is None:
            return apply(e, [self.memo[id(a)] for a in e.args])
        if expansion.args == e.args:
            return _call(expansion, [self.memo[id(a)] for a in e.args])
        return self.value(expansion)

    def _index(self, index: Index) -> Checked:
        found = self.index_memo.get(index)
        if found is None:
            total, bad = np.full((1,) * len(self.shape), index.const & 0xFFFFFFFF, dtype=np.uint32), None
            for atom, factor in index.terms:
                if isinstance(atom, Digit):
                    value = (self._variable(atom.var) // np.uint32(atom.div)) % np.uint32(atom.size)
                else:
                    inner = self.value(atom.expr) if isinstance(atom, Dynamic) else self._index(atom.dividend)
                    value, bad = inner.array, _either(bad, inner.bad)
                    if not isinstance(atom, Dynamic):
                        by = np.uint32(atom.by)
                        value = value // by if isinstance(atom, Quotient) else value % by
                total = total + value * np.uint32(factor & 0xFFFFFFFF)
            found = self.index_memo[index] = Checked(total, bad)
        return found

    def _variable(self, var: Var) -> Array:
        depth, frame = 0, self
        while frame is not None:
            if var in frame.variables:
                array = frame.variables[var]
                return array.reshape(array.shape + (1,) * depth)
            depth, frame = depth + 1, frame.parent
        raise KeyError(f"loop variable {var.name} of size {var.size} has no values")

    def _load(self, e: Expr) -> Checked:
        value, index = e.data
        at, bad = self._index(index)
        stored = self.leaves.read(value)
        inside = at < stored.size
        if not inside.all():
            bad = _either(bad, ~inside) if self.leaves.strict else None
            if stored.size == 0:
                return Checked(np.zeros(at.shape, e.dtype.numpy), bad)
            at = np.minimum(at, np.uint32(stored.size - 1))
        array = stored[at]
        return Checked(array.astype(e.dtype.numpy, copy=False), bad)

    def _reduce(self, e: Expr) -> Checked:
        operation, var = e.data
        body = e.args[0]
        step = max(1, CHUNK // max(1, int(np.prod(self.shape))))
        total: Checked | None = None
        best: Array | None = None
        for start in range(0, var.size, step):
            counter = np.arange(start, min(start + step, var.size), dtype=np.uint32)
            counter = counter.reshape((1,) * len(self.shape) + (-1,))
            frame = _Frame(self, {var: counter}, (*self.shape, counter.size), self.leaves)
            part = frame.value(body)
            array = np.broadcast_to(part.array, (*part.array.shape[:-1], counter.size))
            bad = None if part.bad is None else np.asarray(part.bad.any(axis=-1))
            if operation.startswith("arg"):
                where = getattr(np, operation)(array, axis=-1)
                top = np.take_along_axis(array, where[..., None], -1)[..., 0]
                where = where.astype(np.uint32) + np.uint32(start)
                if total is not None and best is not None:
                    better = (top > best if operation == "argmax" else top < best) | (_nan(top) & ~_nan(best))
                    where, top = np.where(better, where, total.array), np.where(better, top, best)
                best, result = top, where
            else:
                result = _REDUCE[operation](array, axis=-1, **_kept(operation, body.dtype))
                if total is not None:
                    result = _COMBINE[operation](total.array, result)
            total = Checked(result, bad if total is None else _either(total.bad, bad))
        assert total is not None, "a reduction over nothing is a constant"
        return total


def _in_order(root: Expr, known: Mapping[int, Checked]) -> list[Expr]:
    """What must be computed for `root`, operands first; not inside reductions."""
    order: list[Expr] = []
    seen: set[int] = set()
    stack: list[tuple[Expr, bool]] = [(root, False)]
    while stack:
        e, done = stack.pop()
        if done:
            order.append(e)
        elif id(e) not in seen and id(e) not in known:
            seen.add(id(e))
            stack.append((e, True))
            if e.op != "reduce":
                stack.extend((child, False) for child in reversed(e.children))
    return order


def _call(e: Expr, args: list[Checked]) -> Checked:
    """A function's body with its parameters bound; functions read nothing and have no loops."""
    function = e.data
    memo: dict[int, Checked] = {}
    by_name = {name: arg for (name, _), arg in zip(function.params, args, strict=True)}
    rank = max((arg.array.ndim for arg in args), default=0)
    for x in walk(function.body):
        if x.op == "param":
            memo[id(x)] = by_name[x.data]
        elif x.op == "const":
            memo[id(x)] = Checked(_filled(x.data, x.dtype, rank))
        else:
            operands = [memo[id(a)] for a in x.args]
            inner = x if x.op == "call" else expand(x)  # functions have no f16, so the operands stay
            memo[id(x)] = apply(x, operands) if inner is None else _call(inner, operands)
    return memo[id(function.body)]


def apply(e: Expr, args: list[Checked]) -> Checked:
    """One native operation on arrays."""
    arrays = [arg.array for arg in args]
    if e.op in ("cast", "truncate"):
        result = _cast(arrays[0], e.dtype)
    elif e.op == "bitcast":
        result = np.asarray(arrays[0], order="C").view(e.dtype.numpy)
    else:
        result = np.asarray(_NATIVE[e.op](*arrays))
    if result.dtype != e.dtype.numpy:
        raise TypeError(f"{e.op} of {[a.dtype for a in arrays]} gave {result.dtype}, not {e.dtype}")
    return Checked(result, _spoilt(e.op, args))


def _spoilt(op: str, args: list[Checked]) -> Array | None:
    if all(arg.bad is None for arg in args):
        return None
    if op == "where":
        condition, a, b = args
        false = np.zeros((1,) * condition.array.ndim, dtype=bool)
        bad_a, bad_b = (false if x.bad is None else x.bad for x in (a, b))
        chosen = np.asarray(np.where(condition.array, bad_a, bad_b))
        return _either(condition.bad, chosen)
    if op == "and" and args[0].array.dtype == bool:
        # a sound False decides, whatever the other says
        a, b = (~x.array if x.bad is None else ~x.array & ~x.bad for x in args)
        spoilt = _either(args[0].bad, args[1].bad)
        return None if spoilt is None else np.asarray(spoilt & ~(a | b))
    bad = None
    for arg in args:
        bad = _either(bad, arg.bad)
    return bad


def _either(a: Array | None, b: Array | None) -> Array | None:
    if a is None or b is None:
        return b if a is None else a
    return a | b


def _deeper(value: Checked) -> Checked:
    return Checked(value.array[..., None], None if value.bad is None else value.bad[..., None])


def _filled(value: bool | int | float, dtype: DType, rank: int) -> Array:
    if dtype.kind in "iu":
        # as 32 bits: a constant may come from an index that wraps
        return np.full((1,) * rank, int(value) & 0xFFFFFFFF, dtype=np.uint32).view(dtype.numpy)
    return np.full((1,) * rank, value, dtype=dtype.numpy)


def _nan(x: Array) -> Array:
    return np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, dtype=bool)


def _kept(operation: str, dtype: DType) -> dict[str, np.dtype]:
    return {"dtype": dtype.numpy} if operation in ("sum", "prod") else {}


def _cast(x: Array, dtype: DType) -> Array:
    """A conversion; floats truncate towards 0, and what does not fit is not used (see `functions`)."""
    if dtype is bool_:
        return x != 0
    if x.dtype.kind == "f" and dtype.kind in "iu":
        return np.where(np.abs(x) < 2.0**33, x, 0).astype(np.int64).astype(dtype.numpy)
    return x.astype(dtype.numpy)


def _quotient(a: Array, b: Array) -> Array:
    """The quotient rounded towards 0; the divisor is not 0."""
    if a.dtype.kind == "u":
        return a // b
    wide = np.abs(a.astype(np.int64)) // np.abs(b.astype(np.int64))
    return np.where((a < 0) ^ (b < 0), -wide, wide).astype(a.dtype)


def _shift(left: bool) -> Callable[[Array, Array], Array]:
    def shift(a: Array, b: Array) -> Array:
        places = b & b.dtype.type(31)
        return a << places if left else a >> places

    return shift


_NATIVE: dict[str, Callable[..., Array]] = {
    "neg": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: x.dtype.type(1) / np.sqrt(x),
    "exp": np.exp,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "not": np.invert,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "quotient": _quotient,
    "less": np.less,
    "less_equal": np.less_equal,
    "equal": np.equal,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shl": _shift(True),
    "shr": _shift(False),
    "where": np.where,
}
_REDUCE: dict[str, Callable[..., Array]] = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}
_COMBINE: dict[str, Callable[..., Array]] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}
