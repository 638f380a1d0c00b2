"""The agreed cases that need training, under the reference rules and the kernels' own expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorgrad as tg
from training_cases import CASES


@pytest.mark.parametrize("device", ["numpy", "interpret"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_case(case: Callable[[str], Any], device: str) -> None:
    tg.sync(case(device))
