"""The matmul template: `out[b, m, n] = epilogue(sum over k of a(b, m, k) * b(b, k, n))` in WGSL.

A workgroup computes a block of the result, a `Tile`. It moves blocks of both operands to workgroup
memory, k-major; each thread multiplies a few rows by a few columns, all sums in registers; the
operands' next blocks are read while the present ones are multiplied. How operands are read is
`matmul_load`'s part, what is done with the sums `matmul_store`'s, the choice of a tile
`matmul_tiles`'. On a CPU, where barriers are dear, `matmul_direct` does without workgroup memory.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import replace

from tensorgrad.device.base import Limits
from tensorgrad.graph import Value
from tensorgrad.lower.expr import load
from tensorgrad.lower.index import Var
from tensorgrad.lower.kernel import Kernel, Matmul
from tensorgrad.lower.totals import total_of
from tensorgrad.plan import MAX_WORKGROUPS
from tensorgrad.wgsl import matmul_matrix as matrix
from tensorgrad.wgsl.expression import Body
from tensorgrad.wgsl.matmul_access import affine
from tensorgrad.wgsl.matmul_direct import operand, products, steps_of
from tensorgrad.wgsl.matmul_load import Loading, Side, loading
from tensorgrad.wgsl.matmul_matrix import ENABLES, multiplies_halves
from tensorgrad.wgsl.matmul_store import Layout, epilogue, lay_out
from tensorgrad.wgsl.matmul_tiled import multiply, reduce, row_of, storage, sums
from tensorgrad.wgsl.matmul_tiles import Tile, choose
from tensorgrad.wgsl.shader import Place, Shader, Source, indent
from tensorgrad.wgsl.signature import signature


def transposition(inner: Matmul) -> str:
    """`n` or `t` for each operand, as in BLAS: `nt` is rows times rows; `x` is an operand without a unit stride."""
    letters = ""
    for e, axis, along in ((inner.a, inner.m, inner.k), (inner.b, inner.k, inner.n)):
        access = affine(e, (inner.batch, axis, along))
        if access is None:
            letters += "x"
        else:
            unit = {v for v in (axis, along) if any(c == 1 and d[1] == 1 for d, c in access.part(v).terms)}
            letters += "n" if along in unit or along.size == 1 else "t" if axis in unit or axis.size == 1 else "x"
    return letters


def oriented(kernel: Kernel) -> Kernel:
    """The kernel, or where its results lie in memory along m, the transposed product `b.T @ a.T`.

    So results are written as vectors, and neighbouring threads write neighbours.
    """
    inner = kernel.matmul
    assert inner

    def along(var: Var) -> int:
        places = [affine(load(s.value, s.index, s.expr.dtype), kernel.vars) for s in kernel.stores]
        return sum(place is not None and place.stride(var) == 1 for place in places)

    if along(inner.m) <= along(inner.n):
        return kernel
    return replace(kernel, matmul=inner._replace(m=inner.n, n=inner.m, a=inner.b, b=inner.a))


def generate(kernel: Kernel, limits: Limits, place: Place | None = None, tile: Tile | None = None) -> Source:
    """The WGSL of a matmul kernel whose result is not empty.

    Args:
        limits: of the device.
        place: a value -> the value whose buffer holds it; by default what `kernel.inplace` says.
        tile: what one workgroup computes; by default `choose` decides.
    """
    kernel = oriented(kernel)
    inner = kernel.matmul
    assert inner
    assert kernel.size, "an empty result needs no kernel"

    def where(value: Value) -> Value:
        return place(value) if place else kernel.inplace.get(value, value)

    tile = tile or choose(inner, limits, multiplies_halves(inner))
    if inner.k.size == 0:
        tile = tile._replace(slices=1)
    padded = tile.storage + 32 * tile.k <= limits.workgroup_storage
    key, values = signature(kernel, where)
    source = _sources.get((key, tile, padded))
    if source is None:
        if len(_sources) >= 1024:
            _sources.clear()
        source = _sources[key, tile, padded] = _write(kernel, where, tile, padded, values)
    return source._replace(bindings=tuple((values[number.node], write) for number, write in source.bindings))


_sources: dict[tuple[Hashable, Tile, bool], Source] = {}
"""What was written: in its bindings `Value(i)` stands for the buffer number i of the kernel's signature."""


def _write(kernel: Kernel, place: Place, tile: Tile, padded: bool, values: tuple[Value, ...]) -> Source:
    inner = kernel.matmul
    assert inner
    along = tile.k > 0 or steps_of(inner, tile.steps) == 4
    layout = lay_out(kernel, place, along=along, eights=tile.lanes > 1)
    writer = _Writer(kernel, inner, place, tile, padded, layout)
    blocks = -(-inner.m.size // tile.m) * -(-inner.n.size // tile.n) * inner.batch.size
    return Source(
        f"matmul {tile} {transposition(inner)}",
        writer.shader(),
        blocks * tile.threads,
        tile.threads,
        tuple((Value(values.index(b.key)), b.write) for b in layout.buffers),
    )


class _Writer(Shader):
    """The text of one shader while it is put together."""

    def __init__(self, kernel: Kernel, inner: Matmul, place: Place, tile: Tile, padded: bool, layout: Layout) -> None:
        super().__init__(place, layout)
        self.kernel, self.inner, self.tile, self.padded = kernel, inner, tile, padded
        self.total = total_of(kernel)
        if self.total:
            self.kernel = replace(kernel, stores=[s for s in kernel.stores if s is not self.total])

    def shader(self) -> str:
        finish = self._finish() + self._finish_total()
        if self.tile.lanes > 1:
            self.enables = ENABLES
            return self.module(finish, self._matrices())
        main = self._tiled() if self.tile.k else self._direct()
        return self.module(finish, main, subgroups=self.tile.quads)

    def _finish(self) -> str:
        """The function that turns sums into results."""
        vector = self.layout.vector
        body = Body(self.access, self.functions, "f")
        epilogue(self.kernel, self.layout, self.place, body, self.names)
        column, acc = ("vn4", "vec4<f32>") if vector else ("vn", "f32")
        return f"fn finish(vb: u32, vm: u32, {column}: u32, acc: {acc}) {{\n{body.text()}\n}}"

    def _finish_total(self) -> str:
        """The function that stores the sum of an operand."""
        if self.total is None:
            return ""
        body = Body(self.access, self.functions, "t")
        body.bind(self.inner.batch, "vb")
        body.bind(self.total.expr.data, "at")
        target = f"{self.names[self.place(self.total.value)]}[{body.index(self.total.index)}]"
        return f"\nfn finish_total(vb: u32, at: u32, total: f32) {{\n{body.text()}\n  {target} = total;\n}}"

    def _side(self, letter: str) -> Side:
        inner, tile = self.inner, self.tile
        left = letter == "a"
        e, axis, extent = (inner.a, inner.m, tile.m) if left else (inner.b, inner.n, tile.n)
        access = affine(e, (inner.batch, axis, inner.k))
        key = self.place(access.value) if access else None
        # without inner steps nothing is read
        width = self.layout[key].width if key is not None and key in self.layout else 1
        vectors = width > 1
        if tile.k == 0 and access:
            # where the results' readers want vectors of this buffer, the loop may still want single elements
            across = access.in_fours(axis)
            vectors &= (tile.tm if left else tile.tn) % 4 == 0 if across else steps_of(inner, tile.steps) == 4
        return Side(
            letter,
            e,
            access,
            inner.batch,
            axis,
            inner.k,
            extent,
            tile.k,
            tile.threads,
            self.padded,
            vectors,
            not left,
            max(width, 4),
        )

    def _tiled(self) -> str:
        tile, steps = self.tile, self.inner.k.size
        a, b = self._side("a"), self._side("b")
        lines = [*self._where(), *(f"var {name} = vec4<f32>();" for name in sums(tile))]
        if steps:
            left = loading(a, self.read(a), self.element(a, "a_at"))
            right = loading(b, self.read(b), self.element(b, "b_at"))
            fetch, put = left.fetch + right.fetch, left.put + right.put
            counted, after = self._operand_sum((a, left), (b, right))
            put += counted
            lines += [*left.setup, *right.setup, "var k0 = 0u;", *fetch]
            loop = [*put, "workgroupBarrier();", f"k0 += {tile.k}u;"]
            loop += [f"if (k0 < {steps}u) {{", *indent(fetch), "}"]
            loop += [*multiply(tile), f"if (k0 >= {steps}u) {{ break; }}", "workgroupBarrier();"]
            lines += ["loop {", *indent(loop), "}", *after]
        lines += reduce(tile) if tile.slices > 1 else []
        across = tile.n // tile.tn
        for i in range(tile.tm):
            block = []
            for j in range(tile.tn // 4):
                block += self._finish_four(f"m{i}", f"b0 / 4u + tx + {j * across}u", f"c{i}_{j}")
            lines.append(f"let m{i} = a0 + {row_of(tile, i)};")
            guard = self.inner.m.size % tile.m
            lines += [f"if (m{i} < {self.inner.m.size}u) {{", *indent(block), "}"] if guard else block
        return self._main(storage(tile, (a, b)) if steps else "", lines)

    def _matrices(self) -> str:
        tile, steps = self.tile, self.inner.k.size
        sides = a, b = self._side("a"), self._side("b")
        total = None if self.total is None else next(s for s in sides if s.axis == self.total.expr.data)
        letter = total and total.letter
        lines = [*self._where(), *matrix.place(tile), *matrix.declare(tile, letter)]
        if steps:
            left, right = (matrix.loading(s, self.read(s, raw=True), self.element(s, f"{s.letter}_at")) for s in sides)
            fetch, put = left.fetch + right.fetch, left.put + right.put
            lines += [*left.setup, *right.setup, "var k0 = 0u;", *fetch]
            loop = [*put, "workgroupBarrier();", f"k0 += {tile.k}u;"]
            loop += [f"if (k0 < {steps}u) {{", *indent(fetch), "}"]
            loop += [*matrix.multiply(tile, (a, b), letter), f"if (k0 >= {steps}u) {{ break; }}", "workgroupBarrier();"]
            lines += ["loop {", *indent(loop), "}"]
        lines += matrix.results(tile, self.inner.m.size, self._finish_four)
        lines += matrix.totals(tile, total) if total else []
        return self._main(matrix.storage(tile, (a, b)), lines)

    def _operand_sum(self, *sides: tuple[Side, Loading]) -> tuple[list[str], list[str]]:
        """Text that adds up what was loaded of an operand: with each tile, and after the last.

        Each thread sums what it loads. At the end the sums go where a tile's elements go, and are added up there.
        Only the first blocks along the result's other axis store them.
        """
        if self.total is None:
            return [], []
        side, loading_ = next(s for s in sides if s[0].axis == self.total.expr.data)
        x, other = side.letter, "b" if side.letter == "a" else "a"
        mine = {name: name.replace("v", "s", 1) for name in loading_.registers}
        loading_.setup += [f"var {total} = vec4<f32>();" for total in mine.values()]
        put = loading_.put
        for name, total in mine.items():
            put = [re.sub(rf"\b{name}\b", total, line) for line in put]
        size = side.axis.size
        store = ["var total = 0.0f;", f"for (var kk = 0u; kk < {side.steps}u; kk++) {{"]
        store += [f"  total += tile_{x}[kk][e / 4u][e % 4u];", "}", f"finish_total(vb, {x}0 + e, total);"]
        guard = [f"if ({x}0 + e < {size}u) {{", *indent(store), "}"] if size % side.extent else store
        after = ["workgroupBarrier();", *put, "workgroupBarrier();"]
        after += [f"for (var e = lid; e < {side.extent}u; e += {side.threads}u) {{", *indent(guard), "}"]
        after = [f"if ({other}0 == 0u) {{", *indent(after), "}"]
        return [f"{total} += {name};" for name, total in mine.items()], after

    def _direct(self) -> str:
        tile, inner = self.tile, self.inner
        lines = [*self._where(), f"let afirst = a0 + ty * {tile.tm}u;", f"let bfirst = b0 + tx * {tile.tn}u;"]
        lines += ["let lane = lid % 4u;"] if tile.quads else []
        lines.append(f"var sums = array<vec4<f32>, {tile.tm * tile.tn // 4}>();")
        if inner.k.size:
            sides = (self._side("a"), self._side("b"))
            steps = steps_of(inner, tile.steps)
            rows, columns = (
                operand(side, count, steps, tile.shares(x), self.read(side), self.element(side, f"{x}_at"))
                for x, side, count in zip("ab", sides, (tile.tm, tile.tn), strict=True)
            )
            lines += [*rows.setup, *columns.setup, f"for (var k = 0u; k < {inner.k.size}u; k += {steps}u) {{"]
            lines += [*indent(products(rows, columns)), "}"]
        results = [
            f"let row = afirst + {'(i ^ (lane * 4u))' if tile.shares('a') else 'i'};",
            f"let column = bfirst / 4u + {'(j ^ lane)' if tile.shares('b') else 'j'};",
            f"let four = sums[i * {tile.tn // 4}u + j];",
        ]
        finish = self._finish_four("row", "column", "four")
        guard = inner.m.size % tile.m
        results += [f"if (row < {inner.m.size}u) {{", *indent(finish), "}"] if guard else finish
        loop = [f"for (var j = 0u; j < {tile.tn // 4}u; j++) {{", *indent(results), "}"]
        lines += [f"for (var i = 0u; i < {tile.tm}u; i++) {{", *indent(loop), "}"]
        return self._main("", lines)

    def _main(self, storage: str, lines: list[str]) -> str:
        subgroup = ", @builtin(subgroup_id) subgroup: u32, @builtin(subgroup_invocation_id) lane: u32"
        subgroup = subgroup if self.tile.lanes > 1 else ""
        return (
            f"{storage}\n@compute @workgroup_size({self.tile.threads})\n"
            "fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lid: u32"
            f"{subgroup}) {{\n" + "\n".join(indent(lines)) + "\n}"
        )

    def _where(self) -> list[str]:
        """Which block of the result this workgroup has, and which part of it this thread."""
        tile, inner = self.tile, self.inner
        rows, columns = -(-inner.m.size // tile.m), -(-inner.n.size // tile.n)
        count = rows * columns * inner.batch.size
        lines = [f"let block = group.x + group.y * {MAX_WORKGROUPS}u;"]
        if count > MAX_WORKGROUPS:
            lines.append(f"if (block >= {count}u) {{ return; }}")
        lines += [
            f"let vb = block / {rows * columns}u;",
            f"let cell = block % {rows * columns}u;",
            # neighbours in time share operands in the cache: blocks run down stripes of some rows of blocks
            f"let stripe = cell / {STRIPE * columns}u * {STRIPE}u;",
            f"let height = min({rows}u - stripe, {STRIPE}u);",
            f"let inside = cell % {STRIPE * columns}u;",
            f"let a0 = (stripe + inside % height) * {tile.m}u;",
            f"let b0 = inside / height * {tile.n}u;",
        ]
        if tile.lanes > 1:
            return lines
        across, down = tile.n // tile.tn, tile.m // tile.tm
        lines += [f"let tx = lid % {across}u;"]
        if tile.slices > 1:
            lines += [f"let ty = lid / {across}u % {down}u;", f"let slice = lid / {across * down}u;"]
        else:
            lines += [f"let ty = lid / {across}u;"]
        return lines

    def _finish_four(self, row: str, column: str, acc: str) -> list[str]:
        """Hands four sums of a row to `finish`, unless they lie outside."""
        n = self.inner.n.size
        if self.layout.vector:
            call = f"finish(vb, {row}, {column}, {acc});"
            return [f"if ({column} < {n // 4}u) {{ {call} }}" if n % self.tile.n else call]
        lines = []
        for i, c in enumerate("xyzw"):
            at = f"({column}) * 4u + {i}u"
            call = f"finish(vb, {row}, {at}, {acc}.{c});"
            lines.append(f"if ({at} < {n}u) {{ {call} }}" if n % self.tile.n else call)
        return lines


STRIPE = 8
"""Rows of blocks in a stripe."""
