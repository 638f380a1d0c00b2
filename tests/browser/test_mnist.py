"""The digit classifier of examples/mnist.py, trained on WebGPU on real digits, and what 2,000 steps leave behind."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from example import load
from mnist import main
from runtime_browser import Spy

DIGITS = Path(__file__).parents[2] / "build" / "data" / "mnist.npz"


@pytest.mark.webgpu(timeout=600)
async def test_digits_are_learned_and_two_thousand_steps_leave_nothing_behind() -> None:
    import pyodide_js

    gc.collect()  # what earlier tests left must not be freed meanwhile
    module = pyodide_js._module
    module.enable_pyproxy_allocation_tracing()
    seen: dict[int, tuple[int, int, Any]] = {}

    digits = load(DIGITS)
    with Spy() as spy:

        def on_step(step: int, steps: int, loss: float) -> None:
            if step in (20, 2_020):
                gc.collect()
                heap = module.HEAPU8.byteLength  # before the counts, which are a long list
                counts, _ = spy.read()
                buffers = counts.get("createBuffer", 0) - counts.get("destroy", 0)
                seen[step] = (module.pyproxy_alloc_map.size, heap, buffers)

        try:
            result = await main(digits, steps=2_100, on_step=on_step, device="webgpu")
        finally:
            module.disable_pyproxy_allocation_tracing()

    proxies, heap, made = seen[20]
    assert made > 0, "the first steps' buffers were not counted"
    assert seen[2_020] == (proxies, heap, 0)
    assert result.figures["held-out accuracy"] >= 0.95
    assert np.mean(result.losses[-50:]) < 0.05 < np.mean(result.losses[:50])
