"""Every way in which a row kernel shares out its work gives the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad.backend import open_backend
from tensorgrad.wgsl import generate, rows
from tensorgrad.wgsl.maps import MAP
from tensorgrad.wgsl.rows import Shape

pytestmark = pytest.mark.webgpu(timeout=300)

SHAPES = [
    Shape(1, 1, True),
    Shape(64, 1, False),
    Shape(1, 64, True),
    Shape(4, 16, True, unroll=8),
    Shape(8, 32, False, unroll=4),
    Shape(32, 8, False),
    Shape(16, 4, True, subgroup=True),
    Shape(16, 4, True, subgroup=True, unroll=2),
    Shape(1, 256, True, unroll=8),
]


def several(x: tg.Tensor, w: tg.Tensor) -> dict[str, tg.Tensor]:
    """Reductions along rows and across them, one after another, positions, and what is stored beside them."""
    return {
        "softmax": tg.softmax(x),
        "norm": tg.layer_norm(x, x.shape[-1], w, w),
        "columns": (x * x).sum(0),
        "mean": x.mean(0),
        "largest": x.max(-1),
        "argmax": x.argmax(-1),
        "argmin": x.argmin(0),
        "loss": tg.log_softmax(x).mean(),
    }


@pytest.mark.parametrize("size", [(37, 129), (64, 256), (1, 1000), (515, 3)])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
async def test_row_kernels_agree_however_rows_are_shared(
    shape: Shape, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = await open_backend("webgpu")
    if shape.subgroup and backend.limits.subgroup_size != shape.lanes:
        pytest.skip(f"the adapter's subgroups have {backend.limits.subgroup_size} lanes")
    monkeypatch.setattr(rows, "choose", lambda kernel, limits: shape)
    rng = np.random.default_rng(0)
    x = rng.normal(size=size).astype(np.float32)
    x[0, -1] = x[0].max() + 1  # the largest is the last one, and below there is a tie
    x[-1, :2] = 9.0
    w = rng.normal(size=size[1]).astype(np.float32)
    got = await tg.jit(several, device="webgpu")(x, w)
    want = await tg.jit(several, device="numpy")(x, w)
    for name, array in want.items():
        # sums of up to 1,000 terms in another order
        np.testing.assert_allclose(got[name], array, rtol=2e-5, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("size", [1, 255, 1000, 4097])
@pytest.mark.parametrize(
    "shape", [MAP._replace(rows=64), MAP._replace(unroll=4), MAP._replace(rows=64, unroll=2)], ids=str
)
async def test_maps_agree_however_many_elements_an_invocation_has(
    shape: Shape, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shape != MAP
    monkeypatch.setattr(generate, "MAP", shape)
    x = np.random.default_rng(0).normal(size=size).astype(np.float32)
    got = await tg.jit(lambda x: {"y": x * 2 + 1, "z": (x > 0) & (x < 1)}, device="webgpu")(x)
    np.testing.assert_array_equal(got["y"], x * 2 + 1)
    np.testing.assert_array_equal(got["z"], (x > 0) & (x < 1))
