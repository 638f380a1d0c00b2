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

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from tensorgrad.dtypes import bool_, f16, f32
from tensorgrad.errors import ShaderError
from tensorgrad.graph import Value
from tensorgrad.lower.evaluate import evaluate
from tensorgrad.lower.expr import Expr, Function, walk
from tensorgrad.lower.functions import expand
from tensorgrad.lower.index import Atom, Digit, Dynamic, Index, Quotient, Var
from tensorgrad.wgsl.literal import literal
from tensorgrad.wgsl.operation import Text, add_up, operation, word

Access = Callable[[Value, str], str]
"""The text of a stored value's element: `(value, index text) -> "b0[index]"`."""

LONGEST = 120
"""Characters after which an expression gets a `let` even if it is used once."""

Key = Hashable
"""What can have a name: an Expr, an Index, an atom of one, or the sum of an index's outer terms."""


class _Scope:
    """Lines of an open block, and what was named or bound in it."""

    def __init__(self, header: str, floor: int) -> None:
        self.header, self.floor = header, floor
        self.lines: list[str] = []
        self.names: list[Key] = []
        self.vars: list[Var] = []


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
        self._names: dict[Key, Text] = {}
        self._vars: dict[Var, tuple[str, int]] = {}
        self._uses: dict[Expr | Index, int] = {}
        self._folded: set[Expr] = set()

    # What a template says ---------------------------------------------------------------

    def bind(self, var: Var, name: str) -> None:
        """In the scope that is open, a loop variable is the u32 called `name`."""
        if var in self._vars:
            raise ShaderError(f"loop variable {var.name} is already {self._vars[var][0]} here")
        self._vars[var] = (name, self._level)
        self._scopes[-1].vars.append(var)

    def define(self, e: Expr, name: str) -> None:
        """From here to the end of the open scope, an expression (a `reduce`, an `acc`) is called `name`."""
        self._names[e] = word(name, self._level)
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
                if not text.free and (self._uses.get(e, 0) > 1 or len(text.code) > LONGEST):
                    text = self._named(e, text)
                done[e] = text
            else:
                stack.append((e, True))
                if e.op != "reduce":
                    stack.extend((child, False) for child in reversed(e.children))
        return done[root]

    def _named(self, key: Key, text: Text) -> Text:
        """The text's name, by a `let` in its scope; names and literals stay."""
        if text.free:
            return text
        name = self.fresh("v" if isinstance(key, Expr) else "j")
        scope = self._scopes[text.level]
        scope.lines.append(f"let {name} = {text.code};")
        named = self._names[key] = word(name, text.level)
        scope.names.append(key)
        return named

    def _one(self, e: Expr, done: Mapping[Expr, Text]) -> Text:
        floor = self._scopes[-1].floor
        if e.dtype is f16:
            self.uses_f16 = True
        if e.op == "const":
            return word(literal(e.data, e.dtype, self.functions), 0)
        if e.op == "index":
            return self._index(e.data, done)
        if e.op == "load":
            value, index = e.data
            at = self._index(index, done)
            element = self.access(value, at.code)
            tight = e.dtype is not bool_
            return Text(element if tight else f"{element} != 0u", max(at.level, floor), tight)
        if e.op in ("reduce", "acc", "param"):
            raise ShaderError(f"no result is defined here for {e!r}")
        if all(a.op == "const" or a in self._folded for a in e.args):
            # WGSL evaluates constants itself, and rejects those that overflow or are not numbers
            self._folded.add(e)
            return word(literal(evaluate(e, {}, _no_read).item(), e.dtype, self.functions), 0)
        args = [done[a] for a in e.args]
        level = max([floor, *(a.level for a in args)])
        args = [self._named(key, a) if a.level < level else a for key, a in zip(e.args, args, strict=True)]
        expansion = e if e.op == "call" else expand(e)
        if expansion is not None:
            return Text(self._call(expansion, args), level, True)
        return operation(e, args, level)

    def _call(self, e: Expr, args: list[Text]) -> str:
        if e.op == "cast":
            return f"{e.dtype}({self._call(e.args[0], args)})"
        function = e.data
        self._declare(function)
        # an f16 operand of an f32 function is cast on the way in
        wide = [arg.op == "cast" and arg.args[0].dtype is f16 and arg.dtype is f32 for arg in e.args]
        codes = [f"f32({a.code})" if w else a.code for w, a in zip(wide, args, strict=True)]
        return f"tg_{function.name}({', '.join(codes)})"

    def _declare(self, function: Function) -> None:
        name = f"tg_{function.name}"
        if name in self.functions:
            return
        inner = Body(functions=self.functions)
        for parameter in _parameters(function):
            inner.define(parameter, parameter.data)
        result = inner.code(function.body)
        params = ", ".join(f"{p}: {t}" for p, t in function.params)
        self.functions[name] = f"fn {name}({params}) -> {function.dtype} {{\n{inner.text()}\n  return {result};\n}}"

    # Indices ----------------------------------------------------------------------------

    def _index(self, index: Index, done: Mapping[Expr, Text] | None = None) -> Text:
        """A sum of terms; those of outer scopes are added up there."""
        known = self._names.get(index)
        if known is not None:
            return known
        floor = self._scopes[-1].floor
        by_level: dict[int, list[tuple[bool, str]]] = {}
        for atom, factor in index.terms:
            text = self._atom(atom, done)
            code = text.code if abs(factor) == 1 else f"{text.operand} * {abs(factor) & 0xFFFFFFFF}u"
            by_level.setdefault(max(text.level, floor), []).append((factor < 0, code))
        if not by_level:
            return word(f"{index.const & 0xFFFFFFFF}u", 0)
        *outer, last = sorted(by_level)
        total = Text("", 0, free=True)
        for level in outer:
            code = add_up(total.code, by_level[level], 0)
            total = self._outer_sum(code, level)
        code = add_up(total.code, by_level[last], index.const)
        plain = code.isalnum() or code.replace("_", "").isalnum()
        text = Text(code, last, plain, plain)
        return self._named(index, text) if self._uses.get(index, 0) > 1 else text

    def _outer_sum(self, code: str, level: int) -> Text:
        key = ("sum", code)
        known = self._names.get(key)
        plain = code.isalnum()
        return known or self._named(key, Text(code, level, plain, plain))

    def _atom(self, atom: Atom, done: Mapping[Expr, Text] | None) -> Text:
        known = self._names.get(atom)
        if known is not None:
            return known
        if isinstance(atom, Dynamic):
            return self._named(atom.expr, done[atom.expr] if done is not None else self._visit(atom.expr))
        if isinstance(atom, Digit):
            return self._digit(atom)
        inner = self._index(atom.dividend, done)
        sign = "/" if isinstance(atom, Quotient) else "%"
        return self._named(atom, Text(f"{inner.operand} {sign} {atom.by}u", inner.level))

    def _digit(self, digit: Digit) -> Text:
        var, div, size = digit
        if var not in self._vars:
            raise ShaderError(f"loop variable {var.name} of size {var.size} is not bound here")
        name, level = self._vars[var]
        top = div * size >= var.size
        if top and div == 1:
            return word(name, level)
        code = name if div == 1 else f"{name} / {div}u"
        if not top:
            code = f"{code if div == 1 else f'({code})'} % {size}u"
        return self._named(digit, Text(code, level))


def _parameters(function: Function) -> list[Expr]:
    return [e for e in walk(function.body) if e.op == "param"]


def _no_access(value: Value, index: str) -> str:
    raise ShaderError("a function reads no buffers")


def _no_read(value: Value) -> np.ndarray:
    raise ShaderError("a constant reads no buffers")
