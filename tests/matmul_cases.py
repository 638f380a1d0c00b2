"""Matmul kernels with data and the results they must give, for the tests of the template."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from tensorgrad.dtypes import DType, bool_, f16, f32, i32, u32
from tensorgrad.graph import Value
from tensorgrad.lower.evaluate import evaluate
from tensorgrad.lower.expr import Expr, below, both, const, expr, from_index, load, loads, rebuild, walk, where
from tensorgrad.lower.index import Index, Var, dynamic, of_var, ravel, unravel
from tensorgrad.lower.kernel import Kernel, Matmul, Store
from tensorgrad.wgsl.matmul_tiles import Tile

A, B, OUT, SECOND, BIAS, OTHER = (Value(i) for i in range(6))
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
        index = ravel((of_var(batch) if letter in batched else Index(()), of_var(outer), of_var(inner)), data.shape)
        flat = np.concatenate([np.full(pad, np.nan, np.float32), data.ravel(), np.full(4, np.nan, np.float32)])
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


def spread(tiles: Iterable[Tile], start: int = 0) -> Iterator[tuple[Case, Tile]]:
    """Each tile with a case of odd sizes, the transpositions and depths taking turns."""
    sizes = ((65, 129, 33), (200, 65, 5), (129, 200, 16), (64, 64, 100), (17, 65, 64), (129, 3, 17), (68, 132, 36))
    for i, tile in enumerate(tiles, start):
        m, n, k = sizes[i % len(sizes)]
        yield (
            plain((1 + 2 * (i % 2), m, n, k), ("nn", "nt", "tn", "tt")[i % 4], pad=(0, 4, 3)[i % 3], seed=i),
            tile,
        )


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


def _gelu(x: Expr) -> Expr:
    half, one = const(0.5, f32), const(1.0, f32)
    inner = expr("mul", (x, const(0.7978845608, f32)), f32)
    return expr("mul", (expr("mul", (x, half), f32), expr("add", (one, expr("tanh", (inner,), f32)), f32)), f32)


def _add(a: Expr, b: Expr) -> Expr:
    return expr("add", (a, b), a.dtype)


def _base(sizes: tuple[int, int, int, int], layout: str = "nt") -> tuple[Case, tuple[Var, ...], Index, np.ndarray]:
    """A plain case to vary, its variables, the row-major index of the result, and the result's poison."""
    case = plain(sizes, layout)
    variables_ = variables(*sizes)
    b, m, n, _ = variables_
    return case, variables_, ravel((of_var(b), of_var(m), of_var(n)), sizes[:3]), case.arrays[OUT]


def _vary(
    name: str,
    case: Case,
    stores: list[Store],
    extra: dict[Value, np.ndarray],
    a: Expr | None = None,
    b: Expr | None = None,
    inplace: dict[Value, Value] | None = None,
) -> Case:
    inner = case.inner
    sizes = (inner.batch.size, inner.m.size, inner.n.size, inner.k.size)
    return make(name, sizes, a or inner.a, b or inner.b, stores, case.arrays | extra, inplace)


def epilogues(sizes: tuple[int, int, int, int]) -> Iterator[Case]:
    """What is done with the sums: bias, activation, residuals, masks, other places in memory."""
    case, (b, m, n, _), index, poison = _base(sizes)
    rng = np.random.default_rng(1)
    total = sizes[0] * sizes[1] * sizes[2]
    bias = rng.standard_normal(n.size).astype(np.float32)
    biased = _add(acc(), load(BIAS, of_var(n), f32))
    stores = [Store(OUT, index, _gelu(biased)), Store(SECOND, index, biased)]
    yield _vary("bias, gelu, two results", case, stores, {BIAS: bias, SECOND: poison})

    other = rng.standard_normal(total).astype(np.float32)
    row = load(BIAS, of_var(m), f32)
    stores = [Store(OUT, index, _add(expr("mul", (acc(), row), f32), load(OTHER, index, f32)))]
    rows = rng.standard_normal(m.size).astype(np.float32)
    yield _vary("scaled rows plus residual, in place", case, stores, {OTHER: other, BIAS: rows}, inplace={OUT: OTHER})

    keep = rng.integers(0, 2, total).astype(np.uint32)
    later = expr("less", (from_index(of_var(m)), from_index(of_var(n))), bool_)
    masked = where(load(OTHER, index, bool_), where(later, const(-1e30, f32), acc()), const(7.0, f32))
    positive = expr("less", (const(0.0, f32), acc()), bool_)
    stores = [Store(OUT, index, masked), Store(SECOND, index, positive)]
    yield _vary("masks", case, stores, {OTHER: keep, SECOND: np.full(total + 4, 9, np.uint32)})

    across = ravel((of_var(b), of_var(n), of_var(m)), (b.size, n.size, m.size))
    picks = rng.integers(0, n.size, m.size).astype(np.int32)
    picked = dynamic(expr("cast", (load(OTHER, of_var(m), i32),), u32), n.size)
    stores = [Store(OUT, across, _add(acc(), load(BIAS, picked, f32)))]
    yield _vary("transposed result, bias by a table", case, stores, {BIAS: bias, OTHER: picks})

    square = _add(acc(), load(A, Index(()), f32))
    yield _vary("an operand's element in the epilogue", case, [Store(OUT, index, square)], {})


def operands(sizes: tuple[int, int, int, int]) -> Iterator[Case]:
    """Operands that are no plain matrices."""
    case, (b, m, n, k), index, _ = _base(sizes)
    rng = np.random.default_rng(2)
    stores = [Store(OUT, index, acc())]
    scaled = expr("mul", (expr("maximum", (case.inner.a, const(0.0, f32)), f32), const(0.25, f32)), f32)
    yield _vary("relu and scale of an operand", case, stores, {}, a=scaled)

    rows = rng.integers(0, 50, b.size * m.size).astype(np.int32)
    table = rng.standard_normal(50 * k.size).astype(np.float32)
    at = load(OTHER, ravel((of_var(b), of_var(m)), (b.size, m.size)), i32)
    row = dynamic(expr("cast", (at,), u32), 50)
    yield _vary("rows of a table", case, stores, {OTHER: rows, A: table}, a=load(A, row * k.size + of_var(k), f32))

    inside = below(of_var(k) + (-2), k.size)
    padded = where(inside, load(A, of_var(m) * k.size + of_var(k) + (-2), f32), const(0.0, f32))
    yield _vary("a shifted, padded operand", case, stores, {A: _normal(rng, m.size * k.size)}, a=padded)

    backwards = of_var(k) * -1 + (k.size - 1) + of_var(n) * k.size
    yield _vary("k backwards", case, stores, {B: _normal(rng, n.size * k.size)}, b=load(B, backwards, f32))

    yield _vary("an operand that is one number", case, stores, {}, a=const(0.5, f32))
    yield _vary("the same row for all", case, stores, {A: _normal(rng, k.size)}, a=load(A, of_var(k), f32))


def _normal(rng: np.random.Generator, size: int) -> np.ndarray:
    return rng.standard_normal(size).astype(np.float32)


def heads(count: int, groups: int, length: int, width: int) -> Iterator[Case]:
    """Attention's products on [batch, time, head, width] tensors, without a copy, and a square."""
    rng = np.random.default_rng(3)
    shape = (count, length, groups, width)
    data = {A: _normal(rng, count * length * groups * width), B: _normal(rng, count * length * groups * width)}
    b, m, n, k = variables(count * groups, length, length, width)
    one, head = unravel(of_var(b), (count, groups))

    def at(row: Index, column: Index) -> Index:
        return ravel((one, row, head, column), shape)

    result = ravel((of_var(b), of_var(m), of_var(n)), (b.size, length, length))
    out = np.full(b.size * length * length, POISON, np.float32)
    a, c = load(A, at(of_var(m), of_var(k)), f32), load(B, at(of_var(n), of_var(k)), f32)
    scores = (b.size, length, length, width)
    yield make("scores", scores, a, c, [Store(OUT, result, acc())], data | {OUT: out})

    b, m, n, k = variables(count * groups, length, width, length)
    a = load(A, ravel((of_var(b), of_var(m), of_var(k)), (b.size, length, length)), f32)
    c = load(B, at(of_var(k), of_var(n)), f32)
    weights = {A: _normal(rng, b.size * length * length), OUT: np.full(math.prod(shape), POISON, np.float32)}
    sizes = (b.size, length, width, length)
    yield make("attend", sizes, a, c, [Store(OUT, at(of_var(m), of_var(n)), acc())], data | weights)

    # a weight gradient whose inner variable is two axes: k = (batch, time), neighbours in memory along time
    b, m, n, k = variables(1, groups * width, groups * width, count * length)
    sample, time = unravel(of_var(k), (count, length))
    planes = (count, groups * width, length)
    a = load(A, ravel((sample, of_var(m), time), planes), f32)
    c = load(B, ravel((of_var(k), of_var(n)), (k.size, n.size)), f32)
    index = ravel((of_var(m), of_var(n)), (m.size, n.size))
    out = np.full(m.size * n.size, POISON, np.float32)
    yield make("k of two axes", (1, m.size, n.size, k.size), a, c, [Store(OUT, index, acc())], data | {OUT: out})

    c = load(A, ravel((sample, of_var(n), time), planes), f32)
    first = load(A, of_var(n) * (count * length) + of_var(m), f32)
    yield make(
        "a square", (1, m.size, n.size, k.size), a, c, [Store(OUT, index, _add(acc(), first))], data | {OUT: out}
    )


def images(count: int, channels: int, high: int, wide: int, out: int) -> Iterator[Case]:
    """A convolution with padding (3 x 2 places, by 1 and 2) and its weight's gradient, windows in place."""
    rng = np.random.default_rng(4)
    down, across = high, (wide - 1) // 2 + 1
    shape = (count, channels, high, wide)
    size, inner, columns = math.prod(shape), channels * 6, count * down * across
    frame = np.full(2, np.nan, np.float32)
    pixels = np.concatenate([frame, _normal(rng, size), frame])

    def shown(inside: Index, where_: Index) -> Expr:
        channel, p, q = unravel(inside, (channels, 3, 2))
        image, y, x = unravel(where_, (count, down, across))
        row, column = y + p + -1, x * 2 + q
        test = both(below(row, high), below(column, wide))
        return where(test, load(B, ravel((image, channel, row, column), shape) + 2, f32), const(0.0, f32))

    _, m, n, k = variables(1, out, columns, inner)
    a = load(A, of_var(m) * inner + of_var(k), f32)
    index = ravel((of_var(m), of_var(n)), (out, columns))
    arrays = {A: _normal(rng, out * inner), B: pixels, OUT: np.full(out * columns, POISON, np.float32)}
    forward = shown(of_var(k), of_var(n))
    yield make("convolution", (1, out, columns, inner), a, forward, [Store(OUT, index, acc())], arrays)

    _, m, n, k = variables(1, out, inner, columns)
    image, place = unravel(of_var(k), (count, down * across))
    a = load(A, ravel((image, of_var(m), place), (count, out, down * across)), f32)
    index = ravel((of_var(m), of_var(n)), (out, inner))
    arrays = {A: _normal(rng, out * columns), B: pixels, OUT: np.full(out * inner, POISON, np.float32)}
    back = shown(of_var(n), of_var(k))
    yield make("its weight's gradient", (1, out, inner, columns), a, back, [Store(OUT, index, acc())], arrays)


def halves(sizes: tuple[int, int, int, int]) -> Iterator[Case]:
    """f16 operands and results; sums are f32."""
    case, (_, _, n, _), index, poison = _base(sizes)
    arrays = {key: case.arrays[key].astype(np.float16) for key in (A, B)}
    a, b = (load(key, e.data[1], f16) for key, e in ((A, case.inner.a), (B, case.inner.b)))
    bias = _words(np.linspace(-1, 1, n.size).astype(np.float16))
    half = _add(acc(f16), load(BIAS, of_var(n), f16))
    stores = [Store(OUT, index, half)]
    yield _vary(
        "f16",
        case,
        stores,
        arrays | {BIAS: bias, OUT: np.resize(poison, len(poison) + len(poison) % 2).astype(np.float16)},
        a=a,
        b=b,
    )
    wide = expr("cast", (b,), f32)
    yield _vary("f16 with f32", case, [Store(OUT, index, acc())], {B: arrays[B]}, b=wide)


def halved(case: Case) -> Case:
    """The case with operands that are stored as f16, and widened where they are read."""
    values = {value for e in (case.inner.a, case.inner.b) for value in loads(e)}
    values = {value for value in values if value not in case.arrays or case.arrays[value].dtype == np.float32}

    def leaf(e: Expr) -> Expr | None:
        wide = e.op == "load" and e.data[0] in values
        return expr("cast", (load(e.data[0], e.data[1], f16),), f32) if wide else None

    def half(e: Expr) -> Expr:
        return rebuild(e, leaf=leaf)

    inner, kernel = case.inner, case.kernel
    stores = [Store(s.value, s.index, half(s.expr)) for s in kernel.stores]
    arrays = {key: _words(a.astype(np.float16)) if key in values else a for key, a in case.arrays.items()}
    sizes = (inner.batch.size, inner.m.size, inner.n.size, inner.k.size)
    return make(f"{case.name}, f16", sizes, half(inner.a), half(inner.b), stores, arrays, kernel.inplace)


def _words(array: np.ndarray) -> np.ndarray:
    """The array with a NaN more where its bytes are no whole words."""
    return np.append(array, np.float16(np.nan)) if len(array) % 2 else array


def with_total(case: Case, letter: str) -> tuple[Case, np.ndarray]:
    """A plain case whose kernel also stores an operand's sum over k in `SECOND`, and these sums."""
    inner = case.inner
    axis = inner.m if letter == "a" else inner.n
    index = ravel((of_var(inner.batch), of_var(axis)), (inner.batch.size, axis.size))
    stores = [*case.kernel.stores, Store(SECOND, index, expr("total", (), f32, axis))]
    b, i, k = (np.arange(v.size) for v in (inner.batch, axis, inner.k))
    grid = {inner.batch: b[:, None, None], axis: i[:, None], inner.k: k}
    operand = case._evaluate(inner.a if letter == "a" else inner.b, grid)
    sums = np.broadcast_to(np.asarray(operand, np.float64).sum(-1), (b.size, i.size)).astype(np.float32)
    sizes = (inner.batch.size, inner.m.size, inner.n.size, inner.k.size)
    arrays = case.arrays | {SECOND: np.full(sums.size, POISON, np.float32)}
    return make(f"{case.name}, sum of {letter}", sizes, inner.a, inner.b, stores, arrays), sums
