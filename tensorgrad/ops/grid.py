"""Images read at places that are computed: PyTorch's grid_sample, and the grids of affine maps."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from tensorgrad.dtypes import i32
from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.core import TensorLike, cast, in_f32, meet, tensor
from tensorgrad.ops.indexing import taken_at
from tensorgrad.ops.matmul import matmul
from tensorgrad.ops.reduce import require_float
from tensorgrad.ops.views import expand_dims, reshape, swapaxes
from tensorgrad.shape import fail
from tensorgrad.tensor import Tensor


def affine_grid(theta: TensorLike, size: Sequence[int], align_corners: bool = False) -> Tensor:
    """The places that affine maps read images at, for `grid_sample`: `[N, H, W, 2]`.

    Args:
        theta: matrices `[N, 2, 3]`, from places (x, y, 1) of the result to those of the input, from -1 to 1.
        size: of the result, `(N, C, H, W)`.
        align_corners: whether -1 and 1 are the middles of the corner elements, not their outer edges.
    """
    theta, sizes = require_float("affine_grid", tensor(theta)), tuple(size)
    if len(sizes) != 4 or theta.shape != (sizes[0], 2, 3):
        fail(f"affine_grid: expected theta [N, 2, 3] and a size (N, C, H, W), got {theta.type} and {sizes}")
    ys, xs = (_line(n, align_corners) for n in sizes[2:])
    places = np.stack([*np.meshgrid(xs, ys), np.ones((len(ys), len(xs)))], -1).astype(np.float32)
    product = matmul(places.reshape(-1, 3), swapaxes(theta, 1, 2))
    return reshape(product, sizes[0], *sizes[2:], 2)


def _line(n: int, corners: bool) -> np.ndarray:
    """The middles of n elements, from -1 to 1."""
    if corners and n > 1:
        return np.arange(n) * 2 / (n - 1) - 1
    return (np.arange(n) * 2 + 1) / max(n, 1) - 1


@in_f32
def grid_sample(
    input: TensorLike,
    grid: TensorLike,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Images at given places, as PyTorch's: `[N, C, H, W]` at `[N, H', W', 2]` are `[N, C, H', W']`.

    Args:
        grid: places (x, y), each from -1 to 1 along its axis.
        mode: `"bilinear"` or `"nearest"` (without gradient for the grid).
        padding_mode: what lies outside: `"zeros"`, the nearest element (`"border"`), or what is mirrored there
            (`"reflection"`).
        align_corners: whether -1 and 1 are the middles of the corner elements, not their outer edges.

    A gradient for the images looks for each of their elements at all places of the grid.
    """
    _, (x, grid) = meet(input, grid)
    require_float("grid_sample", x)
    if x.ndim != 4 or grid.ndim != 4 or grid.shape[-1] != 2 or grid.shape[0] != x.shape[0]:
        fail(f"grid_sample: expected images [N, C, H, W] and a grid [N, H', W', 2], got {x.type} and {grid.type}")
    if mode not in ("bilinear", "nearest") or padding_mode not in ("zeros", "border", "reflection"):
        fail(
            "grid_sample: mode is 'bilinear' or 'nearest' and padding_mode 'zeros', 'border' or 'reflection', "
            f"got {mode!r} and {padding_mode!r}"
        )
    rows, columns = x.shape[2:]
    if not rows * columns:
        fail(f"grid_sample: there is nothing to read in {x.type}")
    corners = bool(align_corners)
    across, down = (_place(grid[..., a], n, padding_mode, corners) for a, n in ((0, columns), (1, rows)))
    if mode == "nearest":
        return _read(x, ew.round(down), ew.round(across))
    top, left = ew.floor(down), ew.floor(across)
    low, right = down - ew.stop_gradient(top), across - ew.stop_gradient(left)
    return functools.reduce(
        ew.add,
        (
            _read(x, top + i, left + j) * expand_dims((low if i else 1 - low) * (right if j else 1 - right), 1)
            for i in (0, 1)
            for j in (0, 1)
        ),
    )


def _place(at: Tensor, n: int, padding: str, corners: bool) -> Tensor:
    """Places from -1 to 1 counted in elements."""
    place = (at + 1) * ((n - 1) / 2) if corners else ((at + 1) * n - 1) * 0.5
    if padding == "reflection":
        # mirrored at the ends as often as it takes
        first, span = (0.0, n - 1) if corners else (-0.5, n)
        if not span:
            return place * 0
        off = ew.remainder(ew.abs(place - first), 2.0 * span)
        place = ew.where(ew.greater(off, span), 2.0 * span - off, off) + first
    return place if padding == "zeros" else ew.clamp(place, 0, n - 1)


def _read(x: Tensor, row: Tensor, column: Tensor) -> Tensor:
    """The elements at whole places `[N, H', W']`, 0 outside."""
    images, channels, rows, columns = x.shape
    inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
    flat = ew.where(inside, cast(row, i32) * columns + cast(column, i32), 0)
    found = taken_at(reshape(x, images, channels, rows * columns), flat, 2, batch=1)
    return ew.where(expand_dims(inside, 1), found, 0)
