"""Scores to weights: the part of an attention's text between its products.

A thread has some scores in registers, `s<row>_<vec4 of columns>`; in a gradient also the products `d` of the
output's gradient with the values.
"""

from __future__ import annotations

from tensorgrad.dtypes import f32
from tensorgrad.lower.expr import expr
from tensorgrad.lower.kernel import Attention, Kernel
from tensorgrad.wgsl.attention_plan import Plan
from tensorgrad.wgsl.attention_tiles import Room, groups
from tensorgrad.wgsl.expression import Body
from tensorgrad.wgsl.literal import literal
from tensorgrad.wgsl.matmul_store import Layout
from tensorgrad.wgsl.matmul_tiles import Tile
from tensorgrad.wgsl.shader import Place, Shader, indent

XYZW = "xyzw"


class Weights(Shader):
    """The text of the softmax and of its gradient; `attention` adds the rest."""

    def __init__(
        self,
        kernel: Kernel,
        inner: Attention,
        plan: Plan,
        place: Place,
        tile: Tile,
        space: Room,
        padded: bool,
        layout: Layout,
    ) -> None:
        super().__init__(place, layout)
        self.kernel, self.inner, self.plan, self.tile, self.room, self.padded = kernel, inner, plan, tile, space, padded
        self.across, self.down = tile.n // tile.tn, tile.m // tile.tm
        self.blocks = -(-plan.rows.size // tile.m)
        self.by_query = plan.rows == inner.i

    # What is repeated for the parts of a thread -------------------------------------------

    @property
    def row_groups(self) -> range:
        return range(self.tile.tm // 4)

    @property
    def column_groups(self) -> range:
        return range(self.tile.tn // 4)

    def scores(self) -> list[tuple[int, int, int, str]]:
        """Row, its group of four, vec4 of columns, and component of the group, of each vec4 of scores."""
        return [(i, i // 4, j, XYZW[i % 4]) for i in range(self.tile.tm) for j in self.column_groups]

    def four_rows(self, name: str, group: int, j: int, c: str) -> str:
        """The scores of four rows in one column."""
        return f"vec4<f32>({', '.join(f'{name}{4 * group + i}_{j}.{c}' for i in range(4))})"

    def own_rows(self, group: int) -> str:
        return f"ty + {group * self.down}u" if group else "ty"

    def stats(self, group: int, queries: list[str]) -> list[str]:
        """Log-sum-exp and delta of four queries."""
        inner = self.inner
        assert inner.lse is not None
        assert inner.delta is not None
        variables = {inner.batch: "vb", inner.i: "row"}
        self.function("lse_at", inner.lse, variables)
        self._finite()
        values = ", ".join(f"lse_at(vb, {q})" for q in queries)
        lines = [f"let shift{group} = finite(vec4<f32>({values}));"]
        if len(self.plan.products) > 1:
            self.function("delta_at", inner.delta, variables)
            values = ", ".join(f"delta_at(vb, {q})" for q in queries)
            lines.append(f"let delta{group} = vec4<f32>({values});")
        return lines

    # Scores to weights ----------------------------------------------------------------------

    def weights(self) -> list[str]:
        """Turns the scores `s` of a block into weights, and `d` into their gradients."""
        self._exp()
        lines = [*self._biased(), *self._masked()]
        if self.inner.part == "out":
            return [*lines, *self._online()]
        if not self.by_query:
            last = self.inner.i.size - 1
            for j in self.column_groups:
                lines += self.stats(j, [f"min(col{j} + {c}u, {last}u)" for c in range(4)])
        for i, g, j, c in self.scores():
            at = f"{g}.{c}" if self.by_query else f"{j}"
            lines.append(f"s{i}_{j} = exp4(s{i}_{j} - shift{at});")
            if len(self.plan.products) > 1:
                lines.append(f"d{i}_{j} = s{i}_{j} * (d{i}_{j} - delta{at});")
        return lines

    def _biased(self) -> list[str]:
        """The scale and the bias."""
        inner, lines = self.inner, []
        if inner.bias is not None:
            self.function("bias_at", inner.bias, {inner.batch: "vb", inner.i: "i", inner.j: "j"})
        for i, _, j, _ in self.scores():
            text = f"s{i}_{j} * {literal(inner.scale, f32, self.functions)}"
            if inner.bias is not None:
                cells = (f"row{i}, col{j} + {c}u" if self.by_query else f"col{j} + {c}u, row{i}" for c in range(4))
                text += f" + vec4<f32>({', '.join(f'bias_at(vb, {cell})' for cell in cells)})"
            lines.append(f"s{i}_{j} = {text};")
        return lines

    def _masked(self) -> list[str]:
        """-inf for the columns beyond the last, and for keys after their query; most blocks have none of these."""
        tile, causal, size = self.tile, self.inner.causal, self.plan.columns.size
        conditions = [f"c0 + {tile.n}u > {size}u"] if size % tile.n else []
        if causal:
            conditions.append(f"c0 + {tile.n}u > r0 + 1u" if self.by_query else f"c0 < r0 + {tile.m - 1}u")
        if not conditions:
            return []
        lines = [f"let at{j} = vec4<u32>(col{j}) + vec4<u32>(0u, 1u, 2u, 3u);" for j in self.column_groups]
        for i, _, j, _ in self.scores():
            if self.by_query:
                limit = f"min(row{i} + 1u, {size}u)" if causal else f"{size}u"
                seen = f"at{j} < vec4<u32>({limit})"
            else:
                seen = f"at{j} < vec4<u32>({size}u)"
                seen = f"(at{j} >= vec4<u32>(row{i})) & ({seen})" if causal else seen
            lines.append(f"s{i}_{j} = select(ninf, s{i}_{j}, {seen});")
        return [f"if ({' || '.join(conditions)}) {{", *indent(lines), "}"]

    def _online(self) -> list[str]:
        """The softmax so far: new maxima, and everything that was summed up scaled to them."""
        self._finite()
        lines, sums = ["workgroupBarrier();"], self.plan.sums[0]
        for g in self.row_groups:
            columns = [self.four_rows("s", g, j, c) for j in self.column_groups for c in XYZW]
            text = columns[0]
            for column in columns[1:]:
                text = f"max({text}, {column})"
            lines += [f"var new{g} = {text};", f"tile_a[tx][{self.own_rows(g)}] = new{g};"]
        lines.append("workgroupBarrier();")
        for g in self.row_groups:
            lines.append(f"new{g} = max(new{g}, top{g});")
            step = f"new{g} = max(new{g}, tile_a[t][{self.own_rows(g)}]);"
            lines.append(f"for (var t = 0u; t < {self.across}u; t++) {{ {step} }}")
            lines += [f"let shift{g} = finite(new{g});", f"let shrink{g} = exp4(top{g} - shift{g});"]
            lines += [f"top{g} = new{g};", f"sum{g} *= shrink{g};"]
        for i in range(self.tile.tm):
            for j in range(groups(self.tile, sums.right.column)):
                lines.append(f"o{i}_{j} *= shrink{i // 4}.{XYZW[i % 4]};")
        lines += [f"s{i}_{j} = exp4(s{i}_{j} - shift{g}.{c});" for i, g, j, c in self.scores()]
        for g in self.row_groups:
            lines += [f"sum{g} += {self.four_rows('s', g, j, c)};" for j in self.column_groups for c in XYZW]
        return lines

    def share(self, name: str) -> list[str]:
        """Hands weights to all threads: for each column the rows, in fours."""
        return [
            f"tile_p[(tx + {j * self.across}u) * 4u + {n}u][{self.own_rows(g)}] = {self.four_rows(name, g, j, c)};"
            for j in self.column_groups
            for n, c in enumerate(XYZW)
            for g in self.row_groups
        ]

    def totals(self) -> list[str]:
        """Adds up the threads' sums of weights; a row without any divides by 1."""
        lines = ["workgroupBarrier();"]
        lines += [f"tile_a[tx][{self.own_rows(g)}] = sum{g};" for g in self.row_groups]
        lines += ["workgroupBarrier();", *(f"sum{g} = vec4<f32>();" for g in self.row_groups)]
        steps = " ".join(f"sum{g} += tile_a[t][{self.own_rows(g)}];" for g in self.row_groups)
        lines.append(f"for (var t = 0u; t < {self.across}u; t++) {{ {steps} }}")
        return lines + [
            f"let total{g} = select(sum{g}, vec4<f32>(1.0), sum{g} == vec4<f32>());" for g in self.row_groups
        ]

    # Functions ------------------------------------------------------------------------------

    def _exp(self) -> None:
        """exp of four numbers that are at most about 0, each by the library's own."""
        body = Body(self.access, self.functions, "x")
        codes = []
        for c in XYZW:
            x = expr("param", (), f32, f"x.{c}")
            body.define(x, f"x.{c}")
            codes.append(body.code(expr("exp_weight", (x,), f32)))
        text = f"{body.text()}\n  return vec4<f32>({', '.join(codes)});"
        self.functions["exp4"] = f"fn exp4(x: vec4<f32>) -> vec4<f32> {{\n{text}\n}}"

    def _finite(self) -> None:
        """0 in place of -inf, which is told by its bits: a shift of the scores that changes no result."""
        self.functions["finite"] = (
            "fn finite(x: vec4<f32>) -> vec4<f32> {\n"
            "  return select(x, vec4<f32>(), bitcast<vec4<u32>>(x) == vec4<u32>(0xff800000u));\n}"
        )
