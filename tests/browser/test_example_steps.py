"""The first steps of the examples on WebGPU."""

from __future__ import annotations

import pytest

from example_steps import CASES, agrees


@pytest.mark.webgpu(timeout=180)
@pytest.mark.parametrize("name", CASES)
async def test_the_first_losses_are_pytorchs(name: str) -> None:
    await agrees(name, "webgpu")
