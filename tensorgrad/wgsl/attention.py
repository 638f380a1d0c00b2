"""The attention template: softmax(q k^T) v and its gradient, without a matrix of all scores.

A workgroup has a block of rows of the scores for good and meets their columns a block at a time. It multiplies
the two operands as a matmul does (`matmul_load`: k-major tiles in workgroup memory, sums in registers), turns the
scores in its registers into weights, hands them to all threads through workgroup memory, and sums up weights
times a third operand. In `out`, rows are queries, and the softmax is the online one: when a row's maximum grows,
what was summed up so far is scaled down. The gradients know each row's log-sum-exp; `dkv` has keys for rows, so
that every result has one writer. Blocks that a causal attention does not see are left out.

`lower.kernel.Attention` has the formulas, `attention_tiles` the choice of a block.
"""

from __future__ import annotations

from collections.abc import Hashable

from tensorgrad.device.base import Limits
from tensorgrad.dtypes import DType, f32
from tensorgrad.graph import Value
from tensorgrad.lower.expr import expr, load
from tensorgrad.lower.index import Index, Var
from tensorgrad.lower.kernel import Attention, Kernel, Store, result_of
from tensorgrad.plan import MAX_WORKGROUPS
from tensorgrad.wgsl.attention_plan import Operand, Plan, Product, Sum
from tensorgrad.wgsl.attention_plan import plan as plan_of
from tensorgrad.wgsl.attention_tiles import choose, fits, groups, room
from tensorgrad.wgsl.attention_weights import XYZW, Weights
from tensorgrad.wgsl.expression import Body
from tensorgrad.wgsl.literal import literal
from tensorgrad.wgsl.matmul_access import affine, divided, fours, quarter_of, reads
from tensorgrad.wgsl.matmul_load import Side, loading
from tensorgrad.wgsl.matmul_store import Buffer, Layout
from tensorgrad.wgsl.matmul_tiles import Tile
from tensorgrad.wgsl.shader import Place, Source, indent
from tensorgrad.wgsl.signature import signature


def generate(kernel: Kernel, limits: Limits, place: Place | None = None, tile: Tile | None = None) -> Source:
    """The WGSL of an attention kernel.

    Args:
        limits: of the device.
        place: a value -> the value whose buffer holds it; by default what `kernel.inplace` says.
        tile: by default `choose` decides.
    """
    inner = kernel.attention
    assert inner

    def where(value: Value) -> Value:
        return place(value) if place else kernel.inplace.get(value, value)

    tile = tile or choose(inner, limits)
    padded = fits(tile, inner, limits, padded=True)
    key, values = signature(kernel, where)
    source = _sources.get((key, tile, padded))
    if source is None:
        if len(_sources) >= 256:
            _sources.clear()
        source = _sources[key, tile, padded] = _write(kernel, inner, where, tile, padded, values)
    return source._replace(bindings=tuple((values[number.node], write) for number, write in source.bindings))


_sources: dict[tuple[Hashable, Tile, bool], Source] = {}
"""What was written: in its bindings `Value(i)` stands for the buffer number i of the kernel's signature."""


def _write(
    kernel: Kernel, inner: Attention, place: Place, tile: Tile, padded: bool, values: tuple[Value, ...]
) -> Source:
    plan = plan_of(kernel, inner)
    layout = _lay_out(kernel, inner, plan, place)
    writer = _Writer(kernel, inner, plan, place, tile, room(tile, inner, padded), padded, layout)
    return Source(
        f"attention {inner.part} {tile}",
        writer.shader(),
        writer.blocks * inner.batch.size * tile.threads,
        tile.threads,
        tuple((Value(values.index(b.key)), b.write) for b in layout.buffers),
    )


def _lay_out(kernel: Kernel, inner: Attention, plan: Plan, place: Place) -> Layout:
    """Each buffer's declaration: vec4s where it is moved in fours, and nobody needs an element beyond the last four."""
    dtypes: dict[Value, DType] = {}
    reach: dict[bool, dict[Value, int]] = {True: {}, False: {}}
    written = {place(s.value) for s in kernel.stores}

    def note(value: Value, index: Index, dtype: DType, in_fours: bool) -> None:
        key = place(value)
        dtypes.setdefault(key, dtype)
        top = 2**62 if key in written and not in_fours else index.maximum + 1
        reach[in_fours][key] = max(reach[in_fours].get(key, 0), top)

    operands = {o.name: o for p in plan.products for o in (p.left, p.right)} | {
        s.right.name: s.right for s in plan.sums
    }
    for o in operands.values():
        access = affine(o.expr, (inner.batch, o.row, o.column))
        in_fours = access is not None and (access.in_fours(o.row) or access.in_fours(o.column))
        for value, index, dtype in reads(o.expr):
            note(value, index, dtype, in_fours)
    delta = inner.delta if len(plan.products) > 1 else None
    for e in (inner.bias, inner.lse, delta):
        for value, index, dtype in reads(e) if e is not None else ():
            note(value, index, dtype, False)
    for s in kernel.stores:
        space = inner.space(result_of(s))
        access = affine(load(s.value, s.index, f32), space)
        note(s.value, s.index, f32, len(space) == 3 and access is not None and access.in_fours(space[2]))

    def width(key: Value) -> int:
        return 4 if key in reach[True] and reach[False].get(key, 0) <= reach[True][key] else 1

    keys = sorted(dtypes, key=lambda key: key in written)
    return Layout(tuple(Buffer(key, dtypes[key], key in written, width(key)) for key in keys), True)


class _Writer(Weights):
    """The text of one shader while it is put together."""

    # The text --------------------------------------------------------------------------------

    def shader(self) -> str:
        tile, space, pad = self.tile, self.room, int(self.padded)
        lines = [*self._where(), *self._start(), *self._loop(), *self._finish()]
        rows = tile.m // 4 + pad
        storage = [
            f"var<workgroup> tile_{name}: array<array<vec4<f32>, {width}>, {steps}>;"
            for name, steps, width in (("a", space.steps, rows), ("b", tile.k, space.columns), ("p", tile.n, rows))
        ]
        main = [
            f"@compute @workgroup_size({tile.threads})",
            "fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lid: u32) {",
            *indent(lines),
            "}",
        ]
        return self.module(*storage, *main)

    def _where(self) -> list[str]:
        """Which block this workgroup has, and which part of it this thread."""
        count = self.blocks * self.inner.batch.size
        lines = [f"let block = group.x + group.y * {MAX_WORKGROUPS}u;"]
        if count > MAX_WORKGROUPS:
            lines.append(f"if (block >= {count}u) {{ return; }}")
        # the blocks with most to do begin first
        row = f"block % {self.blocks}u"
        row = f"({self.blocks - 1}u - {row})" if self.inner.causal and self.by_query else f"({row})"
        lines += [f"let vb = block / {self.blocks}u;", f"let r0 = {row} * {self.tile.m}u;"]
        lines += [f"let tx = lid % {self.across}u;", f"let ty = lid / {self.across}u;"]
        for i in range(self.tile.tm):
            lines.append(f"let row{i} = r0 + ({self.own_rows(i // 4)}) * 4u + {i % 4}u;")
        return lines

    def _start(self) -> list[str]:
        """What is known of the rows before the first block, and the sums."""
        inner = self.inner
        lines = [f"let ninf = vec4<f32>({literal(float('-inf'), f32, self.functions)});"]
        for s in self.plan.sums:
            n = groups(self.tile, s.right.column)
            lines += [f"var {s.name}{i}_{j} = vec4<f32>();" for i in range(self.tile.tm) for j in range(n)]
        for g in self.row_groups:
            if inner.part == "out":
                lines += [f"var top{g} = ninf;", f"var sum{g} = vec4<f32>();"]
            elif self.by_query:
                rows = [f"min(row{4 * g + i}, {inner.i.size - 1}u)" for i in range(4)]
                lines += self.stats(g, rows)
        return lines

    def _loop(self) -> list[str]:
        """All blocks of columns."""
        plan, tile, inner = self.plan, self.tile, self.inner
        size, first = plan.columns.size, "0u"
        end = f"{size}u"
        if inner.causal and self.by_query:
            end = f"min({end}, r0 + {tile.m}u)"
        elif inner.causal:
            first = f"r0 / {tile.n}u * {tile.n}u"
        body = [f"let col{j} = c0 + (tx + {j * self.across}u) * 4u;" for j in self.column_groups]
        for product in plan.products:
            body += self._product(product)
        body += self.weights()
        for n, s in enumerate(plan.sums):
            body += ["workgroupBarrier();"] if n else []
            body += [*self.share(s.weights), *self._sum(s)]
        header = f"for (var c0 = {first}; c0 < {end}; c0 += {tile.n}u) {{"
        return [header, *indent(body), "}"]

    def _product(self, product: Product) -> list[str]:
        """The scores, or the like of them, of a block."""
        tile, depth = self.tile, product.left.column
        left = self._side("a", product.left, product.left.row, depth, tile.m)
        right = self._side("b", product.right, product.right.row, depth, tile.n)
        sums = [f"var {product.name}{i}_{j} = vec4<f32>();" for i, _, j, _ in self.scores()]
        multiply = self._multiply("tile_a", "", product.name, tile.tn // 4)
        setup = ["let a0 = r0;", "let b0 = c0;"]
        return [*sums, *self._phase([left, right], setup, "0u", f"{depth.size}u", multiply, depth.size <= tile.k)]

    def _sum(self, s: Sum) -> list[str]:
        """Adds the weights times the third operand to a result."""
        tile, size = self.tile, self.plan.columns.size
        n = groups(tile, s.right.column)
        side = self._side("b", s.right, s.right.column, s.right.row, 4 * n * self.across)
        multiply = ["let at = k0 - c0;", *self._multiply("tile_p", "at + ", s.name, n)]
        stop = f"min(c0 + {tile.n}u, {size}u)" if size % tile.n else f"c0 + {tile.n}u"
        return self._phase([side], ["let b0 = 0u;"], "c0", stop, multiply, tile.n <= tile.k)

    def _side(self, letter: str, operand: Operand, axis: Var, k: Var, extent: int) -> tuple[Side, str]:
        inner, tile = self.inner, self.tile
        access = affine(operand.expr, (inner.batch, axis, k))
        vectors = access is not None and self.layout[self.place(access.value)].width == 4
        args = (inner.batch, axis, k, extent, tile.k, tile.threads, self.padded, vectors, letter == "b")
        return Side(letter, operand.expr, access, *args), operand.name + "_at" + axis.name

    def _phase(
        self, sides: list[tuple[Side, str]], setup: list[str], start: str, stop: str, multiply: list[str], once: bool
    ) -> list[str]:
        """Moves tiles to workgroup memory and multiplies them, from step `start` to `stop` of the inner variable."""
        texts = [loading(side, self.read(side), self.element(side, name)) for side, name in sides]
        fetch, put = ([line for t in texts for line in part(t)] for part in (lambda t: t.fetch, lambda t: t.put))
        lines = [*setup, *(line for t in texts for line in t.setup), f"var k0 = {start};", *fetch]
        # the tiles may still be read from the last time
        turn = ["workgroupBarrier();", *put, "workgroupBarrier();"]
        if once:
            lines += [*turn, *multiply]
        else:
            last = f"let stop = {stop};"
            # the next tile is on its way while this one is multiplied
            ahead = [f"k0 += {self.tile.k}u;", "if (k0 < stop) {", *indent(fetch), "}"]
            begin = [line for line in multiply if line.startswith("let at")]
            rest = [line for line in multiply if not line.startswith("let at")]
            loop = [*turn, *begin, *ahead, *rest, "if (k0 >= stop) { break; }"]
            lines += [last, "loop {", *indent(loop), "}"]
        return ["{", *indent(lines), "}"]

    def _multiply(self, left: str, base: str, out: str, columns: int) -> list[str]:
        """Products of a thread's rows of the left tile with its columns of `tile_b`, in all steps of the tiles."""
        lines: list[str] = []
        for u in range(self.tile.k + 1):
            if u < self.tile.k:
                # read before the step before is multiplied
                lines += [f"let p{u}_{g} = {left}[{base}{u}u][{self.own_rows(g)}];" for g in self.row_groups]
                lines += [f"let q{u}_{j} = tile_b[{u}u][tx + {j * self.across}u];" for j in range(columns)]
            if u:
                lines += [
                    f"{out}{i}_{j} = fma(vec4<f32>(p{u - 1}_{i // 4}.{XYZW[i % 4]}), q{u - 1}_{j}, {out}{i}_{j});"
                    for i in range(self.tile.tm)
                    for j in range(columns)
                ]
        return lines

    # Results --------------------------------------------------------------------------------

    def _finish(self) -> list[str]:
        """Stores what was summed up."""
        out = self.inner.part == "out"
        lines = self.totals() if out else []
        sums = {s.result: s for s in self.plan.sums}
        for number, store in enumerate(self.kernel.stores):
            result = result_of(store)
            lines += self._log_sums(f"put{number}", store) if out and result == 1 else []
            lines += self._put(f"put{number}", store, sums[result]) if result in sums else []
        return lines

    def _inside(self, i: int, block: list[str]) -> list[str]:
        """For a thread's row i, unless it is beyond the last."""
        size = self.plan.rows.size
        return [f"if (row{i} < {size}u) {{", *indent(block), "}"] if size % self.tile.m else block

    def _put(self, name: str, store: Store, s: Sum) -> list[str]:
        """Stores a result, four elements of a row at a time."""
        batch, row, column = self.inner.space(s.result)
        body = Body(self.access, self.functions, "p")
        for var, text in ((batch, "vb"), (row, "row"), (quarter_of(column), "column")):
            body.bind(var, text)
        key = self.place(store.value)
        buffer = self.names[key]
        if self.layout[key].width == 4:
            puts = [f"{buffer}[{body.index(divided(fours(store.index, column)))}] = value;"]
        else:
            puts = [f"{buffer}[{body.index(fours(store.index, column, n))}] = value.{c};" for n, c in enumerate(XYZW)]
        text = "\n".join([body.text(), *indent(puts)])
        self.functions[name] = f"fn {name}(vb: u32, row: u32, column: u32, value: vec4<f32>) {{\n{text}\n}}"
        scale = f" * {literal(self.inner.scale, f32, self.functions)}" if s.weights == "d" else ""
        lines: list[str] = []
        for i in range(self.tile.tm):
            factor = f" / total{i // 4}.{XYZW[i % 4]}" if self.inner.part == "out" else scale
            block = []
            for j in range(groups(self.tile, column)):
                at, beyond = f"tx + {j * self.across}u", (j + 1) * self.across > column.size // 4
                call = f"{name}(vb, row{i}, {at}, {s.name}{i}_{j}{factor});"
                block.append(f"if ({at} < {column.size // 4}u) {{ {call} }}" if beyond else call)
            lines += self._inside(i, block)
        return lines

    def _log_sums(self, name: str, store: Store) -> list[str]:
        """Stores each query's log-sum-exp."""
        body = Body(self.access, self.functions, "l")
        body.bind(self.inner.batch, "vb")
        body.bind(self.inner.i, "row")
        total = expr("param", (), f32, "total")
        body.define(total, "total")
        result = body.value(expr("log", (total,), f32))
        target = self.access(store.value, body.index(store.index))
        self.functions[name] = (
            f"fn {name}(vb: u32, row: u32, top: f32, total: f32) {{\n{body.text()}\n  {target} = top + {result};\n}}"
        )
        lines: list[str] = []
        for i in range(self.tile.tm):
            at = f"{i // 4}).{XYZW[i % 4]}"
            lines += self._inside(i, [f"{name}(vb, row{i}, finite(top{at}, (sum{at});"])
        return ["if (tx == 0u) {", *indent(lines), "}"]
