"""Training steps as they are compiled for a GPU, in WGSL on the second device."""

from __future__ import annotations

import pytest

import tensorgrad as tg
from gpu_steps import layers_of_odd_sizes, matmuls_that_are_merged
from native import backend


@pytest.mark.parametrize("rows", [2048, 65])
def test_layers_of_odd_sizes(rows: int) -> None:
    tg.sync(layers_of_odd_sizes(backend(storage_buffers=10), rows))


@pytest.mark.parametrize("name", ["heads", "no bias", "odd sizes", "layers used twice", "two groups", "four branches"])
def test_matmuls_that_are_merged(name: str) -> None:
    tg.sync(matmuls_that_are_merged(backend(storage_buffers=10), name))
