"""Draws from a distribution over an axis, and random orders; every device draws the same, but for rounded logarithms.

Source of the maximum: Gumbel, Statistical theory of extreme values (1954); of drawing without replacement by it:
Kool, van Hoof and Welling, Stochastic beams and where to find them (ICML 2019).
"""

from __future__ import annotations

from typing import Any

from tensorgrad.checks import is_whole
from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.core import TensorLike, tensor
from tensorgrad.ops.indexing import take
from tensorgrad.ops.random import random_bits, uniform
from tensorgrad.ops.ranking import searchsorted
from tensorgrad.ops.reduce import argmax, require_float
from tensorgrad.ops.scan import axis_of, cumsum
from tensorgrad.ops.sorting import argsort, topk
from tensorgrad.ops.views import narrow
from tensorgrad.shape import check_axis, fail
from tensorgrad.tensor import Tensor


def randperm(n: int) -> Tensor:
    """The whole numbers below `n` in random order, i32; another order at every step.

    Raises:
        ShapeError: `n` is negative.

    >>> import tensorgrad as tg
    >>> sorted(tg.sync(tg.jit(lambda: tg.randperm(5), device="numpy")()).tolist())
    [0, 1, 2, 3, 4]
    """
    if n < 0:
        fail(f"randperm: there are no {n} numbers")
    return argsort(random_bits(n))


def permutation(x: TensorLike, axis: int = 0) -> Tensor:
    """The slices of a tensor along an axis in random order, as NumPy's; of a number, `randperm`."""
    if is_whole(x):
        return randperm(x)
    x = tensor(x)
    axis = check_axis("permutation", axis, x.ndim)
    return take(x, randperm(x.shape[axis]), axis) if x.shape else x


def _gumbel(shape: tuple[int, ...]) -> Tensor:
    """Numbers of Gumbel's distribution; of 0, which is drawn once in 2**23 times, -inf: it is never chosen."""
    return -ew.log(-ew.log(uniform(shape)))


def categorical(logits: TensorLike, axis: int = -1, **kw: Any) -> Tensor:
    """A random position along an axis, chosen with probability `softmax(logits)`, i32.

    Args:
        logits: unnormalized log-probabilities; -inf is never chosen.
        axis: which; `dim=` is accepted.

    Raises:
        ShapeError: there is no such axis, or it has no elements.
        DtypeError: a tensor that is not of floats.

    >>> import tensorgrad as tg
    >>> tg.sync(tg.jit(tg.categorical, device="numpy")([0.0, 100.0, 0.0]))
    array(1, dtype=int32)
    """
    x, axis = axis_of("categorical", require_float("categorical", tensor(logits)), axis, kw)
    return argmax(x + _gumbel(x.shape), axis)


def multinomial(x: TensorLike, num_samples: int, replacement: bool = False) -> Tensor:
    """Random positions along the last axis, chosen with probabilities in proportion to the elements, i32.

    Args:
        x: `[n]` or `[rows, n]`, not negative, and not all 0 in a row; they need not sum to 1.
        num_samples: how many positions for each row.
        replacement: whether a position may be drawn again.

    Returns:
        `[num_samples]` or `[rows, num_samples]`.

    Raises:
        ShapeError: another number of axes, no elements, or fewer elements than are drawn without replacement.
        DtypeError: a tensor that is not of floats.

    >>> import tensorgrad as tg
    >>> tg.sync(tg.jit(lambda x: tg.multinomial(x, 3, replacement=True), device="numpy")([0.0, 4.0, 0.0]))
    array([1, 1, 1], dtype=int32)
    """
    x = ew.stop_gradient(require_float("multinomial", tensor(x)))
    if x.ndim not in (1, 2) or x.shape[-1] == 0 or num_samples < 1:
        fail(f"multinomial: draws 1 or more from [n] or [rows, n] probabilities, got {num_samples} from {x.type}")
    n = x.shape[-1]
    if not replacement:
        if num_samples > n:
            fail(f"multinomial: {num_samples} different positions cannot be drawn from {n}")
        return topk(ew.log(x) + _gumbel(x.shape), num_samples).indices
    ends = cumsum(x, -1)
    places = uniform((*x.shape[:-1], num_samples)) * narrow(ends, -1, n - 1, 1)
    return ew.minimum(searchsorted(ends, places, right=True), n - 1)
