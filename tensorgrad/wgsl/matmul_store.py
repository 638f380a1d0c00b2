"""What a matmul kernel does with its sums, and how each of its buffers is declared.

A buffer has one element type in a kernel. It is an array of `vec4` where anyone reads or writes
it in fours, and then those who need single elements of it pick a component.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tensorgrad.dtypes import DType
from tensorgrad.graph import Value
from tensorgrad.lower.expr import Expr, expr, rebuild
from tensorgrad.lower.index import Digit, Index, Var, digit_of, of_var
from tensorgrad.lower.kernel import Kernel, Store
from tensorgrad.wgsl.matmul_access import Affine, affine, divided, fours, quarter_of, reads


@dataclass(frozen=True, slots=True)
class Buffer:
    """A bound buffer.

    Attributes:
        key: the value whose memory it is.
        dtype: of its elements.
        write: the kernel writes it.
        width: 4 if it is declared as an array of vec4, else 1.
    """

    key: Value
    dtype: DType
    write: bool
    width: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The buffers in binding order, and whether results are computed and stored four columns at a time."""

    buffers: tuple[Buffer, ...]
    vector: bool

    def __getitem__(self, key: Value) -> Buffer:
        return next(b for b in self.buffers if b.key == key)


def lay_out(kernel: Kernel, place: Callable[[Value], Value], vectors: bool = True) -> Layout:
    """Chooses each buffer's declaration.

    Args:
        place: a value -> the value whose buffer holds it.
        vectors: False declares every buffer as single elements.
    """
    wanted = vectors and all(_store_in_fours(kernel, s) for s in kernel.stores)
    layout = _lay_out(kernel, place, vectors, wanted)
    if wanted and any(layout[place(s.value)].width == 1 for s in kernel.stores):
        layout = _lay_out(kernel, place, vectors, False)
    return layout


def _lay_out(kernel: Kernel, place: Callable[[Value], Value], vectors: bool, vector: bool) -> Layout:
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

    for e, axis in ((inner.a, inner.m), (inner.b, inner.n)):
        plain = affine(e, (inner.batch, axis, inner.k))
        quad = plain is not None and (plain.in_fours(axis) or plain.in_fours(inner.k))
        for value, index, dtype in reads(e):
            note(value, index, dtype, quad)
    for store in kernel.stores:
        for value, index, dtype in reads(store.expr):
            note(value, index, dtype, vector and load_in_fours(kernel, value, index, dtype) is not None)
    for store in kernel.stores:
        note(store.value, store.index, store.expr.dtype, vector, write=True)
    keys = sorted(dtypes, key=lambda key: written[key])

    def width(key: Value) -> int:
        return 4 if vectors and key in reach and single.get(key, 0) <= reach[key] else 1

    return Layout(tuple(Buffer(key, dtypes[key], written[key], width(key)) for key in keys), vector)


def _affine_in(kernel: Kernel, value: Value, index: Index, dtype: DType) -> Affine | None:
    from tensorgrad.lower.expr import load

    return affine(load(value, index, dtype), kernel.vars)


def load_in_fours(kernel: Kernel, value: Value, index: Index, dtype: DType) -> Affine | None:
    """The load's parts where four columns of the result read four adjacent elements."""
    inner = kernel.matmul
    assert inner
    found = _affine_in(kernel, value, index, dtype)
    return found if found and found.in_fours(inner.n) else None


def _store_in_fours(kernel: Kernel, store: Store) -> bool:
    return load_in_fours(kernel, store.value, store.index, store.expr.dtype) is not None


def lane(kernel: Kernel, layout: Layout, place: Callable[[Value], Value], e: Expr, number: int) -> tuple[Expr, dict[str, tuple[Value, Index]]]:
    """An epilogue for column `4 * n4 + number`.

    Returns:
        the expression in terms of b, m and n4, in which `acc` and the loads of four adjacent elements are
        parameters named `acc.x`, `e0.x`; and those names' vectors with what they load, in units of vec4.
    """
    inner = kernel.matmul
    assert inner
    n = inner.n
    component = "xyzw"[number]
    vectors: dict[str, tuple[Value, Index]] = {}

    def leaf(node: Expr) -> Expr | None:
        if node.op == "acc":
            return expr("param", (), node.dtype, f"acc.{component}")
        if node.op == "load":
            value, index = node.data
            found = load_in_fours(kernel, value, index, node.dtype)
            if found and layout[place(value)].width == 4:
                quad = divided(fours(index, n))
                name = next((k for k, v in vectors.items() if v == (value, quad)), f"e{len(vectors)}")
                vectors[name] = (value, quad)
                return expr("param", (), node.dtype, f"{name}.{component}")
        return None

    at = of_var(quarter_of(n)) * 4 + number

    def digit(d: Digit) -> Index | None:
        return digit_of(at, d) if d.var == n else None

    return rebuild(e, digit, leaf), vectors


def variables(kernel: Kernel, vector: bool) -> dict[Var, str]:
    """The names of the variables in the text of an epilogue."""
    inner = kernel.matmul
    assert inner
    n = (quarter_of(inner.n), "vn4") if vector else (inner.n, "vn")
    return {inner.batch: "vb", inner.m: "vm", n[0]: n[1]}
