"""Matrix products."""

from __future__ import annotations

from tensorgrad.callsite import call_site
from tensorgrad.dtypes import bool_
from tensorgrad.errors import DtypeError
from tensorgrad.graph import TensorType
from tensorgrad.ops.core import TensorLike, broadcast_to, meet
from tensorgrad.ops.reduce import sum as sum_
from tensorgrad.ops.views import expand_dims, reshape, swapaxes
from tensorgrad.primitive import primitive
from tensorgrad.shape import broadcast_trailing, infer_matmul, infer_matmul_batched, shape_size
from tensorgrad.tensor import Tensor
from tensorgrad.trace import bind


def _matmul_shape(a: TensorType, b: TensorType) -> TensorType:
    if a.dtype is not b.dtype:
        raise DtypeError(f"matmul: dtypes {a.dtype} and {b.dtype} differ", call_site())
    return TensorType(infer_matmul_batched("matmul", a.shape, b.shape), a.dtype)


def _matmul_grad(g: Tensor, out: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    return bind(matmul_p, g, swapaxes(b, -1, -2)), bind(matmul_p, swapaxes(a, -1, -2), g)


matmul_p = primitive(
    "matmul",
    shape=_matmul_shape,
    eval=lambda xp, a, b: xp.matmul(a, b),
    grad=_matmul_grad,
)


def matmul(a: TensorLike, b: TensorLike) -> Tensor:
    """The matrix product `[..., M, K] @ [..., K, N]`, NumPy's: leading axes broadcast, 1-d operands are vectors.

    A right operand without leading axes multiplies all rows of the left one at once. Integers are exact.

    Raises:
        ShapeError: where the inner sizes differ or the leading axes do not broadcast.
    """
    dtype, (x, y) = meet(a, b)
    out = infer_matmul("matmul", x.shape, y.shape)
    if dtype is bool_:
        raise DtypeError("matmul is not defined for bool tensors; convert with .astype(tg.f32)", call_site())
    x = reshape(x, 1, x.size) if x.ndim == 1 else x
    y = reshape(y, y.size, 1) if y.ndim == 1 else y
    if not dtype.is_float:
        # the template multiplies floats, which would round
        return reshape(sum_(expand_dims(x, -1) * expand_dims(y, -3), -2), *out)
    rows, k, columns = x.shape[-2], x.shape[-1], y.shape[-1]
    if y.ndim == 2:
        lead = shape_size(x.shape[:-1])
        return reshape(bind(matmul_p, reshape(x, lead, k), y), *out)
    batch = broadcast_trailing(x.shape[:-2], y.shape[:-2])
    assert batch is not None
    count = shape_size(batch)
    x = reshape(broadcast_to(x, *batch, rows, k), count, rows, k)
    y = reshape(broadcast_to(y, *batch, k, columns), count, k, columns)
    return reshape(bind(matmul_p, x, y), *out)
