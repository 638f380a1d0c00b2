"""Products under the names that they have in PyTorch and NumPy: each is a matmul, or a sum of elements' products."""

from __future__ import annotations

import math

from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.core import TensorLike, in_f32, meet
from tensorgrad.ops.custom import custom_grad
from tensorgrad.ops.einsum import einsum, tensordot
from tensorgrad.ops.matmul import matmul
from tensorgrad.ops.reduce import require_float
from tensorgrad.ops.statistics import norm
from tensorgrad.ops.views import expand_dims, reshape
from tensorgrad.shape import broadcast_trailing, fail, show_shape
from tensorgrad.tensor import Tensor


def _ranked(op: str, a: TensorLike, b: TensorLike, *ranks: int) -> tuple[Tensor, Tensor]:
    """Two operands with so many axes."""
    _, (a, b) = meet(a, b)
    if (a.ndim, b.ndim) != ranks:
        fail(f"{op}: needs operands with {ranks[0]} and {ranks[1]} axes, got {a.type} and {b.type}")
    return a, b


def mm(a: TensorLike, b: TensorLike) -> Tensor:
    """The product of two matrices."""
    return matmul(*_ranked("mm", a, b, 2, 2))


def bmm(a: TensorLike, b: TensorLike) -> Tensor:
    """The products of matrices `[B, M, K]` and `[B, K, N]`; B does not broadcast."""
    a, b = _ranked("bmm", a, b, 3, 3)
    if a.shape[0] != b.shape[0]:
        fail(f"bmm: {a.type} and {b.type} hold different numbers of matrices")
    return matmul(a, b)


def mv(a: TensorLike, b: TensorLike) -> Tensor:
    """The product of a matrix and a vector."""
    return matmul(*_ranked("mv", a, b, 2, 1))


def dot(a: TensorLike, b: TensorLike) -> Tensor:
    """The sum of two vectors' products, PyTorch's; NumPy's `dot` of more axes is `tensordot`."""
    a, b = _ranked("dot", a, b, 1, 1)
    return einsum("i,i->", a, b)


vdot = dot


def outer(a: TensorLike, b: TensorLike) -> Tensor:
    """All products of two vectors: `[N]` and `[M]` make `[N, M]`."""
    a, b = _ranked("outer", a, b, 1, 1)
    return expand_dims(a, 1) * b


def inner(a: TensorLike, b: TensorLike) -> Tensor:
    """The sum of products over the last axes of both; of a number it is the product."""
    _, (a, b) = meet(a, b)
    return tensordot(a, b, ([-1], [-1])) if a.ndim and b.ndim else a * b


def kron(a: TensorLike, b: TensorLike) -> Tensor:
    """The Kronecker product: each element of `a` times all of `b`."""
    _, (a, b) = meet(a, b)
    ndim = max(a.ndim, b.ndim)
    left, right = ((*(1,) * (ndim - x.ndim), *x.shape) for x in (a, b))
    apart = reshape(a, *(n for m in left for n in (m, 1))) * reshape(b, *(n for m in right for n in (1, m)))
    return reshape(apart, *(n * m for n, m in zip(left, right, strict=True)))


def addmm(input: TensorLike, mat1: TensorLike, mat2: TensorLike, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """`beta * input + alpha * mat1 @ mat2`; with `beta` 0, `input` does not count, NaN or not."""
    return _plus(input, mm(mat1, mat2), beta, alpha)


def baddbmm(input: TensorLike, batch1: TensorLike, batch2: TensorLike, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """`beta * input + alpha * batch1 @ batch2` of batches of matrices; see `addmm`."""
    return _plus(input, bmm(batch1, batch2), beta, alpha)


def addmv(input: TensorLike, mat: TensorLike, vec: TensorLike, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """`beta * input + alpha * mat @ vec`; see `addmm`."""
    return _plus(input, mv(mat, vec), beta, alpha)


def _plus(input: TensorLike, product: Tensor, beta: float, alpha: float) -> Tensor:
    _, (x, product) = meet(input, product)
    if broadcast_trailing(x.shape, product.shape) != product.shape:
        fail(f"the summand {show_shape(x.shape)} does not broadcast to the product {show_shape(product.shape)}")
    scaled = product if alpha == 1 else product * alpha
    return scaled if beta == 0 else scaled + (x if beta == 1 else x * beta)


def bilinear(input1: TensorLike, input2: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor:
    """`input1 @ weight[o] @ input2` for each output o, `+ bias`: `[..., in1]` and `[..., in2]` make `[..., out]`.

    Args:
        weight: `[out, in1, in2]`.
        bias: `[out]`.
    """
    _, (x, y, w) = meet(input1, input2, weight)
    if w.ndim != 3 or not x.ndim or not y.ndim or (x.shape[-1], y.shape[-1]) != w.shape[1:]:
        fail(f"bilinear: {x.type} and {y.type} do not fit a weight [out, in1, in2], got {w.type}")
    out = einsum("...i,oij,...j->...o", x, w, y)
    return out if bias is None else out + bias


@in_f32
def cdist(x1: TensorLike, x2: TensorLike, p: float = 2.0) -> Tensor:
    """The distance of every row of `[..., P, M]` from every row of `[..., R, M]`: `[..., P, R]`.

    Args:
        p: as `norm`; 2 for Euclid's, 1 for the sum of the coordinates' distances, inf for the largest of them.

    The differences are formed, not products of the rows: near rows lose no digits. At distance 0 the gradient is 0.
    """
    _, (a, b) = meet(x1, x2)
    require_float("cdist", a)
    if min(a.ndim, b.ndim) < 2 or a.shape[-1] != b.shape[-1]:
        fail(f"cdist: needs rows of one size, got {a.type} and {b.type}")
    apart = expand_dims(a, -2) - expand_dims(b, -3)
    if not apart.shape[-1]:  # of no coordinates none is the largest
        return norm(apart, 1, -1)
    return _chebyshev(apart) if p == math.inf else norm(apart, p, -1)


def _chebyshev(apart: Tensor) -> Tensor:
    """The largest coordinate's size. As in PyTorch's `cdist`, unlike its `norm`, ties do not share the gradient."""
    return custom_grad(norm(apart, math.inf, -1), _chebyshev_grad, apart)


def _chebyshev_grad(g: Tensor, out: Tensor, apart: Tensor) -> tuple[Tensor]:
    largest = ew.equal(ew.abs(apart), expand_dims(out, -1))
    return (ew.where(largest, expand_dims(g, -1) * ew.sign(apart), 0),)
