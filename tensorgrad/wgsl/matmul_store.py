"""What a matmul kernel does with its sums, and how each of its buffers is declared.

A buffer has one element type in a kernel. It is an array of `vec4` where anyone reads or writes
it in fours, and then those who need single elements of it pick a component.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import NamedTuple

from tensorgrad.dtypes import DType, bool_, f16, f32
from tensorgrad.graph import Value
from tensorgrad.lower.expr import Expr, expr, load, rebuild, walk
from tensorgrad.lower.index import ZERO, Digit, Index, Var, digit_of, dynamics, of_var
from tensorgrad.lower.kernel import Kernel, Matmul, Store
from tensorgrad.wgsl.expression import Body
from tensorgrad.wgsl.matmul_access import Affine, affine, divided, fours, quarter_of, reads


class Buffer(NamedTuple):
    """A bound buffer.

    Attributes:
        key: the value whose memory it is.
        dtype: of its elements.
        write: the kernel writes it.
        width: 4 if it is declared as an array of vec4, 8 if four words hold eight numbers of f16, else 1.
    """

    key: Value
    dtype: DType
    write: bool
    width: int


class Layout:
    """The buffers in binding order, and whether results are computed and stored four columns at a time."""

    def __init__(self, buffers: tuple[Buffer, ...], vector: bool) -> None:
        self.buffers, self.vector = buffers, vector

    def __getitem__(self, key: Value) -> Buffer:
        return next(b for b in self.buffers if b.key == key)

    def __contains__(self, key: Value) -> bool:
        return any(b.key == key for b in self.buffers)


def lay_out(
    kernel: Kernel, place: Callable[[Value], Value], vectors: bool = True, along: bool = True, eights: bool = False
) -> Layout:
    """Chooses each buffer's declaration.

    Args:
        place: a value -> the value whose buffer holds it.
        vectors: False declares every buffer as single elements.
        along: operands are also read four steps of the inner loop at a time, where those are adjacent.
        eights: operands of f16 are read eight numbers at a time, where nobody needs single ones.
    """
    results = [s for s in kernel.stores if s.expr.op != "total"]
    wanted = vectors and all(_store_in_fours(kernel, s) for s in results)
    layout = _lay_out(kernel, place, vectors, wanted, along)
    if wanted and any(layout[place(s.value)].width == 1 for s in results):
        layout = _lay_out(kernel, place, vectors, False, along)
    return _in_eights(kernel, place, layout) if eights else layout


def _in_eights(kernel: Kernel, place: Callable[[Value], Value], layout: Layout) -> Layout:
    """The layout with operands that are read in eights only declared so."""
    inner = kernel.matmul
    assert inner
    others = {place(s.value) for s in kernel.stores}
    others |= {place(value) for s in kernel.stores for value, _, _ in _read(s)}
    for e, axis in ((inner.a, inner.m), (inner.b, inner.n)):
        found = affine(e, (inner.batch, axis, inner.k))
        if found is None or found.dtype is not f16 or not run_of(found, axis, inner.k):
            others |= {place(value) for value, _, _ in reads(e)}
    buffers = tuple(b if b.key in others or b.width != 4 else b._replace(width=8) for b in layout.buffers)
    return Layout(buffers, layout.vector)


def run_of(access: Affine, axis: Var, k: Var) -> bool:
    """Whether an operand can be read in eights in the direction in which it is read."""
    return access.in_runs(axis if access.in_fours(axis) else k, 8)


def _lay_out(kernel: Kernel, place: Callable[[Value], Value], vectors: bool, vector: bool, along: bool) -> Layout:
    inner = kernel.matmul
    assert inner
    dtypes: dict[Value, DType] = {}
    reach: dict[Value, int] = {}
    single: dict[Value, int] = {}
    written: dict[Value, bool] = {}

    def note(value: Value, index: Index, dtype: DType, fours_: bool, write: bool = False) -> None:
        key = place(value)
        dtypes.setdefault(key, dtype)
        written[key] = written.get(key, False) or write
        top = index.maximum + 1
        if fours_:
            reach[key] = max(reach.get(key, 0), top)
        else:
            single[key] = max(single.get(key, 0), 2**62 if write else top)

    for e, axis in ((inner.a, inner.m), (inner.b, inner.n)) if inner.k.size else ():
        plain = affine(e, (inner.batch, axis, inner.k))
        quad = plain is not None and (plain.in_fours(axis) or (along and plain.in_fours(inner.k)))
        for value, index, dtype in reads(e):
            note(value, index, dtype, quad)
    for store in kernel.stores:
        for value, index, dtype in _read(store):
            note(value, index, dtype, vector and load_in_fours(kernel, load(value, index, dtype)) is not None)
    for store in kernel.stores:
        note(store.value, store.index, store.expr.dtype, vector and store.expr.op != "total", write=True)
    keys = sorted(dtypes, key=lambda key: written[key])

    def width(key: Value) -> int:
        return 4 if vectors and key in reach and single.get(key, 0) <= reach[key] else 1

    return Layout(tuple(Buffer(key, dtypes[key], written[key], width(key)) for key in keys), vector)


def _read(store: Store) -> Iterable[tuple[Value, Index, DType]]:
    """What a store reads: for what it stores, and for the place where."""
    return chain.from_iterable(reads(e) for e in (store.expr, *dynamics(store.index)))


def load_in_fours(kernel: Kernel, e: Expr) -> Affine | None:
    """The load's parts where four columns of the result read four adjacent elements."""
    assert kernel.matmul
    found = affine(e, kernel.vars)
    return found if found and found.in_fours(kernel.matmul.n) else None


def _store_in_fours(kernel: Kernel, store: Store) -> bool:
    return load_in_fours(kernel, load(store.value, store.index, store.expr.dtype)) is not None


def epilogue(
    kernel: Kernel, layout: Layout, place: Callable[[Value], Value], body: Body, names: Mapping[Value, str]
) -> None:
    """Writes the body of `finish(vb, vm, vn, acc)`: one sum, or with `layout.vector` four beside each other."""
    inner = kernel.matmul
    assert inner
    for var, name in variables(inner, layout.vector).items():
        body.bind(var, name)
    if not layout.vector:
        accs = {e for s in kernel.stores for e in walk(s.expr) if e.op == "acc"}
        for acc in accs:
            body.define(acc, "acc" if acc.dtype is f32 else f"{acc.dtype}(acc)")
        body.expect(*(s.expr for s in kernel.stores))
        for s in kernel.stores:
            body.store(f"{names[place(s.value)]}[{body.index(s.index)}]", s.expr)
        return
    lanes = _Lanes(kernel, layout, place, body, names)
    results = [[lanes.at(s.expr, number) for number in range(4)] for s in kernel.stores]
    body.expect(*(e for four in results for e in four))
    codes = [[body.code(e) for e in four] for four in results]
    for s, four in zip(kernel.stores, codes, strict=True):
        dtype = s.expr.dtype
        value = f"vec4<{dtype}>({', '.join(four)})"
        if dtype is bool_:
            value = f"select(vec4<u32>(), vec4<u32>(1u), {value})"
        body.line(f"{names[place(s.value)]}[{body.index(divided(fours(s.index, inner.n)))}] = {value};")


class _Lanes:
    """Rewrites an epilogue for each of four columns; loads of four adjacent elements are made once."""

    def __init__(
        self, kernel: Kernel, layout: Layout, place: Callable[[Value], Value], body: Body, names: Mapping[Value, str]
    ) -> None:
        self.kernel, self.layout, self.place, self.body, self.names = kernel, layout, place, body, names
        self.vectors: dict[tuple[Value, Index], str] = {}

    def at(self, e: Expr, number: int) -> Expr:
        """The expression for column `4 * n4 + number`, in terms of `n4` and of parameters that the body knows."""
        assert self.kernel.matmul
        n = self.kernel.matmul.n
        at = of_var(quarter_of(n)) * 4 + number

        def digit(d: Digit) -> Index | None:
            return digit_of(at, d) if d.var == n else None

        def leaf(node: Expr) -> Expr | None:
            vector = self._vector(node)
            if vector is None:
                return None
            name = f"{vector}.{'xyzw'[number]}"
            param = expr("param", (), node.dtype, name)
            self.body.define(param, name)
            return param

        return rebuild(e, digit, leaf)

    def _vector(self, node: Expr) -> str | None:
        """The name of the vec4 whose component a leaf is."""
        assert self.kernel.matmul
        if node.op == "acc":
            if node.dtype is f32:
                return "acc"
            if "half" not in self.vectors.values():
                self.vectors[node.data, ZERO] = "half"
                self.body.line("let half = vec4<f16>(acc);")
            return "half"
        if node.op != "load":
            return None
        value, index = node.data
        key = self.place(value)
        if load_in_fours(self.kernel, node) is None or self.layout[key].width != 4:
            return None
        quad = divided(fours(index, self.kernel.matmul.n))
        name = self.vectors.get((value, quad))
        if name is None:
            name = self.vectors[value, quad] = f"e{len(self.vectors)}"
            read = f"{self.names[key]}[{self.body.index(quad)}]"
            self.body.line(f"let {name} = {f'{read} != vec4<u32>()' if node.dtype is bool_ else read};")
        return name


def variables(inner: Matmul, vector: bool) -> dict[Var, str]:
    """The names of the variables in the text of an epilogue."""
    n = (quarter_of(inner.n), "vn4") if vector else (inner.n, "vn")
    return {inner.batch: "vb", inner.m: "vm", n[0]: n[1]}
