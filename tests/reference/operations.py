"""The operations that are compared with PyTorch: expressions that both libraries evaluate.

A row is a name, an expression, its inputs, and (where PyTorch spells it otherwise) PyTorch's
expression. Inputs of floats get a gradient: of `sum(y * weights)`, the weights being
`cos(0), cos(1), ...`, so that no two elements have the same one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

INF, NAN = np.inf, np.nan


class Row(NamedTuple):
    name: str
    expr: str
    inputs: dict[str, np.ndarray]
    torch: str | None = None
    grad: bool = True


def f(*values: Any) -> np.ndarray:
    return np.array(values[0] if len(values) == 1 else values, np.float32)


def i(*values: Any) -> np.ndarray:
    return np.array(values[0] if len(values) == 1 else values, np.int32)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32)


SPECIAL = f(-INF, -1e30, -89, -15, -1.5, -0.5, -1e-4, -0.0, 0.0, 1e-20, 1e-4, 0.5, 1.0, 2.5, 15, 89, 1e30, INF, NAN)
ANGLES = f(-1000.25, -7.5, -1.5707964, -1e-3, 0.0, 1e-6, 0.7, 3.1415927, 100.0, 12345.678)
POSITIVE = f(0.0, 1e-30, 1e-5, 0.5, 1.0, 2.0, 1e5, 1e30, INF, NAN, -1.0)
SMALL = f(-0.999, -0.5, -1e-3, -1e-7, 0.0, 1e-8, 1e-4, 0.3, 2.0, 50.0)
TIES = f([[1, 3, 3, 2], [0, 0, 0, 0], [-1, -5, -1, 4], [2, 1, 0, -1]])
LONG = i([7, -7, 7, -7, 0, 5, -5, 2147483647, -2147483648])
BY = i([3, 3, -3, -3, 4, 5, 5, 10, 7])
A, B, ROW, COLUMN = normal(3, 4), normal(3, 4, seed=1), normal(4), normal(3, 1)
LOGITS = normal(5, 4) * 3
MASKED = f([[-INF, 2, 1, 0], [0.5, -INF, -1, -INF], [-INF, -INF, -INF, 3], [1e30, 0, -1e30, 5]])

UNARY = [
    Row(f"{name}", f"{name}(x)", {"x": x})
    for names, x in (
        (("neg", "floor", "ceil", "round", "exp", "expm1", "tanh", "sigmoid", "erf"), SPECIAL),
        (("abs", "sign"), SPECIAL[:-1]),  # of NaN the array API's sign is NaN, PyTorch's 0
        (("relu", "silu", "gelu", "square"), SPECIAL[1:-2]),
        (("sin", "cos"), ANGLES),
        (("sqrt", "rsqrt", "log"), POSITIVE),
        (("log1p", "expm1"), SMALL),
    )
    for name in names
]

BINARY = [
    *(Row(name, f"{name}(a, b)", {"a": A, "b": B}) for name in ("add", "sub", "mul", "div")),
    Row("add row", "a + b", {"a": A, "b": ROW}),
    Row("mul column", "a * b", {"a": COLUMN, "b": A}),
    Row("div outer", "a / b", {"a": COLUMN, "b": ROW}),
    Row("scalars", "2 / (3 - a * 2) + 1", {"a": A}),
    Row("maximum ties", "maximum(a, b)", {"a": f(1, 2, -3, NAN, 0), "b": f(1, 1, INF, 2, 0)}),
    Row("minimum ties", "minimum(a, b)", {"a": f(1, 2, -3, NAN, 0), "b": f(1, 1, INF, 2, 0)}),
    Row("pow", "pow(a, b)", {"a": f(2, 0.5, 3, 0, 0, 7, -2, -2, 4), "b": f(3, -2, 0.5, 0, 2, 0, 3, 2, -0.5)}),
    Row(
        "pow of integers",
        "a ** b",
        {"a": i(7, -3, 2, 0, -1, 5, 10, 1, -2), "b": i(10, 5, 31, 0, -3, -1, 9, -7, 32)},
        grad=False,
    ),
    Row("pow negative base", "pow(a, b)", {"a": f(-2, -0.5), "b": f(0.5, 1.5)}),
    *(Row(f"pow {n}", f"x ** {n}", {"x": f(-2, -0.5, 0.5, 3)}) for n in (-2, -1, 0, 1, 2, 3, 8)),
    Row("pow half", "x ** 0.5", {"x": f(0.25, 4, 9)}),
    Row("remainder floats", "a % b", {"a": f(5.5, -5.5, 5.5, -5.5, 1e6), "b": f(2, 2, -2, -2, 3)}),
    Row("floor_divide floats", "a // b", {"a": f(5.5, -5.5, 5.5, -5.5), "b": f(2, 2, -2, -2)}, grad=False),
    Row("remainder ints", "a % b", {"a": LONG, "b": BY}, grad=False),
    Row("floor_divide ints", "a // b", {"a": LONG, "b": BY}, grad=False),
    Row("int div", "a / b", {"a": LONG[:7], "b": BY[:7]}, grad=False),
    Row("int with float", "a * 0.5", {"a": LONG[:7]}, grad=False),
    Row("where", "where(a > b, a, b * 2)", {"a": A, "b": B}),
    Row("clamp", "clamp(x, -1, 1)", {"x": f(-2, -1, -0.5, 1, 3, INF)}),
    Row("clamp nan", "clamp(x, -1, 1)", {"x": f(NAN, 3)}, grad=False),
    Row("clamp below", "clamp(x, 0)", {"x": f(-2, 0, 3)}),
    *(Row(o, f"(a {o} b) * 1", {"a": SPECIAL, "b": SPECIAL[::-1]}, grad=False) for o in ("<", "<=", "==", "!=", ">")),
    *(Row(n, f"{n}(x) * 1", {"x": SPECIAL}, grad=False) for n in ("isnan", "isinf", "isfinite")),
    Row("gelu tanh", "gelu(x, approximate='tanh')", {"x": SPECIAL[2:-3]}),  # beyond, PyTorch's gradient is NaN
]

REDUCTIONS = [
    *(Row(f"{n} {d}", f"{n}(x, dim={d})", {"x": normal(3, 4, 5)}) for n in ("sum", "mean") for d in (0, -1, (0, 2))),
    Row("sum all", "sum(x)", {"x": A}),
    Row("mean keepdim", "mean(x, dim=1, keepdim=True) * x", {"x": A}),
    *(Row(f"{n} {d}", f"{n}(x, dim={d})", {"x": TIES}) for n in ("amax", "amin") for d in (0, 1, (0, 1))),
    Row("amax nan", "amax(x, dim=1)", {"x": f([[1, NAN], [2, 2]])}, grad=False),
    *(Row(f"{n} {d}", f"{n}(x, dim={d})", {"x": TIES}, grad=False) for n in ("argmax", "argmin") for d in (0, 1)),
    Row("argmax nan", "argmax(x, dim=1)", {"x": f([[1, NAN, 5], [2, 2, 1]])}, grad=False),
    *(Row(f"{n} {c}", f"{n}(x, dim=1, correction={c})", {"x": A}) for n in ("var", "std") for c in (0, 1)),
    Row("int sum", "sum(x, dim=0)", {"x": i([[2147483, 5], [-7, 100000]])}, grad=False),
]

COMPOSITES = [
    *(Row(f"{n}", f"{n}(x, dim=-1)", {"x": LOGITS}) for n in ("softmax", "log_softmax", "logsumexp")),
    *(Row(f"{n} 0", f"{n}(x, dim=0)", {"x": LOGITS}) for n in ("softmax", "log_softmax", "logsumexp")),
    *(
        Row(f"{n} masked", f"{n}(x, dim=-1)", {"x": MASKED}, grad=n != "log_softmax")
        for n in ("softmax", "log_softmax")
    ),
    Row("softmax -inf row", "softmax(x, dim=-1)", {"x": f([[-INF, -INF], [1, 2]])}, grad=False),
    Row("logsumexp -inf row", "logsumexp(x, dim=-1)", {"x": f([[-INF, -INF], [1, 2]])}, grad=False),
    Row("layer_norm", "layer_norm(x, (4,), w, b)", {"x": normal(2, 3, 4), "w": ROW, "b": normal(4, seed=2)}),
    Row("layer_norm two axes", "layer_norm(x, (3, 4))", {"x": normal(2, 3, 4)}),
    Row("layer_norm constant row", "layer_norm(x, (3,), eps=1e-3)", {"x": f([[2, 2, 2], [1, 2, 4]])}),
    Row("linear", "linear(x, w, b)", {"x": normal(2, 3, 4), "w": normal(5, 4), "b": normal(5)}),
    *(
        Row(
            f"cross_entropy {r}",
            f"cross_entropy(x, t, reduction='{r}')",
            {"x": LOGITS, "t": i(0, 3, 2, -100, 1)},
        )
        for r in ("mean", "sum", "none")
    ),
    Row("cross_entropy ignore", "cross_entropy(x, t, ignore_index=2)", {"x": LOGITS, "t": i(0, 3, 2, 2, 1)}),
    Row(
        "cross_entropy all ignored",
        "cross_entropy(x, t, ignore_index=1)",
        {"x": LOGITS, "t": i(1, 1, 1, 1, 1)},
    ),
    Row(
        "cross_entropy pixels",
        "cross_entropy(x, t)",
        {"x": normal(2, 4, 3), "t": i([[0, 1, 3], [2, -100, 1]])},
    ),
    Row("cross_entropy single", "cross_entropy(x, t)", {"x": normal(4), "t": i(2)}),
    Row("nll_loss", "nll_loss(log_softmax(x, dim=1), t)", {"x": LOGITS, "t": i(0, 3, 2, 2, 1)}),
    *(Row(f"mse_loss {r}", f"mse_loss(a, b, reduction='{r}')", {"a": A, "b": B}) for r in ("mean", "sum", "none")),
]


MATMULS = [
    Row(f"matmul {a.shape} {b.shape}", "a @ b", {"a": a, "b": b})
    for a, b in (
        (normal(3, 4), normal(4, 5)),
        (normal(4), normal(4, 5)),
        (normal(3, 4), normal(4)),
        (normal(4), normal(4, seed=1)),
        (normal(2, 3, 4), normal(4, 5)),
        (normal(2, 3, 4), normal(2, 4, 5)),
        (normal(3, 4), normal(2, 4, 5)),
        (normal(2, 1, 3, 4), normal(3, 4, 5)),
        (normal(2, 3, 4), normal(4)),
        (np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32)),
    )
] + [Row("matmul transposed", "a.T @ b.T", {"a": normal(4, 3), "b": normal(5, 4)})]

CUBE = normal(3, 4, 5)
VIEWS = [
    Row(f"view {expr}", expr, {"x": CUBE}, torch)
    for expr, torch in (
        ("x.reshape(5, -1) * 2", None),
        ("x.permute(2, 0, 1) * 2", None),
        ("x.transpose(0, 2) * 2", None),
        ("flatten(x, 1) * 2", None),
        ("x.unsqueeze(1) * 2", None),
        ("x[:1].squeeze(0) * 2", None),
        ("x[:, :1].expand(-1, 4, -1) * x", None),
        ("flip(x, dims=(0, 2)) * 2", None),
        ("narrow(x, 1, 1, 2) * 2", None),
        ("cat([x, x * 2], dim=1)", None),
        ("stack([x, x * 2], dim=-1)", None),
        ("split(x, 2, dim=1)[1] * 3", "torch.split(x, 2, dim=1)[1] * 3"),
        ("x[1] * 2", None),
        ("x[..., -1] * 2", None),
        ("x[1:, ::2, None] * 2", None),
        ("x[:, 1, 1:4:2] * 2", None),
        ("x[::-1, 3:0:-2] * 2", "x.flip(0)[:, [3, 1]] * 2"),
        ("x[2:1] * 2", None),
        ("x.swapaxes(0, 1) * 2", None),
        ("x.T * 2", "x.permute(2, 1, 0) * 2"),
        ("x.mT * 2", None),
        ("pad(x, ((1, 0), (0, 2), (1, 1)), 0.5) * 2", "F.pad(x, (1, 1, 0, 2, 1, 0), value=0.5) * 2"),
    )
]

INDEXING = [
    Row("gather rows", "w[i]", {"w": normal(4, 3), "i": i([[0, 0], [3, 0]])}),
    Row("gather columns", "w[:, i]", {"w": normal(4, 3), "i": i(2, 2, 0)}),
    Row("embedding", "embedding(w, i)", {"w": normal(4, 3), "i": i(0, 0, 0, 1)}, "F.embedding(i, w)"),
    Row("one_hot", "one_hot(i, 4)", {"i": i([[0, 3], [1, 2]])}, "F.one_hot(i, 4).float()", grad=False),
    Row("arange", "arange(2, 11, 3) + 0 * i", {"i": i(0)}, grad=False),
]

PIXELS, KERNEL = normal(2, 4, 7, 6), normal(6, 4, 3, 2)
TIED = f([[[[1, 2, 2, 0], [2, 2, 1, 0], [0, 0, 0, 0], [3, 0, 0, 3]]]])
CHANNELS = {"w": f(0.5, -1.5, 1.0, 2.0), "b": f(0.0, 1.0, -1.0, 0.5)}
IMAGES = [
    *(
        Row(f"conv2d {how}", f"conv2d(x, w, b{how})", {"x": PIXELS, "w": KERNEL, "b": normal(6)})
        for how in (
            "",
            ", padding=1",
            ", stride=2, padding=(1, 0)",
            ", stride=(3, 1), dilation=(1, 3)",
            ", padding='same'",
            ", 1, 'valid', 2",
            ", stride=3, padding=2, dilation=2",
        )
    ),
    Row("conv2d one image", "conv2d(x, w)", {"x": PIXELS[0], "w": KERNEL}),
    *(
        Row(f"conv2d {groups} groups", f"conv2d(x, w, stride=2, padding=1, groups={groups})", {"x": PIXELS, "w": w})
        for groups, w in ((2, normal(12, 2, 3, 3)), (4, normal(4, 1, 3, 3)), (4, normal(8, 1, 2, 3)))
    ),
    Row("conv2d no images", "conv2d(x, w)", {"x": PIXELS[:0], "w": KERNEL}),
    Row("conv1d", "conv1d(x, w, b, 2, 1)", {"x": normal(2, 4, 9), "w": normal(3, 4, 3), "b": normal(3)}),
    Row("conv1d same", "conv1d(x, w, padding='same', dilation=3)", {"x": normal(2, 4, 9), "w": normal(3, 4, 4)}),
    Row("max_pool2d", "max_pool2d(x, 2)", {"x": PIXELS}),
    Row("max_pool2d overlapping", "max_pool2d(x, (3, 2), stride=1, padding=1, dilation=(1, 2))", {"x": PIXELS}),
    Row("max_pool2d ties", "max_pool2d(x, 2, stride=1)", {"x": TIED}),
    Row("max_pool2d nan", "max_pool2d(x, 2)", {"x": np.where(TIED == 3, np.float32(NAN), TIED)}, grad=False),
    Row("max_pool1d", "max_pool1d(x, 3, 2, 1)", {"x": normal(2, 4, 9)}),
    Row("avg_pool2d", "avg_pool2d(x, (3, 2), 2, 1)", {"x": PIXELS}),
    Row("avg_pool2d inside", "avg_pool2d(x, 3, 2, 1, count_include_pad=False)", {"x": PIXELS}),
    Row("avg_pool2d divisor", "avg_pool2d(x, 2, divisor_override=3)", {"x": PIXELS}),
    Row("avg_pool1d", "avg_pool1d(x, 3, 2, 1)", {"x": normal(2, 4, 9)}),
    Row("adaptive_avg_pool2d", "adaptive_avg_pool2d(x, 1)", {"x": PIXELS}),
    Row("adaptive_avg_pool2d parts", "adaptive_avg_pool2d(x, (7, 3))", {"x": PIXELS}),
    Row(
        "batch_norm",
        "batch_norm(x, None, None, w, b, True, eps=1e-3)",
        {"x": PIXELS, **CHANNELS},
        "F.batch_norm(x, None, None, w, b, True, eps=1e-3)",
    ),
    Row(
        "batch_norm alone",
        "batch_norm(x, None, None, training=True)",
        {"x": PIXELS[:, :, 0]},
        "F.batch_norm(x, None, None, training=True)",
    ),
    Row(
        "batch_norm evaluation",
        "batch_norm(x, w, b * b + 0.5, b, w)",
        {"x": PIXELS, **CHANNELS},
        "(x - w.view(-1, 1, 1)) / (b * b + 0.5 + 1e-5).sqrt().view(-1, 1, 1) * b.view(-1, 1, 1) + w.view(-1, 1, 1)",
    ),
]

SDPA = "scaled_dot_product_attention"
QKV = {"q": normal(2, 3, 5, 4), "k": normal(2, 3, 7, 4, seed=1), "v": normal(2, 3, 7, 8, seed=2)}
SEEN = normal(5, 7, seed=3) < 0.5
SEEN[2] = False
BIAS = np.where(normal(2, 1, 1, 7, seed=4) < 1, normal(2, 1, 1, 7, seed=5), -INF).astype(np.float32)
NONE_SEEN = np.where(SEEN, 0.5, -INF).astype(np.float32)
SPOILT = normal(2, 3, 5, 4)
SPOILT[0, 0, 1, 2], SPOILT[1, 1, 3, 0] = NAN, INF
KEYLESS = {"q": normal(2, 3, 4), "k": np.zeros((2, 0, 4), np.float32), "v": np.zeros((2, 0, 8), np.float32)}
SHARED = {"q": normal(2, 4, 5, 4), "k": normal(2, 2, 7, 4, seed=1), "v": normal(2, 2, 7, 8, seed=2)}
ATTENTION = [
    Row("attention", f"{SDPA}(q, k, v)", QKV),
    Row("attention two axes", f"{SDPA}(q, k, v)", {n: x[0, 0] for n, x in QKV.items()}),
    Row("attention causal", f"{SDPA}(q, k, v, is_causal=True)", QKV),
    Row("attention causal few keys", f"{SDPA}(k, q, q, is_causal=True)", {"q": QKV["q"], "k": QKV["k"]}),
    Row("attention scale", f"{SDPA}(q, k, v, scale=0.3)", QKV),
    Row("attention bool mask", f"{SDPA}(q, k, v, m)", {**QKV, "m": SEEN}),
    Row("attention float mask", f"{SDPA}(q, k, v, m)", {**QKV, "m": BIAS}),
    Row("attention row of -inf", f"{SDPA}(q, k, v, m)", {**QKV, "m": NONE_SEEN}, grad=False),
    Row("attention shared heads", f"{SDPA}(q, k, v, enable_gqa=True)", SHARED),
    Row("attention broadcast", f"{SDPA}(q, k, v)", {"q": QKV["q"], "k": QKV["k"][0], "v": QKV["v"][:, :1]}),
    Row("attention odd head", f"{SDPA}(q, k, v)", {n: x[..., :3] for n, x in QKV.items()}),
    Row("attention no keys", f"{SDPA}(q, k, v)", KEYLESS, grad=False),
    # numbers of few bits: no score is rounded (in the gradient, large terms cancel)
    Row(
        "attention large scores",
        f"{SDPA}(q, k, v)",
        {**QKV, "q": np.round(QKV["q"]) * np.float32(64), "k": np.round(QKV["k"] * 4) / np.float32(4)},
        grad=False,
    ),
    Row("attention nan and inf", f"{SDPA}(q, k, v)", {**QKV, "q": SPOILT}, grad=False),
]

ROWS = [*ATTENTION, *UNARY, *BINARY, *REDUCTIONS, *COMPOSITES, *MATMULS, *VIEWS, *INDEXING, *IMAGES]
