"""Parameters and buffers: a module's arrays, which become leaves where a trace meets them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from tensorgrad.callsite import warn
from tensorgrad.dtypes import DType, Shape, as_dtype, f32, from_numpy
from tensorgrad.graph import Graph, Role, TensorType, Value
from tensorgrad.ops import tensor
from tensorgrad.ops.core import host_array
from tensorgrad.tensor import Tensor
from tensorgrad.trace import current_graph, current_trace, is_tracing, module_leaf


class Draw(NamedTuple):
    """Random initial values that nobody has looked at yet: the array is made by whoever asks, the same each time.

    A large model's numbers take longer to draw than its shaders to compile: so they are drawn meanwhile, and those
    that a state dict replaces never.

    Attributes:
        kind: how they are distributed.
        a, b: the bounds, or the mean and the standard deviation.
        seed: of a generator of its own.
    """

    kind: Literal["uniform", "normal"]
    a: float
    b: float
    shape: Shape
    dtype: np.dtype
    seed: int

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        source = np.random.default_rng(self.seed)
        if self.kind == "uniform":
            values = source.random(self.shape, np.float32)
            values *= self.b - self.a
        else:
            values = source.standard_normal(self.shape, np.float32)
            values *= self.b
        values += self.a
        return values.astype(dtype or self.dtype, copy=False)


class Parameter(Tensor):
    """An array that is trained.

    It is a Tensor: in a trace it stands for the parameter's leaf (or, where the trace was
    not told of its module, for a constant). Outside it holds the initial values.

    Args:
        data: anything that NumPy makes an array of, which is copied; floats become f32.
        requires_grad: False freezes it: it stays on the device, and no update reaches it.

    >>> from tensorgrad import nn
    >>> nn.Parameter([[1.0, 2.0]])
    Parameter(f32[1, 2])
    """

    __slots__ = ("_data", "requires_grad")
    role: Role = "param"

    def __init__(self, data: Any, requires_grad: bool = True) -> None:
        if isinstance(data, Parameter):
            data = data.data
        self._data: np.ndarray | Draw = data if isinstance(data, Draw) else np.array(host_array(data)[0], order="C")
        self.requires_grad = requires_grad

    @property
    def data(self) -> np.ndarray:
        """The initial values, to be read and written."""
        if isinstance(self._data, Draw):
            self._data = np.asarray(self._data)
        return self._data

    @data.setter
    def data(self, values: np.ndarray | Draw) -> None:
        self._data = values

    def initial(self) -> np.ndarray | Draw:
        """The initial values as they are now, whatever is done to the parameter later."""
        return self._data if isinstance(self._data, Draw) else self._data.copy()

    def requires_grad_(self, requires_grad: bool = True) -> Parameter:
        """Freezes the parameter (False) or trains it again; returns it."""
        self.requires_grad = requires_grad
        return self

    def _leaf(self) -> Tensor:
        leaf = module_leaf(self, self.role)
        if leaf is None:  # one constant a trace, so that uses add up in a gradient
            if current_trace().names and current_trace().training and self.requires_grad and self.role == "param":
                warn(
                    "the loss reads parameters that the model does not hold: they are neither trained nor saved. "
                    "Make their module a part of the model, or freeze it: requires_grad_(False)"
                )
            leaf = current_trace().leaves[id(self)] = tensor(self.data)
        return leaf

    @property
    def graph(self) -> Graph:  # computed where the base stores
        """The graph that is traced right now, of which it becomes a leaf."""
        return current_graph()

    @property
    def value(self) -> Value:
        """Its value in that graph."""
        return self._leaf().value

    @property
    def type(self) -> TensorType:
        """Its shape and dtype in one."""
        return TensorType(self._data.shape, from_numpy(self._data.dtype))

    @property
    def dtype(self) -> DType:
        """The type of its elements."""
        return self.type.dtype

    def numpy(self) -> np.ndarray:
        """A copy of the initial values, outside a trace."""
        return np.array(self.__array__())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if is_tracing():
            self._no_value("conversion to an array")
        return np.array(self.data, dtype) if copy else np.asarray(self.data, dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.data, self.requires_grad)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.type}{'' if self.requires_grad else ', frozen'})"


def undrawn(shape: Shape, dtype: DType) -> Parameter:
    """A parameter whose values are drawn in a moment: zeros until then, which take no memory."""
    return Parameter(Draw("uniform", 0.0, 0.0, tuple(map(operator.index, shape)), _numpy(dtype), 0))


def filled(number: float, shape: int | Sequence[int], dtype: DType) -> Parameter:
    """A parameter of one number."""
    return Parameter(np.full(shape, number, _numpy(dtype)))


def _numpy(dtype: DType | None) -> np.dtype:
    """NumPy's dtype for a layer's argument, where None is f32, as in PyTorch."""
    return as_dtype(dtype, f32).numpy


class Buffer(Parameter):
    """An array that a module keeps and may update (`tg.update_state`), without a gradient: running statistics.

    Args:
        data: anything that NumPy makes an array of, which is copied.
        persistent: whether it belongs to the module's state dict.
    """

    __slots__ = ("persistent",)
    role: Role = "state"

    def __init__(self, data: Any, persistent: bool = True) -> None:
        super().__init__(data, requires_grad=False)
        self.persistent = persistent

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.data, self.persistent)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.type})"
