"""Expressions as one-line formulas: `exp(x[i0*128 + k0] - max_k0(x[i0*128 + k0]))`."""

from __future__ import annotations

import math
from collections.abc import Callable

from tensorgrad.graph import Value
from tensorgrad.lower.expr import Expr
from tensorgrad.lower.index import Atom, Digit, Dynamic, Index, Quotient

Names = Callable[[Value], str]

# how tightly each operator binds; a call, a load or a name binds tightest
_INFIX = {
    "or": ("|", 1),
    "xor": ("^", 2),
    "and": ("&", 3),
    "equal": ("==", 4),
    "less": ("<", 4),
    "less_equal": ("<=", 4),
    "shl": ("<<", 5),
    "shr": (">>", 5),
    "add": ("+", 6),
    "sub": ("-", 6),
    "mul": ("*", 7),
    "div": ("/", 7),
    "floor_divide": ("//", 7),
    "remainder": ("%", 7),
}
_ATOM = 9
_PREFIX = {"neg": "-", "not": "~"}


def show(e: Expr, names: Names = str, limit: int = 2_000) -> str:
    """An expression as a formula.

    Args:
        names: what a stored value is called.
        limit: characters after which the formula breaks off with `...`.
    """
    text = Formulas(names, limit).text(e)[0]
    return text if len(text) <= limit else f"{text[:limit]}..."


def show_index(index: Index, names: Names = str) -> str:
    """An index as a formula of its loop variables."""
    return Formulas(names, 2_000).index(index)


class Formulas:
    """Prints expressions; what one has printed, and the names that it was given, hold for the next."""

    def __init__(self, names: Names, limit: int = 2_000) -> None:
        self.names, self.limit = names, limit
        self.memo: dict[int, tuple[str, int]] = {}

    def name(self, e: Expr, name: str) -> None:
        """Prints an expression as a name from now on."""
        self.memo[id(e)] = name, _ATOM

    def text(self, root: Expr) -> tuple[str, int]:
        """The formula and how tightly its outermost operator binds."""
        stack = [root]
        while stack:
            e = stack[-1]
            waiting = [c for c in e.children if id(c) not in self.memo]
            if waiting:
                stack += waiting
                continue
            stack.pop()
            if id(e) not in self.memo:
                text, binding = self._one(e)
                self.memo[id(e)] = (text if len(text) <= self.limit else f"{text[: self.limit]}...", binding)
        return self.memo[id(root)]

    def _one(self, e: Expr) -> tuple[str, int]:
        if e.op == "const":
            return _constant(e.data), _ATOM if not str(e.data).startswith("-") else 8
        if e.op == "index":
            return self.index(e.data), _ATOM if len(e.data.terms) == 1 and _is_plain(e.data) else 6
        if e.op == "load":
            value, index = e.data
            return f"{self.names(value)}[{self.index(index)}]", _ATOM
        if e.op == "acc":
            return "acc", _ATOM
        if e.op == "total":
            return f"total_{e.data.name}", _ATOM
        if e.op == "param":
            return e.data, _ATOM
        if e.op in _INFIX:
            sign, binding = _INFIX[e.op]
            left, right = self._inside(e.args[0], binding), self._inside(e.args[1], binding + 1)
            return f"{left} {sign} {right}", binding
        if e.op in _PREFIX:
            return f"{_PREFIX[e.op]}{self._inside(e.args[0], 8)}", 8
        args = ", ".join(self.text(a)[0] for a in e.args)
        if e.op == "reduce":
            operation, var = e.data
            return f"{operation}_{var.name}({args})", _ATOM
        if e.op in ("cast", "bitcast"):
            return f"{e.dtype if e.op == 'cast' else f'bitcast_{e.dtype}'}({args})", _ATOM
        return f"{e.data.name if e.op == 'call' else e.op}({args})", _ATOM

    def _inside(self, e: Expr, binding: int) -> str:
        text, own = self.text(e)
        return text if own >= binding else f"({text})"

    def index(self, index: Index) -> str:
        parts: list[str] = []
        for atom, factor in index.terms:
            text = self._atom(atom)
            size = abs(factor)
            text = text if size == 1 else f"{text}*{size}"
            sign = "-" if factor < 0 else "+"
            parts.append(f"{sign} {text}" if parts else text if factor > 0 else f"-{text}")
        if index.const or not parts:
            sign = ("- " if index.const < 0 else "+ ") if parts else ("-" if index.const < 0 else "")
            parts.append(f"{sign}{abs(index.const)}")
        return " ".join(parts)

    def _atom(self, atom: Atom) -> str:
        if isinstance(atom, Digit):
            var, div, size = atom
            text = var.name if div == 1 else f"{var.name}/{div}"
            if div * size >= var.size:
                return text if div == 1 else f"({text})"
            return f"({text}%{size})"
        if isinstance(atom, Dynamic):
            text, binding = self.text(atom.expr)
            return text if binding == _ATOM else f"({text})"
        inner = self.index(atom.dividend)
        inner = inner if inner.isidentifier() else f"({inner})"
        return f"({inner}{'/' if isinstance(atom, Quotient) else '%'}{atom.by})"


def _is_plain(index: Index) -> bool:
    return index.const == 0 and index.terms[0][1] == 1


def _constant(value: bool | int | float) -> str:
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.9g}"
    return str(value)
