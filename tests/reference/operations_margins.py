"""Losses of margins and likelihoods, and weights of differences; rows as in `operations`."""

from __future__ import annotations

import numpy as np
from losses import APART, each, weighted
from operations import A, B, Row, f, i, normal

SIDES = {"x": f(0, 1, -2, 0.5, 3, 100, -100, 1.5), "t": i(1, 1, 1, -1, -1, -1, -1, 1)}
RANKED = {"a": f([0, 1, -2, 0.5], [3, 1, 1, 0]), "b": f([0, 2, 0, 0], [1, 1, 0.5, 0]), "t": i([1, -1, 1, -1], [1] * 4)}
THREE = {"a": normal(4, 3), "p": normal(4, 3, seed=1), "n": normal(4, 3, seed=2)}
# the target's score above, below and level with others, by the margin and not
SCORES = {"x": f([[0, 1, 2, 0], [3, -1, 2, 2], [0.5, 0.5, 0.5, 0.5], [-9, 9, 0, 1]]), "t": i(2, 0, 3, 0)}
LABELS = {
    "x": normal(4, 4),
    "t": i([[3, 0, -1, 1], [-1, 2, 1, 0], [0, 1, 2, 3], [2, 2, -1, -1]]),
}
COUNTS = {"x": normal(3, 4), "p": f([[0, 1, 2, 5], [1.5, 0.5, 30, 1], [0, 0, 7, 100]])}
SPREAD = {"a": normal(3, 4), "b": normal(3, 4, seed=1), "v": np.abs(normal(3, 4, seed=2)) + np.float32(0.1)}
WEIGHT = {**APART, "w": f(1, 0, 2, 0.5, 1, 1, 3, 0.25)}

ROWS = [
    *(
        row
        for name in ("l1_loss", "mse_loss", "huber_loss")
        for row in each(f"{name}(a, b, R, weight=w)", {**WEIGHT, "a": WEIGHT["a"] % 3}, name=f"{name} weight")
    ),
    Row("l1_loss no weight", "l1_loss(a, b, weight=w)", {"a": A, "b": B, "w": np.zeros_like(A)}),
    *each("soft_margin_loss(x * 0.5, t, R)", SIDES, name="soft_margin_loss"),
    *each("hinge_embedding_loss(x, t, R)", SIDES, name="hinge_embedding_loss"),
    *each("hinge_embedding_loss(x, t, 0.5, R)", SIDES, "hinge_embedding_loss(x, t, margin=0.5, R)"),
    Row("hinge_embedding_loss other", "hinge_embedding_loss(x, t)", {"x": A, "t": f(np.eye(3, 4))}),
    *each("margin_ranking_loss(a, b, t, R)", RANKED),
    *each("margin_ranking_loss(a, b, t, 0.5, R)", RANKED, "margin_ranking_loss(a, b, t, margin=0.5, R)"),
    Row(
        "margin_ranking_loss broadcast", "margin_ranking_loss(a, b, t)", {"a": A, "b": B[:1], "t": i([[1], [-1], [1]])}
    ),
    *each("triplet_margin_loss(a, p, n, R)", THREE),
    *each(
        "triplet_margin_loss(a, p, n, 0.5, 1.5, 1e-3, True, R)",
        THREE,
        "triplet_margin_loss(a, p, n, 0.5, 1.5, 1e-3, True, R)",
        "triplet_margin_loss swap",
    ),
    Row(
        "triplet_margin_loss one",
        "triplet_margin_loss(a[0], p[0], n[0], p=1)",
        THREE,
        "triplet_margin_loss(a[0], p[0], n[0], p=1)",
    ),
    Row(
        "triplet_margin_with_distance_loss", "triplet_margin_with_distance_loss(a, p, n, margin=2.0, swap=True)", THREE
    ),
    Row(
        "triplet_margin_with_distance_loss cosine",
        "triplet_margin_with_distance_loss(a, p, n, distance_function=lambda x, y: 1 - cosine_similarity(x, y))",
        THREE,
    ),
    *each("multi_margin_loss(x, t, R)", SCORES),
    *each(
        "multi_margin_loss(x, t, 2, 0.5, R)", SCORES, "multi_margin_loss(x, t, 2, 0.5, R)", "multi_margin_loss squares"
    ),
    *weighted(
        "multi_margin_loss(x, t, R, p=2, weight=w)", {**SCORES, "w": f(0.5, 2, 0, 1.5)}, "multi_margin_loss weight"
    ),
    Row("multi_margin_loss one", "multi_margin_loss(x, t)", {"x": A[0], "t": i(1)}),
    *each("multilabel_margin_loss(x, t, R)", LABELS),
    Row("multilabel_margin_loss one", "multilabel_margin_loss(x, t)", {"x": A[0], "t": i(1, 3, -1, 0)}),
    *each("multilabel_soft_margin_loss(x, p, R)", {"x": A * 30, "p": f(B > 0)}, name="multilabel_soft_margin_loss"),
    *weighted(
        "multilabel_soft_margin_loss(x, p, R, weight=w)",
        {"x": A, "p": f(B > 0), "w": f(1, 0, 2, 0.5)},
        "multilabel_soft_margin_loss weight",
    ),
    *each("poisson_nll_loss(x, p, R)", COUNTS, name="poisson_nll_loss"),
    *each(
        "poisson_nll_loss(x, stop_gradient(p), full=True, R)",
        COUNTS,
        "poisson_nll_loss(x, p.detach(), full=True, R)",
        "poisson_nll_loss full",
    ),
    *each(
        "poisson_nll_loss(abs(x), p, False, eps=1e-3, R)",
        COUNTS,
        "poisson_nll_loss(abs(x), p, False, eps=1e-3, R)",
        "poisson_nll_loss counts",
    ),
    *each("gaussian_nll_loss(a, b, v, R)", SPREAD),
    *each(
        "gaussian_nll_loss(a, b, v, True, 0.5, R)",
        SPREAD,
        "gaussian_nll_loss(a, b, v, full=True, eps=0.5, R)",
        "gaussian_nll_loss full",
    ),
    Row("gaussian_nll_loss shared", "gaussian_nll_loss(a, b, v[:, 0])", SPREAD),
    Row("gaussian_nll_loss axis", "gaussian_nll_loss(a, b, v[:1])", SPREAD),
    Row("gaussian_nll_loss number", "gaussian_nll_loss(a, b, 0.5)", {n: SPREAD[n] for n in "ab"}),
]
