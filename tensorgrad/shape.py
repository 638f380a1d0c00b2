"""Shapes: broadcasting, and the rule of each operation.

A rule takes the operands' shapes and gives the result's, or raises ShapeError with the
operation, the shapes, the rule that they break and the user's line. The rules are
NumPy's: sizes may be 0, axes may be negative, broadcasting aligns at the last axis.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, SupportsIndex

from tensorgrad.callsite import CallSite, call_site
from tensorgrad.dtypes import Shape
from tensorgrad.errors import ShapeError

__all__ = ["ShapeError", "broadcast_trailing", "shape_size", "shapes_equal", "show_shape"]


def fail(message: str, site: CallSite | None = None) -> NoReturn:
    """Raises ShapeError with the user's line (the caller's, where no site is given)."""
    raise ShapeError(message, site or call_site())


def shapes_equal(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether two shapes have the same sizes in the same order.

    >>> shapes_equal((2, 3), [2, 3])
    True
    """
    return tuple(a) == tuple(b)


def shape_size(shape: Sequence[int]) -> int:
    """The number of elements.

    >>> shape_size((2, 3)), shape_size(())
    (6, 1)
    """
    return math.prod(shape)


def show_shape(shape: Sequence[int]) -> str:
    """A shape as messages print it.

    >>> show_shape((2, 3))
    '[2, 3]'
    """
    return f"[{', '.join(map(str, shape))}]"


def broadcast_trailing(*shapes: Sequence[int]) -> Shape | None:
    """The common shape by NumPy's rule, aligned at the last axis, or None if there is none.

    >>> broadcast_trailing((4, 1, 3), (2, 1))
    (4, 2, 3)
    """
    out: list[int] = []
    for i in range(1, max(map(len, shapes), default=0) + 1):
        sizes = {s[-i] for s in shapes if len(s) >= i} - {1}
        if len(sizes) > 1:
            return None
        out.append(sizes.pop() if sizes else 1)
    return tuple(reversed(out))


def whole(op: str, what: str, value: SupportsIndex, site: CallSite | None = None) -> int:
    """A whole number of any type, NumPy's among them, as an int."""
    try:
        return operator.index(value)
    except TypeError:
        fail(f"{op}: {what} must be a whole number, got {value!r}", site)


def one_or_more(value: Any) -> tuple[Any, ...]:
    """What may be given as one, or as a sequence of them."""
    several = isinstance(value, Iterable) and getattr(value, "ndim", 1) > 0
    return tuple(value) if several else (value,)


def check_axis(op: str, axis: SupportsIndex, ndim: int, site: CallSite | None = None) -> int:
    """The axis counted from the front."""
    axis = whole(op, "an axis", axis, site)
    if not -ndim <= axis < ndim:
        fail(f"{op}: axis {axis} is out of range for a tensor with {ndim} axes", site)
    return axis % ndim if ndim else 0


def check_axes(op: str, axes: int | Sequence[int] | None, ndim: int, site: CallSite | None = None) -> tuple[int, ...]:
    """The axes counted from the front and sorted; None is all of them."""
    if axes is None:
        return tuple(range(ndim))
    found = [check_axis(op, a, ndim, site) for a in one_or_more(axes)]
    if len(set(found)) != len(found):
        fail(f"{op}: an axis is named twice in {one_or_more(axes)}", site)
    return tuple(sorted(found))


# One rule an operation ---------------------------------------------------------------


def infer_elementwise_binop(op: str, a: Shape, b: Shape, site: CallSite | None = None) -> Shape:
    """Two operands broadcast to a common shape."""
    out = broadcast_trailing(a, b)
    if out is None:
        fail(
            f"{op}: shapes {show_shape(a)} and {show_shape(b)} do not broadcast: counted from the last axis, "
            "sizes must be equal or 1",
            site,
        )
    return out


def infer_unary(op: str, a: Shape, site: CallSite | None = None) -> Shape:
    """One operand keeps its shape."""
    return tuple(a)


def infer_where(op: str, condition: Shape, a: Shape, b: Shape, site: CallSite | None = None) -> Shape:
    """A condition and two values broadcast to a common shape."""
    out = broadcast_trailing(condition, a, b)
    if out is None:
        fail(
            f"{op}: condition {show_shape(condition)} and values {show_shape(a)} and {show_shape(b)} do not "
            "broadcast: counted from the last axis, sizes must be equal or 1",
            site,
        )
    return out


def infer_reduce(
    op: str, a: Shape, axes: int | Sequence[int] | None, keepdims: bool = False, site: CallSite | None = None
) -> Shape:
    """The reduced axes go, or stay with size 1."""
    gone = check_axes(op, axes, len(a), site)
    if keepdims:
        return tuple(1 if i in gone else n for i, n in enumerate(a))
    return tuple(n for i, n in enumerate(a) if i not in gone)


def infer_mean_last(op: str, a: Shape, site: CallSite | None = None) -> Shape:
    """A mean over the last axis, which stays with size 1."""
    if not a:
        fail(f"{op}: there is no last axis in a 0-d tensor", site)
    return infer_reduce(op, a, -1, True, site)


def infer_sum_last(op: str, a: Shape, site: CallSite | None = None) -> Shape:
    """A sum over the last axis, which goes."""
    if not a:
        fail(f"{op}: there is no last axis in a 0-d tensor", site)
    return infer_reduce(op, a, -1, False, site)


def infer_reshape(op: str, a: Shape, shape: Sequence[int], site: CallSite | None = None) -> Shape:
    """The same number of elements; one size may be -1 and is worked out."""
    sizes = tuple(int(n) for n in shape)
    if any(n < -1 for n in sizes):
        fail(f"{op}: {show_shape(sizes)} has a negative size; only one -1 may stand for an unknown", site)
    if sizes.count(-1) > 1:
        fail(f"{op}: {show_shape(sizes)} has more than one -1", site)
    size, known = shape_size(a), shape_size([n for n in sizes if n != -1])
    if -1 in sizes:
        if known == 0 or size % known:
            fail(
                f"{op}: {show_shape(a)} has {size} elements, which the known sizes of {show_shape(sizes)} "
                f"(product {known}) do not divide",
                site,
            )
        sizes = tuple(size // known if n == -1 else n for n in sizes)
    elif known != size:
        fail(f"{op}: {show_shape(a)} has {size} elements, {show_shape(sizes)} has {known}", site)
    return sizes


def infer_transpose(op: str, a: Shape, perm: Sequence[int], site: CallSite | None = None) -> Shape:
    """The axes in another order."""
    if len(perm) != len(a):
        fail(f"{op}: {show_shape(a)} has {len(a)} axes, the permutation {tuple(perm)} names {len(perm)}", site)
    axes = [check_axis(op, p, len(a), site) for p in perm]
    if len(set(axes)) != len(axes):
        fail(f"{op}: the permutation {tuple(perm)} names an axis twice", site)
    return tuple(a[p] for p in axes)


def _inner(op: str, a: Shape, b: Shape, site: CallSite | None) -> None:
    if a[-1] != b[-2]:
        fail(
            f"{op}: the inner sizes of {show_shape(a)} @ {show_shape(b)} differ: the last axis of the left operand "
            f"is {a[-1]}, the second to last of the right one is {b[-2]}",
            site,
        )


def infer_matmul(op: str, a: Shape, b: Shape, site: CallSite | None = None) -> Shape:
    """`[..., M, K] @ [..., K, N]` with the leading axes broadcast; 1-d operands as in NumPy."""
    if not a or not b:
        fail(f"{op}: needs operands with at least one axis, got {show_shape(a)} and {show_shape(b)}", site)
    left, right = (1, *a) if len(a) == 1 else a, (*b, 1) if len(b) == 1 else b
    _inner(op, left, right, site)
    batch = broadcast_trailing(left[:-2], right[:-2])
    if batch is None:
        fail(f"{op}: the leading axes of {show_shape(a)} and {show_shape(b)} do not broadcast", site)
    out = (*batch, left[-2], right[-1])
    if len(b) == 1:
        out = out[:-1]
    return (*out[:-2], *out[-1:]) if len(a) == 1 and len(b) > 1 else out[: len(out) - (len(a) == 1)]


def infer_matmul_batched(op: str, a: Shape, b: Shape, site: CallSite | None = None) -> Shape:
    """`[..., M, K] @ [..., K, N]` with equal leading axes, as the matmul primitive takes them."""
    if len(a) < 2 or len(b) < 2:
        fail(f"{op}: needs operands with at least two axes, got {show_shape(a)} and {show_shape(b)}", site)
    if a[:-2] != b[:-2]:
        fail(f"{op}: the leading axes of {show_shape(a)} and {show_shape(b)} differ", site)
    _inner(op, a, b, site)
    return (*a[:-1], b[-1])


def infer_one_hot(op: str, indices: Shape, depth: int, site: CallSite | None = None) -> Shape:
    """A new last axis of `depth` classes."""
    if depth <= 0:
        fail(f"{op}: the number of classes must be positive, got {depth}", site)
    return (*indices, depth)


def infer_where_causal(op: str, a: Shape, site: CallSite | None = None) -> Shape:
    """The last two axes, queries and keys, have one size."""
    if len(a) < 2 or a[-1] != a[-2]:
        fail(f"{op}: a causal mask needs the last two axes to have one size, got {show_shape(a)}", site)
    return tuple(a)


def infer_slice(op: str, a: Shape, bounds: Sequence[tuple[int, int, int]], site: CallSite | None = None) -> Shape:
    """`(start, size, step)` for each axis; every element read lies inside."""
    if len(bounds) != len(a):
        fail(f"{op}: {show_shape(a)} has {len(a)} axes, {len(bounds)} slices were given", site)
    for axis, (n, (start, size, step)) in enumerate(zip(a, bounds, strict=True)):
        last = start + (size - 1) * step
        if size < 0 or (size > 0 and not (0 <= start < n and 0 <= last < n)):
            fail(f"{op}: elements {start} to {last} of axis {axis} are not all inside its size {n}", site)
    return tuple(size for _, size, _ in bounds)


def infer_slice_last_range(op: str, a: Shape, start: int, end: int, site: CallSite | None = None) -> Shape:
    """`[start, end)` of the last axis; an empty range is legal."""
    if not a:
        fail(f"{op}: there is no last axis in a 0-d tensor", site)
    if not 0 <= start <= end <= a[-1]:
        fail(f"{op}: the range [{start}, {end}) is not inside the last axis of {show_shape(a)}", site)
    return (*a[:-1], end - start)


def infer_broadcast_to(op: str, a: Shape, shape: Sequence[int], site: CallSite | None = None) -> Shape:
    """Axes of size 1, and missing leading axes, repeat."""
    out = tuple(int(n) for n in shape)
    if broadcast_trailing(a, out) != out:
        fail(
            f"{op}: {show_shape(a)} does not broadcast to {show_shape(out)}: counted from the last axis, "
            "a size must be equal to the target's or 1",
            site,
        )
    return out


def infer_sum_to_shape(op: str, a: Shape, shape: Sequence[int], site: CallSite | None = None) -> Shape:
    """The reverse of broadcasting: `shape` must broadcast to `a`."""
    out = tuple(int(n) for n in shape)
    if broadcast_trailing(a, out) != tuple(a):
        fail(f"{op}: {show_shape(a)} is not what {show_shape(out)} broadcasts to, so it does not sum to it", site)
    return out


def infer_relu_grad(op: str, x: Shape, dy: Shape, site: CallSite | None = None) -> Shape:
    """An input and the gradient of its output have one shape."""
    if not shapes_equal(x, dy):
        fail(f"{op}: the input {show_shape(x)} and the output's gradient {show_shape(dy)} must have one shape", site)
    return tuple(x)


def infer_concat(op: str, shapes: Sequence[Shape], axis: int, site: CallSite | None = None) -> Shape:
    """Sizes add up along `axis` and agree elsewhere."""
    if not shapes:
        fail(f"{op}: needs at least one tensor", site)
    first, axis = shapes[0], check_axis(op, axis, len(shapes[0]), site)
    for s in shapes:
        if len(s) != len(first) or any(i != axis and n != m for i, (n, m) in enumerate(zip(s, first, strict=False))):
            fail(f"{op}: {show_shape(first)} and {show_shape(s)} differ in an axis other than {axis}", site)
    return tuple(sum(s[i] for s in shapes) if i == axis else n for i, n in enumerate(first))


def infer_gather(op: str, x: Shape, indices: Shape, axis: int, batch: int = 0, site: CallSite | None = None) -> Shape:
    """`axis` of `x` is replaced by the axes of the indices but the first `batch`, which `x` has too."""
    axis = check_axis(op, axis, len(x), site)
    if not batch <= axis or x[:batch] != indices[:batch]:
        fail(f"{op}: {show_shape(x)} and the indices {show_shape(indices)} differ in their first {batch} axes", site)
    return (*x[:axis], *indices[batch:], *x[axis + 1 :])
