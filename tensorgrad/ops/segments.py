"""Sums of what belongs together: updates in the order of their indices, added up segment by segment.

The gradient of a large table's lookups, `scatter_add`, compares every element with every index where those are few.
Where they are many, the indices are sorted, and each one's updates are neighbours: a recurrence that begins anew
at each other index adds them up. No atomics, and the sums are the same at every run.
"""

from __future__ import annotations

import math

from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.core import cast
from tensorgrad.ops.indexing import iota, taken_at
from tensorgrad.ops.ranking import searchsorted
from tensorgrad.ops.scan import linear_scan, pad_last
from tensorgrad.ops.sorting import argsort
from tensorgrad.ops.views import reshape
from tensorgrad.tensor import Tensor


def summed_in_order(updates: Tensor, indices: Tensor, axis: int, size: int) -> Tensor:
    """Zeros with updates added at positions of an axis: `scatter_add`'s values, without its gradient.

    Args:
        updates: `[..., *indices.shape, ...]` with the indices' axes at `axis`.
        size: of the axis that replaces them; indices outside are dropped.
    """
    before, after = updates.shape[:axis], updates.shape[axis + indices.ndim :]
    rows = reshape(updates, math.prod(before), indices.size, math.prod(after))
    flat = reshape(indices, -1)
    order = argsort(flat)
    found = taken_at(flat, order, 0)
    again = pad_last(ew.equal(found[1:], found[:-1]), 1, 0, False)
    totals = linear_scan(reshape(cast(again, updates.dtype), -1, 1), taken_at(rows, order, 1), 1)
    # a segment's sum stands at its last element
    line = cast(iota((size,), 0), indices.dtype)
    last = ew.maximum(searchsorted(found, line, right=True) - 1, 0)
    hit = ew.equal(taken_at(found, last, 0), line)
    return reshape(ew.where(reshape(hit, -1, 1), taken_at(totals, last, 1), 0), *before, size, *after)
