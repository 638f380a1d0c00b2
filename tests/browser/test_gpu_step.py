"""Training steps as they are compiled for a GPU, on the software adapter.

Matmuls with barriers take it long: `tests/unit/test_naga_steps.py` has more of them.
"""

from __future__ import annotations

import pytest

from gpu_steps import layers_of_odd_sizes, matmuls_that_are_merged
from tensorgrad.backend import WebGPU, open_backend

pytestmark = pytest.mark.webgpu(timeout=300)


async def opened() -> WebGPU:
    backend = await open_backend("webgpu")
    assert isinstance(backend, WebGPU)
    return backend


async def test_layers_of_odd_sizes() -> None:
    await layers_of_odd_sizes(await opened(), 65)


async def test_matmuls_that_are_merged() -> None:
    await matmuls_that_are_merged(await opened(), "heads")
