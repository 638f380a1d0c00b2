"""The scalar functions' exact values, and how far from them each may be.

A bound is `atol + rtol * |y|` where y is computed in float64. One ULP of f32 is 6e-8 to
1.2e-7 of the value. A device may fuse multiplications with additions and may divide to
2.5 ULP, so it has bounds of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tensorgrad.dtypes import DType, bool_, f32, i32, u32
from tensorgrad.graph import Value
from tensorgrad.lower.expr import Expr, expr, load
from tensorgrad.lower.index import Var, of_var

Array = np.ndarray
A, B = Value(0), Value(1)


def line(low: float, high: float, count: int = 20_001) -> Array:
    return np.linspace(low, high, count).astype(np.float32)


def spread(low: float = 1e-30, high: float = 1e30, count: int = 20_001) -> Array:
    return np.exp(np.linspace(math.log(low), math.log(high), count)).astype(np.float32)


def both_signs(x: Array) -> Array:
    return np.concatenate([-x[::-1], x])


def _erf(x: Array) -> Array:
    return np.array([math.erf(v) for v in x])


def _erfc(x: Array) -> Array:
    return np.array([math.erfc(v) for v in x])


class Case(NamedTuple):
    """A function on a grid: its values in float64 and the bound on what a device gives."""

    op: str
    x: Array
    exact: Callable[[Array], Array]
    atol: float = 0.0
    rtol: float = 0.0
    gpu_rtol: float | None = None

    def __repr__(self) -> str:
        return f"{self.op}[{self.x[0]:g}..{self.x[-1]:g}]"

    def bound(self, y: Array, gpu: bool) -> Array:
        rtol = self.gpu_rtol if gpu and self.gpu_rtol is not None else self.rtol
        return self.atol + rtol * np.abs(y)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


CASES = [
    Case("exp", line(-87, 88), np.exp, rtol=1.5e-7, gpu_rtol=2.5e-7),
    Case("exp_weight", line(-86.9, 80), np.exp, rtol=1.5e-7, gpu_rtol=2.5e-7),
    Case("exp_weight", line(-200, -88), np.zeros_like, rtol=0, gpu_rtol=0),
    # relative, down to the smallest arguments
    Case("tanh", line(-12, 12), np.tanh, rtol=2e-7, gpu_rtol=4e-7),
    Case("tanh", both_signs(spread()), np.tanh, rtol=2e-7, gpu_rtol=4e-7),
    Case("erf", line(-5, 5), _erf, rtol=1.5e-7, gpu_rtol=3e-7),
    Case("erf", both_signs(spread()), _erf, rtol=1.5e-7, gpu_rtol=3e-7),
    # relative, down to where it is subnormal
    Case("erfc", line(-6, 9.1), _erfc, rtol=5e-7, gpu_rtol=1e-6),
    Case("erfc", both_signs(spread(1e-30, 9)), _erfc, rtol=5e-7, gpu_rtol=1e-6),
    Case("atan", line(-20, 20), np.arctan, rtol=2e-7, gpu_rtol=4e-7),
    Case("atan", both_signs(spread()), np.arctan, rtol=2e-7, gpu_rtol=4e-7),
    Case("expm1", line(-1, 1), np.expm1, rtol=2.5e-7, gpu_rtol=4e-7),
    Case("expm1", line(-20, 20), np.expm1, rtol=2.5e-7, gpu_rtol=4e-7),
    Case("expm1", both_signs(spread(1e-30, 1)), np.expm1, rtol=2.5e-7, gpu_rtol=4e-7),
    Case("sigmoid", line(-80, 30), _sigmoid, rtol=3e-7, gpu_rtol=6e-7),
    Case("log", spread(), np.log, rtol=1.2e-7, gpu_rtol=2e-7),
    Case("log", line(0.5, 2), np.log, rtol=1.2e-7, gpu_rtol=2e-7),
    Case("log1p", line(-0.9999, 3), np.log1p, rtol=3e-7, gpu_rtol=4e-7),
    Case("log1p", both_signs(spread(1e-30, 0.9)), np.log1p, rtol=3e-7, gpu_rtol=4e-7),
    Case("log1p", spread(), np.log1p, rtol=3e-7, gpu_rtol=4e-7),
    # relative near the origin, absolute where the argument's own digits run out
    Case("sin", both_signs(spread(1e-30, 0.7)), np.sin, rtol=2e-7, gpu_rtol=3e-7),
    Case("sin", line(-10, 10), np.sin, atol=1.5e-7),
    Case("cos", line(-10, 10), np.cos, atol=1.5e-7),
    Case("sin", line(-2e5, 2e5, 100_003), np.sin, atol=1.5e-7),
    Case("cos", line(-2e5, 2e5, 100_003), np.cos, atol=1.5e-7),
    # the device's own, as WGSL's accuracy table has them
    Case("sqrt", spread(), np.sqrt, rtol=1e-7, gpu_rtol=5e-7),
    Case("rsqrt", spread(), lambda x: 1 / np.sqrt(x), rtol=2e-7, gpu_rtol=5e-7),
]

INF, NAN = math.inf, math.nan
SPECIAL = np.array(
    [0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 0.5, 15.0, -15.0, 45.0, -45.0, 89.0, -89.0, 1e30, -1e30],
    np.float32,
)
"""Where functions tend to go wrong; the expected values are NumPy's in float64, rounded."""

UNARY: dict[str, Callable[[Array], Array]] = {
    "tanh": np.tanh,
    "erf": _erf,
    "erfc": _erfc,
    "atan": np.arctan,
    "sigmoid": _sigmoid,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "isnan": np.isnan,
    "isfinite": np.isfinite,
    "abs": np.abs,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "neg": np.negative,
}
BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "pow": np.power,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "floor_divide": np.floor_divide,
    "remainder": np.remainder,
    "less": np.less,
    "less_equal": np.less_equal,
    "equal": np.equal,
}
POINTS = np.array(
    [0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 3.5, 7.0, -7.0, 1e-3], np.float32
)
WHOLE = np.array([0, 1, -1, 2, -2, 3, -3, 7, -7, 31, 32, 33, 12345, 2**31 - 1, -(2**31)], np.int32)
INTEGER: dict[str, Callable[[Array, Array], Array]] = {
    "floor_divide": np.floor_divide,
    "remainder": np.remainder,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "shl": np.left_shift,
    "shr": np.right_shift,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "less": np.less,
    "equal": np.equal,
}
PREDICATES = frozenset({"isnan", "isfinite", "less", "less_equal", "equal"})


def pairs(points: Array) -> tuple[Array, Array]:
    """Every point with every other, as two flat arrays."""
    a, b = np.meshgrid(points, points)
    return a.ravel(), b.ravel()


def formula(op: str, dtype: DType, operands: int, size: int) -> tuple[Expr, Var]:
    """`op` of one or two stored arrays, element by element, and its loop variable."""
    var = Var("i0", size)
    args = tuple(load(v, of_var(var), dtype) for v in (A, B)[:operands])
    return expr(op, args, bool_ if op in PREDICATES else dtype), var


def special_values() -> list[tuple[str, Expr, Var, list[Array], Array]]:
    """(what, expression, variable, stored arrays, expected) for every edge that has one right answer."""
    out = []
    with np.errstate(all="ignore"):
        for op, exact in UNARY.items():
            e, var = formula(op, f32, 1, SPECIAL.size)
            out.append((op, e, var, [SPECIAL], exact(SPECIAL.astype(np.float64)).astype(e.dtype.numpy)))
        for op in ("sin", "cos"):
            x = np.array([0.0, -0.0, INF, -INF, NAN], np.float32)
            e, var = formula(op, f32, 1, x.size)
            out.append((op, e, var, [x], getattr(np, op)(x)))
        for dtype, ends in ((i32, (-(2**31), 2**31 - 1)), (u32, (0, 2**32 - 1))):
            x = np.array(
                [-1.9, 1.9, 3e9, -3e9, NAN, INF, -INF, 5e9, -0.5, 2147483520, 2147483648, 4294967040], np.float32
            )
            var = Var("i0", x.size)
            whole = np.clip(np.trunc(np.nan_to_num(x.astype(np.float64), posinf=5e9, neginf=-5e9)), *ends)
            e = expr("cast", (load(A, of_var(var), f32),), dtype)
            out.append((f"cast to {dtype}", e, var, [x], whole.astype(np.int64).astype(dtype.numpy)))
        a, b = pairs(POINTS)
        for op, exact2 in BINARY.items():
            e, var = formula(op, f32, 2, a.size)
            out.append((op, e, var, [a, b], exact2(a, b)))
    return out


def integer_values(dtype: DType) -> list[tuple[str, Expr, Var, list[Array], Array]]:
    """The same for whole numbers, which must agree exactly."""
    a, b = (x.view(dtype.numpy) for x in pairs(WHOLE))
    out = []
    with np.errstate(all="ignore"):
        for op, exact in INTEGER.items():
            e, var = formula(op, dtype, 2, a.size)
            out.append((op, e, var, [a, b], exact(a, b)))
    return out
