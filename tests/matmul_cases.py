"""Matmul kernels with data and the results they must give, for the tests of the template."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from tensorgrad.dtypes import DType, f32, u32
from tensorgrad.graph import Value
from tensorgrad.lower.evaluate import evaluate
from tensorgrad.lower.expr import Expr, expr, from_index, load
from tensorgrad.lower.index import Index, Var, of_var, ravel
from tensorgrad.lower.kernel import Kernel, Matmul, Store

A, B, BIAS, OUT, SECOND, INDEX = (Value(i) for i in range(6))
POISON = -12345.0
"""What output buffers hold before the kernel: where nothing is stored it has to stay."""


@dataclass
class Case:
    """A kernel and its buffers; those of `OUT` and `SECOND` start poisoned."""

    name: str
    kernel: Kernel
    arrays: dict[Value, np.ndarray]
    inner: Matmul = field(init=False)

    def __post_init__(self) -> None:
        assert self.kernel.matmul
        self.inner = self.kernel.matmul

    def expected(self) -> dict[Value, np.ndarray]:
        """What the buffers that the kernel writes hold afterwards: sums in float64, epilogues in their dtype."""
        inner = self.inner
        b, m, n, k = (np.arange(v.size) for v in (inner.batch, inner.m, inner.n, inner.k))
        shape = (inner.batch.size, inner.m.size, inner.n.size)
        if inner.k.size:
            left = self._evaluate(inner.a, {inner.batch: b[:, None, None], inner.m: m[:, None], inner.k: k})
            right = self._evaluate(inner.b, {inner.batch: b[:, None, None], inner.k: k[:, None], inner.n: n})
            left, right = (np.asarray(x, np.float64) for x in (left, right))
            sums = np.broadcast_to(left, (shape[0], shape[1], k.size)) @ np.broadcast_to(
                right, (shape[0], k.size, shape[2])
            )
        else:
            sums = np.zeros(shape)
        grid = {inner.batch: b[:, None, None], inner.m: m[:, None], inner.n: n}
        acc = {inner_acc.data: sums.astype(inner_acc.dtype.numpy) for inner_acc in accs(self.kernel)}
        out = {}
        for store in self.kernel.stores:
            values = np.broadcast_to(evaluate(store.expr, grid, self._read, acc), shape)
            at = np.broadcast_to(evaluate(from_index(store.index), grid, self._read), shape)
            key = self.kernel.inplace.get(store.value, store.value)
            target = self.arrays[key].copy()
            target[at.ravel()] = values.ravel()
            out[key] = target
        return out

    def _evaluate(self, e: Expr, grid: dict[Var, np.ndarray]) -> np.ndarray:
        return evaluate(e, grid, self._read)

    def _read(self, value: Value) -> np.ndarray:
        return self.arrays[value]


def accs(kernel: Kernel) -> list[Expr]:
    from tensorgrad.lower.expr import walk

    return list({e: None for s in kernel.stores for e in walk(s.expr) if e.op == "acc"})


def acc(dtype: DType = f32) -> Expr:
    return expr("acc", (), dtype, OUT)


def variables(batch: int, m: int, n: int, k: int) -> tuple[Var, Var, Var, Var]:
    return Var("b", batch), Var("m", m), Var("n", n), Var("k", k)


def make(
    name: str,
    sizes: tuple[int, int, int, int],
    a: Expr,
    b: Expr,
    stores: list[Store],
    arrays: dict[Value, np.ndarray],
    inplace: dict[Value, Value] | None = None,
) -> Case:
    batch, m, n, k = variables(*sizes)
    inner = Matmul(0, batch, m, n, k, a, b, f32)
    kernel = Kernel(Var("r", batch.size * m.size * n.size), None, stores, inner, {0}, inplace or {})
    return Case(name, kernel, arrays)


def plain(
    sizes: tuple[int, int, int, int], layout: str = "nn", pad: int = 0, seed: int = 0, batched: str = "ab"
) -> Case:
    """`out = a @ b`.

    Args:
        sizes: batch, m, n, k.
        layout: for each operand n (rows lie in memory) or t (columns do).
        pad: elements of NaN after each row of an operand in memory, and before the first.
        batched: operands that have the batch axis; the others are shared.
    """
    batch, m, n, k = variables(*sizes)
    rng = np.random.default_rng(seed)

    def operand(value: Value, letter: str, first: Var, second: Var, kind: str) -> tuple[Expr, np.ndarray]:
        outer, inner = (first, second) if kind == "n" else (second, first)
        own = batch.size if letter in batched else 1
        width = inner.size + pad
        data = np.full((own, outer.size, width), np.nan, np.float32)
        data[:, :, : inner.size] = rng.standard_normal((own, outer.size, inner.size))
        index = ravel(
            (of_var(batch) if letter in batched else Index(()), of_var(outer), of_var(inner)), data.shape
        )
        flat = np.concatenate(
            [np.full(pad, np.nan, np.float32), data.ravel(), np.full(4, np.nan, np.float32)]
        )
        return load(value, index + pad, f32), flat

    a, a_data = operand(A, "a", m, k, layout[0])
    b, b_data = operand(B, "b", k, n, layout[1])
    size = batch.size * m.size * n.size
    index = ravel((of_var(batch), of_var(m), of_var(n)), sizes[:3])
    out = np.full(size + 4, POISON, np.float32)
    name = f"{layout} {'x'.join(map(str, sizes))}{f' pad {pad}' if pad else ''}"
    return make(name, sizes, a, b, [Store(OUT, index, acc())], {A: a_data, B: b_data, OUT: out})


SIZES = (1, 3, 17, 64, 65, 129, 200)


def odd_sizes() -> Iterator[Case]:
    """All sizes that are met by no tile exactly, in all four transpositions."""
    depths = (1, 5, 16, 33, 64, 100)
    count = 0
    for m in SIZES:
        for n in SIZES:
            layout = ("nn", "nt", "tn", "tt")[count % 4]
            yield plain(
                (1 + 2 * (count % 2), m, n, depths[count % len(depths)]),
                layout,
                pad=(0, 4, 3)[count % 3],
                seed=count,
            )
            count += 1


__all__ = ["u32"]


def shape_only(sizes: tuple[int, int, int, int], layout: str) -> Case:
    """`plain` without data, for kernels that are generated but not checked here."""
    batch, m, n, k = variables(*sizes)
    left = (batch, m, k) if layout[0] == "n" else (batch, k, m)
    right = (batch, k, n) if layout[1] == "n" else (batch, n, k)
    a, b = (
        load(value, ravel([of_var(v) for v in operand], [v.size for v in operand]), f32)
        for value, operand in ((A, left), (B, right))
    )
    index = ravel((of_var(batch), of_var(m), of_var(n)), (batch.size, m.size, n.size))
    return make(f"{layout} {sizes}", sizes, a, b, [Store(OUT, index, acc())], {})
