"""The losses that are compared with PyTorch: rows as in `operations`, each under every reduction.

Among them are ties, classes cut off by -inf, logits that overflow, weights of 0, rows that
are all ignored, and empty batches.
"""

from __future__ import annotations

import numpy as np
from operations import INF, LOGITS, SPECIAL, A, B, Row, f, i, normal


def each(expr: str, inputs: dict[str, np.ndarray], torch: str | None = None, name: str = "") -> list[Row]:
    """A loss under each reduction; `R` in the expression stands for the argument."""
    return [
        Row(
            f"{name or expr.partition('(')[0]} {r}",
            expr.replace("R", f"reduction='{r}'"),
            inputs,
            torch and torch.replace("R", f"reduction='{r}'"),
        )
        for r in ("none", "sum", "mean")
    ]


def weighted(expr: str, inputs: dict[str, np.ndarray], name: str, grad: bool = True) -> list[Row]:
    """A loss whose weight `w` has no gradient in PyTorch."""
    rows = each(expr.replace("w)", "stop_gradient(w))"), inputs, expr.replace("w)", "w.detach())"), name)
    return [row._replace(grad=grad) for row in rows]


CLASS = {"x": LOGITS, "t": i(0, 3, 2, -100, 1)}
WEIGHTED = {**CLASS, "w": f(0.5, 2, 0, 1.5)}
MIXED = np.abs(normal(5, 4, seed=3))
SOFT = {"x": LOGITS, "p": MIXED / MIXED.sum(1, keepdims=True)}
CUT = f([[-INF, 2, 1, 0], [0.5, -INF, -1, -INF], [1e30, 0, -1e30, 5], [-90, 90, 0, 1]])
# differences on both sides of the bends, on them, ties, and beyond what can be squared
APART = {"a": f(0, 1, -2, 0.5, 3, -1e25, 2, 1.5), "b": f(0, 2, 0, 0, -4, 1e25, 2, 1)}
CHANCE = {"x": f(0.1, 0.9, 0.5, 1e-6, 0, 1, 0, 1), "p": f(0, 1, 0.3, 1, 0, 1, 1, 0)}
YES = {
    "x": f([[-100, -20, 0, 1e-3], [3, 30, 1e4, -1e4], [0.5, -0.5, 88, -88]]),
    "p": f([[0, 1, 0.3, 1], [0, 1, 1, 1], [0.7, 0, 0, 1]]),
}
ANGLE = {
    "a": f([[1, 2, 2], [3, 0, 4], [0, 0, 0], [1e-5, 0, 0], [1, 0, 0]]),
    "b": f([[2, 4, 4], [0, 2, 0], [1, 1, 1], [1, 1, 0], [-2, 0, 0]]),
}
LOSSES = [
    *weighted("cross_entropy(x, t, R, weight=w)", WEIGHTED, "cross_entropy weight"),
    *each("cross_entropy(x, t, R, label_smoothing=0.3)", CLASS, name="cross_entropy smoothing"),
    *weighted("cross_entropy(x, t, R, label_smoothing=0.3, weight=w)", WEIGHTED, "cross_entropy weight smoothing"),
    *each("cross_entropy(x, p, R)", SOFT, name="cross_entropy probabilities"),
    *each("cross_entropy(x, p, R, label_smoothing=0.2)", SOFT, name="cross_entropy probabilities smoothing"),
    *weighted("cross_entropy(x, p, R, weight=w)", {**SOFT, "w": WEIGHTED["w"]}, "cross_entropy probabilities weight"),
    Row("cross_entropy smoothing all", "cross_entropy(x, t, label_smoothing=1.0)", CLASS),
    Row("cross_entropy one row of probabilities", "cross_entropy(x, p)", {"x": LOGITS[0], "p": SOFT["p"][0]}),
    Row(
        "cross_entropy pixels of probabilities",
        "cross_entropy(x, p)",
        {"x": normal(2, 4, 3), "p": normal(2, 4, 3, seed=1)},
    ),
    *weighted(
        "cross_entropy(x, t, R, weight=w)",
        {"x": normal(2, 4, 3), "t": i([[0, 1, 3], [2, -100, 1]]), "w": WEIGHTED["w"]},
        "cross_entropy weight pixels",
    ),
    *each("cross_entropy(x, t, R)", {"x": CUT, "t": i(1, 0, 2, 0)}, name="cross_entropy cut"),
    *each(
        "cross_entropy(x, t, R, label_smoothing=0.1)",
        {"x": LOGITS * 1e4, "t": i(0, 3, 2, 1, 1)},
        name="cross_entropy large smoothing",
    ),
    *each("cross_entropy(x, t, R)", {"x": f([[-INF, -INF], [1, 2]]), "t": i(0, -100)}, name="cross_entropy nothing"),
    *each("cross_entropy(x, t, R)", {"x": LOGITS, "t": i([-100] * 5)}, name="cross_entropy all ignored"),
    *weighted("cross_entropy(x, t, R, weight=w)", {**WEIGHTED, "t": i(2, 2, 2, 2, 2)}, "cross_entropy no weight"),
    *each("cross_entropy(x, t, R)", {"x": LOGITS[:0], "t": i([])}, name="cross_entropy empty"),
    *each("cross_entropy(x, p, R)", {"x": LOGITS[:0], "p": LOGITS[:0]}, name="cross_entropy probabilities empty"),
    *weighted("nll_loss(log_softmax(x, dim=1), t, R, weight=w)", WEIGHTED, "nll_loss weight"),
    *each("nll_loss(x, t, R)", {"x": f([[-INF, 2, 1], [0.5, -INF, -1]]), "t": i(0, 2)}, name="nll_loss cut"),
    *(row for e in ("l1_loss(a, b, R)", "smooth_l1_loss(a, b, R)", "huber_loss(a, b, R)") for row in each(e, APART)),
    *(
        row
        for b in (0, 0.5, 2)
        for row in each(f"smooth_l1_loss(a, b, R, beta={b})", APART, name=f"smooth_l1_loss {b}")
    ),
    *(row for d in (0.5, 2) for row in each(f"huber_loss(a, b, R, delta={d})", APART, name=f"huber_loss {d}")),
    *(
        row
        for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div")
        for row in each(f"{name}(a, b, R)", {"a": A[:0], "b": B[:0]}, name=f"{name} empty")
    ),
    Row("l1_loss special", "l1_loss(a, b, reduction='none')", {"a": SPECIAL, "b": SPECIAL[::-1]}, grad=False),
    Row("huber_loss special", "huber_loss(a, b, reduction='none')", {"a": SPECIAL, "b": SPECIAL[::-1]}, grad=False),
    *each("binary_cross_entropy(x, p, R)", CHANCE),
    *weighted(
        "binary_cross_entropy(x, p, R, weight=w)", {**CHANCE, "w": np.abs(normal(8))}, "binary_cross_entropy weight"
    ),
    *each("binary_cross_entropy_with_logits(x, p, R)", YES),
    *weighted(
        "binary_cross_entropy_with_logits(x, p, R, weight=w)", {**YES, "w": f([1], [0], [2])}, "bce logits weight"
    ),
    *weighted(
        "binary_cross_entropy_with_logits(x, p, R, pos_weight=w)",
        {**YES, "w": f(1, 0, 0.5, 3)},
        "bce logits pos_weight",
    ),
    *each("binary_cross_entropy_with_logits(x, p, R)", {"x": A[:0], "p": B[:0]}, name="bce logits empty"),
    *each("kl_div(log_softmax(x, dim=1), p, R)", SOFT, name="kl_div"),
    *each("kl_div(x, y, R, log_target=True)", {"x": LOGITS, "y": normal(5, 4, seed=2)}, name="kl_div log_target"),
    Row("kl_div batchmean", "kl_div(x, p, reduction='batchmean')", SOFT),
    Row("kl_div zeros", "kl_div(x, stop_gradient(p))", {"x": A, "p": f(np.eye(3, 4))}, "kl_div(x, p.detach())"),
    Row(
        "kl_div cut",
        "kl_div(x, p, 'none')",
        {"x": CUT, "p": f(np.eye(4))},
        "kl_div(x, p, reduction='none')",
        grad=False,
    ),
    Row("cosine_similarity", "cosine_similarity(a, b)", ANGLE),
    Row("cosine_similarity broadcast", "cosine_similarity(a, b, dim=-2)", {"a": normal(2, 3, 4), "b": normal(3, 1)}),
    # below eps, PyTorch's gradient is that of the length, which does not count there
    Row("cosine_similarity eps", "cosine_similarity(a, b, dim=1, eps=10)", ANGLE, grad=False),
    *each("cosine_embedding_loss(a, b, t, R)", {**ANGLE, "t": i(1, -1, 1, -1, 1)}),
    *each(
        "cosine_embedding_loss(a, b, t, R)", {**ANGLE, "t": i(-1, -1, -1, 1, -1)}, name="cosine_embedding_loss other"
    ),
    *each(
        "cosine_embedding_loss(a, b, t, 0.5, R)",
        {**ANGLE, "t": i(-1, 1, -1, -1, -1)},
        name="cosine_embedding_loss margin",
    ),
    Row("cosine_embedding_loss one", "cosine_embedding_loss(a, b, t)", {"a": A[0], "b": B[0], "t": i(1)}),
]
