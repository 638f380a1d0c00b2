"""Index expressions: where in a tensor a kernel's invocation reads or writes.

A loop variable counts from 0 to its size. A `Digit` is one place of that count in a
mixed radix, `(var // div) % size`. An `Index` is a constant plus multiples of digits.
Reshape, permute, broadcast, slice, pad and window all map such indices to such
indices: flattening multiplies and adds, unflattening splits digits, and neighbouring
digits that meet again melt into one. So `x.reshape(...)` of a contiguous tensor costs
nothing, and the strides of a matmul's operand can be read off its index.

What does not stay affine becomes an opaque atom with a known range. All arithmetic is
on u32 and may wrap below zero: a padded index is compared with `< size` before use,
which refuses both ends at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tensorgrad.lower.expr import Expr


class Var(NamedTuple):
    """A loop variable, `0 <= name < size`."""

    name: str
    size: int


class Digit(NamedTuple):
    """`(var // div) % size`."""

    var: Var
    div: int
    size: int


class Dynamic(NamedTuple):
    """An index that the data decides: a u32 expression below `size`."""

    expr: Expr
    size: int


class Quotient(NamedTuple):
    """`index // by`, not affine."""

    dividend: Index
    by: int
    size: int
    sign: str = "//"  # named tuples compare as tuples: without it a Quotient could equal a Remainder


class Remainder(NamedTuple):
    """`index % by`, not affine."""

    dividend: Index
    by: int
    size: int
    sign: str = "%"


Atom = Digit | Dynamic | Quotient | Remainder
Indices = tuple["Index", ...]


class Index(NamedTuple):
    """`const + sum(coefficient * atom)`; build with `make`, `of_var`, `+` and `*`."""

    terms: tuple[tuple[Atom, int], ...]
    const: int = 0

    def __add__(self, other: Index | int) -> Index:  # type: ignore[override]  # not a tuple's concatenation
        if isinstance(other, int):
            return Index(self.terms, self.const + other)
        if not other.terms:
            return Index(self.terms, self.const + other.const)
        return make([*self.terms, *other.terms], self.const + other.const)

    def __mul__(self, factor: int) -> Index:  # type: ignore[override]
        if factor == 0:
            return ZERO
        return Index(tuple((atom, c * factor) for atom, c in self.terms), self.const * factor)

    @property
    def maximum(self) -> int:
        return self.const + sum(c * (atom.size - 1) for atom, c in self.terms if c > 0)

    @property
    def minimum(self) -> int:
        return self.const + sum(c * (atom.size - 1) for atom, c in self.terms if c < 0)

    def divmod(self, by: int) -> tuple[Index, Index]:
        return _divmod(self, by)

    def below(self, size: int) -> bool | None:
        """Whether it is always (True), never (False) or sometimes (None) in `0 <= self < size`."""
        low, high = self.minimum, self.maximum
        if low >= 0 and high < size:
            return True
        return False if high < 0 or low >= size else None


ZERO = Index(())


def constant(value: int) -> Index:
    return Index((), value)


def of_var(var: Var) -> Index:
    return ZERO if var.size == 1 else Index(((Digit(var, 1, var.size), 1),))


def dynamic(expr: Expr, size: int) -> Index:
    return Index(((Dynamic(expr, size), 1),))


def make(terms: Iterable[tuple[Atom, int]], const: int = 0) -> Index:
    """Adds up equal atoms; melts neighbouring digits of a variable, and a quotient with its remainder."""
    sums: dict[Atom, int] = {}
    for atom, c in terms:
        sums[atom] = sums.get(atom, 0) + c
    digits = [(a, c) for a, c in sums.items() if isinstance(a, Digit) and c]
    digits.sort(key=lambda t: (t[0].var.name, t[0].div))
    merged: list[tuple[Atom, int]] = []
    for atom, c in digits:
        if merged:
            low, low_c = merged[-1]
            assert isinstance(low, Digit)
            if low.var == atom.var and low.div * low.size == atom.div and low_c * low.size == c:
                merged[-1] = (_digit(atom.var, low.div, low.size * atom.size), low_c)
                continue
        merged.append((atom, c))
    opaque = {a: c for a, c in sums.items() if not isinstance(a, Digit) and c}
    for atom, c in opaque.items():
        if isinstance(atom, Remainder):
            whole = _quotient_of(atom, opaque)
            if whole and opaque[whole] == c * atom.by:
                # quotient * by + remainder is the dividend again
                rest = [(a, k) for a, k in opaque.items() if a not in (atom, whole)]
                again = [(a, k * c) for a, k in atom.dividend.terms]
                return make([*merged, *rest, *again], const + c * atom.dividend.const)
    return Index((*merged, *opaque.items()), const)


def _quotient_of(remainder: Remainder, atoms: Iterable[Atom]) -> Quotient | None:
    same = (a for a in atoms if isinstance(a, Quotient) and a.by == remainder.by)
    return next((a for a in same if a.dividend == remainder.dividend), None)


def _digit(var: Var, div: int, size: int) -> Digit:
    return Digit(var, div, min(size, -(-var.size // div)))


def _split(digit: Digit, by: int) -> tuple[Digit, Digit] | None:
    """The digit as (high, low) with `digit == high * by + low`, if both are digits of the variable."""
    var, div, size = digit
    top = div * size >= var.size
    if size % by and not top:
        return None
    return _digit(var, div * by, -(-size // by)), _digit(var, div, by)


@lru_cache(maxsize=65_536)
def _divmod(index: Index, by: int) -> tuple[Index, Index]:
    if by == 1:
        return index, ZERO
    if index.minimum >= 0 and index.maximum < by:
        return ZERO, index
    high: list[tuple[Atom, int]] = []
    low: list[tuple[Atom, int]] = []
    for atom, c in index.terms:
        split = None
        if c % by == 0:
            high.append((atom, c // by))
            continue
        if isinstance(atom, Digit) and 0 < c < by and by % c == 0 and atom.size * c > by:
            split = _split(atom, by // c)
        if split:
            high.append((split[0], 1))
            low.append((split[1], c))
        else:
            low.append((atom, c))
    quotient, remainder = make(high, index.const // by), make(low, index.const % by)
    if remainder.minimum >= 0 and remainder.maximum < by:
        return quotient, remainder
    size = max(1, index.maximum // by + 1)
    return Index(((Quotient(index, by, size), 1),)), Index(((Remainder(index, by, min(by, index.maximum + 1)), 1),))


def ravel(indices: Sequence[Index], shape: Sequence[int]) -> Index:
    """The row-major flat index."""
    terms: list[tuple[Atom, int]] = []
    const, stride = 0, 1
    for index, size in zip(reversed(indices), reversed(shape), strict=True):
        terms += [(atom, c * stride) for atom, c in index.terms]
        const += index.const * stride
        stride *= size
    return make(terms, const)


def unravel(flat: Index, shape: Sequence[int]) -> Indices:
    """The inverse of `ravel`."""
    out: list[Index] = []
    for size in reversed(shape[1:]):
        if size == 0:
            return (ZERO,) * len(shape)
        flat, remainder = flat.divmod(size)
        out.append(remainder)
    return (flat, *reversed(out)) if shape else ()


def substitute(index: Index, values: Callable[[Digit], Index | None], expr: Callable[[Expr], Expr]) -> Index:
    """Replaces digits by indices (None keeps one) and rewrites the expressions inside."""
    terms: list[tuple[Atom, int]] = []
    const = index.const
    changed = False
    for atom, c in index.terms:
        new = _substituted(atom, values, expr)
        if new is None:
            terms.append((atom, c))
        else:
            changed = True
            terms += [(a, c * k) for a, k in new.terms]
            const += c * new.const
    return make(terms, const) if changed else index


def _substituted(atom: Atom, values: Callable[[Digit], Index | None], expr: Callable[[Expr], Expr]) -> Index | None:
    """What an atom becomes; None if it stays."""
    if isinstance(atom, Digit):
        return values(atom)
    if isinstance(atom, Dynamic):
        moved = expr(atom.expr)
        return None if moved is atom.expr else dynamic(moved, atom.size)
    inner = substitute(atom.dividend, values, expr)
    if inner is atom.dividend:
        return None
    quotient, remainder = inner.divmod(atom.by)
    return quotient if isinstance(atom, Quotient) else remainder


def digit_of(index: Index, digit: Digit) -> Index:
    """The digit's value where its variable is replaced by `index`."""
    value = index.divmod(digit.div)[0]
    return value if digit.div * digit.size >= digit.var.size else value.divmod(digit.size)[1]


def digits(index: Index) -> set[Digit]:
    """All digits in an index, those inside opaque atoms included; expressions inside are the caller's."""
    found: set[Digit] = set()
    for atom, _ in index.terms:
        if isinstance(atom, Digit):
            found.add(atom)
        elif not isinstance(atom, Dynamic):
            found |= digits(atom.dividend)
    return found


def dynamics(index: Index) -> list[Expr]:
    """The expressions in an index."""
    found: list[Expr] = []
    for atom, _ in index.terms:
        if isinstance(atom, Dynamic):
            found.append(atom.expr)
        elif not isinstance(atom, Digit):
            found += dynamics(atom.dividend)
    return found
