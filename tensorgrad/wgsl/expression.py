"""Expressions as WGSL statements.

A `Body` is the inside of a function while it is written. It keeps a stack of scopes:
the function itself, and the loops that are open. `value` writes an expression down and
returns a name for it. What is used twice gets a `let`, in the outermost scope that
knows everything it depends on, so what a loop does not change stands before the loop.
When a scope closes its names are forgotten.

A template opens the loops, says which loop variable is called what (`bind`), and gives
`reduce` and `acc` nodes their results (`define`):

    body.bind(row, "r")
    with body.loop("for (var k = 0u; k < 128u; k++)", {k0: "k"}):
        body.line(f"total += {body.value(reduction.args[0])};")
    body.define(reduction, "total")
    body.store("out", body.index(of_var(row)), result)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tensorgrad.dtypes import DType, bool_, f16, f32, i32, u32
from tensorgrad.errors import ShaderError
from tensorgrad.graph import Value
from tensorgrad.lower.evaluate import evaluate
from tensorgrad.lower.expr import Expr, Function, const
from tensorgrad.lower.functions import expand
from tensorgrad.lower.index import Atom, Digit, Dynamic, Index, Quotient, Var

Access = Callable[[Value, str], str]
"""The text of a stored value's element: `(value, index text) -> "b0[index]"`."""

LONGEST = 120
"""Characters after which an expression gets a `let` even if it is used once."""

_INFIX = {
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
_BUILTIN = {
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
_PRIVATE = {
    "tg_inf": "var<private> tg_inf: u32 = 0x7f800000u;",
    "tg_nan": "var<private> tg_nan: u32 = 0x7fc00000u;",
}


class Text(NamedTuple):
    """Printed code: whether it is a name, a literal or a call (needs no brackets), and its scope."""

    code: str
    atomic: bool
    level: int


@dataclass(slots=True)
class _Scope:
    """Lines of an open block, and what was named or bound in it."""

    header: str
    floor: int
    lines: list[str] = field(default_factory=list)
    names: list[Expr | Index | Digit] = field(default_factory=list)
    vars: list[Var] = field(default_factory=list)


class Body:
    """The statements of one WGSL function, as they are written.

    Attributes:
        functions: the module-scope declarations that the statements use: name -> text.
            Bodies of one shader share the mapping.
        uses_f16: whether the shader must say `enable f16;`.
    """

    def __init__(self, access: Access | None = None, functions: dict[str, str] | None = None, prefix: str = "") -> None:
        self.access = access or _no_access
        self.functions: dict[str, str] = {} if functions is None else functions
        self.uses_f16 = False
        self._prefix = prefix
        self._count = 0
        self._scopes = [_Scope("", 0)]
        self._names: dict[Expr | Index | Digit, Text] = {}
        self._vars: dict[Var, tuple[str, int]] = {}
        self._uses: dict[Expr | Index, int] = {}

    # What a template says ---------------------------------------------------------------

    def bind(self, var: Var, name: str) -> None:
        """In the scope that is open, a loop variable is the u32 called `name`."""
        if var in self._vars:
            raise ShaderError(f"loop variable {var.name} is already {self._vars[var][0]} here")
        self._vars[var] = (name, self._level)
        self._scopes[-1].vars.append(var)

    def define(self, e: Expr, name: str) -> None:
        """From here to the end of the open scope, an expression (a `reduce`, an `acc`) is called `name`."""
        self._names[e] = Text(name, True, self._level)
        self._scopes[-1].names.append(e)

    @contextmanager
    def loop(self, header: str, variables: Mapping[Var, str] | None = None) -> Iterator[None]:
        """A block under `header`; expressions without its variables are written before it."""
        yield from self._block(header, variables or {}, hoist=True)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """A block under `header`, such as an `if`, out of which nothing new is moved."""
        yield from self._block(header, {}, hoist=False)

    def _block(self, header: str, variables: Mapping[Var, str], hoist: bool) -> Iterator[None]:
        floor = self._scopes[-1].floor if hoist else len(self._scopes)
        self._scopes.append(_Scope(header, floor))
        for var, name in variables.items():
            self.bind(var, name)
        yield
        scope = self._scopes.pop()
        for key in scope.names:
            self._names.pop(key, None)
        for var in scope.vars:
            del self._vars[var]
        lines = self._scopes[-1].lines
        lines.append(f"{header} {{")
        lines += [f"  {line}" for line in scope.lines]
        lines.append("}")

    def line(self, text: str) -> None:
        """A statement in the open scope."""
        self._scopes[-1].lines.append(text)

    def fresh(self, stem: str) -> str:
        """A name that nothing else in the body has."""
        self._count += 1
        return f"{self._prefix}{stem}{self._count - 1}"

    def expect(self, *roots: Expr) -> None:
        """Announces expressions to come, so that what they share gets a name at its first use."""
        self._count_uses(roots)

    def value(self, e: Expr) -> str:
        """A name or a literal for an expression; statements that compute it are written."""
        return self._named(e, self._visit(e)).code

    def code(self, e: Expr) -> str:
        """As `value`, but what is used once may be a formula (bracket it where that matters)."""
        return self._visit(e).code

    def index(self, index: Index) -> str:
        """An index as a u32 formula."""
        return self._index(index).code

    def store(self, target: str, e: Expr) -> None:
        """`target = e;` where the target is an element of a buffer; bools are stored as u32."""
        code = self.code(e)
        self.line(f"{target} = {f'select(0u, 1u, {code})' if e.dtype is bool_ else code};")

    def text(self, indent: str = "  ") -> str:
        """All statements; every loop must be closed."""
        if len(self._scopes) > 1:
            raise ShaderError("a loop is still open")
        return "\n".join(f"{indent}{line}" for line in self._scopes[0].lines)

    # Visiting ---------------------------------------------------------------------------

    @property
    def _level(self) -> int:
        return len(self._scopes) - 1

    def _count_uses(self, roots: tuple[Expr, ...]) -> None:
        uses, stack = self._uses, list(roots)
        while stack:
            e = stack.pop()
            seen = uses.get(e, 0)
            uses[e] = seen + 1
            if seen or e in self._names or e.op == "reduce":
                continue
            for index in e.indices:
                uses[index] = uses.get(index, 0) + 1
            stack += e.children

    def _visit(self, root: Expr) -> Text:
        found = self._names.get(root)
        if found is not None:
            return found
        if root not in self._uses:
            self._count_uses((root,))
        done: dict[Expr, Text] = {}
        stack: list[tuple[Expr, bool]] = [(root, False)]
        while stack:
            e, ready = stack.pop()
            if e in done:
                continue
            known = self._names.get(e)
            if known is not None:
                done[e] = known
            elif ready:
                text = self._one(e, done)
                if not text.atomic and (self._uses.get(e, 0) > 1 or len(text.code) > LONGEST):
                    text = self._named(e, text)
                done[e] = text
            else:
                stack.append((e, True))
                if e.op != "reduce":
                    stack.extend((child, False) for child in reversed(e.children))
        return done[root]

    def _named(self, key: Expr | Index | Digit, text: Text) -> Text:
        """The text's name, by a `let` in its scope; names and literals stay."""
        if text.atomic and _is_word(text.code):
            return text
        name = self.fresh("v" if isinstance(key, Expr) else "j")
        scope = self._scopes[text.level]
        scope.lines.append(f"let {name} = {text.code};")
        named = self._names[key] = Text(name, True, text.level)
        scope.names.append(key)
        return named

    def _one(self, e: Expr, done: Mapping[Expr, Text]) -> Text:
        floor = self._scopes[-1].floor
        if e.dtype is f16:
            self.uses_f16 = True
        if e.op == "const":
            return Text(self._literal(e.data, e.dtype), True, 0)
        if e.op == "index":
            return self._index(e.data, done)
        if e.op == "load":
            value, index = e.data
            at = self._index(index, done)
            element = self.access(value, at.code)
            return Text(f"({element} != 0u)" if e.dtype is bool_ else element, True, max(at.level, floor))._replace(
                atomic=False
            )
        if e.op in ("reduce", "acc", "param"):
            raise ShaderError(f"no result is defined here for {e!r}")
        if all(a.op == "const" for a in e.args):
            # WGSL evaluates constants itself, and rejects those that overflow or are not numbers
            number = evaluate(e, {}, _no_read).item()
            return Text(self._literal(number, e.dtype), True, 0)
        args = [done[a] for a in e.args]
        level = max([floor, *(a.level for a in args)])
        args = [self._named(key, a) if a.level < level else a for key, a in zip(e.args, args, strict=True)]
        expansion = e if e.op == "call" else expand(e)
        code, atomic = self._call(expansion, args) if expansion is not None else self._operation(e, args)
        return Text(code, atomic, level)

    def _call(self, e: Expr, args: list[Text]) -> tuple[str, bool]:
        if e.op == "cast":
            # an f16 operand is computed in f32
            code, _ = self._call(e.args[0], args)
            return f"{_type(e.dtype)}({code})", False
        function = e.data
        self._declare(function)
        codes = [
            f"f32({a.code})" if arg.op == "cast" and arg.args[0].dtype is f16 and arg.dtype is f32 else a.code
            for arg, a in zip(e.args, args, strict=True)
        ]
        return f"tg_{function.name}({', '.join(codes)})", False

    def _declare(self, function: Function) -> None:
        name = f"tg_{function.name}"
        if name in self.functions:
            return
        inner = Body(functions=self.functions)
        for parameter in _parameters(function):
            inner.define(parameter, parameter.data)
        result = inner.code(function.body)
        params = ", ".join(f"{p}: {_type(t)}" for p, t in function.params)
        self.functions[name] = (
            f"fn {name}({params}) -> {_type(function.dtype)} {{\n{inner.text()}\n  return {result};\n}}"
        )

    def _operation(self, e: Expr, args: list[Text]) -> tuple[str, bool]:
        op, codes = e.op, [a.code for a in args]
        first = e.args[0].dtype
        inside = [a.code if a.atomic or _is_word(a.code) else f"({a.code})" for a in args]
        if op in ("shl", "shr"):
            places = inside[1] if first is u32 else f"u32({codes[1]})"
            return f"{inside[0]} {'<<' if op == 'shl' else '>>'} {places}", False
        if op in _INFIX:
            sign = "!=" if op == "xor" and first is bool_ else _INFIX[op]
            return f"{inside[0]} {sign} {inside[1]}", False
        if op in _BUILTIN:
            return f"{_BUILTIN[op]}({', '.join(codes)})", False
        if op == "neg":
            return (f"0u - {inside[0]}" if first is u32 else f"-{inside[0]}"), False
        if op == "not":
            return f"{'!' if first is bool_ else '~'}{inside[0]}", False
        if op == "where":
            return f"select({codes[2]}, {codes[1]}, {codes[0]})", False
        if op == "cast":
            return f"{_type(e.dtype)}({codes[0]})", False
        if op == "bitcast":
            return f"bitcast<{_type(e.dtype)}>({codes[0]})", False
        raise ShaderError(f"no WGSL is known for the operation {op!r}")

    # Indices ----------------------------------------------------------------------------

    def _index(self, index: Index, done: Mapping[Expr, Text] | None = None) -> Text:
        """A sum of terms; terms of outer scopes are added up there."""
        floor = self._scopes[-1].floor
        known = self._names.get(index)
        if known is not None:
            return known
        by_level: dict[int, list[str]] = {}
        for atom, factor in index.terms:
            text = self._atom(atom, done)
            size = abs(factor)
            code = text.code if size == 1 else f"{text.code} * {size & 0xFFFFFFFF}u"
            by_level.setdefault(max(text.level, floor), []).append(("+-"[factor < 0]) + code)
        levels = sorted(by_level)
        if not levels:
            return Text(f"{index.const & 0xFFFFFFFF}u", True, 0)
        code = ""
        for level in levels:
            terms = sorted(by_level[level], key=lambda t: t[0] == "-")
            for term in terms:
                code = f"{code} {term[0]} {term[1:]}" if code else (term[1:] if term[0] == "+" else f"0u - {term[1:]}")
            if level == levels[-1] and index.const:
                code = f"{code} {'-' if index.const < 0 else '+'} {abs(index.const)}u"
            elif level != levels[-1] and not _is_word(code):
                code = self._partial(code, level)
        text = Text(code, _is_word(code), levels[-1])
        if not text.atomic and self._uses.get(index, 0) > 1:
            return self._named(index, text)
        return text

    def _partial(self, code: str, level: int) -> str:
        key = ("index", code, level)
        known = self._names.get(key)  # type: ignore[arg-type]
        if known is None:
            known = self._named(key, Text(code, False, level))  # type: ignore[arg-type]
        return known.code

    def _atom(self, atom: Atom, done: Mapping[Expr, Text] | None) -> Text:
        known = self._names.get(atom)  # type: ignore[arg-type]
        if known is not None:
            return known
        if isinstance(atom, Dynamic):
            text = done[atom.expr] if done is not None else self._visit(atom.expr)
            return self._named(atom.expr, text)
        if isinstance(atom, Digit):
            return self._digit(atom)
        inner = self._index(atom.index, done)
        inside = inner.code if inner.atomic else f"({inner.code})"
        sign = "/" if isinstance(atom, Quotient) else "%"
        return self._named(atom, Text(f"{inside} {sign} {atom.by}u", False, inner.level))  # type: ignore[arg-type]

    def _digit(self, digit: Digit) -> Text:
        var, div, size = digit
        if var not in self._vars:
            raise ShaderError(f"loop variable {var.name} of size {var.size} is not bound here")
        name, level = self._vars[var]
        if div * size >= var.size and div == 1:
            return Text(name, True, level)
        code = name if div == 1 else f"{name} / {div}u"
        if div * size < var.size:
            code = f"{code if div == 1 else f'({code})'} % {size}u"
        return self._named(digit, Text(code, False, level))

    # Constants --------------------------------------------------------------------------

    def _literal(self, value: bool | int | float, dtype: DType) -> str:
        if dtype is bool_:
            return "true" if value else "false"
        if dtype is u32:
            return f"{int(value) & 0xFFFFFFFF}u"
        if dtype is i32:
            signed = (int(value) + 2**31) % 2**32 - 2**31
            return f"{signed}i" if signed >= 0 else f"({signed}i)" if signed > -(2**31) else "i32(-2147483648)"
        number = dtype.numpy.type(value)
        if math.isfinite(number):
            text = f"{number!s}{'f' if dtype is f32 else 'h'}"
            return f"({text})" if text[0] == "-" else text
        name = "tg_nan" if math.isnan(number) else "tg_inf"
        self.functions[name] = _PRIVATE[name]
        code = f"bitcast<f32>({name})" if number != -math.inf else f"bitcast<f32>({name} | 0x80000000u)"
        return code if dtype is f32 else f"f16({code})"


def _parameters(function: Function) -> list[Expr]:
    from tensorgrad.lower.expr import walk

    return [e for e in walk(function.body) if e.op == "param"]


def _type(dtype: DType) -> str:
    return dtype.name


def _is_word(code: str) -> bool:
    """Whether code is one name or one number, which costs nothing to repeat."""
    return code.replace("_", "").replace(".", "").isalnum() or (code[0] == "(" and code[1] == "-" and code.count("(") == 1)


def _no_access(value: Value, index: str) -> str:
    raise ShaderError("a function reads no buffers")


def _no_read(value: Value) -> np.ndarray:
    raise ShaderError("a constant reads no buffers")


def zero(dtype: DType) -> Expr:
    return const(0, dtype)
