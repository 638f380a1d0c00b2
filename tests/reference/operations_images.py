"""Rows of transposed convolutions, pools and resizing; see `operations_index`."""

from __future__ import annotations

import numpy as np
from operations import INF, NAN, f, normal
from operations_index import many

IMAGES, LINES = normal(2, 4, 5, 3), normal(2, 4, 6)
TRANSPOSED = [
    many(
        "conv_transpose2d",
        {"x": IMAGES, "w": normal(4, 3, 3, 2), "b": normal(3), "v": normal(4, 1, 2, 3), "s": normal(4, 6, 2, 2)},
        *(
            f"conv_transpose2d(x, {how})"
            for how in (
                "w, b",
                "w, b, stride=2, padding=(1, 0), output_padding=1",
                "w, stride=1, dilation=2, padding=(2, 1), output_padding=1",
                "v, stride=2, padding=1, groups=4",
                "s, stride=2, groups=2",
            )
        ),
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
        "conv1d(x, c, dilation=2, groups=4, padding='same')",
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

PLACES = normal(2, 3, 4, 2) * np.float32(0.8)
SAMPLED = [
    many(
        "places of a grid",
        {"x": normal(2, 3, 4, 5), "g": PLACES, "a": normal(2, 2, 3)},
        *(
            f"grid_sample(x, g{how})"
            for how in (
                ", align_corners=False",
                ", 'bilinear', 'zeros', True",
                ", 'bilinear', 'border', False",
                ", 'bilinear', 'reflection', True",
                " * 3, 'bilinear', 'reflection', False",
                ", 'nearest', align_corners=False",
                ", 'nearest', 'border', True",
            )
        ),
        "affine_grid(a, (2, 1, 3, 4), align_corners=False)",
        "affine_grid(a, (2, 1, 3, 4), True)",
        "grid_sample(x, affine_grid(a, (2, 3, 2, 3), align_corners=False), align_corners=False)",
    ),
]

ROWS = [*TRANSPOSED, *POOLS, *RESIZED, *SAMPLED]
