"""What stands between brackets: NumPy's and PyTorch's indexing, with shapes that are known while tracing.

Slices, whole numbers, `None` and `...` make a view. Arrays of integers then pick along their axes at once: these
axes are made one, the arrays are made one flat index, and a single gather reads in place.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from tensorgrad.callsite import call_site
from tensorgrad.dtypes import bool_, i32, u32
from tensorgrad.errors import DtypeError
from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.core import cast, tensor
from tensorgrad.ops.indexing import inside, integers, taken_at
from tensorgrad.ops.views import cut, permute, reshape
from tensorgrad.shape import broadcast_trailing, fail, shape_size, show_shape
from tensorgrad.tensor import Tensor
from tensorgrad.trace import expect_index

Places = Tensor | np.ndarray
"""Integers for an axis: of a tensor, or known."""


def getitem(x: Tensor, key: Any) -> Tensor:
    """`x[key]`: integers, slices with any step, `...`, None, and any number of integer tensors or arrays.

    Arrays broadcast to a common shape and pick elements together, as in NumPy. The axes of that shape stand where
    the arrays stood if these stand side by side, and else in front; a whole number beside them does not count as
    one, as in PyTorch. An array that covers its axis, `x[tg.arange(n), labels]`, costs nothing: only rows are read.

    Indices of tensors count from the end where they are negative. One that is out of range gives NaN (0 for integers)
    and gets no gradient, since on a GPU there is nobody to raise an error; those known while tracing are checked.
    A boolean NumPy array selects what it names.

    Raises:
        ShapeError: a known index out of range, more indices than axes, or arrays that do not broadcast.
        DtypeError: a boolean mask that is a tensor, whose result has no static shape (use `tg.where`).

    >>> import tensorgrad as tg
    >>> def picked():
    ...     x, labels = tg.tensor_input("x", (8, 10)), tg.tensor_input("labels", (8,), tg.i32)
    ...     return x[tg.arange(8), labels]
    >>> tg.trace(picked).type(tg.trace(picked).outputs[0])
    f32[8]
    """
    keys = _expanded(x, key)
    bounds: list[tuple[int, int, int]] = []
    shape: list[int] = []
    picks: list[tuple[int, Places]] = []
    for k in keys:
        if k is None:
            shape.append(1)
            continue
        axis = len(bounds)
        n = x.shape[axis]
        if isinstance(k, slice):
            start, stop, step = _indices(k, n)
            size = len(range(start, stop, step))
            bounds.append((start if size else 0, size, step))
            shape.append(size)
        elif isinstance(k, Tensor | np.ndarray):
            known = k if isinstance(k, Tensor) else inside("getitem", k, x, axis)
            if isinstance(k, Tensor):
                expect_index(k, n, f"what it indexes has {n} places", first=-n, silent=not x.dtype.is_float)
            picks.append((len(shape), known))
            bounds.append((0, n, 1))
            shape.append(n)
        else:
            bounds.append((_whole(k, n, axis, x), 1, 1))
    out = reshape(cut(x, tuple(bounds)), *shape)
    return _picked(out, picks) if picks else out


def _indices(k: slice, n: int) -> tuple[int, int, int]:
    try:
        return k.indices(n)
    except (TypeError, ValueError) as error:
        fail(f"getitem: {k} is no slice of an axis: {error}")


def _expanded(x: Tensor, key: Any) -> list[Any]:
    """The key as a list with an entry for each axis (None for new ones), lists and masks as arrays of integers."""
    keys = [_plain(k) for k in (key if isinstance(key, tuple) else (key,))]
    named = sum(map(_consumed, keys))
    if named > x.ndim:
        fail(f"getitem: {named} indices for {show_shape(x.shape)}")
    dots = [n for n, k in enumerate(keys) if k is Ellipsis]
    if len(dots) > 1:
        fail("getitem: only one ... may stand in an index")
    at = dots[0] if dots else len(keys)
    keys[at : at + 1] = [slice(None)] * (x.ndim - named)
    out, axis = list[Any](), 0
    for k in keys:
        if _is_mask(k):
            axes = x.shape[axis : axis + k.ndim]
            if k.shape != axes:
                fail(f"getitem: a mask of shape {show_shape(k.shape)} does not fit axes of sizes {show_shape(axes)}")
            out += k.nonzero()
        else:
            out.append(k)
        axis += _consumed(k)
    return out


def _plain(k: Any) -> Any:
    """An entry of a key, with lists as arrays and arrays of one number as numbers."""
    if isinstance(k, Tensor) and k.dtype is bool_:
        refuse_mask("x[mask]")
    found = np.asarray(k) if isinstance(k, list | tuple | np.ndarray) else k
    if not isinstance(found, np.ndarray):
        return found
    return found if found.ndim else found.item()


def _is_mask(k: Any) -> bool:
    return isinstance(k, np.ndarray) and k.dtype == bool


def _consumed(k: Any) -> int:
    """Axes that an entry of a key stands for."""
    return k.ndim if _is_mask(k) else int(k is not None and k is not Ellipsis)


def refuse_mask(what: str) -> NoReturn:
    """The error of a selection by a tensor of bools."""
    raise DtypeError(
        f"{what}: a boolean mask selects a number of elements that is not known while tracing; "
        "use tg.where(mask, x, other), or multiply by the mask",
        call_site(),
    )


def _whole(k: Any, n: int, axis: int, x: Tensor) -> int:
    if isinstance(k, bool | np.bool_) or not hasattr(k, "__index__"):
        fail(f"getitem: {k!r} is no index for axis {axis} of {show_shape(x.shape)}")
    at = int(k.__index__())
    if not -n <= at < n:
        fail(f"getitem: index {at} is out of range for axis {axis} of {show_shape(x.shape)}")
    return at % n


def _picked(x: Tensor, picks: Sequence[tuple[int, Places]]) -> Tensor:
    """The elements at indices along several axes at once."""
    axes, keys = [axis for axis, _ in picks], [k for _, k in picks]
    rest = [a for a in range(x.ndim) if a not in axes]
    # single places are taken out first: they keep no axis, and no two arrays apart
    arrays = [axis for axis, k in picks if k.ndim] or axes
    together = all(a in axes for a in range(arrays[0], arrays[-1]))
    front = [a for a in rest if together and a < arrays[0]]
    row = _row_of(x, axes, keys)
    if row is not None:
        # the array counts the rows of the result: a gather within each of them
        keys = [k for n, k in enumerate(keys) if n != row]
        inner = [a for a in axes if a != axes[row]]
        x = permute(x, axes[row], *front, *inner, *(a for a in rest if a not in front))
        flat = tensor(flat_index("getitem", [x.shape[1 + len(front) + n] for n in range(len(inner))], keys))
        lead = 1 + len(front)
        x = reshape(x, *x.shape[:lead], -1 if x.size else 0, *x.shape[lead + len(inner) :])
        out = taken_at(x, flat, lead, batch=1)
        return permute(out, *range(1, lead), 0, *range(lead, out.ndim))
    flat = tensor(flat_index("getitem", [x.shape[a] for a in axes], keys))
    sizes = [x.shape[a] for a in axes]
    x = permute(x, *front, *axes, *(a for a in rest if a not in front))
    x = reshape(x, *x.shape[: len(front)], shape_size(sizes), *x.shape[len(front) + len(axes) :])
    return taken_at(x, flat, len(front))


def flat_index(op: str, sizes: Sequence[int], keys: Sequence[Places]) -> Places:
    """Indices along axes of these sizes as one into their product; negative ones count from the end.

    What is out of range along any axis is so in the result. Known indices were checked before.
    """
    shape = broadcast_trailing(*(k.shape for k in keys))
    if shape is None:
        fail(f"{op}: index arrays of shapes {', '.join(show_shape(k.shape) for k in keys)} do not broadcast")
    if len(keys) == 1 and isinstance(keys[0], Tensor):
        return from_front(integers(op, keys[0]), sizes[0])
    flat: Any = np.zeros(shape, np.int32)
    valid = list[Tensor]()
    stride = shape_size(sizes)
    for k, n in zip(keys, sizes, strict=True):
        stride //= max(n, 1)
        if isinstance(k, Tensor):
            place = from_front(integers(op, k), n)
            valid.append((place < n) & (place >= 0) if place.dtype is i32 else place < n)
            k = cast(place, i32)
        elif k.dtype.kind not in "iu":
            raise DtypeError(f"{op}: indices must be integers, got an array of {k.dtype}", call_site())
        flat = flat + k * stride
    return ew.where(functools.reduce(ew.bitwise_and, valid), flat, -1) if valid else flat


def from_front(indices: Tensor, n: int) -> Tensor:
    """Negative indices counted from the end of an axis of size `n`."""
    return indices if indices.dtype is u32 else ew.where(indices < 0, indices + n, indices)


def _row_of(x: Tensor, axes: Sequence[int], keys: Sequence[Places]) -> int | None:
    """Which of several arrays numbers the rows: it is 0, 1, ... along the first axis of the arrays' common shape."""
    shape = broadcast_trailing(*(k.shape for k in keys))
    if shape is None or len(keys) < 2 or not shape:
        return None
    whole = [k for k in keys if k.ndim == len(shape)]
    for n, (axis, k) in enumerate(zip(axes, keys, strict=True)):
        line = k.shape == (shape[0], *(1,) * (len(shape) - 1)) and shape[0] == x.shape[axis]
        others = [o for o in keys if o is not k]
        if line and _counts(k) and len(whole) == len(keys) and all(o.shape[0] == shape[0] for o in others):
            return n
    return None


def _counts(k: Places) -> bool:
    """Whether it is known to hold 0, 1, ... in order."""
    if isinstance(k, np.ndarray):
        return bool((k.reshape(-1) == np.arange(k.size)).all())
    node = k.graph.node(k.value)
    while node.op == "reshape":
        node = k.graph.node(node.inputs[0])
    return node.op == "iota" and node.type.size == k.size
