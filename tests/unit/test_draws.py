"""Random numbers on the devices that need no browser."""

from __future__ import annotations

import pytest

import tensorgrad as tg
from draw_cases import agree


@pytest.mark.parametrize("device", ["numpy", "interpret"])
def test_draws(device: str) -> None:
    tg.sync(agree(device))
