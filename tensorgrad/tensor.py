"""Tensor: a handle on one value of a graph, with operators and methods.

Sugar only: every method calls the function of the same name in `ops`, where it is
documented. `methods` has those that need no word of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorgrad import methods
from tensorgrad.errors import ArgumentError

if TYPE_CHECKING:
    from types import ModuleType

    from tensorgrad import ops
    from tensorgrad.callsite import CallSite
    from tensorgrad.dtypes import DType, Shape
    from tensorgrad.graph import Graph, TensorType, Value


class Tensor(methods.Methods, methods.Numberless):
    """One value of a traced graph.

    It has a shape and a dtype, no numbers: those exist when the compiled graph runs.
    """

    __slots__ = ("__weakref__", "graph", "value")

    def __init__(self, graph: Graph, value: Value | None = None) -> None:
        if value is None:
            raise ArgumentError("tg.Tensor is what operations return; tg.tensor([1.0, 2.0]) makes one of numbers")
        self.graph, self.value = graph, value

    @property
    def type(self) -> TensorType:
        """Its shape and dtype in one."""
        return self.graph.type(self.value)

    @property
    def shape(self) -> Shape:
        """The size of each axis, a tuple."""
        return self.type.shape

    @property
    def dtype(self) -> DType:
        """The type of its elements."""
        return self.type.dtype

    @property
    def ndim(self) -> int:
        """The number of its axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of its elements, as in NumPy; PyTorch's `size()` is `shape`."""
        return methods.Size(self.type.size)

    @property
    def site(self) -> CallSite | None:
        """The user's line that made it."""
        return self.graph.node(self.value).site

    @property
    def T(self) -> Tensor:
        """The axes in reverse order."""
        return self.permute(*reversed(range(self.ndim)))

    @property
    def mT(self) -> Tensor:
        """The last two axes swapped."""
        return self.swapaxes(-1, -2)

    def __repr__(self) -> str:
        return f"Tensor({self.type}, {self.value} = {self.graph.node(self.value).op})"

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self) -> Any:
        if not self.shape:
            raise ArgumentError("iteration over a 0-d tensor")
        if (op := self.graph.node(self.value).op) in ("max", "min"):
            raise ArgumentError(
                f"{op} gives the values alone, as NumPy's does, and cannot be unpacked into values and positions; the "
                f"positions are those of arg{op}"
            )
        return (self[i] for i in range(self.shape[0]))

    __hash__ = object.__hash__

    # Operators --------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Tensor:
        return ops.getitem(self, key)

    def __add__(self, other: Any) -> Tensor:
        return ops.add(self, other)

    def __radd__(self, other: Any) -> Tensor:
        return ops.add(other, self)

    def __sub__(self, other: Any) -> Tensor:
        return ops.sub(self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return ops.sub(other, self)

    def __mul__(self, other: Any) -> Tensor:
        return ops.mul(self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return ops.mul(other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return ops.div(self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return ops.div(other, self)

    def __floordiv__(self, other: Any) -> Tensor:
        return ops.floor_divide(self, other)

    def __rfloordiv__(self, other: Any) -> Tensor:
        return ops.floor_divide(other, self)

    def __mod__(self, other: Any) -> Tensor:
        return ops.remainder(self, other)

    def __rmod__(self, other: Any) -> Tensor:
        return ops.remainder(other, self)

    def __pow__(self, other: Any) -> Tensor:
        return ops.pow(self, other)

    def __rpow__(self, other: Any) -> Tensor:
        return ops.pow(other, self)

    def __matmul__(self, other: Any) -> Tensor:
        return ops.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Tensor:
        return ops.matmul(other, self)

    def __neg__(self) -> Tensor:
        return ops.neg(self)

    def __pos__(self) -> Tensor:
        return self

    def __abs__(self) -> Tensor:
        return ops.abs(self)

    def __invert__(self) -> Tensor:
        return ops.bitwise_not(self)

    def __and__(self, other: Any) -> Tensor:
        return ops.bitwise_and(self, other)

    __rand__ = __and__

    def __or__(self, other: Any) -> Tensor:
        return ops.bitwise_or(self, other)

    __ror__ = __or__

    def __xor__(self, other: Any) -> Tensor:
        return ops.bitwise_xor(self, other)

    __rxor__ = __xor__

    def __lt__(self, other: Any) -> Tensor:
        return ops.less(self, other)

    def __le__(self, other: Any) -> Tensor:
        return ops.less_equal(self, other)

    def __gt__(self, other: Any) -> Tensor:
        return ops.greater(self, other)

    def __ge__(self, other: Any) -> Tensor:
        return ops.greater_equal(self, other)

    def __eq__(self, other: Any) -> Tensor:  # type: ignore[override]  # elementwise, as in NumPy
        return ops.equal(self, other)

    def __ne__(self, other: Any) -> Tensor:  # type: ignore[override]
        return ops.not_equal(self, other)

    # Methods ------------------------------------------------------------------------

    def reshape(self, *shape: Any) -> Tensor:
        return ops.reshape(self, *shape)

    view = reshape

    def permute(self, *axes: Any) -> Tensor:
        return ops.permute(self, *axes)

    def transpose(self, *axes: int) -> Tensor:
        return ops.transpose(self, *axes)

    def swapaxes(self, a: int, b: int) -> Tensor:
        return ops.swapaxes(self, a, b)

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Tensor:
        return ops.flatten(self, start_dim, end_dim)

    def squeeze(self, axis: Any = None, **kw: Any) -> Tensor:
        return ops.squeeze(self, axis, **kw)

    def unsqueeze(self, axis: int) -> Tensor:
        return ops.expand_dims(self, axis)

    def broadcast_to(self, *shape: Any) -> Tensor:
        return ops.broadcast_to(self, *shape)

    def expand(self, *shape: Any) -> Tensor:
        return ops.expand(self, *shape)

    def sum(self, axis: Any = None, keepdims: bool = False, **kw: Any) -> Tensor:
        return ops.sum(self, axis, keepdims, **kw)

    def mean(self, axis: Any = None, keepdims: bool = False, **kw: Any) -> Tensor:
        return ops.mean(self, axis, keepdims, **kw)

    def max(self, axis: Any = None, keepdims: bool = False, **kw: Any) -> Tensor:
        return ops.max(self, axis, keepdims, **kw)

    def min(self, axis: Any = None, keepdims: bool = False, **kw: Any) -> Tensor:
        return ops.min(self, axis, keepdims, **kw)

    def var(self, axis: Any = None, correction: int = 1, keepdims: bool = False, **kw: Any) -> Tensor:
        return ops.var(self, axis, correction, keepdims, **kw)

    def std(self, axis: Any = None, correction: int = 1, keepdims: bool = False, **kw: Any) -> Tensor:
        return ops.std(self, axis, correction, keepdims, **kw)

    def argmax(self, axis: int | None = None, keepdims: bool = False, **kw: Any) -> Tensor:
        return ops.argmax(self, axis, keepdims, **kw)

    def argmin(self, axis: int | None = None, keepdims: bool = False, **kw: Any) -> Tensor:
        return ops.argmin(self, axis, keepdims, **kw)

    def cumsum(self, axis: int | None = None, dtype: DType | None = None, **kw: Any) -> Tensor:
        return ops.cumsum(self, axis, dtype, **kw)

    def cumprod(self, axis: int | None = None, dtype: DType | None = None, **kw: Any) -> Tensor:
        return ops.cumprod(self, axis, dtype, **kw)

    def cummax(self, axis: int | None = None, **kw: Any) -> ops.ValuesAndIndices:
        return ops.cummax(self, axis, **kw)

    def cummin(self, axis: int | None = None, **kw: Any) -> ops.ValuesAndIndices:
        return ops.cummin(self, axis, **kw)

    def logcumsumexp(self, axis: int | None = None, **kw: Any) -> Tensor:
        return ops.logcumsumexp(self, axis, **kw)

    def diff(self, n: int = 1, axis: int = -1, **kw: Any) -> Tensor:
        return ops.diff(self, n, axis, **kw)

    def sort(self, axis: int = -1, descending: bool = False, stable: bool = True, **kw: Any) -> ops.ValuesAndIndices:
        return ops.sort(self, axis, descending, stable, **kw)

    def argsort(self, axis: int = -1, descending: bool = False, stable: bool = True, **kw: Any) -> Tensor:
        return ops.argsort(self, axis, descending, stable, **kw)

    def topk(self, k: int, axis: int = -1, largest: bool = True, **kw: Any) -> ops.ValuesAndIndices:
        return ops.topk(self, k, axis, largest, **kw)

    def kthvalue(self, k: int, axis: int = -1, keepdims: bool = False, **kw: Any) -> ops.ValuesAndIndices:
        return ops.kthvalue(self, k, axis, keepdims, **kw)

    def median(self, axis: int | None = None, keepdims: bool = False, **kw: Any) -> Any:
        return ops.median(self, axis, keepdims, **kw)

    def quantile(self, q: Any, axis: int | None = None, keepdims: bool = False, **kw: Any) -> Tensor:
        return ops.quantile(self, q, axis, keepdims, **kw)

    def multinomial(self, num_samples: int, replacement: bool = False) -> Tensor:
        return ops.multinomial(self, num_samples, replacement)

    def softmax(self, axis: int = -1, **kw: Any) -> Tensor:
        return ops.softmax(self, axis, **kw)

    def log_softmax(self, axis: int = -1, **kw: Any) -> Tensor:
        return ops.log_softmax(self, axis, **kw)

    def matmul(self, other: Any) -> Tensor:
        return ops.matmul(self, other)

    def astype(self, dtype: DType) -> Tensor:
        """The tensor in another dtype, NumPy's name of `tg.cast`."""
        return ops.cast(self, dtype)

    def to(self, dtype: DType) -> Tensor:
        """The tensor in another dtype, PyTorch's name of `tg.cast`."""
        return ops.cast(self, dtype)

    def detach(self) -> Tensor:
        """The same values, through which no gradient flows: `tg.stop_gradient`."""
        return ops.stop_gradient(self)

    def clamp(self, min: Any = None, max: Any = None) -> Tensor:
        return ops.clamp(self, min, max)


def bind_ops(module: ModuleType) -> None:
    """Gives the operators their implementation, which imports this module and so cannot be imported by it."""
    globals()["ops"] = module
    methods.bind_ops(module)
