"""Elementwise functions and softmax as modules, for `Sequential`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

from tensorgrad import ops
from tensorgrad.checks import require_sizes
from tensorgrad.dtypes import DType, f32
from tensorgrad.nn.module import Module
from tensorgrad.nn.parameter import filled
from tensorgrad.ops.core import TensorLike
from tensorgrad.tensor import Tensor


class _Function(Module):
    """A function of a tensor, with its options by name."""

    _op: ClassVar[Callable[..., Tensor]]

    def __init__(self, **options: Any) -> None:
        self._options = tuple(options)
        for name, value in options.items():
            setattr(self, name, value)

    def forward(self, x: TensorLike) -> Tensor:
        return self._op(x, **{name: getattr(self, name) for name in self._options})

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)}" for name in self._options)


class _Plain(_Function):
    """A function without options."""

    def __init__(self) -> None:
        super().__init__()


class _InPlace(_Function):
    """A function without options but PyTorch's `inplace`, which has no effect: the compiler knows where it pays."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()


class ReLU(_InPlace):
    """The larger of x and 0."""

    _op = staticmethod(ops.relu)


class ReLU6(_InPlace):
    """x, at least 0 and at most 6."""

    _op = staticmethod(ops.relu6)


class SiLU(_InPlace):
    """x * sigmoid(x)."""

    _op = staticmethod(ops.silu)


class Mish(_InPlace):
    """x * tanh(softplus(x))."""

    _op = staticmethod(ops.mish)


class SELU(_InPlace):
    """`elu`, scaled such that activations keep mean 0 and variance 1."""

    _op = staticmethod(ops.selu)


class Hardswish(_InPlace):
    """x * hardsigmoid(x)."""

    _op = staticmethod(ops.hardswish)


class Hardsigmoid(_InPlace):
    """x / 6 + 1 / 2, at least 0 and at most 1."""

    _op = staticmethod(ops.hardsigmoid)


class Tanh(_Plain):
    """The hyperbolic tangent."""

    _op = staticmethod(ops.tanh)


class Sigmoid(_Plain):
    """1 / (1 + exp(-x))."""

    _op = staticmethod(ops.sigmoid)


class LogSigmoid(_Plain):
    """log(sigmoid(x))."""

    _op = staticmethod(ops.logsigmoid)


class Softsign(_Plain):
    """x / (1 + |x|)."""

    _op = staticmethod(ops.softsign)


class Tanhshrink(_Plain):
    """x - tanh(x)."""

    _op = staticmethod(ops.tanhshrink)


class GELU(_Function):
    """x times the normal distribution's probability of less than x.

    Args:
        approximate: `none` for the exact function, `tanh` for its tanh form.
    """

    _op = staticmethod(ops.gelu)

    def __init__(self, approximate: Literal["none", "tanh"] = "none") -> None:
        super().__init__(approximate=approximate)


class LeakyReLU(_Function):
    """x above 0, and `negative_slope * x` below."""

    _op = staticmethod(ops.leaky_relu)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__(negative_slope=negative_slope)


class ELU(_Function):
    """x above 0, and `alpha * (exp(x) - 1)` below."""

    _op = staticmethod(ops.elu)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(alpha=alpha)


class CELU(_Function):
    """x above 0, and `alpha * (exp(x / alpha) - 1)` below."""

    _op = staticmethod(ops.celu)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(alpha=alpha)


class Softplus(_Function):
    """log(1 + exp(beta * x)) / beta, and x where `beta * x` is above `threshold`."""

    _op = staticmethod(ops.softplus)

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__(beta=beta, threshold=threshold)


class Hardtanh(_Function):
    """x, at least `min_val` and at most `max_val`."""

    _op = staticmethod(ops.hardtanh)

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__(min_val=min_val, max_val=max_val)


class Threshold(_Function):
    """x above `threshold`, else `value`."""

    _op = staticmethod(ops.threshold)

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(threshold=threshold, value=value)


class Softshrink(_Function):
    """x moved by `lambd` towards 0, and 0 where it is nearer."""

    _op = staticmethod(ops.softshrink)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__(lambd=lambd)


class Hardshrink(_Function):
    """x, and 0 where it is no farther from 0 than `lambd`."""

    _op = staticmethod(ops.hardshrink)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__(lambd=lambd)


class GLU(_Function):
    """The first half along an axis times the sigmoid of the second."""

    _op = staticmethod(ops.glu)

    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim=dim)


class Softmax(_Function):
    """exp(x) scaled to sum to 1 along an axis.

    Args:
        dim: the axis.
    """

    _op = staticmethod(ops.softmax)

    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim=dim)


class Softmin(Softmax):
    """`softmax` of -x.

    Args:
        dim: the axis.
    """

    _op = staticmethod(ops.softmin)


class LogSoftmax(Softmax):
    """The logarithm of softmax along an axis.

    Args:
        dim: the axis.
    """

    _op = staticmethod(ops.log_softmax)


class Softmax2d(_Plain):
    """Softmax over the channels of images `[N, C, H, W]`."""

    _op = staticmethod(lambda x: ops.softmax(x, -3))


class PReLU(Module):
    """x above 0, and `weight * x` below.

    Args:
        num_parameters: 1, or the number of channels (axis 1).
        init: what the weight starts as.
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, dtype: DType = f32) -> None:
        require_sizes("PReLU", num_parameters=num_parameters)
        self.num_parameters, self.init = num_parameters, init
        self.weight = filled(init, num_parameters, dtype)

    def forward(self, x: TensorLike) -> Tensor:
        return ops.prelu(x, self.weight)

    def extra_repr(self) -> str:
        return f"{self.num_parameters}"
