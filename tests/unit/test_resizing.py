"""Transposed convolutions, pools and resizing: messages, and the kernels that they become."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from programs import lowered, on_interpret, on_numpy, program
from tensorgrad import ops
from tensorgrad.autodiff import append_grad
from tensorgrad.errors import DtypeError, ShapeError
from tensorgrad.lower.lowering import Lowered
from tensorgrad.tensor import Tensor
from tensorgrad.trace import tensor_input, trace
from tensorgrad.wgsl.matmul_access import affine

IMAGES = (2, 4, 8, 8)


def compiled(fn: Any, *shapes: tuple[int, ...]) -> Lowered:
    return lowered(program(fn, [np.zeros(shape, np.float32) for shape in shapes]))


@pytest.mark.parametrize(
    ("fn", "error", "text"),
    [
        (lambda x: ops.conv_transpose2d(x, ops.zeros((3, 2, 2, 2))), ShapeError, r"has 4 channels.*takes 3"),
        (lambda x: ops.conv_transpose2d(x, x[:, :1], groups=2), ShapeError, r"has 4 channels, the weight .*takes 2"),
        (lambda x: ops.conv_transpose2d(x, ops.zeros((4, 2, 2, 2)), groups=3), ShapeError, "3 groups do not divide"),
        (
            lambda x: ops.conv_transpose2d(x, ops.zeros((4, 2, 2, 2)), output_padding=1),
            ShapeError,
            "output_padding less than the stride or the dilation; got 2, 1, 1, 0 and 1",
        ),
        (lambda x: ops.conv_transpose2d(x, ops.zeros((4, 2, 2, 2)), padding=5), ShapeError, r"sizes \[-1, -1\]"),
        (lambda x: ops.conv_transpose1d(x, x), ShapeError, "with 2 or 3 axes and a weight with 3"),
        (
            lambda x: ops.conv_transpose2d(x, ops.zeros((4, 2, 2, 2)), x[0, 0, 0, :3]),
            ShapeError,
            r"bias f32\[3\] must have one number for each of 2 outputs",
        ),
        (
            lambda x: ops.conv_transpose2d(np.ones((1, 1, 2, 2), "i"), np.ones((1, 1, 2, 2), "i")),
            DtypeError,
            "floating",
        ),
        (lambda x: ops.unfold(x[0, 0], 2), ShapeError, r"unfold: expected \[N, C, H, W\]"),
        (lambda x: ops.fold(x[0], 4, 2), ShapeError, r"have 3 \* 3 windows of 4 places: expected \[N, C \* 4, 9\]"),
        (lambda x: ops.lp_pool2d(x, 0, 2), ShapeError, "norm_type must be positive"),
        (lambda x: ops.adaptive_max_pool2d(x, (1, 2, 3)), ShapeError, r"needs 2 sizes .*got \(1, 2, 3\)"),
        (lambda x: ops.interpolate(x), ShapeError, "give size or scale_factor"),
        (lambda x: ops.interpolate(x, 4, 2.0), ShapeError, "give size or scale_factor"),
        (lambda x: ops.interpolate(x, 0), ShapeError, r"to places \[0, 0\] there is nothing"),
        (lambda x: ops.interpolate(x, scale_factor=-1), ShapeError, "is a positive number, or 2 of them, got -1"),
        (lambda x: ops.interpolate(x, 4, mode="linear"), ShapeError, "mode 'linear' of .* with 2 axes"),
        (lambda x: ops.interpolate(x, 4, mode="cubic"), ShapeError, "modes are nearest, nearest-exact, area"),
        (lambda x: ops.interpolate(x, 4, align_corners=True), ShapeError, "'nearest' takes no align_corners"),
        (lambda x: ops.interpolate(x, 4, mode="bilinear", antialias=True), ShapeError, "antialias=True is not"),
        (lambda x: ops.interpolate(x[0, 0], 4), ShapeError, r"expected \[N, C, ...\]"),
        (lambda x: ops.pixel_shuffle(x, 3), ShapeError, r"not a multiple of 3 \* 3"),
        (lambda x: ops.pixel_unshuffle(x, 3), ShapeError, "not multiples of 3"),
        (lambda x: ops.channel_shuffle(x, 3), ShapeError, "3 groups do not divide"),
    ],
)
def test_wrong_calls_say_what_is_wrong(fn: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text) as caught:
        trace(lambda: fn(tensor_input("x", IMAGES)))
    assert "test_resizing.py" in str(caught.value)


def test_an_infinite_neighbour_that_has_no_weight_does_not_show() -> None:
    x = np.array([[[1, np.inf, 3, 4, 5]]], np.float32)

    def fn(x: Tensor) -> list[Tensor]:
        return [ops.adaptive_avg_pool1d(x, 3), ops.interpolate(x, 10, mode="linear")[..., :1]]

    p = program(fn, [x])
    for pooled, resized in (on_numpy(p), on_interpret(p, lowered(p))):
        np.testing.assert_array_equal(pooled, [[[np.inf, np.inf, 4.5]]])
        np.testing.assert_array_equal(resized, [[[1]]])


@pytest.mark.parametrize("shape", [(0, 4, 5, 5), (2, 0, 5, 5)])
def test_no_images_and_no_channels(shape: tuple[int, ...]) -> None:
    n, c = shape[:2]

    def fn(x: Tensor) -> list[Tensor]:
        y = ops.interpolate(x, 7, mode="bilinear")
        return [
            ops.conv_transpose2d(x, ops.ones((c, 2, 3, 3)), stride=2),
            ops.max_pool2d(x, 2, ceil_mode=True),
            ops.adaptive_max_pool2d(x, 3),
            ops.interpolate(x, scale_factor=2),
            *append_grad(ops.sum(y), [x]),
        ]

    p = program(fn, [np.zeros(shape, np.float32)])
    for found in (on_numpy(p), on_interpret(p, lowered(p))):
        assert [a.shape for a in found] == [(n, 2, 11, 11), (n, c, 3, 3), (n, c, 3, 3), (n, c, 10, 10), shape]


# Kernels -----------------------------------------------------------------------------------------


def test_a_transposed_convolution_is_a_product_and_a_sum_with_what_follows() -> None:
    def layer(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return ops.relu(ops.conv_transpose2d(x, w, b, stride=2, padding=1))

    low = compiled(layer, IMAGES, (4, 8, 4, 4), (8,))
    assert [k.matmul is not None for k in low.kernels] == [True, False]


def test_a_transposed_convolution_by_single_steps_is_one_product() -> None:
    low = compiled(lambda x, w, b: ops.relu(ops.conv_transpose2d(x, w, b, padding=1)), IMAGES, (4, 8, 3, 3), (8,))
    assert [k.matmul is not None for k in low.kernels] == [True]


@pytest.mark.parametrize("stride", [1, 2])
def test_its_gradients_read_windows_in_place(stride: int) -> None:
    def fn(x: Tensor, w: Tensor) -> list[Tensor]:
        y = ops.conv_transpose2d(x, w, stride=stride, padding=1)
        return append_grad(ops.sum(y * np.cos(np.arange(y.size)).reshape(y.shape)), [x, w])

    low = compiled(fn, IMAGES, (4, 8, 4, 4))
    products = [k.matmul for k in low.kernels if k.matmul]
    assert len(products) == 2
    for inner in products:
        assert affine(inner.a, (inner.batch, inner.m, inner.k))
        assert affine(inner.b, (inner.batch, inner.k, inner.n))


@pytest.mark.parametrize(
    ("fn", "count"),
    [
        (lambda x: ops.interpolate(x, scale_factor=2), 1),
        (lambda x: ops.interpolate(x, (13, 5)), 1),
        (lambda x: ops.interpolate(x, 16, mode="bilinear"), 1),
        (lambda x: ops.adaptive_avg_pool2d(x, 3), 1),
        (lambda x: ops.pixel_shuffle(x, 2), 1),
        (lambda x: ops.unfold(x, 3), 1),
        (lambda x: ops.max_pool2d(x, 3, 2, 1, ceil_mode=True), 1),
    ],
)
def test_resizing_is_one_kernel_with_what_follows(fn: Any, count: int) -> None:
    low = compiled(lambda x: ops.relu(fn(x) + 1.0), IMAGES)
    assert len(low.kernels) == count


def test_the_gradient_of_interpolation_gathers() -> None:
    def fn(x: Tensor) -> Tensor:
        return append_grad(ops.sum(ops.square(ops.interpolate(x, 16, mode="bilinear"))), [x])[0]

    p = program(fn, [np.zeros(IMAGES, np.float32)])
    assert not any(n.op == "scatter_add" for n in p.graph.nodes)
    assert len(lowered(p).kernels) == 2
