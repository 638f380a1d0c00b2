"""Models of many layers train in the browser as by the reference rules."""

from __future__ import annotations

import pytest

from layer_models import WORK, agrees

pytestmark = pytest.mark.webgpu(timeout=300)


@pytest.mark.parametrize("name", WORK)
async def test_losses_agree(name: str) -> None:
    await agrees(name, "webgpu")
