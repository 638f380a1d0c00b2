"""The table of primitives: one row each, with the cases that every device runs.

A row says how to build the operation, a formula for it in plain NumPy (which the tests
evaluate in float64), where its operands come from, how close results must be and why,
and whether it has a gradient and second derivatives. `elementwise` gives a row the
shapes (), (1,), 0, odd and 65,537, broadcasting both ways, permuted and sliced operands.
Rows of other kinds list their cases.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tensorgrad import ops
from tensorgrad.tensor import Tensor

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
View = Callable[[Any], Any]
"""A view that is written alike for arrays and tensors."""

ODD = (3, 5, 7)
LONG = 65_537
LONG_SHAPE = (LONG,)


class Tolerance(NamedTuple):
    """`atol + rtol * |y|`, with the reason."""

    rtol: float
    atol: float
    why: str


EXACT = Tolerance(0, 0, "it moves or compares elements, or its result is rounded once")
ROUNDED = Tolerance(2.5e-7, 1.2e-38, "a device may be off by one ULP, and flush subnormals")


@dataclass(frozen=True, slots=True)
class Case:
    """One call of an operation.

    Attributes:
        name: the row's operation and the layout.
        fn: from tensors to a tensor.
        inputs: its operands.
        formula: the same in NumPy, on float64 where the operands are floats; None where there is none.
        grads: positions of the operands that it is differentiable in, at these inputs.
        smooth: second derivatives exist and are compared too.
        long: too many elements to differentiate one by one.
    """

    name: str
    fn: Callable[..., Tensor]
    inputs: tuple[np.ndarray, ...]
    formula: Callable[..., Any] | None = None
    grads: tuple[int, ...] = ()
    smooth: bool = False
    long: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A primitive's row of the table."""

    op: str
    tolerance: Tolerance
    cases: tuple[Case, ...] = field(repr=False)


# Where operands come from -------------------------------------------------------------------


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)


def wide(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return (rng.normal(size=shape) * 5).astype(np.float32)


def positive(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return (np.abs(rng.normal(size=shape)) * 3 + 0.1).astype(np.float32)


def away(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Not near 0: for divisors."""
    x = rng.normal(size=shape)
    return (x + np.where(x < 0, -0.3, 0.3)).astype(np.float32)


def distinct(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """No two elements nearer than a finite difference's step."""
    size = int(np.prod(shape))
    return ((rng.permutation(size) - size / 2) / max(size, 64) * 8 + 0.01).astype(np.float32).reshape(shape)


def integers(low: int, high: int, dtype: str = "int32") -> Draw:
    return lambda rng, shape: rng.integers(low, high, shape).astype(dtype)


def bools(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.random(shape) < 0.5


def f32s(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


# Layouts ----------------------------------------------------------------------------------


def _same(x: Any) -> Any:
    return x


def _spread(x: Any) -> Any:
    return x.broadcast_to(*ODD) if isinstance(x, Tensor) else np.broadcast_to(x, ODD)


def _turned(x: Any) -> Any:
    return x.transpose(1, 2, 0)


def _swapped(x: Any) -> Any:
    return x.transpose(2, 1, 0)


def _cut(x: Any) -> Any:
    return x[::2, 1:11:2, 8:1:-1]


def _shifted(x: Any) -> Any:
    return x[-3:, :5, 1]


class Layout(NamedTuple):
    """Shapes of up to three operands, and the views through which they are read."""

    name: str
    shapes: tuple[tuple[int, ...], ...]
    views: tuple[View, ...] = (_same, _same, _same)


LAYOUTS = (
    Layout("scalar", ((), (), ())),
    Layout("one", ((1,), (1,), (1,))),
    Layout("empty", ((0,), (0,), (0,))),
    Layout("empty inside", ((2, 0, 3), (2, 0, 3), (2, 0, 3))),
    Layout("odd", (ODD, ODD, ODD)),
    Layout("long", (LONG_SHAPE, LONG_SHAPE, LONG_SHAPE)),
    Layout("permuted", ((7, 3, 5), (7, 5, 3), ODD), (_turned, _swapped, _same)),
    Layout("sliced", ((6, 11, 9), (9, 6, 2, 7), (6, 11, 9)), (_cut, _shifted, _cut)),
)
BROADCAST = (
    Layout("broadcast", ((5, 1), (5, 1), (7,)), (_spread, _spread, _spread)),
    Layout("broadcast left", ((7,), ODD, (5, 1))),
    Layout("broadcast right", (ODD, (5, 1), ())),
    Layout("broadcast outer", ((3, 1, 7), (5, 1), (1, 1, 1))),
    Layout("broadcast empty", ((1, 3), (0, 1), (1, 1))),
)


def elementwise(
    op: str,
    fn: Callable[..., Tensor],
    formula: Callable[..., Any],
    draws: Sequence[Draw],
    tolerance: Tolerance,
    *,
    grads: tuple[int, ...] = (),
    smooth: bool = False,
    special: Sequence[tuple[np.ndarray, ...]] = (),
    label: str = "",
) -> Row:
    """A row of an elementwise operation, over all layouts.

    Args:
        draws: one for each operand.
        special: operands whose values are edges of the operation; only its values are compared there.
    """
    name = f"{op} {label}".strip()
    count = len(draws)
    cases = []
    layouts = (*LAYOUTS, *BROADCAST) if count > 1 else (*LAYOUTS, BROADCAST[0])
    for n, layout in enumerate(layouts):
        rng = np.random.default_rng([n, *op.encode()])
        inputs = tuple(draw(rng, shape) for draw, shape in zip(draws, layout.shapes, strict=False))
        views = layout.views[:count]
        cases.append(
            Case(
                f"{name}: {layout.name}",
                lambda *xs, views=views: fn(*(view(x) for view, x in zip(views, xs, strict=True))),
                inputs,
                lambda *xs, views=views: formula(*(view(x) for view, x in zip(views, xs, strict=True))),
                grads,
                smooth,
                layout.name == "long",
            )
        )
    cases += [Case(f"{name}: special {n}", fn, values, formula) for n, values in enumerate(special)]
    return Row(op, tolerance, tuple(cases))


def listed(op: str, tolerance: Tolerance, *cases: Case) -> Row:
    """A row of cases that are given one by one; their names get the operation in front."""
    named = (Case(f"{op}: {c.name}", c.fn, c.inputs, c.formula, c.grads, c.smooth, c.long) for c in cases)
    return Row(op, tolerance, tuple(named))


def weighted(y: Tensor, shift: float = 0.0) -> Tensor:
    """A sum in which no two elements count the same, so that a gradient put in a wrong place shows."""
    return ops.sum(y * np.cos(np.arange(y.size) * 0.7 + shift).reshape(y.shape))
