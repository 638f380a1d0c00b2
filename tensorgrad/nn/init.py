"""Initial values: PyTorch's functions, drawn from NumPy's generator.

Each writes into a parameter (or an array) and returns it. All draw from one generator,
which `manual_seed` restarts; a `generator` argument takes another.
"""

from __future__ import annotations

import math
from typing import Any, Literal, TypeVar

import numpy as np

from tensorgrad.checks import is_whole, require
from tensorgrad.dtypes import Shape
from tensorgrad.errors import ArgumentError, InputError
from tensorgrad.nn.parameter import Draw, Parameter
from tensorgrad.shape import fail

P = TypeVar("P", Parameter, np.ndarray)
FanMode = Literal["fan_in", "fan_out"]


class _Source:
    """The generator of initial values, made on first use."""

    seed: int | None = None
    generator: np.random.Generator | None = None


def manual_seed(seed: int) -> np.random.Generator:
    """Seeds the random numbers of initial values, so that modules made from here on are the same every time.

    >>> from tensorgrad import nn
    >>> _ = nn.init.manual_seed(0)
    >>> first = nn.Linear(2, 2).weight.numpy()
    >>> _ = nn.init.manual_seed(0)
    >>> bool((nn.Linear(2, 2).weight.numpy() == first).all())
    True
    """
    require("manual_seed", "seed", seed, is_whole(seed), "a whole number")
    _Source.seed = int(seed)
    _Source.generator = np.random.default_rng(_Source.seed)
    return _Source.generator


def initial_seed() -> int:
    """The seed of the generator of initial values; a random one unless `manual_seed` set it."""
    if _Source.seed is None:
        manual_seed(int(np.random.SeedSequence().generate_state(1)[0]))
    assert _Source.seed is not None
    return _Source.seed


def default_generator() -> np.random.Generator:
    """The generator of initial values."""
    initial_seed()
    assert _Source.generator is not None
    return _Source.generator


def _shape(tensor: Any) -> Shape:
    """The shape of what is filled, once it is a parameter or an array."""
    if not isinstance(tensor, Parameter | np.ndarray):
        raise ArgumentError(f"nn.init fills a parameter or an array, such as layer.weight, got {tensor!r}")
    return tensor.shape


def _write(tensor: P, values: np.ndarray | float) -> P:
    _shape(tensor)
    array = tensor.data if isinstance(tensor, Parameter) else tensor
    array[...] = values
    return tensor


def _draw(
    tensor: P, kind: Literal["uniform", "normal"], a: float, b: float, generator: np.random.Generator | None
) -> P:
    """Drawn now from a generator that was given or into an array; else by and by, see `Draw`."""
    if generator is None and isinstance(tensor, Parameter):
        seed = int(default_generator().integers(2**63))
        tensor.data = Draw(kind, a, b, tensor.shape, tensor.dtype.numpy, seed)
        return tensor
    source = generator or default_generator()
    return _write(tensor, getattr(source, kind)(a, b, _shape(tensor)))


def uniform_(tensor: P, a: float = 0.0, b: float = 1.0, generator: np.random.Generator | None = None) -> P:
    """Uniform from `a` to `b`."""
    return _draw(tensor, "uniform", a, b, generator)


def normal_(tensor: P, mean: float = 0.0, std: float = 1.0, generator: np.random.Generator | None = None) -> P:
    """Normal with a mean and a standard deviation."""
    return _draw(tensor, "normal", mean, std, generator)


def trunc_normal_(
    tensor: P,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: np.random.Generator | None = None,
) -> P:
    """Normal, without what lies outside `a` to `b` (absolute bounds, not in deviations)."""
    from statistics import NormalDist  # with decimals and fractions, a part of the import time that few need

    source, shape = generator or default_generator(), _shape(tensor)
    normal = NormalDist(mean, std)
    # the inverse of the distribution function, on the part between the bounds
    low, high = normal.cdf(a), normal.cdf(b)
    tiny = 1e-16
    points = np.clip(source.uniform(low, high, shape), tiny, 1 - tiny)
    values = np.array([normal.inv_cdf(p) for p in points.reshape(-1).tolist()]).reshape(shape)
    return _write(tensor, np.clip(values, a, b))


def constant_(tensor: P, val: float) -> P:
    """One number everywhere."""
    return _write(tensor, val)


def zeros_(tensor: P) -> P:
    """Zeros."""
    return _write(tensor, 0)


def ones_(tensor: P) -> P:
    """Ones."""
    return _write(tensor, 1)


def eye_(tensor: P) -> P:
    """The identity matrix."""
    shape = _shape(tensor)
    if len(shape) != 2:
        fail(f"eye_ fills a matrix, got shape {list(shape)}")
    return _write(tensor, np.eye(shape[0], shape[1]))


def dirac_(tensor: P, groups: int = 1) -> P:
    """A convolution's weight `[out, in / groups, ...]` that returns its input: of each group as many channels as fit.

    Raises:
        ShapeError: not 3 to 5 axes, or groups that do not divide the first.
    """
    shape = _shape(tensor)
    if not 3 <= len(shape) <= 5 or groups < 1 or shape[0] % groups:
        fail(f"dirac_ fills 3 to 5 axes, the first of {groups} equal groups; got shape {list(shape)}")
    values, rows = np.zeros(shape), shape[0] // groups
    middle = tuple(n // 2 for n in shape[2:])
    for channel in range(min(rows, shape[1])):
        values[(slice(channel, None, rows), channel, *middle)] = 1
    return _write(tensor, values)


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which a nonlinearity's weights grow to keep the variance, PyTorch's table.

    Args:
        nonlinearity: `linear`, `sigmoid`, `tanh`, `relu`, `leaky_relu`, `selu` or a convolution's name.
        param: the slope of leaky_relu below zero, 0.01 by default.
    """
    if nonlinearity == "linear" or nonlinearity.startswith("conv") or nonlinearity == "sigmoid":
        return 1.0
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    gains = {"tanh": 5 / 3, "relu": math.sqrt(2), "selu": 0.75}
    if nonlinearity not in gains:
        known = ", ".join(("linear", "sigmoid", "leaky_relu", *gains))
        raise InputError(f"there is no gain for {nonlinearity!r}; known are {known}, and convolutions such as conv2d")
    return gains[nonlinearity]


def _fans(tensor: Parameter | np.ndarray) -> tuple[int, int]:
    """How many inputs and outputs one element of a weight `[out, in, ...]` connects."""
    shape = _shape(tensor)
    if len(shape) < 2:
        fail(f"this initialisation needs a weight of two axes or more, got shape {list(shape)}")
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def _scaled(fan: float, gain: float) -> float:
    return gain / math.sqrt(fan) if fan else 0.0


def xavier_uniform_(tensor: P, gain: float = 1.0, generator: np.random.Generator | None = None) -> P:
    """Uniform within `gain * sqrt(6 / (fan_in + fan_out))`.

    Source: Glorot and Bengio, Understanding the difficulty of training deep feedforward networks (2010).
    """
    bound = _scaled(sum(_fans(tensor)) / 6, gain)
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: P, gain: float = 1.0, generator: np.random.Generator | None = None) -> P:
    """Normal with deviation `gain * sqrt(2 / (fan_in + fan_out))`."""
    return normal_(tensor, 0.0, _scaled(sum(_fans(tensor)) / 2, gain), generator)


def _kaiming_std(tensor: Parameter | np.ndarray, a: float, mode: FanMode, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise InputError(f"mode is 'fan_in' or 'fan_out', got {mode!r}")
    return _scaled(_fans(tensor)[mode == "fan_out"], calculate_gain(nonlinearity, a))


def kaiming_uniform_(
    tensor: P,
    a: float = 0.0,
    mode: FanMode = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: np.random.Generator | None = None,
) -> P:
    """Uniform within `gain * sqrt(3 / fan)`.

    Args:
        a: the slope of leaky_relu below zero.
        mode: which fan: `fan_in` keeps the variance forward, `fan_out` backward.
        nonlinearity: what follows the layer; see `calculate_gain`.

    Source: He et al., Delving deep into rectifiers (2015).
    """
    bound = math.sqrt(3) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: P,
    a: float = 0.0,
    mode: FanMode = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: np.random.Generator | None = None,
) -> P:
    """Normal with deviation `gain / sqrt(fan)`; arguments as `kaiming_uniform_`."""
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: P, gain: float = 1.0, generator: np.random.Generator | None = None) -> P:
    """Orthonormal rows or columns (whichever are fewer), times `gain`.

    Source: Saxe, McClelland and Ganguli, Exact solutions to the nonlinear dynamics of learning (2013).
    """
    if len(tensor.shape) < 2:
        fail(f"orthogonal_ needs two axes or more, got shape {list(tensor.shape)}")
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    source = generator or default_generator()
    q, r = np.linalg.qr(source.normal(size=(max(rows, columns), min(rows, columns))))
    q = q * np.where(np.diag(r) < 0, -1.0, 1.0)  # without the signs the choice would not be uniform
    return _write(tensor, gain * (q if rows >= columns else q.T).reshape(tensor.shape))


def sparse_(tensor: P, sparsity: float, std: float = 0.01, generator: np.random.Generator | None = None) -> P:
    """A matrix that is normal, but for this share of every column, which is zero.

    Source: Martens, Deep learning via Hessian-free optimization (2010).
    """
    if len(_shape(tensor)) != 2:
        fail(f"sparse_ fills a matrix, got shape {list(tensor.shape)}")
    rows, columns = tensor.shape
    source = generator or default_generator()
    values = source.normal(0.0, std, tensor.shape)
    for column in range(columns):
        values[source.permutation(rows)[: math.ceil(sparsity * rows)], column] = 0
    return _write(tensor, values)
