"""More views: elements repeated, rolled, turned, and read along diagonals. All are made of reshape, slice and pad."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tensorgrad.checks import is_whole, require
from tensorgrad.ops.core import Axis, TensorLike, as_shape, broadcast_to, spread, tensor
from tensorgrad.ops.custom import custom_grad
from tensorgrad.ops.indexing import take
from tensorgrad.ops.views import expand_dims, flip, movedim, narrow, pad_ends, reshape, slice_p, swapaxes
from tensorgrad.shape import check_axis, fail, infer_reshape, one_or_more, show_shape, whole
from tensorgrad.tensor import Tensor
from tensorgrad.trace import bind

# Repeated --------------------------------------------------------------------------------------


def tile(x: TensorLike, *reps: Any) -> Tensor:
    """The tensor repeated as a whole along each axis; PyTorch's `x.repeat` is the same.

    Missing numbers are 1, counted from the last axis.

    >>> import tensorgrad as tg
    >>> tg.sync(tg.jit(lambda x: tg.tile(x, (2, 2)), device="numpy")([1, 2]))
    array([[1, 2, 1, 2],
           [1, 2, 1, 2]], dtype=int32)
    """
    x, times = tensor(x), as_shape(reps)
    if min(times, default=0) < 0:
        fail(f"tile: a number of repetitions must not be negative, got {list(times)}")
    ndim = max(x.ndim, len(times))
    sizes, times = ((*(1,) * (ndim - len(n)), *n) for n in (x.shape, times))
    apart = reshape(x, *(n for size in sizes for n in (1, size)))
    wide = broadcast_to(apart, *(n for pair in zip(times, sizes, strict=True) for n in pair))
    return reshape(wide, *(t * n for t, n in zip(times, sizes, strict=True)))


def repeat_interleave(x: TensorLike, repeats: Any, dim: int | None = None) -> Tensor:
    """Each element along an axis repeated next to itself.

    Args:
        repeats: a number, or known numbers, one for each element.
        dim: None repeats the elements in row-major order.
    """
    x = tensor(x)
    if dim is None:
        x, dim = reshape(x, x.size), 0
    dim = check_axis("repeat_interleave", dim, x.ndim)
    times = np.asarray(repeats)
    n = x.shape[dim]
    if times.dtype.kind not in "iu" or times.shape not in ((), (1,), (n,)) or times.min(initial=0) < 0:
        fail(f"repeat_interleave: repeats is a whole number, or {n} of them for axis {dim}, got {repeats!r}")
    if times.size == n != 1:
        return take(x, np.repeat(np.arange(n), times), dim)
    count = int(times.reshape(()))
    wide = broadcast_to(expand_dims(x, dim + 1), *x.shape[: dim + 1], count, *x.shape[dim + 1 :])
    return reshape(wide, *x.shape[:dim], n * count, *x.shape[dim + 1 :])


def broadcast_tensors(*tensors: TensorLike) -> tuple[Tensor, ...]:
    """The tensors broadcast to their common shape."""
    return tuple(spread("broadcast_tensors", *map(tensor, tensors))) if tensors else ()


def meshgrid(*tensors: TensorLike, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Vectors as grids, one axis each: the first counts rows (`"ij"`), or columns (`"xy"`)."""
    if indexing not in ("ij", "xy"):
        fail(f"meshgrid: indexing is 'ij' or 'xy', got {indexing!r}")
    lines = [reshape(t, -1 if tensor(t).size else 0) for t in tensors]
    last = len(lines) - 1
    made = broadcast_tensors(*(reshape(t, -1 if t.size else 0, *(1,) * (last - n)) for n, t in enumerate(lines)))
    return tuple(swapaxes(t, 0, 1) for t in made) if indexing == "xy" and last > 0 else made


# Rolled and turned -------------------------------------------------------------------------------


def roll(x: TensorLike, shifts: int | Sequence[int], dims: Axis = None, **kw: Any) -> Tensor:
    """Elements moved along axes; what leaves at one end comes in at the other.

    Args:
        shifts: places, a number for each axis; negative ones move to the front.
        dims: None rolls the elements in row-major order. NumPy's `axis=` is accepted.

    >>> import tensorgrad as tg
    >>> tg.sync(tg.jit(lambda x: tg.roll(x, 1), device="numpy")([1, 2, 3]))
    array([3, 1, 2], dtype=int32)
    """
    x = tensor(x)
    dims = kw.pop("axis", dims)
    if dims is None:
        return reshape(roll(reshape(x, x.size), shifts, 0), *x.shape)
    axes = one_or_more(dims)
    moves = shifts if isinstance(shifts, Iterable) else [shifts] * len(axes)
    moves = [whole("roll", "a shift", move) for move in moves]
    if len(moves) != len(axes):
        fail(f"roll: {len(moves)} shifts for {len(axes)} axes")
    by = [0] * x.ndim
    for axis, move in zip(axes, moves, strict=True):
        by[check_axis("roll", axis, x.ndim)] += move
    by = tuple(move % n if n else 0 for move, n in zip(by, x.shape, strict=True))
    return _rolled(x, by) if any(by) else x


def _rolled(x: Tensor, by: Sequence[int]) -> Tensor:
    """Read from two copies side by side; its gradient is rolled back, and need not add up the copies'."""
    two = tile(x, *(2 if move else 1 for move in by))
    bounds = tuple((n - move if move else 0, n, 1) for n, move in zip(x.shape, by, strict=True))
    return custom_grad(bind(slice_p, two, bounds=bounds), _roll_grad, x, args=(tuple(by),))


def _roll_grad(g: Tensor, out: Tensor, x: Tensor, by: Sequence[int]) -> tuple[Tensor]:
    return (_rolled(g, tuple(n - move if move else 0 for n, move in zip(g.shape, by, strict=True))),)


def rot90(x: TensorLike, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """A quarter turn, `k` times, from the first towards the second of two axes."""
    x = tensor(x)
    a, b = (check_axis("rot90", d, x.ndim) for d in dims)
    if a == b:
        fail(f"rot90: needs two different axes, got {tuple(dims)}")
    require("rot90", "k", k, is_whole(k), "a whole number")
    flips = {0: (), 1: (b,), 2: (a, b), 3: (a,)}[k % 4]
    turned = flip(x, flips) if flips else x
    return swapaxes(turned, a, b) if k % 2 else turned


# Parts -------------------------------------------------------------------------------------------


def select(x: TensorLike, dim: int, index: int) -> Tensor:
    """One slice of an axis, which goes."""
    x = tensor(x)
    dim = check_axis("select", dim, x.ndim)
    if not -x.shape[dim] <= index < x.shape[dim]:
        fail(f"select: index {index} is out of range for axis {dim} of {show_shape(x.shape)}")
    return reshape(narrow(x, dim, index % x.shape[dim], 1), *x.shape[:dim], *x.shape[dim + 1 :])


def unflatten(x: TensorLike, dim: int, sizes: Sequence[int]) -> Tensor:
    """An axis split into several; one size may be -1."""
    x = tensor(x)
    dim = check_axis("unflatten", dim, x.ndim)
    parts = infer_reshape("unflatten", (x.shape[dim],), as_shape((tuple(sizes),)))
    return reshape(x, *x.shape[:dim], *parts, *x.shape[dim + 1 :])


# Diagonals ---------------------------------------------------------------------------------------


def diagonal(x: TensorLike, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The elements of the matrices of two axes at `column = row + offset`, as a new last axis; a view.

    >>> import tensorgrad as tg
    >>> tg.sync(tg.jit(lambda x: tg.diagonal(x, 1), device="numpy")([[1, 2, 3], [4, 5, 6]]))
    array([2, 6], dtype=int32)
    """
    x = tensor(x)
    _pair("diagonal", dim1, dim2, x.ndim)
    x = movedim(x, (dim1, dim2), (-2, -1))
    *lead, rows, columns = x.shape
    count = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    start = (offset if offset >= 0 else -offset * columns) if count else 0
    # one step down and one to the right
    bounds = (*((0, n, 1) for n in lead), (start, count, columns + 1))
    return bind(slice_p, reshape(x, *lead, rows * columns), bounds=bounds)


def diag_embed(x: TensorLike, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices of zeros with the last axis at `column = row + offset`: the reverse of `diagonal`."""
    x = tensor(x)
    if not x.shape:
        fail("diag_embed: there is no last axis in a 0-d tensor")
    _pair("diag_embed", dim1, dim2, x.ndim + 1)
    *lead, count = x.shape
    n = count + abs(offset)
    low = offset if offset >= 0 else -offset * n
    span = (count - 1) * (n + 1) + 1 if count else 0
    flat = pad_ends(x, (*((0, 0, 0) for _ in lead), (low, n * n - low - span, n)), 0)
    return movedim(reshape(flat, *lead, n, n), (-2, -1), (dim1, dim2))


def diag(x: TensorLike, diagonal: int = 0) -> Tensor:
    """A vector as the diagonal of a matrix of zeros, or a matrix's diagonal."""
    x = tensor(x)
    if x.ndim not in (1, 2):
        fail(f"diag: needs a vector or a matrix, got {x.type}")
    return diag_embed(x, diagonal) if x.ndim == 1 else _diagonal(x, diagonal)


_diagonal = diagonal  # which an argument of `diag` hides, as in PyTorch


def _pair(op: str, dim1: int, dim2: int, ndim: int) -> None:
    if check_axis(op, dim1, ndim) == check_axis(op, dim2, ndim):
        fail(f"{op}: needs two different axes, got {dim1} and {dim2}")
