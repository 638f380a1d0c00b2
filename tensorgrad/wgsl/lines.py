"""The `scan` and `sort` templates: what takes a whole row at once (`lower.kernel.Line`).

A scan's row goes to some lanes of a workgroup, as in a row kernel. They take it a chunk at a time: each lane scans a
run of neighbouring columns, the lanes scan their totals in workgroup memory, and then each scans its run again, from
what stands before it. One lane alone keeps a running result and needs no barrier: for CPUs, where barriers are dear,
for short rows, and for so many that all cores are busy.

A row is sorted by Batcher's bitonic network over pairs of a key and a column. The column decides between equal keys,
which makes the order stable. The pairs are in workgroup memory, where the lanes of a row share them. One lane alone has
no need of barriers and has them in memory of its own: a browser sets workgroup memory to zero, and SwiftShader compiles
that word by word, seconds for what a CPU's 64 rows take.

Source: Batcher, Sorting networks and their applications (1968); Blelloch, Prefix sums and their applications (1990).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from tensorgrad.device.base import Limits
from tensorgrad.dtypes import u32
from tensorgrad.lower.expr import expr, walk
from tensorgrad.lower.kernel import Kernel, Line
from tensorgrad.ops.scan import identity
from tensorgrad.wgsl.expression import Body
from tensorgrad.wgsl.literal import literal
from tensorgrad.wgsl.maps import store_all
from tensorgrad.wgsl.module import Buffers, module, needs_f16
from tensorgrad.wgsl.rows import ENOUGH, Shape, along_memory, locate

SIZE = 256
"""Invocations of a workgroup."""

RUN = 8
"""Neighbouring columns of a scan that a lane takes at a time."""

PAIR = 8
"""Bytes of a key and a column."""

CPU_ROWS = 64
"""Rows of a workgroup on a CPU, if there are as many."""


def choose(kernel: Kernel, limits: Limits) -> Shape:
    """How the rows and their columns are shared out; `unroll` is a lane's run."""
    line, rows, columns = _line(kernel), kernel.rows.size, _columns(kernel)
    most = min(SIZE, limits.invocations)
    if line.op == "sort":
        size = _power(columns)
        if limits.software:
            return Shape(min(CPU_ROWS, _power(rows)), 1, True)
        lanes = max(1, min(most, size // 2))
        return Shape(max(1, min(most // lanes, _power(rows), limits.workgroup_storage // (PAIR * size))), lanes, True)
    if limits.software:
        return Shape(CPU_ROWS if rows >= CPU_ROWS else 1, 1, False)
    adjacent = along_memory(kernel)
    lanes = min(most, _power(-(-columns // RUN)))
    if not adjacent:
        # neighbouring rows read neighbours; if there are enough of them, each needs no help
        lanes = 1 if rows >= ENOUGH else min(lanes, max(1, most // 32))
    together = max(1, min(most // lanes, _power(rows)))
    return Shape(together, lanes, adjacent, unroll=min(RUN, _power(columns)))


def variants(kernel: Kernel, limits: Limits) -> tuple[Shape, ...]:
    """The chosen shape first, and for scans others near it."""
    own = choose(kernel, limits)
    if own.lanes == 1 or kernel.kind == "sort":
        return (own,)
    runs = tuple(own._replace(unroll=n) for n in (4, 16) if n != own.unroll)
    return (own, *runs, own._replace(rows=own.rows * 2, lanes=own.lanes // 2))


def line_kernel(kernel: Kernel, buffers: Buffers, limits: Limits, shape: Shape | None = None) -> tuple[str, int, int]:
    """Source, invocations and workgroup size of a scan or a sort."""
    shape = shape or choose(kernel, limits)
    writer = (_Sort if kernel.kind == "sort" else _Scan)(kernel, buffers, shape)
    source = writer.source()
    groups = -(-kernel.rows.size // shape.rows)
    return source, groups * shape.size, shape.size


def _line(kernel: Kernel) -> Line:
    assert kernel.line
    return kernel.line


def _columns(kernel: Kernel) -> int:
    assert kernel.cols
    return kernel.cols.size


def _power(n: int) -> int:
    """The least power of two from `n` on."""
    return 1 << max(n - 1, 0).bit_length()


class _Lines(ABC):
    """The text of one shader while it is put together."""

    def __init__(self, kernel: Kernel, buffers: Buffers, shape: Shape) -> None:
        self.kernel, self.buffers, self.shape, self.line = kernel, buffers, shape, _line(kernel)
        self.body = Body(buffers.access)
        self.columns = _columns(kernel)
        self.declared: list[str] = []
        self.accs = {e for root in kernel.expressions() for e in walk(root) if e.op == "acc"}

    def source(self) -> str:
        body = self.body
        locate(body, self.shape, self.kernel.rows)
        self.write()
        return module(
            [*self.buffers.declarations(), *self.declared],
            body.functions.values(),
            body.text(),
            self.shape.size,
            uses_f16=body.uses_f16 or needs_f16(self.buffers.types),
        )

    @abstractmethod
    def write(self) -> None:
        """Adds what its template does with the rows, once their places are known."""

    def barrier(self) -> None:
        if self.shape.lanes > 1:
            self.body.line("workgroupBarrier();")

    def column(self, name: str) -> None:
        """In the open block, the column is called so."""
        assert self.kernel.cols
        self.body.bind(self.kernel.cols, name)

    def put(self, result: str) -> None:
        """Stores what is made of a column's result."""
        for acc in self.accs:
            self.body.define(acc, result)
        store_all(self.body, self.buffers, self.kernel.stores)


class _Scan(_Lines):
    """A scan; its running result is one variable, of a recurrence two: what it multiplies and what it adds."""

    def write(self) -> None:
        line, body = self.line, self.body
        self.dtype = line.operands[0].dtype
        start = [1, 0] if line.op == "linear_scan" else [identity(line.op, self.dtype)]
        self.start = [literal(x, self.dtype, body.functions) for x in start]
        carry = self.variables("carry", self.start)
        if self.shape.lanes == 1:
            with body.loop(f"for (var i = 0u; i < {self.columns}u; i++)"):
                body.line(f"let c = {f'{self.columns - 1}u - i' if line.reverse else 'i'};")
                self.column("c")
                self.set(carry, self.combined(carry, self.values()))
                with body.block("if (live)"):
                    self.put(carry[-1])
            return
        chunk = self.shape.lanes * self.shape.unroll
        with body.loop(f"for (var first = 0u; first < {self.columns}u; first += {chunk}u)"):
            self.chunk(carry)

    def chunk(self, carry: list[str]) -> None:
        body, run, lanes = self.body, self.shape.unroll, self.shape.lanes
        stride = 1 if self.shape.adjacent else self.shape.rows
        own = self.variables("own", self.start)
        with body.loop(f"for (var i = 0u; i < {run}u; i++)"):
            self.set(own, self.combined(own, self.at()))
        shared = [f"part{i}" for i in range(len(carry))]
        for name in shared:
            self.declared.append(f"var<workgroup> {name}: array<{self.dtype}, {self.shape.size}>;")
        self.set([f"{name}[lid]" for name in shared], own)
        self.barrier()
        with body.block(f"for (var step = 1u; step < {lanes}u; step *= 2u)"):
            other = self.variables("other", self.start)
            with body.block("if (lane >= step)"):
                self.set(other, [f"{name}[lid - step{f' * {stride}u' * (stride > 1)}]" for name in shared])
            self.barrier()
            self.set(own, self.combined(other, own))
            self.set([f"{name}[lid]" for name in shared], own)
            self.barrier()
        before = self.variables("before", self.start)
        with body.block("if (lane > 0u)"):
            self.set(before, [f"{name}[lid - {stride}u]" for name in shared])
        self.set(before, self.combined(carry, before))
        last = f"place * {lanes}u + {lanes - 1}u" if self.shape.adjacent else f"{(lanes - 1) * stride}u + place"
        self.set(carry, self.combined(carry, [f"{name}[{last}]" for name in shared]))
        self.barrier()
        with body.loop(f"for (var i = 0u; i < {run}u; i++)"):
            # read again, which costs less than registers for the run
            self.set(before, self.combined(before, self.at()))
            with body.block(f"if (live && at < {self.columns}u)"):
                self.put(before[-1])

    def at(self) -> list[str]:
        """In a loop over a run: the place `at` of an element in the order of the scan, its column, and its values."""
        last = self.columns - 1
        self.body.line(f"let at = first + lane * {self.shape.unroll}u + i;")
        self.body.line(f"let c = {f'{last}u - ' if self.line.reverse else ''}min(at, {last}u);")
        self.column("c")
        inside = zip(self.start, self.values(), strict=True)
        return [self.named("x", f"select({start}, {value}, at < {self.columns}u)") for start, value in inside]

    def values(self) -> list[str]:
        return [self.body.value(e) for e in self.line.operands]

    def named(self, stem: str, code: str) -> str:
        name = self.body.fresh(stem)
        self.body.line(f"let {name} = {code};")
        return name

    def variables(self, stem: str, values: list[str]) -> list[str]:
        names = [self.body.fresh(stem) for _ in values]
        for name, value in zip(names, values, strict=True):
            self.body.line(f"var {name}: {self.dtype} = {value};")
        return names

    def set(self, names: list[str], values: list[str]) -> None:
        for name, value in zip(names, values, strict=True):
            self.body.line(f"{name} = {value};")

    def combined(self, a: list[str], b: list[str]) -> list[str]:
        """The results of what stands before and of what comes next as one."""
        if self.line.op == "linear_scan":
            # a factor 0 forgets infinity too; named, for the first is needed after it was set
            zero = literal(0, self.dtype, {})
            m, h = (f"select({b[0]} * {x}, {zero}, {b[0]} == {zero})" for x in a)
            return [self.named("m", m), self.named("h", f"{h} + {b[1]}")]
        op = {"cumsum": "add", "cumprod": "mul", "cummax": "maximum", "cummin": "minimum"}[self.line.op]
        left, right = (expr("param", (), self.dtype, x) for x in (a[0], b[0]))
        self.body.define(left, a[0])
        self.body.define(right, b[0])
        return [self.body.code(expr(op, (left, right), self.dtype))]


class _Sort(_Lines):
    def write(self) -> None:
        body, lanes, size = self.body, self.shape.lanes, _power(self.columns)
        alone = lanes == 1
        space, count = ("private", size) if alone else ("workgroup", self.shape.rows * size)
        self.declared += [f"var<{space}> {name}: array<u32, {count}>;" for name in ("keys", "order")]
        body.line(f"let base = {'0u' if alone else f'place * {size}u'};")
        with body.loop(f"for (var t = lane; t < {size}u; t += {lanes}u)"):
            body.line(f"let c = min(t, {self.columns - 1}u);")
            self.column("c")
            key = body.code(self.line.operands[0])
            body.line(f"keys[base + t] = select({literal(2**32 - 1, u32, {})}, {key}, t < {self.columns}u);")
            body.line("order[base + t] = t;")
        self.barrier()
        self.network(size)
        with body.loop(f"for (var c = lane; c < select(0u, {self.columns}u, live); c += {lanes}u)"):
            self.column("c")
            body.line("let place_of = i32(order[base + c]);")
            self.put("place_of")

    def network(self, size: int) -> None:
        """Compares and exchanges pairs until the keys ascend."""
        body = self.body
        with (
            body.block(f"for (var k = 2u; k <= {size}u; k *= 2u)"),
            body.block("for (var j = k / 2u; j > 0u; j /= 2u)"),
        ):
            with body.block(f"for (var t = lane; t < {size // 2}u; t += {self.shape.lanes}u)"):
                for text in (
                    "let low = 2u * t - (t & (j - 1u));",
                    "let a = base + low;",
                    "let b = a + j;",
                    "let ka = keys[a];",
                    "let kb = keys[b];",
                    "let oa = order[a];",
                    "let ob = order[b];",
                    "let after = ka > kb || (ka == kb && oa > ob);",
                ):
                    body.line(text)
                with body.block("if (after == ((low & k) == 0u))"):
                    for text in ("keys[a] = kb;", "keys[b] = ka;", "order[a] = ob;", "order[b] = oa;"):
                        body.line(text)
            self.barrier()
