"""Functions of several families that no other file compares with PyTorch; rows as in `operations`."""

from __future__ import annotations

from operations import INF, A, B, Row, f, i, normal

CUBE = normal(2, 3, 4)
TIES = {
    "x": f([3, 3, 1, -INF], [0, 2, 2, 2]),
    "i": i([0, 0, 2, 3], [1, 1, 1, 1]),
    "y": f([3, 3, 5, -INF], [2, 2, 0, 2]),
}
LINES = {"x": normal(3, 4), "i": i([[0, 0, 3, 1, 0], [2, 2, 2, 2, 2], [3, 2, 1, 0, 0]]), "y": normal(3, 5, seed=1)}
WHOLE = {"x": i([5, -3, 2], [7, 0, 1]), "i": i([0, 0, 2, 2], [1, 1, 1, 0]), "z": i([4, -4, 9, 1], [3, 3, -8, 2])}
KINDS = ("sum", "prod", "mean", "amax", "amin")


def _reduced(name: str, call: str, inputs: dict, dim: int = 1) -> list[Row]:
    """`scatter_reduce` of every kind, with the element itself and without."""
    return [
        Row(
            f"scatter_reduce {name} {kind}{'' if own else ' of others'}",
            f"scatter_reduce(x, {dim}, i, {call}, '{kind}', include_self={own})",
            inputs,
        )
        for kind in KINDS
        for own in (True, False)
    ]


ROWS = [
    Row("addmv", "addmv(a, m, v)", {"a": normal(3), "m": A, "v": normal(4)}),
    Row("addmv scaled", "addmv(a, m, v, beta=0.5, alpha=-2.0)", {"a": normal(1), "m": A, "v": normal(4, seed=2)}),
    Row("inner", "inner(a, b)", {"a": CUBE, "b": normal(5, 4)}),
    Row("inner numbers", "inner(a, b)", {"a": CUBE, "b": f(2.5)}),
    Row("take", "take(x, i)", {"x": CUBE, "i": i([[0, 23, 5], [5, 5, 12]])}),
    Row("take axis", "take(x, i, 1)", {"x": CUBE, "i": i([2, 0, 2])}, "index_select(x, 1, i)"),
    Row("broadcast_to", "broadcast_to(x, (2, 3, 4))", {"x": normal(3, 1)}),
    Row("cast", "cast(x, tensor(1).dtype)", {"x": A * 3}, "x.to(torch.int32)", grad=False),
    Row("cast to bool", "cast(x, equal(x, x).dtype)", {"x": f(0, -0.0, 0.5, -2)}, "x.to(torch.bool)", grad=False),
    Row("tensor", "tensor(x) * tensor([1.0, 2.0, 3.0, 4.0])", {"x": A}, "x * torch.tensor([1.0, 2.0, 3.0, 4.0])"),
    Row("asarray", "asarray(x) + asarray([[1], [2], [3]])", {"x": A}, "x + torch.asarray([[1], [2], [3]])"),
    Row("bitcast", "bitcast(x, tensor(1).dtype)", {"x": A}, "x.view(torch.int32)", grad=False),
    Row(
        "checkpoint",
        "checkpoint(lambda t: tanh(t) * t, x)",
        {"x": A},
        "torch.utils.checkpoint.checkpoint(lambda t: tanh(t) * t, x, use_reentrant=False)",
    ),
    Row("iota", "iota((3, 4), 1)", {}, "torch.arange(4).expand(3, 4)", grad=False),
    Row(
        "softmax_causal",
        "softmax_causal(x)",
        {"x": normal(2, 4, 4)},
        "softmax(x.masked_fill(torch.ones(4, 4).triu(1).bool(), -torch.inf), -1)",
    ),
    Row(
        "where_causal",
        "where_causal(x, 0.5)",
        {"x": normal(2, 4, 4)},
        "x.masked_fill(torch.ones(4, 4).triu(1).bool(), 0.5)",
    ),
    Row("sum_to_shape", "sum_to_shape(x, (3, 1))", {"x": CUBE}, "x.sum_to_size(3, 1)"),
    Row("window", "window(x, (3,), 2)", {"x": normal(2, 9)}, "x.unfold(-1, 3, 2)"),
    Row(
        "linear_scan",
        "linear_scan(a, b, -1)",
        {"a": A, "b": B},
        "torch.stack([h := b[:, 0], h := a[:, 1] * h + b[:, 1], h := a[:, 2] * h + b[:, 2], a[:, 3] * h + b[:, 3]], 1)",
    ),
    Row("nearest_upsample2d", "nearest_upsample2d(x, 2)", {"x": normal(1, 2, 2, 3)}, "interpolate(x, scale_factor=2)"),
    *_reduced("lines", "y", LINES),
    *_reduced("columns", "y", {"x": A, "i": i([[0, 2, 2, 1], [0, 1, 2, 0]]), "y": normal(2, 4, seed=3)}, 0),
    *_reduced("ties", "y", TIES)[6::2],
    # PyTorch counts the element itself among the ties even where it is left out
    *(row._replace(grad=False) for row in _reduced("ties", "y", TIES)[7::2]),
    *(row._replace(grad=False) for row in _reduced("whole", "z", WHOLE)),
    *_reduced("zeros", "y", {"x": f([0, 2], [3, 4]), "i": i([0, 0, 1], [1, 1, 1]), "y": f([0, 5, 2], [0, 0, 3])})[2:4],
    Row("max_pool1d places", "max_pool1d(x, 3, 2, 1, return_indices=True)[1]", {"x": normal(2, 3, 7)}, grad=False),
    Row(
        "max_pool2d places",
        "max_pool2d(x, (3, 2), (2, 1), 1, (1, 2), True, True)[1]",
        {"x": normal(2, 2, 6, 7)},
        "max_pool2d(x, (3, 2), (2, 1), 1, (1, 2), True, True)[1]",
        grad=False,
    ),
    Row(
        "max_pool2d and places",
        "max_pool2d(x, 2, return_indices=True)[0]",
        {"x": f([[1, 1, 0, -INF], [1, 2, -INF, -INF]])[None]},
    ),
]
