"""Models of many layers train alike by the reference rules and in WGSL, on llvmpipe taken for a CPU and for a GPU."""

from __future__ import annotations

import numpy as np
import pytest

import tensorgrad as tg
from layer_models import WORK, agrees
from native import backend


@pytest.mark.parametrize("software", [True, False], ids=["cpu", "gpu"])
@pytest.mark.parametrize("name", WORK)
def test_losses_agree(name: str, software: bool) -> None:
    tg.sync(agrees(name, backend(software=software)))


def test_a_product_that_reads_its_operand_again_beside_the_sums() -> None:
    """In fours there, and element by element in the loop, whose steps are single ones on a CPU."""
    x, w = (np.random.default_rng(n).normal(size=(4, 12)).astype(np.float32) for n in (1, 2))

    def fn(x: tg.Tensor, w: tg.Tensor) -> tg.Tensor:
        return x[:, :4] @ w[:, :8] + x[:, 4:]

    for software in (True, False):
        found = tg.sync(tg.jit(fn, device=backend(software=software))(x, w))
        np.testing.assert_allclose(found, x[:, :4] @ w[:, :8] + x[:, 4:], rtol=1e-5, atol=1e-5)
