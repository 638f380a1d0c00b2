"""The agreed cases that need training, on WebGPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from training_cases import CASES

pytestmark = pytest.mark.webgpu(timeout=180)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
async def test_case(case: Callable[[str], Any]) -> None:
    await case("webgpu")
