"""Matrix products."""

from __future__ import annotations

from typing import Any

from tensorgrad.callsite import call_site
from tensorgrad.dtypes import f32
from tensorgrad.errors import DtypeError
from tensorgrad.graph import TensorType
from tensorgrad.ops.core import TensorLike, broadcast_to, cast, meet
from tensorgrad.ops.views import reshape, swapaxes
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

    A right operand without leading axes multiplies all rows of the left one at once.

    Raises:
        ShapeError: where the inner sizes differ or the leading axes do not broadcast.
    """
    dtype, (x, y) = meet(a, b)
    out = infer_matmul("matmul", x.shape, y.shape)
    if not dtype.is_float:
        return cast(matmul(cast(x, f32), cast(y, f32)), dtype) if dtype.kind != "b" else _bools()
    x = reshape(x, 1, -1) if x.ndim == 1 else x
    y = reshape(y, -1, 1) if y.ndim == 1 else y
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


def _bools() -> Any:
    raise DtypeError("matmul is not defined for bool tensors; convert with .astype(tg.f32)", call_site())
