"""The `row` template, and how it and a map share out their work.

A row kernel gives each row to some lanes of a workgroup: each lane reduces every n-th column, the lanes combine,
and then each stores every n-th column of the row. How many lanes: one on a CPU, where barriers are dear, and
where rows are short; more the longer the rows are and the fewer there are.
"""

from __future__ import annotations

from typing import NamedTuple

from tensorgrad.device.base import Limits
from tensorgrad.dtypes import DType, bool_, u32
from tensorgrad.lower.expr import Expr, expr, loads, reductions, walk
from tensorgrad.lower.index import Digit, Index, Var
from tensorgrad.lower.kernel import Kernel, Store, store_vars
from tensorgrad.ops.reduce import IDENTITY
from tensorgrad.wgsl.expression import Body
from tensorgrad.wgsl.literal import literal
from tensorgrad.wgsl.module import Buffers, module, needs_f16

UNROLL = 8
"""Columns in one round of a lane's loop, on a GPU, whose memory answers late."""

ENOUGH = 1 << 15
"""Invocations that keep a large GPU busy."""

ROUNDS = 1 << 15
"""Rounds of all its loops that a lane may take on a CPU: llvmpipe leaves a loop after 65,535 without a word."""


class Shape(NamedTuple):
    """How a row kernel divides its work.

    Attributes:
        rows: rows of one workgroup.
        lanes: invocations of one row.
        adjacent: the lanes of a row are neighbours (else the rows are), so that neighbours read neighbours.
        subgroup: the lanes combine by subgroup operations alone.
        unroll: most columns that a lane takes in one round of its loop, so that their loads are under way together.
    """

    rows: int
    lanes: int
    adjacent: bool
    subgroup: bool = False
    unroll: int = 1

    def __str__(self) -> str:
        lanes = "subgroup lanes" if self.subgroup else "lanes" if self.adjacent else "lanes apart"
        return f"{self.rows}x{self.lanes} {lanes}/{self.unroll}"

    @property
    def size(self) -> int:
        return self.rows * self.lanes


def choose(kernel: Kernel, limits: Limits) -> Shape:
    """The division of work for a row kernel."""
    rows = kernel.rows.size
    loops = [e.data[1].size for s in kernel.stores for e in reductions(s.expr)]
    length = max([*loops, kernel.cols.size if kernel.cols else 1])
    adjacent = along_memory(kernel)
    most = min(limits.invocations, 256)
    if limits.software:
        rounds = sum(loops) + (kernel.cols.size if kernel.cols else 0)
        return _on_cpu(rows, rounds, adjacent, most, limits)
    group = limits.subgroup_size
    few = adjacent and rows * 32 < ENOUGH
    if few:
        widest, enough = min(limits.invocations, limits.workgroup_size[0]), 2 * ENOUGH
    else:
        # within a subgroup no barrier is needed; only long rows are worth more lanes than that
        widest, enough = group if group and adjacent and length <= 32 * group else most, ENOUGH
        if not adjacent:  # lanes apart are worth more of them: a layer norm's column sums take 18 us, not 23
            enough *= 4
    lanes = 1
    while lanes < widest and lanes * 2 <= length and (rows * lanes < enough or (adjacent and lanes < 32)):
        lanes *= 2
    if not adjacent:
        # 32 neighbouring rows read whole cache lines together; few rows need the lanes more
        lanes = min(lanes, max(1, most // (32 if rows > 1024 else 8)))
    together = max(1, min(most // lanes, rows))
    together = 1 << (together - 1).bit_length() if together & (together - 1) else together
    while together > 1 and together * lanes > most:
        together //= 2
    subgroup = adjacent and lanes > 1 and group is not None and lanes <= group
    return Shape(together, lanes, adjacent, subgroup, UNROLL)


def _on_cpu(rows: int, rounds: int, adjacent: bool, most: int, limits: Limits) -> Shape:
    """A row to each lane; of few rows, one to the lanes of an instruction, and of very long ones, to many lanes."""
    if rows < 64 and limits.subgroup_size == 4 and 64 <= rounds <= 4 * ROUNDS:
        return Shape(1, 4, True, subgroup=True)
    lanes = 1
    while lanes < most and rounds > ROUNDS * lanes:
        lanes *= 2
    return Shape(1 if lanes > 1 or rows < 64 else 64, lanes, adjacent, unroll=UNROLL if lanes > 1 else 1)


def along_memory(kernel: Kernel) -> bool:
    """Whether most of what its loops read lies along the rows: the loop variable has stride 1."""
    along = across = 0
    for root in kernel.expressions():
        for e in walk(root):
            if e.op != "load":
                continue
            index: Index = e.data[1]
            for atom, coefficient in index.terms:
                if isinstance(atom, Digit) and coefficient == 1 and atom.div == 1:
                    along += atom.var != kernel.rows
                    across += atom.var == kernel.rows
    return along >= across


def row_kernel(kernel: Kernel, buffers: Buffers, limits: Limits, shape: Shape | None = None) -> tuple[str, int, int]:
    """Source, invocations and workgroup size of a row kernel."""
    shape = shape or choose(kernel, limits)
    writer = _Rows(kernel, buffers, shape)
    source = writer.source()
    groups = -(-kernel.rows.size // shape.rows)
    return source, groups * shape.size, shape.size


def locate(body: Body, shape: Shape, rows: Var) -> None:
    """Which row an invocation has (`r`, if it is `live`), at which `place` in the workgroup, as which `lane`."""
    first, second = (("lane", shape.lanes), ("place", shape.rows))
    if not shape.adjacent:
        first, second = second, first
    if shape.size > 1:
        body.line(f"let {first[0]} = lid % {first[1]}u;" if first[1] > 1 else f"let {first[0]} = 0u;")
        body.line(f"let {second[0]} = lid / {first[1]}u;" if first[1] > 1 else f"let {second[0]} = lid;")
    else:
        body.line("let lane = 0u;")
        body.line("let place = 0u;")
    body.line(f"let row = w * {shape.rows}u + place;")
    # lanes without a row compute the last one along: barriers need everybody
    body.line(f"let r = min(row, {rows.size - 1}u);")
    body.line(f"let live = row < {rows.size}u;")
    body.bind(rows, "r")


class _Rows:
    def __init__(self, kernel: Kernel, buffers: Buffers, shape: Shape) -> None:
        self.kernel, self.buffers, self.shape = kernel, buffers, shape
        self.body = Body(buffers.access)
        self.shared: dict[str, str] = {}

    def source(self) -> str:
        body, shape = self.body, self.shape
        locate(body, shape, self.kernel.rows)
        body.expect(*(s.expr for s in self.kernel.stores))
        for group in self._groups():
            self._reduce(group)
        self._store()
        return module(
            [*self.buffers.declarations(), *self.shared.values()],
            body.functions.values(),
            body.text(),
            shape.size,
            uses_f16=body.uses_f16 or needs_f16(self.buffers.types),
            subgroups=shape.subgroup,
        )

    def _groups(self) -> list[list[Expr]]:
        """The reductions in order, those that can share a loop together: of one length, none needing another."""
        seen: set[int] = set()
        order: list[Expr] = []
        for store in self.kernel.stores:
            for e in reductions(store.expr):
                if id(e) not in seen and not self._is_nested(e):
                    seen.add(id(e))
                    order.append(e)
        groups: list[list[Expr]] = []
        level: dict[int, int] = {}
        for e in order:
            inside = [level[id(x)] for x in reductions(e) if id(x) in level and x is not e]
            level[id(e)] = max(inside, default=-1) + 1
        for depth in range(max(level.values(), default=-1) + 1):
            by_length: dict[Var, list[Expr]] = {}
            for e in order:
                if level[id(e)] == depth:
                    by_length.setdefault(e.data[1], []).append(e)
            groups += by_length.values()
        return groups

    def _is_nested(self, e: Expr) -> bool:
        """It depends on more than the row, so it is a loop within a loop."""
        return any(d.var != self.kernel.rows for d in e.digits)

    def _reduce(self, group: list[Expr]) -> None:
        body, lanes = self.body, self.shape.lanes
        var: Var = group[0].data[1]
        accumulators = [_Accumulator(body, e) for e in group]
        k = body.fresh("k")
        start = "lane" if lanes > 1 else "0u"
        together = self._unrolled(var.size)
        if together == 1:
            with body.loop(f"for (var {k} = {start}; {k} < {var.size}u; {k} += {lanes}u)", {var: k}):
                self._accumulate(group, accumulators, k)
        else:
            first, u = body.fresh("k"), body.fresh("u")
            stride = together * lanes
            with body.loop(f"for (var {first} = {start}; {first} < {var.size}u; {first} += {stride}u)"):  # noqa: SIM117
                # a loop of constant length, which the driver unrolls
                with body.loop(f"for (var {u} = 0u; {u} < {together}u; {u}++)"):
                    body.line(f"let {k} = {first} + {u} * {lanes}u;")
                    body.bind(var, k)
                    self._accumulate(group, accumulators, k)
        for acc, e in zip(accumulators, group, strict=True):
            if lanes > 1:
                self._combine(acc)
            body.define(e, acc.result())

    def _unrolled(self, length: int) -> int:
        """Columns in one round: a power of two that divides each lane's share."""
        together = self.shape.unroll
        while length % (together * self.shape.lanes):
            together //= 2
            if together <= 1:
                return 1
        return together

    def _accumulate(self, group: list[Expr], accumulators: list[_Accumulator], k: str) -> None:
        self._inner([e.args[0] for e in group])
        for acc in accumulators:
            acc.add(k)

    def _inner(self, roots: list[Expr]) -> None:
        """Reductions that depend on the open loop's variable: each a loop of its own, in one lane."""
        body = self.body
        for root in roots:
            for e in reductions(root):
                if self._is_nested(e) and not _defined(body, e):
                    acc = _Accumulator(body, e)
                    k = body.fresh("k")
                    with body.loop(f"for (var {k} = 0u; {k} < {e.data[1].size}u; {k}++)", {e.data[1]: k}):
                        acc.add(k)
                    body.define(e, acc.result())

    def _combine(self, acc: _Accumulator) -> None:
        body, shape = self.body, self.shape
        if shape.subgroup:
            step = 1
            while step < shape.lanes:
                acc.merge(*(f"subgroupShuffleXor({name}, {step}u)" for name in acc.names))
                step *= 2
            return
        memory = [self._memory(i, dtype) for i, dtype in enumerate(acc.dtypes)]
        stride = 1 if shape.adjacent else shape.rows
        for name, at in zip(acc.names, memory, strict=True):
            body.line(f"{at}[lid] = {name};")
        body.line("workgroupBarrier();")
        step = shape.lanes // 2
        while step:
            with body.block(f"if (lane < {step}u)"):
                acc.merge(*(f"{at}[lid + {step * stride}u]" for at in memory))
                for name, at in zip(acc.names, memory, strict=True):
                    body.line(f"{at}[lid] = {name};")
            body.line("workgroupBarrier();")
            step //= 2
        first = f"place * {shape.lanes}u" if shape.adjacent else "place"
        for name, at in zip(acc.names, memory, strict=True):
            body.line(f"{name} = {at}[{first}];")
        body.line("workgroupBarrier();")

    def _memory(self, slot: int, dtype: DType) -> str:
        name = f"part_{dtype}{slot}"
        self.shared[name] = f"var<workgroup> {name}: array<{dtype}, {self.shape.size}>;"
        return name

    def _store(self) -> None:
        body, kernel = self.body, self.kernel
        once = [s for s in kernel.stores if kernel.cols not in store_vars(s, kernel)]
        each = [s for s in kernel.stores if kernel.cols in store_vars(s, kernel)]
        if once:
            # computed by every lane, so that nothing is named inside the block alone
            values = [body.value(s.expr) for s in once]
            with body.block("if (live && lane == 0u)" if self.shape.lanes > 1 else "if (live)"):
                for store, value in zip(once, values, strict=True):
                    self._write(store, value)
        if each and kernel.cols:
            c, lanes = body.fresh("c"), self.shape.lanes
            end = f"select(0u, {kernel.cols.size}u, live)"
            start = "lane" if lanes > 1 else "0u"
            with body.loop(f"for (var {c} = {start}; {c} < {end}; {c} += {lanes}u)", {kernel.cols: c}):
                self._inner([s.expr for s in each])
                values = [body.value(s.expr) for s in each]
                for store, value in zip(each, values, strict=True):
                    self._write(store, value)

    def _write(self, store: Store, value: str) -> None:
        code = f"select(0u, 1u, {value})" if store.expr.dtype is bool_ else value
        target = self.buffers.access(store.value, self.body.index(store.index))
        self.body.line(f"{target} = {code};")


def _defined(body: Body, e: Expr) -> bool:
    return e in body._names  # whether the template gave it a result in an open scope


class _Accumulator:
    """The running result of one reduction in one lane."""

    def __init__(self, body: Body, e: Expr) -> None:
        self.body, self.e = body, e
        self.op: str = e.data[0]
        self.dtype = e.args[0].dtype
        self.is_arg = self.op.startswith("arg")
        identity = IDENTITY["max" if self.op == "argmax" else "min" if self.op == "argmin" else self.op](self.dtype)
        self.best = body.fresh("acc")
        body.line(f"var {self.best}: {self.dtype} = {literal(identity, self.dtype, body.functions)};")
        self.names, self.dtypes = [self.best], [self.dtype]
        if self.is_arg:
            self.place = body.fresh("at")
            # beyond every real position, so that any candidate beats it
            body.line(f"var {self.place}: u32 = 4294967295u;")
            self.names, self.dtypes = [self.best, self.place], [self.dtype, u32]

    def add(self, k: str) -> None:
        e = self.e.args[0]
        if self.op == "sum" and is_picked(e):
            with self.body.block(f"if ({self.body.value(e.args[0])})"):
                self.merge(self.body.value(e.args[1]))
            return
        value = self.body.value(e)
        self.merge(value, k) if self.is_arg else self.merge(value)

    def merge(self, value: str, place: str = "") -> None:
        """Takes in another result (for a position: with its place)."""
        body = self.body
        if self.op in ("sum", "prod"):
            body.line(f"{self.best} {'+=' if self.op == 'sum' else '*='} {value};")
            return
        if not self.is_arg:
            op = "maximum" if self.op == "max" else "minimum"
            mine, other = _name(self.best, self.dtype), _name(body.fresh("x"), self.dtype)
            body.line(f"let {other.data} = {value};")
            body.define(mine, self.best)
            body.define(other, other.data)
            body.line(f"{self.best} = {body.code(expr(op, (mine, other), self.dtype))};")
            return
        v, p = body.fresh("x"), body.fresh("p")
        body.line(f"let {v} = {value};")
        body.line(f"let {p} = {place};")
        better = f"{v} > {self.best}" if self.op == "argmax" else f"{v} < {self.best}"
        if self.dtype.is_float:
            v_nan, best_nan = (self._is_nan(x) for x in (v, self.best))
            better = f"({v_nan} && !{best_nan}) || (!{best_nan} && {better})"
            same = f"({v} == {self.best}) || ({v_nan} && {best_nan})"
        else:
            same = f"{v} == {self.best}"
        taken = body.fresh("take")
        body.line(f"let {taken} = ({better}) || (({same}) && {p} < {self.place});")
        body.line(f"{self.best} = select({self.best}, {v}, {taken});")
        body.line(f"{self.place} = select({self.place}, {p}, {taken});")

    def _is_nan(self, name: str) -> str:
        # by bits: a compiler may assume that numbers are numbers
        return f"((bitcast<u32>(f32({name})) & 0x7fffffffu) > 0x7f800000u)"

    def result(self) -> str:
        return self.place if self.is_arg else self.best


def is_picked(e: Expr) -> bool:
    """Whether the data decides which terms a sum has (`where(indices == i, x, 0)`): most are not worth reading."""
    if e.op != "where" or e.args[2].op != "const" or e.args[2].data != 0:
        return False
    condition, value, _ = e.args
    return any(x.op == "load" and x.dtype.kind in "iu" for x in walk(condition)) and bool(loads(value))


def _name(name: str, dtype: DType) -> Expr:
    return expr("param", (), dtype, name)
