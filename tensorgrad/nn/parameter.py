"""Parameters and buffers: a module's arrays, which become leaves where a trace meets them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorgrad.dtypes import DType
from tensorgrad.graph import Graph, Role, TensorType, Value
from tensorgrad.ops import tensor
from tensorgrad.ops.core import host_array
from tensorgrad.tensor import Tensor
from tensorgrad.trace import current_graph, module_leaf


class Parameter(Tensor):
    """An array that is trained.

    It is a Tensor: in a trace it stands for the parameter's leaf (or, where the trace was
    not told of its module, for a constant). Outside it holds the initial values.

    Args:
        data: anything that NumPy makes an array of; floats become f32.
        requires_grad: False freezes it: it stays on the device, and no update reaches it.

    >>> Parameter([[1.0, 2.0]])
    Parameter(f32[1, 2])
    """

    __slots__ = ("data", "requires_grad")
    role: Role = "param"

    def __init__(self, data: Any, requires_grad: bool = True) -> None:
        self.data: np.ndarray = host_array(data)[0]
        self.requires_grad = requires_grad

    def _leaf(self) -> Tensor:
        leaf = module_leaf(self, self.role)
        return tensor(self.data) if leaf is None else leaf

    @property
    def graph(self) -> Graph:  # type: ignore[override]  # computed where the base stores
        return current_graph()

    @property
    def value(self) -> Value:  # type: ignore[override]
        return self._leaf().value

    @property
    def type(self) -> TensorType:
        return TensorType(self.data.shape, host_array(self.data)[1])

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.type})"


class Buffer(Parameter):
    """An array that a module keeps and may update (`tg.update_state`), without a gradient: running statistics."""

    __slots__ = ()
    role: Role = "state"

    def __init__(self, data: Any) -> None:
        super().__init__(data, requires_grad=False)
