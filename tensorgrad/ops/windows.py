"""Sliding windows over trailing axes, and their sum back: what convolutions and pools are made of.

`window` is a view: one address is the sum of where the window begins and of the place inside it. Where
padding is read, a comparison stands before the load, so nothing is copied. `fold` is its adjoint. It gathers:
each element adds up the windows that cover it, always in the same order. Each is the other's gradient.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tensorgrad.dtypes import Shape
from tensorgrad.graph import TensorType
from tensorgrad.lower.expr import Expr, below, const, expr, guarded, reduce
from tensorgrad.lower.index import Index, Indices, Var, constant, of_var, unravel
from tensorgrad.ops.core import TensorLike, tensor
from tensorgrad.ops.reduce import fresh_var
from tensorgrad.primitive import primitive
from tensorgrad.shape import fail, show_shape
from tensorgrad.tensor import Tensor
from tensorgrad.trace import bind

Numbers = int | Sequence[int]
"""A number for every axis, or one for each."""


class Slide(NamedTuple):
    """How windows move along one axis.

    Attributes:
        size: elements of a window.
        stride: from one window to the next.
        dilation: from one element of a window to the next.
        low, high: places before and after the axis, which hold the padding; negative ones cut off.
    """

    size: int
    stride: int = 1
    dilation: int = 1
    low: int = 0
    high: int = 0

    @property
    def span(self) -> int:
        """Places that a window extends over."""
        return self.dilation * (self.size - 1) + 1

    def fits(self, length: int) -> bool:
        """Whether an axis of `length` elements has room for a window."""
        return length + self.low + self.high >= self.span

    def count(self, length: int) -> int:
        """Windows over an axis of `length` elements."""
        return (length + self.low + self.high - self.span) // self.stride + 1


Slides = tuple[Slide, ...]


def slides(
    op: str,
    size: Sequence[int],
    stride: Numbers = 1,
    dilation: Numbers = 1,
    padding: int | Sequence[Any] = 0,
) -> Slides:
    """The slides of as many axes as `size` has; numbers stand for all axes.

    Args:
        padding: a number, or for each axis a number or a pair (before, after).
    """
    rank = len(size)
    columns = [size, *(numbers(op, name, v, rank) for name, v in (("stride", stride), ("dilation", dilation)))]
    for name, values in zip(("kernel size", "stride", "dilation"), columns, strict=True):
        if any(v < 1 for v in values):
            fail(f"{op}: the {name} must be at least 1 along every axis, got {list(values)}")
    ends = list(padding) if isinstance(padding, Iterable) else [padding] * rank
    if len(ends) != rank:
        fail(f"{op}: padding {padding!r} has {len(ends)} entries for {rank} axes")
    pairs = [numbers(op, "padding before and after an axis", e, 2) for e in ends]
    return tuple(Slide(k, s, d, *p) for k, s, d, p in zip(*columns, pairs, strict=True))


def refuse_cut(op: str, moves: Slides) -> None:
    """Raises ShapeError for negative padding, which would cut off."""
    if any(min(s.low, s.high) < 0 for s in moves):
        fail(f"{op}: padding must not be negative, got {[(s.low, s.high) for s in moves]}; to cut off, take a slice")


def numbers(op: str, name: str, value: Numbers, rank: int) -> tuple[int, ...]:
    """A number for each of `rank` axes, from one for all or one for each."""
    try:
        found = tuple(map(operator.index, value if isinstance(value, Iterable) else [value] * rank))
    except TypeError:
        fail(f"{op}: {name} is made of whole numbers, got {value!r}")
    if len(found) != rank:
        fail(f"{op}: {name} {value!r} has {len(found)} numbers for {rank} axes")
    return found


# window ---------------------------------------------------------------------------------------


def _window_shape(x: TensorType, slides: Slides, value: float) -> TensorType:
    lead, sizes = _cut(x.shape, len(slides))
    for n, s in zip(sizes, slides, strict=True):
        if not s.fits(n):
            fail(
                f"window: {s.size} elements {s.dilation} apart extend over {s.span} places, "
                f"but an axis of {show_shape(x.shape)} has {n} and {s.low} + {s.high} of padding"
            )
    counts = (s.count(n) for n, s in zip(sizes, slides, strict=True))
    return TensorType((*lead, *counts, *(s.size for s in slides)), x.dtype)


def _cut(shape: Shape, rank: int) -> tuple[Shape, Shape]:
    if len(shape) < rank:
        fail(f"window: {show_shape(shape)} has fewer than {rank} axes")
    return shape[: len(shape) - rank], shape[len(shape) - rank :]


def _window_eval(xp: Any, x: Any, slides: Slides, value: float) -> Any:
    rank, lead = len(slides), x.ndim - len(slides)
    for i, s in enumerate(slides):
        # after i axes each became two: those of the windows before, this one, those of the places inside at the end
        axis, n = lead + i, x.shape[lead + i]
        at = np.arange(s.count(n))[:, None] * s.stride + np.arange(s.size) * s.dilation - s.low
        inside = (at >= 0) & (at < n)
        shown = xp.take(x, np.where(inside, at, 0), axis=axis) if n else xp.zeros(_split(x.shape, axis, at), x.dtype)
        shape = [1] * shown.ndim
        shape[axis : axis + 2] = at.shape
        shown = xp.where(inside.reshape(shape), shown, np.asarray(value, dtype=x.dtype))
        x = xp.moveaxis(shown, axis + 1, -1)
    assert x.ndim == lead + 2 * rank
    return x


def _split(shape: Shape, axis: int, at: np.ndarray) -> Shape:
    return (*shape[:axis], *at.shape, *shape[axis + 1 :])


def _window_grad(g: Tensor, out: Tensor, x: Tensor, slides: Slides, value: float) -> tuple[Tensor]:
    return (overlap_add(g, x.shape[x.ndim - len(slides) :], slides),)


def _window_lower(idx: Indices, x: Any, slides: Slides, value: float) -> Expr:
    lead = len(x.shape) - len(slides)
    places, tests = list(idx[:lead]), []
    for n, s, begin, inside in zip(x.shape[lead:], slides, idx[lead:], idx[lead + len(slides) :], strict=False):
        place = begin * s.stride + inside * s.dilation + -s.low
        places.append(place)
        tests.append(below(place, n))
    return guarded(tests, lambda: x(tuple(places)), const(value, x.dtype))


window_p = primitive(
    "window",
    shape=_window_shape,
    eval=_window_eval,
    grad=_window_grad,
    lower=_window_lower,
    view=True,
)


# fold -----------------------------------------------------------------------------------------


def _fold_shape(x: TensorType, sizes: Shape, slides: Slides) -> TensorType:
    rank = len(slides)
    lead = x.shape[: len(x.shape) - 2 * rank]
    wanted = (*(s.count(n) for n, s in zip(sizes, slides, strict=True)), *(s.size for s in slides))
    if len(x.shape) < 2 * rank or x.shape[len(lead) :] != wanted:
        fail(f"fold: windows {show_shape(x.shape)} do not come from axes {show_shape(sizes)}: expected {list(wanted)}")
    return TensorType((*lead, *sizes), x.dtype)


def _fold_eval(xp: Any, x: Any, sizes: Shape, slides: Slides) -> Any:
    rank = len(slides)
    lead = x.shape[: x.ndim - 2 * rank]
    counts = x.shape[len(lead) : len(lead) + rank]
    # room for every window, and what lies outside the axes is cut off at the end
    ends = [max((c - 1) * s.stride + s.span, n + s.low) for c, n, s in zip(counts, sizes, slides, strict=True)]
    before = [max(0, -s.low) for s in slides]
    wide = xp.zeros((*lead, *(e + b for e, b in zip(ends, before, strict=True))), dtype=x.dtype)
    for place in np.ndindex(*(s.size for s in slides)):
        at = tuple(
            slice(b + p * s.dilation, b + p * s.dilation + c * s.stride, s.stride)
            for p, s, c, b in zip(place, slides, counts, before, strict=True)
        )
        wide[(..., *at)] += x[(..., *place)]
    return wide[(..., *(slice(b + s.low, b + s.low + n) for s, n, b in zip(slides, sizes, before, strict=True)))]


def _fold_grad(g: Tensor, out: Tensor, x: Tensor, sizes: Shape, slides: Slides) -> tuple[Tensor]:
    return (bind(window_p, g, slides=slides, value=0),)


UNROLLED = 4
"""A sum of so few windows is written out, so that a fold is a map that fuses like one."""


def _fold_lower(idx: Indices, x: Any, sizes: Shape, slides: Slides) -> Expr:
    rank = len(slides)
    lead, axes = idx[: len(idx) - rank], idx[len(idx) - rank :]
    counts = x.shape[len(lead) : len(lead) + rank]
    covers = tuple(_covers(s) for s in slides)

    def term(number: Indices) -> Expr:
        begins, places, tests = [], [], []
        for at, s, count, which in zip(axes, slides, counts, number, strict=True):
            begin, place, conditions = _covering(at, s, count, which)
            begins.append(begin)
            places.append(place)
            tests += conditions
        return guarded(tests, lambda: x((*lead, *begins, *places)), const(0, x.dtype))

    total = math.prod(covers)
    if total <= UNROLLED:
        terms = [term(tuple(map(constant, number))) for number in np.ndindex(*covers)]
        return functools.reduce(lambda a, b: expr("add", (a, b), x.dtype), terms)
    var: Var = fresh_var(idx, total)
    return reduce("sum", var, term(unravel(of_var(var), covers)))


def _covers(s: Slide) -> int:
    """How many windows may cover an element."""
    return -(-s.size // s.stride) if s.dilation == 1 and s.low >= 0 else s.size


def _covering(at: Index, s: Slide, count: int, which: Index) -> tuple[Index, Index, list[Expr]]:
    """Of the windows that cover an element, one: its number, the place in it, and what holds if it exists."""
    at = at + s.low
    if s.dilation == 1 and s.low >= 0:
        last, inside = at.divmod(s.stride)
        begin, place = last + which * -1, inside + which * s.stride
        return begin, place, [below(begin, count), below(place, s.size)]
    start = at + which * -s.dilation
    begin, off = start.divmod(s.stride)
    return begin, which, [below(start, (count - 1) * s.stride + 1), below(off, 1)]


fold_p = primitive(
    "fold",
    shape=_fold_shape,
    eval=_fold_eval,
    grad=_fold_grad,
    lower=_fold_lower,
)


# The user's functions --------------------------------------------------------------------------


def window(
    x: TensorLike,
    size: Numbers,
    stride: Numbers = 1,
    dilation: Numbers = 1,
    padding: int | Sequence[Any] = 0,
    value: float = 0,
) -> Tensor:
    """All windows over the last axes, as a view: `[..., n]` becomes `[..., windows, size]`.

    `out[..., i, j, p, q] = x[..., i * stride + p * dilation, j * stride + q * dilation]` for two axes.

    Args:
        size: of a window, a number for each of the last axes (one number: the last axis).
        stride: from one window to the next.
        dilation: from one element of a window to the next.
        padding: places around an axis: a number, or for each axis a number or a pair (before, after).
        value: what the padding holds.

    Raises:
        ShapeError: where a window is longer than its axis with padding.

    >>> import tensorgrad as tg
    >>> def pairs():
    ...     return tg.window(tg.tensor_input("x", (3, 6)), 2, stride=2)
    >>> tg.trace(pairs).type(tg.trace(pairs).outputs[0])
    f32[3, 3, 2]
    """
    sizes = numbers("window", "size", size, len(size) if isinstance(size, Sequence) else 1)
    return bind(window_p, tensor(x), slides=slides("window", sizes, stride, dilation, padding), value=value)


def overlap_add(x: TensorLike, sizes: Sequence[int], slides: Slides) -> Tensor:
    """The adjoint of `window`: each element of axes `sizes` is the sum of the windows' elements that show it.

    Args:
        x: windows, as `window` gives them: `[..., *counts, *window]`.
        sizes: of the axes that the windows slid over.
        slides: how they did.
    """
    return bind(fold_p, tensor(x), sizes=tuple(sizes), slides=slides)
