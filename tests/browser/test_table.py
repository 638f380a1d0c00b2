"""The table of primitives on WebGPU: values and gradients, a program of many cases for each row."""

from __future__ import annotations

import pytest

from on_device import verify_row
from table import Row
from table_rows import TABLE
from tensorgrad.backend import WebGPU, open_backend

pytestmark = pytest.mark.webgpu(timeout=300)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.cases[0].name.split(":")[0])
async def test_row(row: Row) -> None:
    backend = await open_backend("webgpu")
    assert isinstance(backend, WebGPU)
    await verify_row(backend, row)
