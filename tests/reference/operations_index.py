"""Rows of indexing, views, contractions, windows and resizing: several expressions in one program each.

An expression is written for both libraries, or as a pair (ours, PyTorch's).
"""

from __future__ import annotations

import numpy as np
from operations import INF, NAN, Row, f, i, normal

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
        "inner(a, s)",
        "outer(s, a[0, 0])",
        "dot(s, a[0, 0])",
        "kron(a[0], c)",
        "kron(s, c)",
        "mm(a[0], c)",
        "mv(c, s)",
        "bmm(a, b.transpose(1, 2))",
        "addmm(s, a[0], c, beta=0.5, alpha=2)",
        "addmm(log(-s * s - 1).detach(), a[0], c, beta=0)",
        "baddbmm(s, a, b.transpose(1, 2)[:, :, :4])",
        "addmv(s, c, s, alpha=-1)",
        "bilinear(a, a[..., :3], b[0, :, :, None] * s[:3], b[1, :, 0])",
    ),
    many(
        "distances",
        {"a": A, "b": np.concatenate([B[:, :2], A[:, :1]], 1)},
        *(f"cdist(a, b{p})" for p in ("", ", 1.0", ", 3.0", ", inf")),
        "cdist(a[0], b)",
    ),
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

IMAGES, LINES = normal(2, 4, 5, 3), normal(2, 4, 6)
TRANSPOSED = [
    many(
        "conv_transpose2d",
        {"x": IMAGES, "w": normal(4, 3, 3, 2), "b": normal(3), "v": normal(4, 1, 2, 3), "s": normal(4, 6, 2, 2)},
        *(
            f"conv_transpose2d(x, {how})"
            for how in (
                "w, b",
                "w, padding=1",
                "w, b, stride=2, padding=(1, 0), output_padding=1",
                "w, stride=(3, 1), dilation=(2, 1), output_padding=(2, 0)",
                "w, stride=1, dilation=2, padding=(2, 1), output_padding=1",
                "v, groups=4",
                "v, stride=2, padding=1, groups=4",
                "s, stride=2, groups=2",
                "s[..., :1, :], groups=2, padding=(0, 1)",
            )
        ),
        "conv_transpose2d(x[0], w, stride=2)",
        "conv_transpose2d(x[:0], w, stride=2)",
    ),
    many(
        "convolutions of lines and volumes",
        {
            "x": LINES,
            "w": normal(4, 3, 3),
            "s": normal(2, 2, 3, 4, 3),
            "v": normal(4, 2, 2, 3, 2),
            "c": normal(4, 1, 3),
        },
        "conv_transpose1d(x, w, None, 2, 1, 1)",
        "conv_transpose1d(x, c, padding=1, groups=4)",
        "conv1d(x, c, dilation=2, groups=4, padding='same')",
        "conv1d(x, w.transpose(0, 1)[:, :2].contiguous()[:2], dilation=2, groups=2, padding='valid')",
        "conv3d(s, v, None, 1, (1, 0, 1))",
        "conv3d(s, v, stride=2, padding=1)",
        "conv_transpose3d(s[:, :, :2], v.transpose(0, 1).contiguous()[:, :1], stride=(1, 2, 1))",
    ),
    many(
        "unfold and fold",
        {"x": IMAGES, "a": normal(2, 12, 6)},
        "unfold(x, (3, 2))",
        "unfold(x, 2, dilation=(2, 1), padding=1, stride=2)",
        "unfold(x[0], 2)",
        "fold(a, (4, 3), (2, 2), stride=1)[:, :1] * 2",
        "fold(a, (5, 3), (3, 2))",
        "fold(a, (6, 4), 2, 2, (1, 0), (2, 1))",
        "fold(a[0], (4, 3), 2)",
    ),
]

TIES = f([[[[1, 2, 2, 0, 2], [2, 2, 1, 0, 1], [0, 0, 0, 0, 0], [3, 0, 0, 3, 1], [3, 3, 1, 1, 1]]]])
LOW = np.where(normal(1, 2, 5, 6) > 0.5, normal(1, 2, 5, 6), -INF).astype(np.float32)
LOW[0, 0, :4] = -INF
POOLS = [
    many(
        "max pools",
        {"x": normal(2, 2, 7, 6), "s": TIES},
        "max_pool2d(x, 2, ceil_mode=True)",
        "max_pool2d(x, 3, 2, 1, ceil_mode=True)",
        "max_pool2d(x, (3, 2), (2, 3), (1, 0), 2, True)",
        "max_pool2d(s, 2, 1, 1)",
        "max_pool2d(s, 3, 2, ceil_mode=True)",
        "max_pool1d(x[0], 4, 3, 2, ceil_mode=True)",
        "max_pool1d(x[0, 0], 2)",
        "adaptive_max_pool2d(x, (3, 4))",
        "adaptive_max_pool2d(x, (7, 3))",
        "adaptive_max_pool2d(s, 3)",
        "adaptive_max_pool2d(x, (None, 1))",
        "adaptive_max_pool1d(x[0], 4)",
    ),
    many(
        "max pools of -inf",
        {"x": LOW},
        "where(max_pool2d(x, 2, 2, 1) < -1e30, -9.0, max_pool2d(x, 2, 2, 1))",
        "where(adaptive_max_pool2d(x, 4) < -1e30, -9.0, adaptive_max_pool2d(x, 4))",
    ),
    many(
        "max pools of nan",
        {"x": np.where(TIES == 3, np.float32(NAN), TIES)},
        "max_pool2d(x, 2, 1, 1)",
        "adaptive_max_pool2d(x, 2)",
        grad=False,
    ),
    many(
        "average pools",
        {"x": normal(2, 2, 7, 6)},
        "avg_pool2d(x, 2, ceil_mode=True)",
        "avg_pool2d(x, 3, 2, 1, True)",
        "avg_pool2d(x, 3, 2, 1, True, False)",
        "avg_pool2d(x, (4, 3), 3, (2, 1), ceil_mode=True)",
        "avg_pool2d(x, 3, 2, 1, True, divisor_override=2)",
        "avg_pool2d(x[0], 3, 1, 1, count_include_pad=False)",
        "avg_pool1d(x[0], 4, 3, 2, True)",
        "avg_pool1d(x[0], 4, 3, 2, True, False)",
        "adaptive_avg_pool2d(x, (3, 4))",
        "adaptive_avg_pool2d(x, (7, 5))",
        "adaptive_avg_pool2d(x, (None, 2))",
        "adaptive_avg_pool2d(x, (9, 1))",
        "adaptive_avg_pool1d(x[0], 5)",
        "adaptive_avg_pool1d(x[0], 3)",
        "lp_pool2d(x, 2, 3, 2)",
        ("lp_pool2d(exp(x), 3.0, 2, ceil_mode=True)", "lp_pool2d(exp(x), 3.0, 2, ceil_mode=True)"),
        "lp_pool1d(x[0], 2, 3)",
    ),
]

RESIZED = [
    many(
        "resized to the nearest",
        {"x": IMAGES, "s": LINES, "v": normal(1, 2, 2, 3, 2)},
        *(
            f"interpolate({how})"
            for how in (
                "x, scale_factor=2",
                "x, (10, 9)",
                "x, (5, 7)",
                "x, (3, 2)",
                "x, scale_factor=(1.5, 2.4)",
                "x, scale_factor=0.7",
                "x, scale_factor=(1.5, 2.4), recompute_scale_factor=True",
                "x, (10, 5), mode='nearest-exact'",
                "x, scale_factor=(0.6, 1.7), mode='nearest-exact'",
                "s, 3",
                "s, 2, mode='nearest-exact'",
                "s, 9",
                "v, (4, 3, 3)",
                "x, (1, 1)",
            )
        ),
    ),
    many(
        "resized by weights",
        {"x": IMAGES, "s": LINES, "v": normal(1, 2, 2, 3, 2)},
        *(
            f"interpolate({how})"
            for how in (
                "x, scale_factor=2, mode='bilinear'",
                "x, (10, 6), mode='bilinear', align_corners=True",
                "x, (3, 7), mode='bilinear'",
                "x, scale_factor=(1.5, 0.7), mode='bilinear'",
                "x, scale_factor=1.5, mode='bilinear', recompute_scale_factor=True",
                "x, (1, 1), mode='bilinear', align_corners=True",
                "x, (7, 5), mode='bicubic'",
                "x, (9, 2), mode='bicubic', align_corners=True",
                "x, (3, 2), mode='area'",
                "s, 11, mode='linear'",
                "s, 4, mode='linear', align_corners=True",
                "s, 4, mode='area'",
                "v, (3, 4, 4), mode='trilinear'",
            )
        ),
        ("upsample_nearest(x, scale_factor=2)", "interpolate(x, scale_factor=2)"),
        ("upsample_bilinear(x, (7, 4))", "interpolate(x, (7, 4), mode='bilinear', align_corners=True)"),
    ),
    many(
        "pixels and channels",
        {"x": normal(2, 8, 4, 2)},
        "pixel_shuffle(x, 2)",
        "pixel_unshuffle(x, 2)",
        "pixel_shuffle(x[0, :4], 2)",
        "channel_shuffle(x, 4)",
    ),
]

ROWS = [*INDEXING, *ARRANGED, *CONTRACTIONS, *HEADS, *TRANSPOSED, *POOLS, *RESIZED]
