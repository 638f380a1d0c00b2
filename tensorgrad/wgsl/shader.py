"""What the templates with operands in place have in common: their buffers, and how operands are read in the text."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tensorgrad.dtypes import bool_, f16
from tensorgrad.graph import Value
from tensorgrad.lower.expr import Expr
from tensorgrad.lower.index import Var
from tensorgrad.wgsl.expression import Body
from tensorgrad.wgsl.matmul_load import Side
from tensorgrad.wgsl.matmul_store import Layout

Place = Callable[[Value], Value]


class Source(NamedTuple):
    """A kernel in WGSL.

    Attributes:
        name: the template and its variant, `matmul 128x64x16 nt`.
        wgsl: the text, entry point `main`.
        threads: invocations in all.
        workgroup_size: of one workgroup.
        bindings: (value whose buffer it is, whether it is written) in the order of `@binding(i)`.
    """

    name: str
    wgsl: str
    threads: int
    workgroup_size: int
    bindings: tuple[tuple[Value, bool], ...]


class Shader:
    """The text of one shader while it is put together.

    Attributes:
        names: key of a buffer -> its name in the text.
        functions: module-scope declarations: name -> text.
    """

    enables: tuple[str, ...] = ()
    """The directives of a shader that needs other ones than `enable f16;`."""

    def __init__(self, place: Place, layout: Layout) -> None:
        self.place, self.layout = place, layout
        self.names = {b.key: f"buf{i}" for i, b in enumerate(layout.buffers)}
        self.functions: dict[str, str] = {}

    def module(self, *parts: str, subgroups: bool = False) -> str:
        """The whole source: the buffers, the functions, and what follows them."""
        text = "\n".join([*self.functions.values(), *parts])
        half = any(b.dtype is f16 for b in self.layout.buffers) or "f16" in text
        lines = list(self.enables) or ["enable f16;"] * half + ["enable subgroups;"] * subgroups
        for i, b in enumerate(self.layout.buffers):
            scalar = "u32" if b.dtype is bool_ else b.dtype.name
            access = "read_write" if b.write else "read"
            element = scalar if b.width == 1 else "vec4<u32>" if b.width == 8 else f"vec4<{scalar}>"
            lines.append(f"@group(0) @binding({i}) var<storage, {access}> {self.names[b.key]}: array<{element}>;")
        return "\n".join([*lines, text, ""])

    def access(self, value: Value, index: str) -> str:
        """A stored value's element."""
        key = self.place(value)
        name = self.names[key]
        if self.layout[key].width == 1:
            return f"{name}[{index}]"
        return f"{name}[({index}) / 4u][({index}) % 4u]"

    def function(self, name: str, e: Expr, variables: dict[Var, str]) -> None:
        """Declares, on first use, a function of loop variables that gives an expression's value in f32."""
        if name not in self.functions:
            body = Body(self.access, self.functions, "g")
            for var, text in variables.items():
                body.bind(var, text)
            result = body.value(e)
            params = ", ".join(f"{text}: u32" for text in variables.values())
            self.functions[name] = f"fn {name}({params}) -> f32 {{\n{body.text()}\n  return f32({result});\n}}"

    def element(self, side: Side, name: str) -> Callable[[str, str, str], str]:
        """Code of an operand that is no plain load, by a function of that name."""

        def code(b: str, row: str, k: str) -> str:
            self.function(name, side.expr, {side.batch: "vb", side.axis: "row", side.k: "k"})
            return f"{name}({b}, {row}, {k})"

        return code

    def read(self, side: Side, raw: bool = False) -> Callable[[str], str]:
        """Code of a plain load: of a vector where the side's mode has those, else of one element.

        Args:
            raw: vectors are given as they are stored; everything else is given in f32.
        """

        def code(address: str) -> str:
            access = side.access
            assert access
            if side.mode != "single":
                text = f"{self.names[self.place(access.value)]}[{address}]"
                return text if raw or access.dtype is not f16 else f"vec4<f32>({text})"
            text = self.access(access.value, address)
            return text if access.dtype is not f16 else f"f32({text})"

        return code


def indent(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]
