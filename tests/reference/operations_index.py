"""Rows of indexing, views and contractions: several expressions in one program each.

An expression is written for both libraries, or as a pair (ours, PyTorch's).
"""

from __future__ import annotations

import numpy as np
from operations import Row, f, i, normal

Expr = str | tuple[str, str]


def many(name: str, inputs: dict[str, np.ndarray], *exprs: Expr, grad: bool = True) -> Row:
    """Expressions whose results are joined, so that one program computes them."""

    def joined(side: int) -> str:
        parts = (e if isinstance(e, str) else e[side] for e in exprs)
        return f"cat([{', '.join(f'({e}).reshape(-1)' for e in parts)}])"

    return Row(name, joined(0), inputs, joined(1), grad)


CUBE, SQUARE = normal(3, 4, 5), normal(4, 4)
PICK = i([[2, 0], [1, 1], [0, 3]])

INDEXING = [
    many(
        "index by arrays",
        {"x": CUBE, "i": i([[2, 0], [1, 1]]), "t": i(0, -3)},
        "x[i, t]",
        "x[i, :, t]",
        "x[:, i, t]",
        "x[i, None, t] * 2",
        "x[..., t, None]",
        "x[[0, 1], t]",
        "x[i, 1:3, t]",
        "x[1, t, i]",
        "x[t, 0, i]",
        "x[t, :, 0, None]",
        "x[i[:, :1], t, 1:]",
    ),
    many(
        "index by rows",
        {"x": CUBE, "i": i(0, 3, 1), "t": i([[4, 0], [1, 1], [2, 4]])},
        "x[arange(3), i]",
        "x[arange(3), :, i]",
        "x[arange(3)[:, None], t % 4]",
        "x[arange(3)[:, None], 1, t]",
        "x[i % 3, arange(3), 2]",
        "x[:, arange(3), i]",
        "x[arange(3), i, i]",
    ),
    many(
        "gather",
        {"x": normal(3, 4), "i": PICK, "t": i([[3], [0], [2]])},
        "gather(x, 0, i % 3)",
        "gather(x, 1, i)",
        "gather(x, -1, t)",
        "gather(x, 0, i[:2] % 3)",
        "gather(x, 1, i[:2])",
        ("take_along_axis(x, t, 1)", "torch.take_along_dim(x, t, 1)"),
        ("take_along_axis(x, t[:1] % 3, axis=0)", "torch.take_along_dim(x, t[:1] % 3, 0)"),
        ("take_along_axis(x, i.reshape(-1), None)", "torch.take_along_dim(x, i.reshape(-1))"),
        "index_select(x, 0, t[:, 0] % 3)",
        "index_select(x, 1, t[:, 0])",
        "-gather(log_softmax(x, dim=1), 1, t)",
    ),
    many(
        "scatter",
        {"x": normal(3, 4), "s": normal(3, 2), "i": i([[2, 0], [1, 3], [0, 3]]), "t": i(2, 0)},
        "scatter(x, 1, i, s)",
        ("scatter(x, 1, i, 0.5)", "torch.scatter(x, 1, i, 0.5)"),
        "scatter(x, 1, i[:2, :1], s[:2, :1])",
        "scatter(x, 0, i[:1] % 3, s[:1])",
        "scatter_add(x, 1, i, s)",
        "scatter_add(x, 1, i * 0 + 1, s)",
        "scatter_add(x, 0, i % 3, s)",
        "scatter_add(x, 0, i[:2, :1] % 3, s[:2, :1])",
        "index_add(x, 1, t, s)",
        "index_add(x, 0, t * 0, s.T.reshape(2, 3)[:, :1] * x[:2], alpha=-2)",
        "index_copy(x, 1, t, s)",
        "index_fill(x, 0, t, 1.5)",
        "index_put(x, (t, t), s[:2, 0])",
        "index_put(x, (t, t - 1), s[:2, 0], True)",
        "index_put(x, (i[:, :1] % 3, i), s, True)",
        "index_put(x, (t,), x[0])",
    ),
    many(
        "masks",
        {"x": normal(3, 4), "m": np.array([[True, False, True, False]]), "s": f(1.5)},
        "masked_fill(x, m, -1)",
        "masked_fill(x, m, s)",
        *(f"{n}(x{d})" for n in ("tril", "triu") for d in ("", ", 1", ", diagonal=-1", ", 5", ", -3")),
        (
            "x[[[False, True, False, True], [False] * 4, [True, True, False, False]]]",
            "x[torch.tensor([[False, True, False, True], [False] * 4, [True, True, False, False]])]",
        ),
        ("x[:, [True, False, False, True]]", "x[:, torch.tensor([True, False, False, True])]"),
        ("masked_select(x, [[True, False, False, True]])", "x[:, [0, 3]]"),
    ),
]

ARRANGED = [
    many(
        "axes",
        {"x": CUBE},
        "movedim(x, 0, -1)",
        "moveaxis(x, (0, 1), (2, 0))",
        "transpose(x, 0, 2)",
        ("permute_dims(x, (1, 2, 0))", "x.permute(1, 2, 0)"),
        ("unflatten(x, 1, (2, -1)).sum(1)", "x.unflatten(1, (2, -1)).sum(1)"),
        "select(x, 1, -1)",
        "cat(unbind(x, 1))",
        "cat(broadcast_tensors(x[:, :1], x[0]), 2)",
        "x[0].expand_as(x)",
        "x.view_as(x.reshape(5, 12))",
    ),
    many(
        "repeated",
        {"x": CUBE},
        "tile(x, (2, 1, 2))",
        "tile(x[0, 0], (2, 3))",
        "tile(x, (2,))",
        "x.repeat(2, 1, 1, 3)",
        "tile(x, (0, 1, 1))",
        "repeat_interleave(x, 2)",
        "repeat_interleave(x, 3, 1)",
        ("repeat_interleave(x, [2, 0, 1], dim=0)", "repeat_interleave(x, torch.tensor([2, 0, 1]), dim=0)"),
        "cat(meshgrid(x[0, 0], x[0, :, 0], indexing='ij'))",
        "cat(meshgrid(x[0, 0], x[0, :, 0], indexing='xy'))",
    ),
    many(
        "rolled",
        {"x": CUBE},
        "roll(x, 1)",
        "roll(x, -2, 1)",
        "roll(x, (7, 1), (0, 2))",
        "roll(x, (1, 2), (1, 1))",
        "roll(x, 4, 1)",
        *(f"rot90(x, {k}, ({a}, {b}))" for k, a, b in ((1, 0, 1), (2, 1, 2), (-1, 2, 0), (4, 0, 1))),
    ),
    many(
        "diagonals",
        {"x": CUBE, "s": SQUARE},
        *(f"diagonal(x, {o}, {a}, {b})" for o, a, b in ((0, 0, 1), (1, 0, 2), (-1, 2, 0), (2, -1, 0), (9, 0, 1))),
        "diagonal(s)",
        "diagonal(s, -2)",
        *(f"diag_embed(x{how})" for how in ("", ", 1", ", -2", ", 1, 0, 2", ", -1, -1, 1")),
        "diag(s, 1)",
        "diag(s[0], -1)",
        ("s.trace()", "torch.trace(s)"),
    ),
    many(
        "parts",
        {"x": normal(5, 3)},
        *(f"{n}[{at}]" for n, at in (("chunk(x, 3)", 2), ("chunk(x, 2, 1)", 1), ("chunk(x, 4)", -1))),
        "tensor_split(x, 3)[1]",
        "tensor_split(x, (1, 4))[1]",
        "tensor_split(x, (1, -1, 9), dim=0)[2]",
        "hstack([x, x])",
        "hstack([x[0], x[1]])",
        "vstack([x, x[0]])",
        "dstack([x, x])",
        "dstack([x[0], x[1]])",
        "column_stack([x[:, 0], x])",
    ),
    many(
        "padded",
        {"x": normal(2, 2, 3, 4)},
        *(
            (f"padding.pad_from_last(x, {pad}, '{mode}')", f"F.pad(x, {pad}, '{mode}')")
            for mode, pads in (
                ("constant", ((1, 2), (0, 1, 2, 0), (-1, 2, 1, -1))),
                ("reflect", ((1, 2, 2, 0), (3, 0, 0, 1))),
                ("replicate", ((3, 0, 1, 2), (-1, 2, 1, -1))),
                ("circular", ((4, 1, 0, 3),)),
            )
            for pad in pads
        ),
        ("padding.pad_from_last(x, (1, 0), value=0.5)", "F.pad(x, (1, 0), value=0.5)"),
    ),
]

A, B, C = normal(2, 3, 4), normal(2, 5, 4), normal(4, 4)
CONTRACTIONS = [
    many(
        "einsum",
        {"a": A, "b": B, "c": C, "s": normal(1, 4)},
        *(
            f"einsum('{equation}', {operands})"
            for equation, operands in (
                ("bqd,bkd->bqk", "a, b"),
                ("bqd,de,bke", "a, c, b"),
                ("...ii,b->...i", "c[None], a[0, 0, :2]"),
                (" b...d , k d ->b k ...", "a, c"),
                ("bqd,bkd->bqkd", "a, b[:1]"),
            )
        ),
    ),
    many(
        "products",
        {"a": A, "b": B, "c": C, "s": normal(4)},
        "tensordot(a, b, ([0, 2], [0, -1]))",
        "outer(s, a[0, 0])",
        "dot(s, a[0, 0])",
        "kron(a[0], c)",
        "kron(s, c)",
        "mm(a[0], c)",
        "mv(c, s)",
        "bmm(a, b.transpose(1, 2))",
        "addmm(s, a[0], c, beta=0.5, alpha=2)",
        "baddbmm(s, a, b.transpose(1, 2)[:, :, :4])",
        "bilinear(a, a[..., :3], b[0, :, :, None] * s[:3], b[1, :, 0])",
    ),
    many(
        "distances",
        {"a": A, "b": np.concatenate([B[:, :2], A[:, :1]], 1)},
        *(f"cdist(a, b{p})" for p in ("", ", 1.0", ", 3.0", ", inf")),
        "cdist(a[0], b)",
    ),
    many(
        "distances with ties",
        {"a": f(0, 1, 2, 2).reshape(2, 2), "b": f(0, 1, 2, 3, 1, 1).reshape(3, 2)},
        *(f"cdist(a, b{p})" for p in (", 1.0", ", inf")),
    ),
    many("parts of nothing", {"x": normal(2, 0, 3)}, "split(x, 2, 1)[0]", "softmax(x, 1)", "log_softmax(x, 1)"),
]

ANGLES = "(arange(5.0)[:, None] + 3) * 100.0 ** (-arange(0, {0}, 2.0) / {0})"
HALVES = "x[..., :h] * cos(w) - x[..., h:d] * sin(w), x[..., h:d] * cos(w) + x[..., :h] * sin(w)"


def turned(size: int) -> str:
    """Rows from 3 on with the first features turned, in base 100."""
    return f"(lambda w, h, d: torch.cat([{HALVES}, x[..., d:]], -1))({ANGLES.format(float(size))}, {size // 2}, {size})"


HEADS = [
    many(
        "heads",
        {"x": normal(2, 5, 8)},
        ("split_heads(x, 4)", "x.view(2, 5, 4, 2).transpose(1, 2)"),
        ("merge_heads(split_heads(x * x, 4))", "x * x"),
        ("rope(x, 3, 100.0)", turned(8)),
        ("rope(x, 3, 100.0, dim=4)", turned(4)),
    ),
]

ROWS = [*INDEXING, *ARRANGED, *CONTRACTIONS, *HEADS]
