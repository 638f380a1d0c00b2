"""Composites with a gradient rule of their own.

Differentiating a composite step by step is right, but often roundabout: softmax's gradient
needs its result alone, not the exponentials again. `custom_grad` puts such a rule on a
value that was composed in the ordinary way. The rule is made of operations, so it can be
differentiated in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorgrad.ops.core import TensorLike, floats, in_f32, named
from tensorgrad.primitive import primitive
from tensorgrad.tensor import Tensor
from tensorgrad.trace import bind

GradRule = Callable[..., tuple[Tensor | None, ...]]

custom_grad_p = primitive(
    "custom_grad",
    shape=lambda value, *xs, rule, args: value,
    eval=lambda xp, value, *xs, rule, args: value,
    grad=lambda g, out, value, *xs, rule, args: (None, *rule(g, out, *xs, *args)),
    lower=lambda idx, value, *xs, rule, args: value(idx),
    view=True,
)


def custom_grad(value: Tensor, rule: GradRule, *xs: Tensor, args: tuple[Any, ...] = ()) -> Tensor:
    """The value, whose gradient is given by a rule.

    Args:
        value: what was computed from `xs`.
        rule: `(g, out, *xs, *args)` gives the gradient of each of `xs`, or None.
        xs: tensors.
        args: static arguments of the rule, hashable.
    """
    return bind(custom_grad_p, value, *xs, rule=rule, args=args)


def with_slope(
    name: str, formula: Callable[[Tensor], Tensor], slope: Callable[[Tensor, Tensor], Tensor], doc: str
) -> Callable[[TensorLike], Tensor]:
    """An elementwise function of floats (of integers, as f32) whose derivative is given.

    Args:
        formula: from the argument to the result.
        slope: `(out, x)` gives the derivative.
        doc: what the function says of itself.
    """

    def grad(g: Tensor, out: Tensor, x: Tensor) -> tuple[Tensor]:
        return (g * slope(out, x),)

    def function(x: TensorLike) -> Tensor:
        (x,) = floats(name, x)
        return custom_grad(formula(x), grad, x)

    grad.__name__ = grad.__qualname__ = f"_{name}_grad"
    return in_f32(named(function, name, doc))
