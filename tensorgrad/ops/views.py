"""Views: operations that only move elements. None of them copies; they compose into their readers' indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorgrad.checks import is_whole, require
from tensorgrad.graph import TensorType
from tensorgrad.lower.expr import Expr, below, const, guarded
from tensorgrad.lower.index import Index, Indices, ravel, unravel
from tensorgrad.ops.core import Axis, TensorLike, as_shape, broadcast_to, either, tensor
from tensorgrad.primitive import primitive
from tensorgrad.shape import (
    check_axes,
    check_axis,
    fail,
    infer_reshape,
    infer_slice,
    infer_transpose,
    one_or_more,
    show_shape,
)
from tensorgrad.tensor import Tensor
from tensorgrad.trace import bind

# reshape and permute -------------------------------------------------------------------

reshape_p = primitive(
    "reshape",
    shape=lambda x, shape: TensorType(infer_reshape("reshape", x.shape, shape), x.dtype),
    eval=lambda xp, x, shape: xp.reshape(x, shape),
    grad=lambda g, out, x, shape: (reshape(g, x.shape),),
    lower=lambda idx, x, shape: x(unravel(ravel(idx, shape), x.shape)),
    view=True,
)


def _inverse(perm: Sequence[int]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argsort(perm))


permute_p = primitive(
    "permute",
    shape=lambda x, perm: TensorType(infer_transpose("permute", x.shape, perm), x.dtype),
    eval=lambda xp, x, perm: xp.transpose(x, perm),
    grad=lambda g, out, x, perm: (permute(g, *_inverse(perm)),),
    lower=lambda idx, x, perm: x(tuple(idx[i] for i in _inverse(perm))),
    view=True,
)


def reshape(x: TensorLike, *shape: Any) -> Tensor:
    """The same elements in row-major order under another shape, PyTorch's `view`; one size may be -1.

    >>> import tensorgrad as tg
    >>> def view():
    ...     return tg.reshape(tg.tensor_input("x", (2, 6)), (3, -1))
    >>> tg.trace(view).type(tg.trace(view).outputs[0])
    f32[3, 4]
    """
    x = tensor(x)
    target = infer_reshape("reshape", x.shape, as_shape(shape))
    return x if target == x.shape else bind(reshape_p, x, shape=target)


def permute(x: TensorLike, *axes: Any) -> Tensor:
    """The axes in another order; negative axes count from the end."""
    x = tensor(x)
    perm = as_shape(axes)
    infer_transpose("permute", x.shape, perm)
    perm = tuple(p % x.ndim for p in perm)
    return x if perm == tuple(range(x.ndim)) else bind(permute_p, x, perm=perm)


def swapaxes(x: TensorLike, a: int, b: int) -> Tensor:
    """Two axes exchanged."""
    x = tensor(x)
    axes = list(range(x.ndim))
    a, b = check_axis("swapaxes", a, x.ndim), check_axis("swapaxes", b, x.ndim)
    axes[a], axes[b] = axes[b], axes[a]
    return permute(x, *axes)


def transpose(x: TensorLike, *axes: int) -> Tensor:
    """Two axes: PyTorch's swap; none or all of them: NumPy's permutation."""
    x = tensor(x)
    if len(axes) == 2:
        return swapaxes(x, *axes)
    return permute(x, *(axes or reversed(range(x.ndim))))


def movedim(x: TensorLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Axes moved to other places; the rest keep their order.

    >>> import tensorgrad as tg
    >>> def moved():
    ...     return tg.movedim(tg.tensor_input("x", (2, 3, 4)), 0, -1)
    >>> tg.trace(moved).type(tg.trace(moved).outputs[0])
    f32[3, 4, 2]
    """
    x = tensor(x)
    pairs = [one_or_more(a) for a in (source, destination)]
    if len(pairs[0]) != len(pairs[1]):
        fail(f"movedim: {source} and {destination} name different numbers of axes")
    for axes in pairs:
        check_axes("movedim", axes, x.ndim)
    old, new = ([a % x.ndim for a in axes] for axes in pairs)
    rest = iter(a for a in range(x.ndim) if a not in old)
    to = dict(zip(new, old, strict=True))
    return permute(x, *(to[a] if a in to else next(rest) for a in range(x.ndim)))


moveaxis = movedim
permute_dims = permute


def flatten(x: TensorLike, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The axes from `start_dim` to `end_dim` made one."""
    x = tensor(x)
    if not x.shape:
        return reshape(x, 1)
    start, end = check_axis("flatten", start_dim, x.ndim), check_axis("flatten", end_dim, x.ndim)
    if end < start:
        fail(f"flatten: axis {start_dim} comes after axis {end_dim}")
    merged = int(np.prod(x.shape[start : end + 1]))
    return reshape(x, *x.shape[:start], merged, *x.shape[end + 1 :])


def squeeze(x: TensorLike, axis: Axis = None, **kw: Any) -> Tensor:
    """Axes of size 1 removed: all of them, or those named (which must have size 1)."""
    x = tensor(x)
    axis = either("axis", axis, "dim", kw)
    if axis is None:
        return reshape(x, *(n for n in x.shape if n != 1))
    axes = check_axes("squeeze", axis, x.ndim)
    for a in axes:
        if x.shape[a] != 1:
            fail(f"squeeze: axis {a} of {show_shape(x.shape)} has size {x.shape[a]}, not 1")
    return reshape(x, *(n for i, n in enumerate(x.shape) if i not in axes))


def expand_dims(x: TensorLike, axis: int) -> Tensor:
    """A new axis of size 1 at `axis`."""
    x = tensor(x)
    axis = check_axis("expand_dims", axis, x.ndim + 1)
    return reshape(x, *x.shape[:axis], 1, *x.shape[axis:])


unsqueeze = expand_dims


def expand(x: TensorLike, *shape: Any) -> Tensor:
    """PyTorch's `expand`: `broadcast_to` in which -1 keeps a size."""
    x = tensor(x)
    target = as_shape(shape)
    lead = len(target) - x.ndim
    return broadcast_to(x, *(x.shape[i - lead] if n == -1 and i >= lead else n for i, n in enumerate(target)))


# slice and pad ---------------------------------------------------------------------------


def _slice_eval(xp: Any, x: Any, bounds: Sequence[tuple[int, int, int]]) -> Any:
    def one(start: int, size: int, step: int) -> slice:
        end = start + size * step
        return slice(start, None if end < 0 else end, step) if size else slice(0, 0)

    return x[tuple(one(*b) for b in bounds)]


def _slice_grad(g: Tensor, out: Tensor, x: Tensor, bounds: Sequence[tuple[int, int, int]]) -> tuple[Tensor]:
    flipped = tuple(i for i, (_, _, step) in enumerate(bounds) if step < 0)
    config = []
    for n, (start, size, step) in zip(x.shape, bounds, strict=True):
        low = start if step > 0 else start + (size - 1) * step
        stride = step if step > 0 else -step
        span = (size - 1) * stride + 1 if size else 0
        low = low if size else 0
        config.append((low, n - low - span, stride - 1))
    return (pad_ends(flip(g, flipped) if flipped else g, tuple(config), 0),)


slice_p = primitive(
    "slice",
    shape=lambda x, bounds: TensorType(infer_slice("slice", x.shape, bounds), x.dtype),
    eval=_slice_eval,
    grad=_slice_grad,
    lower=lambda idx, x, bounds: x(tuple(i * step + start for i, (start, _, step) in zip(idx, bounds, strict=True))),
    view=True,
)

PadConfig = tuple[tuple[int, int, int], ...]
"""For each axis: elements before, after, and between two neighbours. Negative ends cut off."""


def _pad_shape(x: TensorType, config: PadConfig, value: float) -> TensorType:
    sizes = []
    for n, (low, high, inner) in zip(x.shape, config, strict=True):
        size = low + high + n + max(n - 1, 0) * inner
        if size < 0:
            fail(f"pad: ends {low} and {high} cut more than axis size {n} holds")
        sizes.append(size)
    return TensorType(tuple(sizes), x.dtype)


def _pad_eval(xp: Any, x: Any, config: PadConfig, value: float) -> Any:
    for axis, (low, high, inner) in enumerate(config):
        n = x.shape[axis]
        span = n + max(n - 1, 0) * inner
        wide = xp.full((*x.shape[:axis], span, *x.shape[axis + 1 :]), value, dtype=x.dtype)
        wide[(slice(None),) * axis + (slice(0, None, inner + 1),)] = x
        pads = [(0, 0)] * x.ndim
        pads[axis] = (max(low, 0), max(high, 0))
        wide = xp.pad(wide, pads, constant_values=value)
        cut = slice(max(-low, 0), wide.shape[axis] - max(-high, 0))
        x = wide[(slice(None),) * axis + (cut,)]
    return x


def _pad_grad(g: Tensor, out: Tensor, x: Tensor, config: PadConfig, value: float) -> tuple[Tensor]:
    # ends that were cut get zeros back, ends that were added are cut; then every (inner+1)-th element
    back = pad_ends(g, tuple((max(-low, 0), max(-high, 0), 0) for low, high, _ in config), 0)
    bounds = tuple((max(low, 0), n, inner + 1) for n, (low, _, inner) in zip(x.shape, config, strict=True))
    return (bind(slice_p, back, bounds=bounds),)


def _pad_lower(idx: Indices, x: Any, config: PadConfig, value: float) -> Expr:
    inside, tests = list[Index](), list[Expr]()
    for i, n, (low, _, inner) in zip(idx, x.shape, config, strict=True):
        moved = i + -low
        tests.append(below(moved, n + max(n - 1, 0) * inner))
        if inner:
            moved, between = moved.divmod(inner + 1)
            tests.append(below(between, 1))
        inside.append(moved)
    return guarded(tests, lambda: x(tuple(inside)), const(value, x.dtype))


pad_p = primitive(
    "pad",
    shape=_pad_shape,
    eval=_pad_eval,
    grad=_pad_grad,
    lower=_pad_lower,
    view=True,
)


def pad_ends(x: Tensor, config: PadConfig, value: float) -> Tensor:
    return x if all(c == (0, 0, 0) for c in config) else bind(pad_p, x, config=config, value=value)


def flip(x: TensorLike, axis: Axis = None, **kw: Any) -> Tensor:
    """The order of elements reversed along axes (all by default)."""
    x = tensor(x)
    axes = check_axes("flip", either("axis", axis, "dims" if "dims" in kw else "dim", kw), x.ndim)
    return cut(x, tuple((n - 1, n, -1) if i in axes and n else (0, n, 1) for i, n in enumerate(x.shape)))


def cut(x: Tensor, bounds: tuple[tuple[int, int, int], ...]) -> Tensor:
    """Of each axis `(start, size, step)`."""
    whole = all(b == (0, n, 1) for b, n in zip(bounds, x.shape, strict=True))
    return x if whole else bind(slice_p, x, bounds=bounds)


def narrow(x: TensorLike, axis: int, start: int, length: int) -> Tensor:
    """`length` elements of an axis from `start`, as PyTorch's."""
    x = tensor(x)
    axis = check_axis("narrow", axis, x.ndim)
    for name, number in (("start", start), ("length", length)):
        require("narrow", name, number, is_whole(number), "a whole number")
    if start < 0:
        start += x.shape[axis]
    bounds = [(0, n, 1) for n in x.shape]
    bounds[axis] = (start, length, 1)
    infer_slice("narrow", x.shape, bounds)
    return cut(x, tuple(bounds))
