"""Loss scaling: the loss is multiplied before it is differentiated, so that small gradients do not vanish in f16.

The gradients are divided by the scale before anything is done with them. Where one of them is not finite the scale
was too large: the step changes nothing and the scale is halved. After many good steps it is doubled. The scale and the
number of good steps live on the device, as states of the optimizer.

Source: Micikevicius et al., Mixed precision training (2018); the numbers are the defaults of torch.amp.GradScaler.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from tensorgrad import ops
from tensorgrad.dtypes import f32, i32
from tensorgrad.tensor import Tensor
from tensorgrad.trace import state_input, update_state

INITIAL = 65_536.0
"""The scale at first."""

GROWTH = 2.0
"""What it is multiplied by after `INTERVAL` good steps."""

BACKOFF = 0.5
"""What it is multiplied by where a gradient is not finite."""

INTERVAL = 2_000
"""Good steps in a row until it grows."""


def scale_name(prefix: str) -> str:
    """The state that holds the loss scale of the optimizer with this prefix."""
    return f"{prefix}.scale"


class LossScale:
    """The loss scale of an optimizer in the running trace.

    Args:
        prefix: of the optimizer's states.

    Attributes:
        scale: an f32 scalar, for the loss to be multiplied by.
    """

    def __init__(self, prefix: str) -> None:
        self.scale = state_input(scale_name(prefix), (), f32, INITIAL)
        self._good = state_input(f"{prefix}.good_steps", (), i32)

    def unscaled(self, grad: Tensor, finite: Tensor | None = None) -> Tensor:
        """A gradient of the multiplied loss as that of the loss itself.

        Args:
            finite: whether it counts. Nothing but the numbers' order depends on it: what is computed from the gradient
                then waits until this is known, and so is one kernel with the update.
        """
        factor = 1.0 / self.scale
        return grad * (factor if finite is None else ops.where(finite, factor, 0.0))

    def adjust(self, finite: Tensor) -> None:
        """Appends the updates of the scale and of the number of good steps.

        Args:
            finite: whether the loss and all gradients are, a bool.
        """
        good = self._good + 1
        grows = good >= INTERVAL
        larger = self.scale * GROWTH
        larger = ops.where(grows & ops.isfinite(larger), larger, self.scale)
        update_state(self.scale, ops.where(finite, larger, self.scale * BACKOFF))
        update_state(self._good, ops.where(finite & ~grows, good, 0))


def all_finite(tensors: Iterable[Tensor]) -> Tensor:
    """Whether no element of any of them is infinite or NaN, a bool."""
    counts = [ops.sum(ops.where(ops.isfinite(t), 0.0, 1.0)) for t in tensors]
    return reduce(ops.add, counts, ops.zeros(())) == 0.0
