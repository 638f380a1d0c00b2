"""One operation as WGSL, from the code of its operands."""

from __future__ import annotations

from typing import NamedTuple

from tensorgrad.dtypes import bool_, u32
from tensorgrad.errors import ShaderError
from tensorgrad.lower.expr import Expr

INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "quotient": "/",
    "less": "<",
    "less_equal": "<=",
    "equal": "==",
    "and": "&",
    "or": "|",
    "xor": "^",
}
BUILTIN = {
    "abs": "abs",
    "sign": "sign",
    "sqrt": "sqrt",
    "rsqrt": "inverseSqrt",
    "exp": "exp",
    "floor": "floor",
    "ceil": "ceil",
    "round": "round",
    "maximum": "max",
    "minimum": "min",
}


class Text(NamedTuple):
    """Printed code.

    Attributes:
        code: the text.
        level: the scope that it belongs to, counted from outside.
        tight: it needs no brackets as an operand.
        free: it is a name or a literal, which costs nothing to repeat.
    """

    code: str
    level: int
    tight: bool = False
    free: bool = False

    @property
    def operand(self) -> str:
        return self.code if self.tight else f"({self.code})"


def word(code: str, level: int) -> Text:
    return Text(code, level, True, True)


def operation(e: Expr, args: list[Text], level: int) -> Text:
    """A native operation on printed operands; `level` is the scope of the result."""
    op, codes = e.op, [a.code for a in args]
    first = e.args[0].dtype
    if op in ("shl", "shr"):
        places = args[1].operand if first is u32 else f"u32({codes[1]})"
        return Text(f"{args[0].operand} {'<<' if op == 'shl' else '>>'} {places}", level)
    if op in INFIX:
        sign = "!=" if op == "xor" and first is bool_ else INFIX[op]
        return Text(f"{args[0].operand} {sign} {args[1].operand}", level)
    if op == "neg":
        return Text(f"0u - {args[0].operand}" if first is u32 else f"-{args[0].operand}", level)
    if op == "not":
        return Text(f"{'!' if first is bool_ else '~'}{args[0].operand}", level)
    if op == "where":
        return Text(f"select({codes[2]}, {codes[1]}, {codes[0]})", level, True)
    if op in ("cast", "truncate"):
        return Text(f"{e.dtype}({codes[0]})", level, True)
    if op == "bitcast":
        return Text(f"bitcast<{e.dtype}>({codes[0]})", level, True)
    if op in BUILTIN:
        return Text(f"{BUILTIN[op]}({', '.join(codes)})", level, True)
    raise ShaderError(f"no WGSL is known for the operation {op!r}")


def add_up(start: str, terms: list[tuple[bool, str]], const: int) -> str:
    """`start + terms + const` with subtractions written as such."""
    added = [start] if start else []
    added += [code for negative, code in terms if not negative]
    if const > 0:
        added.append(f"{const & 0xFFFFFFFF}u")
    taken = [code for negative, code in terms if negative]
    if const < 0:
        taken.append(f"{-const & 0xFFFFFFFF}u")
    return " - ".join([" + ".join(added) or "0u", *taken])
