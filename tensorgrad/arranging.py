"""Tensor's methods that index and arrange elements, and products: each calls the function of its name in `ops`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

    from tensorgrad import ops
    from tensorgrad.tensor import Tensor


class Arranging:
    """Methods of `Tensor`, apart for their number."""

    __slots__ = ()

    def gather(self, dim: int, index: Any) -> Tensor:
        return ops.gather(self, dim, index)

    def scatter(self, dim: int, index: Any, src: Any) -> Tensor:
        return ops.scatter(self, dim, index, src)

    def scatter_add(self, dim: int, index: Any, src: Any) -> Tensor:
        return ops.scatter_add(self, dim, index, src)

    def index_select(self, dim: int, index: Any) -> Tensor:
        return ops.index_select(self, dim, index)

    def index_add(self, dim: int, index: Any, source: Any, alpha: float = 1) -> Tensor:
        return ops.index_add(self, dim, index, source, alpha)

    def index_copy(self, dim: int, index: Any, source: Any) -> Tensor:
        return ops.index_copy(self, dim, index, source)

    def index_fill(self, dim: int, index: Any, value: float) -> Tensor:
        return ops.index_fill(self, dim, index, value)

    def index_put(self, indices: Any, values: Any, accumulate: bool = False) -> Tensor:
        return ops.index_put(self, indices, values, accumulate)

    def masked_fill(self, mask: Any, value: Any) -> Tensor:
        return ops.masked_fill(self, mask, value)

    def masked_select(self, mask: Any) -> Tensor:
        return ops.masked_select(self, mask)

    def tril(self, diagonal: int = 0) -> Tensor:
        return ops.tril(self, diagonal)

    def triu(self, diagonal: int = 0) -> Tensor:
        return ops.triu(self, diagonal)

    def movedim(self, source: Any, destination: Any) -> Tensor:
        return ops.movedim(self, source, destination)

    def moveaxis(self, source: Any, destination: Any) -> Tensor:
        return ops.moveaxis(self, source, destination)

    def unflatten(self, dim: int, sizes: Any) -> Tensor:
        return ops.unflatten(self, dim, sizes)

    def tile(self, *reps: Any) -> Tensor:
        return ops.tile(self, *reps)

    def repeat_interleave(self, repeats: Any, dim: int | None = None) -> Tensor:
        return ops.repeat_interleave(self, repeats, dim)

    def roll(self, shifts: Any, dims: Any = None, **kw: Any) -> Tensor:
        return ops.roll(self, shifts, dims, **kw)

    def rot90(self, k: int = 1, dims: Any = (0, 1)) -> Tensor:
        return ops.rot90(self, k, dims)

    def flip(self, axis: Any = None, **kw: Any) -> Tensor:
        return ops.flip(self, axis, **kw)

    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
        return ops.diagonal(self, offset, dim1, dim2)

    def diag(self, diagonal: int = 0) -> Tensor:
        return ops.diag(self, diagonal)

    def diag_embed(self, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
        return ops.diag_embed(self, offset, dim1, dim2)

    def select(self, dim: int, index: int) -> Tensor:
        return ops.select(self, dim, index)

    def narrow(self, dim: int, start: int, length: int) -> Tensor:
        return ops.narrow(self, dim, start, length)

    def split(self, size: Any, axis: int = 0, **kw: Any) -> tuple[Tensor, ...]:
        return ops.split(self, size, axis, **kw)

    def chunk(self, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
        return ops.chunk(self, chunks, dim)

    def tensor_split(self, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
        return ops.tensor_split(self, indices_or_sections, dim)

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        return ops.unbind(self, dim)

    def repeat(self, *sizes: Any) -> Tensor:
        """PyTorch's: the whole tensor repeated along each axis (NumPy's `repeat` is `repeat_interleave`)."""
        return ops.tile(self, *sizes)

    def mm(self, other: Any) -> Tensor:
        return ops.mm(self, other)

    def bmm(self, other: Any) -> Tensor:
        return ops.bmm(self, other)

    def mv(self, other: Any) -> Tensor:
        return ops.mv(self, other)

    def dot(self, other: Any) -> Tensor:
        return ops.dot(self, other)

    def outer(self, other: Any) -> Tensor:
        return ops.outer(self, other)

    def inner(self, other: Any) -> Tensor:
        return ops.inner(self, other)

    def expand_as(self, other: Tensor) -> Tensor:
        return ops.broadcast_to(self, other.shape)

    def reshape_as(self, other: Tensor) -> Tensor:
        return ops.reshape(self, other.shape)

    view_as = reshape_as

    def trace(self) -> Tensor:
        """The sum of a matrix's diagonal (`tg.trace` traces a function)."""
        return ops.sum(ops.diagonal(self))

    def contiguous(self) -> Tensor:
        """Itself: a kernel that needs elements in order sees to it."""
        return ops.asarray(self)


def bind_ops(module: ModuleType) -> None:
    """Gives the methods their implementation; see `tensor.bind_ops`."""
    globals()["ops"] = module
