"""Elements added around a tensor: constants, mirrored, repeated at the ends, or as if it went round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorgrad.ops.arrange import tile
from tensorgrad.ops.core import TensorLike, broadcast_to, tensor
from tensorgrad.ops.joining import concat
from tensorgrad.ops.views import flip, narrow, pad_ends
from tensorgrad.shape import fail, show_shape
from tensorgrad.tensor import Tensor

_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}
"""NumPy's names of the modes, and PyTorch's."""


def pad(x: TensorLike, pad_width: Any, value: float = 0, mode: str = "constant") -> Tensor:
    """Elements added around a tensor, with NumPy's widths; PyTorch's order is `nn.functional.pad`.

    Args:
        pad_width: a number, one `(before, after)` for all axes, or one pair an axis, as in NumPy.
        value: what the new elements are.
        mode: `"constant"`, or instead of constants the elements mirrored at the first and last one (`"reflect"`),
            the ends repeated (`"edge"`), or those of the other end (`"wrap"`).

    >>> import tensorgrad as tg
    >>> tg.sync(tg.jit(lambda x: tg.pad(x, (2, 1), mode="reflect"), device="numpy")([1, 2, 3]))
    array([3, 2, 1, 2, 3, 2], dtype=int32)
    """
    x = tensor(x)
    try:
        widths = np.broadcast_to(np.asarray(pad_width, dtype=np.int64), (x.ndim, 2))
    except ValueError:
        fail(f"pad: pad_width {pad_width} is not a number, a pair, or a pair for each of {x.ndim} axes")
    if (widths < 0).any():
        fail(f"pad: pad_width {pad_width} is negative; slice to remove elements")
    if mode not in _MODES:
        fail(f"pad: mode is one of {', '.join(map(repr, _MODES))}, got {mode!r}")
    return _padded(x, [(int(low), int(high)) for low, high in widths], _MODES[mode], value)


def pad_from_last(input: TensorLike, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """PyTorch's `nn.functional.pad`: numbers before and after each axis, the last axis first.

    Args:
        pad: `(before the last, after the last, before the one in front of it, ...)`; negative ones cut elements off.
        mode: `"constant"`, `"reflect"`, `"replicate"` or `"circular"`.
        value: of the new elements with `"constant"`, 0 by default.
    """
    x, ends = tensor(input), list(pad)
    if len(ends) % 2 or len(ends) > 2 * x.ndim:
        fail(f"pad: expected two numbers for each padded axis of {x.type}, got {ends}")
    if mode not in _MODES.values():
        fail(f"pad: mode is one of {', '.join(map(repr, _MODES.values()))}, got {mode!r}")
    if mode != "constant" and value is not None:
        fail(f"pad: mode {mode!r} takes no value, got {value}")
    pairs = [(ends[n], ends[n + 1]) for n in range(0, len(ends), 2)]
    return _padded(x, [(0, 0)] * (x.ndim - len(pairs)) + pairs[::-1], mode, value or 0)


def _padded(x: Tensor, widths: Sequence[tuple[int, int]], mode: str, value: float) -> Tensor:
    if mode == "constant":
        return pad_ends(x, tuple((low, high, 0) for low, high in widths), value)
    x = pad_ends(x, tuple((min(low, 0), min(high, 0), 0) for low, high in widths), 0)
    for axis, (low, high) in enumerate(widths):
        x = _extended(x, axis, max(low, 0), max(high, 0), mode) if low > 0 or high > 0 else x
    return x


def _extended(x: Tensor, axis: int, low: int, high: int, mode: str) -> Tensor:
    """One axis continued at both ends by its own elements."""
    n = x.shape[axis]
    longest = {"reflect": n - 1, "circular": n}.get(mode, max(low, high) if n else 0)
    if max(low, high) > longest:
        fail(f"pad: {mode} padding of {low} and {high} along axis {axis} of {show_shape(x.shape)} is at most {longest}")
    if mode == "circular":
        return narrow(tile(x, *(3 if a == axis else 1 for a in range(x.ndim))), axis, n - low, low + n + high)
    if mode == "reflect":
        before, after = (flip(narrow(x, axis, start, size), axis) for start, size in ((1, low), (n - 1 - high, high)))
    else:
        before, after = (
            broadcast_to(narrow(x, axis, at, 1), *(size if a == axis else m for a, m in enumerate(x.shape)))
            for at, size in ((0, low), (n - 1, high))
        )
    return concat([before, x, after], axis)
