"""Rows of elementwise functions, activations, norms, reductions and creation; see `operations`."""

from __future__ import annotations

import numpy as np
from operations import INF, NAN, Row, f, i, normal

B = np.array([[True, False, True], [False, False, True]])
EDGES = f(-INF, -1e30, -88, -3.5, -2, -1.5, -0.5, -1e-4, -0.0, 0.0, 1e-20, 1e-4, 0.5, 1.0, 2.5, 30, 88, 1e30, INF, NAN)
FINITE, BEYOND = EDGES[1:-2], EDGES[[0, -2, -1]]
INSIDE = f(-1, -0.99, -0.7, -0.5, -1e-3, -1e-20, 0.0, 1e-5, 0.3, 0.99, 1, 1.5, -3, INF, NAN)
WITHIN = INSIDE[1:10]
ANGLES = f(-100.25, -7.5, -1.5, -1e-3, 0.0, 1e-6, 0.7, 1.25, 3.1415927, 100.0)
CORNERS = f(-4, -3, -2, -1, -0.5, -0.25, 0.0, 0.25, 0.5, 1, 2, 3, 5.5, 6, 7)
POSITIVE = f(0.0, 1e-30, 1e-5, 0.5, 1.0, 2.0, 8, 1e5, 1e30, INF, NAN, -1.0)
WHOLE = i(-7, -1, 0, 1, 2, 5)


def grid(*values: float) -> dict[str, np.ndarray]:
    """Every pair of the values, as two operands that broadcast."""
    return {"a": f(values)[:, None], "b": f(values)}


def each(names: str, x: np.ndarray, label: str = "", grad: bool = True) -> list[Row]:
    return [Row(f"{name} {label}".strip(), f"{name}(x)", {"x": x}, grad=grad) for name in names.split()]


MATH = [
    *each("tan", ANGLES),
    *each("asin acos atanh logit", INSIDE, grad=False),
    *each("asin acos atanh", WITHIN, "inside"),
    Row("logit inside", "logit(x)", {"x": f(1e-4, 0.1, 0.5, 0.9)}),
    Row("logit eps", "logit(x, 0.1)", {"x": f(-1, 0, 0.05, 0.3, 0.95, 1)}),
    *each("atan sinh cosh asinh erfc exp2 softsign deg2rad rad2deg", EDGES, grad=False),
    *each("atan sinh cosh asinh erfc exp2 softsign deg2rad rad2deg", f(-9, -2, -0.5, 0.0, 1e-3, 1.0, 9), "inside"),
    Row("acosh", "acosh(x)", {"x": f(1, 1.0001, 1.5, 3, 1e10, 3e38, INF, NAN, 0.5, -5)}, grad=False),
    Row("acosh inside", "acosh(x)", {"x": f(1.0001, 1.5, 3, 1e5)}),
    *each("log2 log10", POSITIVE),
    *each("trunc frac", f(-2.5, -1, -0.5, 0.0, 0.75, 3, 1e30)),
    *each("trunc signbit isposinf isneginf nan_to_num reciprocal", EDGES, "edges", grad=False),
    *each("reciprocal", f(-2, 0.5, 1e20)),
    *each("sinc", f(-3.25, -1, -0.3, 0.0, 0.4, 0.5, 2.0)),  # beside 0 the digits of PyTorch's gradient cancel
    Row("nan_to_num given", "nan_to_num(x, 1.5, neginf=-2)", {"x": EDGES}),
    Row("fmod", "fmod(a, b)", {"a": f(5.5, -5.5, 5.5, -5.5, 1e6, -0.5, 3), "b": f(2, 2, -2, -2, 3, 1, INF)}),
    Row("fmod edges", "fmod(a, b)", {"a": f(1, INF, -1e-10, NAN, 2), "b": f(0, 2, 1, 1, NAN)}, grad=False),
    Row("fmod ints", "fmod(a, b)", {"a": i(7, -7, 7, -7, 0), "b": i(3, 3, -3, -3, 4)}, grad=False),
    *(
        Row(f"div {m}", f"div(a, b, rounding_mode='{m}')", {"a": a, "b": b}, grad=False)
        for m in ("trunc", "floor")
        for a, b in ((f(5.5, -5.5, 5, -6), f(2, 2, -2, -2)), (i(7, -7, 7, -7, 6), i(3, 3, -3, -3, -3)))
    ),
    *(
        Row(f"{n} edges", f"{n}(a, b)", grid(-INF, -1e30, -2, -0.0, 0, 0.5, 1e30, INF, NAN), grad=False)
        for n in ("atan2", "hypot", "copysign", "fmax", "fmin", "logaddexp", "logaddexp2")
    ),
    *(
        Row(n, f"{n}(a, b)", {"a": normal(3, 4), "b": normal(4)})
        for n in ("atan2", "hypot", "copysign", "fmax", "fmin", "logaddexp", "logaddexp2")
    ),
    *(Row(f"{n} ties", f"{n}(a, b)", {"a": f(0, 1, NAN, 2), "b": f(0, 1, 2, NAN)}) for n in ("fmax", "fmin")),
    Row("copysign zero", "copysign(a, b)", {"a": f(0, -0.0, 2, -2), "b": f(-1, 1, -0.0, 0)}),
    Row("logaddexp far", "logaddexp(a, b)", {"a": f(-1000, 1000, 0, 3), "b": f(1000, 999, -INF, 3)}),
    Row("xlogy", "xlogy(a, b)", {"a": f(0, 0, 0, 2, -1.5, 3), "b": f(0, -1, 2, 0.5, 3, 1)}),
    Row("xlogy edges", "xlogy(a, b)", grid(-1, 0, 2, INF, NAN), grad=False),
    Row("lerp", "lerp(a, b, w)", {"a": normal(3, 4), "b": normal(4), "w": f(0, 0.25, 0.75, 1)}),
    Row("lerp number", "lerp(a, b, 0.3)", {"a": normal(3, 4), "b": normal(3, 4, seed=1)}),
    Row("addcmul", "addcmul(x, a, b, value=0.5)", {"x": normal(3, 4), "a": normal(3, 1), "b": normal(4)}),
    Row("addcdiv", "addcdiv(x, a, b, value=-2)", {"x": normal(3, 4), "a": normal(3, 1), "b": normal(4)}),
    *each("tan atan sinh exp2 log2 reciprocal deg2rad signbit trunc", WHOLE, "ints", grad=False),
    *each("atan exp2 erfc", B, "bools", grad=False),
]

LOGIC = [
    *(
        Row(f"{n} {a.dtype}", f"{n}(a, b) * 1", {"a": a, "b": b}, grad=False)
        for n in ("logical_and", "logical_or", "logical_xor", "eq", "ne", "lt", "le", "gt", "ge")
        for a, b in ((f(0, 0, 2, NAN, -0.0), f(0, 1, 0, 0, -3)), (i(0, 0, 2, 3), i(0, 4, 0, 3)))
    ),
    *(Row(f"logical_not {x.dtype}", "logical_not(x) * 1", {"x": x}, grad=False) for x in (EDGES, WHOLE, B)),
    Row("bitwise_not", "bitwise_not(x)", {"x": WHOLE}, grad=False),
    Row("bitwise_not bools", "bitwise_not(x) * 1", {"x": B}, grad=False),
    Row("isclose", "isclose(a, b) * 1", grid(1, 1.000001, 1.1, 0, 1e-9, INF, -INF, NAN), grad=False),
    Row("isclose nan", "isclose(a, b, 0.2, equal_nan=True) * 1", grid(1, 1.1, INF, NAN), grad=False),
    Row(
        "allclose", "allclose(a, a + 1e-7) * 1", {"a": f(1, 2)}, "torch.tensor(torch.allclose(a, a + 1e-7)) * 1", False
    ),
]

ACTIVATIONS = [
    *each("relu6 hardtanh leaky_relu elu selu celu softplus mish hardswish hardsigmoid", FINITE),
    *each(
        "relu6 hardtanh leaky_relu elu selu celu softplus mish hardswish hardsigmoid", EDGES[[0, -2, -1]], "inf", False
    ),
    *each("logsigmoid tanhshrink softshrink hardshrink softsign", FINITE),
    *each("logsigmoid tanhshrink softshrink hardshrink softsign", BEYOND, "inf", False),
    *each(
        "relu6 hardtanh leaky_relu elu hardswish hardsigmoid softshrink hardshrink mish softplus", CORNERS, "corners"
    ),
    Row("hardtanh given", "hardtanh(x, -2, 0.5)", {"x": CORNERS}),
    Row("leaky_relu given", "leaky_relu(x, 0.3)", {"x": CORNERS}),
    Row("elu given", "elu(x, 0.7)", {"x": CORNERS}),
    Row("celu given", "celu(x, 0.7)", {"x": CORNERS}),
    Row("softplus given", "softplus(x, 2.0, 3.0)", {"x": CORNERS}),
    Row("softshrink given", "softshrink(x, 1.0)", {"x": CORNERS}),
    Row("hardshrink given", "hardshrink(x, 1.0)", {"x": CORNERS}),
    Row("threshold", "threshold(x, 0.5, -2.0)", {"x": CORNERS}),
    Row("threshold nan", "threshold(x, 0.5, -2.0)", {"x": EDGES}, grad=False),
    Row("prelu", "prelu(x, w)", {"x": normal(2, 3, 4), "w": f(0.25, -0.5, 2)}),
    Row("prelu one", "prelu(x, w)", {"x": normal(4), "w": f(0.25).reshape(1)}),
    Row("glu", "glu(x)", {"x": normal(3, 4)}),
    Row("glu 0", "glu(x, 0)", {"x": normal(4, 3)}),
    Row("swiglu", "swiglu(x)", {"x": normal(3, 4)}, "x[:, :2] * F.silu(x[:, 2:])"),
    Row("geglu", "geglu(x)", {"x": normal(3, 4)}, "x[:, :2] * F.gelu(x[:, 2:])"),
    Row("softmin", "softmin(x, dim=0)", {"x": normal(3, 4)}),
]

NORMS = [
    Row("rms_norm", "rms_norm(x, (4,), w)", {"x": normal(2, 3, 4), "w": normal(4)}),
    Row("rms_norm eps", "rms_norm(x, (3, 4), eps=0.1)", {"x": normal(2, 3, 4)}),
    Row("rms_norm zero", "rms_norm(x, (3,))", {"x": f([[0, 0, 0], [1, 2, 4]])}),
    Row("group_norm", "group_norm(x, 2, w, b)", {"x": normal(2, 4, 3), "w": normal(4), "b": normal(4, seed=1)}),
    Row("group_norm rows", "group_norm(x, 2, eps=0.1)", {"x": normal(3, 6)}),
    Row("instance_norm", "instance_norm(x)", {"x": normal(2, 3, 2, 2)}),
    Row(
        "instance_norm affine",
        "instance_norm(x, weight=w, bias=b)",
        {"x": normal(2, 3, 5), "w": normal(3), "b": normal(3, seed=1)},
    ),
    Row("normalize", "normalize(x)", {"x": normal(3, 4)}),
    Row("normalize 1", "normalize(x, 1.0, 0)", {"x": normal(3, 4)}),
    Row("normalize zero", "normalize(x, eps=0.1)", {"x": f([[0, 0], [0.01, 0.02], [3, 4]])}),
    Row("pairwise_distance", "pairwise_distance(a, b)", {"a": normal(3, 4), "b": normal(3, 4, seed=1)}),
    Row("pairwise_distance 1", "pairwise_distance(a, b, 1.0, 0.0, True)", {"a": normal(3, 4), "b": normal(4)}),
    *(
        Row(f"local_response_norm {n}", f"local_response_norm(x, {n}, 0.5, 0.6, 2.0)", {"x": normal(2, 5, 3)})
        for n in (2, 3)
    ),
]

CUBE = normal(3, 4, 5)
ZEROS = f([[0, 2, 3, 4], [0, 5, 0, 7], [1, 2, 3, 4], [0, 0, 0, 2]])
SPOILT = f([[1, NAN, 3], [NAN, NAN, NAN], [0, 0, 2], [-INF, 1, 2]])
REDUCTIONS = [
    *(Row(f"prod {d}", f"prod(x, dim={d})", {"x": CUBE}) for d in (0, -1)),
    Row("prod all", "prod(x)", {"x": normal(3, 2)}),
    Row("prod zeros", "prod(x, dim=1, keepdim=True)", {"x": ZEROS}),
    Row("prod zeros all", "prod(x)", {"x": ZEROS}),
    Row("prod nan", "prod(x, dim=1)", {"x": SPOILT}, grad=False),
    Row("prod ints", "prod(x, dim=0)", {"x": i([[7, 46341], [-3, 46341]])}, "prod(x, dim=0).int()", grad=False),
    Row("prod bools", "prod(x, dim=0)", {"x": B}, grad=False),
    Row("prod none", "prod(x, dim=0)", {"x": ZEROS[:0]}, grad=False),
    *(
        Row(f"{n} {d} {x.dtype}", f"{n}(x, dim={d}) * 1", {"x": x}, grad=False)
        for n in ("any", "all")
        for d in (0, 1)
        for x in (ZEROS, B, i([[0, -1], [0, 0]]), SPOILT, ZEROS[:0])
        if x.size or d == 0
    ),
    *(Row(f"{n} everything", f"{n}(x) * 1", {"x": ZEROS}, grad=False) for n in ("any", "all", "count_nonzero")),
    Row("count_nonzero", "count_nonzero(x, dim=1)", {"x": SPOILT}, grad=False),
    *(
        Row(f"norm {p}", f"norm(x, {p}, dim=1)", {"x": np.concatenate([ZEROS, -ZEROS])})
        for p in ("2", "'fro'", "1", "3", "1.5", "0.5", "inf", "-inf", "0")
    ),
    Row("norm all zeros", "norm(x)", {"x": f(0, 0, 0)}),
    Row("norm 3 all zeros", "norm(x, 3)", {"x": f(0, 0, 0)}),
    Row("norm two axes", "norm(x, 3, dim=(0, 2), keepdim=True)", {"x": CUBE}),
    Row("nansum", "nansum(x, dim=1)", {"x": SPOILT}),
    Row("nanmean", "nanmean(x, dim=1)", {"x": SPOILT[::2]}),
    Row("nanmean of none", "nanmean(x, dim=1)", {"x": SPOILT[1:2]}, grad=False),
    *(Row(f"logsumexp {d}", f"logsumexp(x, dim={d}, keepdim=True)", {"x": CUBE}) for d in ((0, 1), (0, -1))),
    Row(
        "logsumexp edges", "logsumexp(x, dim=1)", {"x": f([[INF, 1], [-INF, -INF], [NAN, 1], [INF, -INF]])}, grad=False
    ),
    Row("logsumexp none", "logsumexp(x, dim=0)", {"x": ZEROS[:0]}, grad=False),
    *(Row(f"{n}[0]", f"{n}(x, dim=(0, 2), keepdim=True)[0]", {"x": CUBE}) for n in ("var_mean", "std_mean", "aminmax")),
    *(Row(f"{n}[1]", f"{n}(x, dim=(0, 2), correction=2)[1]", {"x": CUBE}) for n in ("var_mean", "std_mean")),
    *(Row(f"{n} of two", f"{n}(a, b)", {"a": normal(3, 4), "b": normal(3, 4, seed=1)}) for n in ("max", "min")),
    Row("std constant", "std(x, dim=1)", {"x": f([[2, 2, 2], [1, 2, 4]])}),
    Row("var unbiased", "var(x, dim=1, unbiased=False)", {"x": normal(3, 4)}),
    Row("var of one", "var(x, dim=1)", {"x": normal(3, 1)}, grad=False),
]
# aminmax takes one axis in PyTorch
REDUCTIONS = [
    row._replace(torch=f"{row.expr[:-3]}".replace("aminmax", "amin")) if row.name == "aminmax[0]" else row
    for row in REDUCTIONS
]

CREATION = [
    Row(name, f"{expr} + 0 * x", {"x": f(0)}, torch and f"{torch} + 0 * x", grad=False)
    for name, expr, torch in (
        ("ones_like", "ones_like(arange(3)) * 3", None),
        ("zeros_like", "zeros_like(arange(3)) + 2", None),
        ("linspace", "linspace(-1, 2.5, 7)", None),
        ("linspace long", "linspace(0.1, 0.7, 100)", None),
        ("linspace one", "linspace(3, 5, 1)", None),
        ("linspace none", "linspace(3, 5, 0)", None),
        ("logspace", "logspace(-2, 2, 5)", None),
        ("logspace base", "logspace(0, 3, 7, 2)", None),
        ("eye", "eye(3)", None),
        ("eye wide", "eye(2, 4)", None),
        ("full", "full((2, 3), 1.5)", None),
        ("full_like", "full_like(x, 2.5)", None),
        ("zeros", "zeros(2, 3)", None),
        ("ones", "ones((2, 3))", None),
        ("empty", "empty(2, 3) * 0", None),
        ("arange", "arange(5)", None),
        ("arange floats", "arange(0, 1, 0.1)", None),
        ("arange down", "arange(5, -2.5, -1.5)", None),
        ("arange none", "arange(3, 3)", None),
        ("arange end", "arange(1.5, 5)", None),
    )
]

ROWS = [*MATH, *LOGIC, *ACTIVATIONS, *NORMS, *REDUCTIONS, *CREATION]
