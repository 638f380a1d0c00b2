"""How a matmul reads its operands and where vectors of four may be used.

An operand is a function of (batch, row, column). Where it is one load whose index is a sum of a
part for each loop variable, its address is kept up by additions; where moreover four consecutive
values of one variable are four consecutive, aligned elements, they are read as one `vec4`.
A load of f16 that is widened to f32 is one as well, and so is a load behind comparisons of such
sums with sizes, else 0: a convolution's window beyond the image's border. Anything else, a gather
or a cast of a sum, say, is evaluated element by element.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tensorgrad.dtypes import DType
from tensorgrad.graph import Value
from tensorgrad.lower.expr import Expr, walk, widened
from tensorgrad.lower.index import Digit, Index, Var, digit_of, make, of_var, substitute


class Guard(NamedTuple):
    """`const + part(var) + part(other var) + ... < size`, wrapping below zero."""

    const: int
    parts: dict[Var, Index]
    size: int


class Affine(NamedTuple):
    """A load at `const + part(var) + part(other var) + ...`.

    Attributes:
        value, dtype: what is loaded.
        const: the constant of the index.
        parts: loop variable -> its terms, without constant.
        guards: all of them have to hold, else the operand is 0.
    """

    value: Value
    dtype: DType
    const: int
    parts: dict[Var, Index]
    guards: tuple[Guard, ...] = ()

    @property
    def sums(self) -> tuple[Guard, ...]:
        """What is computed for a load: its index (whose size is 0), then what is compared with a size."""
        return Guard(self.const, self.parts, 0), *self.guards

    def part(self, var: Var) -> Index:
        return self.parts.get(var, Index(()))

    def stride(self, var: Var) -> int | None:
        """The step from one value of `var` to the next where it is the same everywhere, else None."""
        terms = self.part(var).terms
        if not terms:
            return 0
        ((atom, c), *more) = terms
        whole = isinstance(atom, Digit) and atom.div == 1 and atom.size == var.size
        return c if whole and not more else None

    def run(self, var: Var) -> int:
        """How many consecutive values of `var` are neighbours in memory, at most."""
        unit = (atom for atom, c in self.part(var).terms if isinstance(atom, Digit) and atom.div == 1 and abs(c) == 1)
        return next((atom.size for atom in unit), 0)

    def in_fours(self, var: Var) -> bool:
        """Whether every aligned run of four values of `var` is four consecutive, aligned elements."""
        return self.in_runs(var, 4)

    def in_runs(self, var: Var, length: int) -> bool:
        """The same of runs of another length."""
        if var.size % length or self.const % length or self.const < 0 or self.guards:
            return False
        unit = False
        for atom, c in (term for part in self.parts.values() for term in part.terms):
            assert isinstance(atom, Digit)
            if c < 0:
                return False
            if atom.var == var and atom.div == 1:
                if c != 1 or atom.size % length:
                    return False
                unit = True
            elif c % length or (atom.var == var and atom.div % length):
                return False
        return unit

    def quarter(self, var: Var, length: int = 4) -> tuple[int, dict[Var, Index]]:
        """Constant and parts of the index of the vector that holds four (or `length`) values of `var`.

        The part of `var` itself is in terms of the variable `quarter_of(var)`.
        """
        parts = {}
        for v, part in self.parts.items():
            index = fours(part, var, length=length) if v == var else part
            parts[quarter_of(v, length) if v == var else v] = divided(index, length)
        return self.const // length, parts


def quarter_of(var: Var, length: int = 4) -> Var:
    """The variable that counts runs of four (or `length`) of another."""
    return Var(f"{var.name}{length}", var.size // length)


def fours(index: Index, var: Var, lane: int = 0, length: int = 4) -> Index:
    """The index with `var` replaced by four (or `length`) times its quarter plus `lane`."""
    at = of_var(quarter_of(var, length)) * length + lane
    return substitute(index, lambda d: digit_of(at, d) if d.var == var else None, lambda e: e)


def divided(index: Index, length: int = 4) -> Index:
    """A quarter of an index whose every coefficient is a multiple of four (or of `length`)."""
    return Index(tuple((atom, c // length) for atom, c in index.terms), index.const // length)


def affine(e: Expr, variables: Iterable[Var]) -> Affine | None:
    """The expression as an affine load of the loop variables, or None."""
    known = tuple(variables)
    if e.op == "where":
        condition, inside, outside = e.args
        found = affine(inside, known) if outside.op == "const" and outside.data == 0 else None
        guards = _guards(condition, known)
        return None if found is None or guards is None else found._replace(guards=(*found.guards, *guards))
    e = widened(e)
    if e.op != "load":
        return None
    value, index = e.data
    parts = _parts(index, known)
    return None if parts is None else Affine(value, e.dtype, index.const, parts)


def _parts(index: Index, variables: tuple[Var, ...]) -> dict[Var, Index] | None:
    """The terms of each variable, if there are no others."""
    terms: dict[Var, list[tuple[Digit, int]]] = {v: [] for v in variables}
    for atom, c in index.terms:
        if not isinstance(atom, Digit) or atom.var not in terms:
            return None
        terms[atom.var].append((atom, c))
    return {v: make(t) for v, t in terms.items() if t}


def _guards(condition: Expr, variables: tuple[Var, ...]) -> tuple[Guard, ...] | None:
    """The comparisons whose conjunction a condition is, if all of them are of affine indices with sizes."""
    if condition.op == "and":
        left, right = (_guards(side, variables) for side in condition.args)
        return None if left is None or right is None else (*left, *right)
    if condition.op != "less" or condition.args[0].op != "index" or condition.args[1].op != "const":
        return None
    index = condition.args[0].data
    parts = _parts(index, variables)
    return None if parts is None else (Guard(index.const, parts, condition.args[1].data),)


def reads(e: Expr) -> Iterable[tuple[Value, Index, DType]]:
    """Every load below an expression."""
    for node in walk(e):
        if node.op == "load":
            yield node.data[0], node.data[1], node.dtype


def literal(number: int) -> str:
    return f"{number % 2**32}u"


def show_digit(digit: Digit, name: str) -> str:
    code = name if digit.div == 1 else f"{name} / {digit.div}u"
    if digit.div * digit.size >= digit.var.size:
        return code
    return f"({code}) % {digit.size}u" if digit.div > 1 else f"{code} % {digit.size}u"


def show_part(index: Index, names: dict[Var, str]) -> str:
    """WGSL of an affine index; `names` are those of its variables."""
    terms = []
    for atom, c in index.terms:
        assert isinstance(atom, Digit)
        digit = show_digit(atom, names[atom.var])
        if c == 1:
            terms.append(digit if " " not in digit else f"({digit})")
        else:
            terms.append(f"{digit if ' ' not in digit else f'({digit})'} * {literal(c)}")
    if index.const or not terms:
        terms.append(literal(index.const))
    return " + ".join(terms)
