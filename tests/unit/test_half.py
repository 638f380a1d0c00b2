"""Programs with f16 in WGSL: naga compiles them and llvmpipe runs them; the browser of the tests has no f16."""

from __future__ import annotations

from typing import Any

import pytest

import half_cases
import tensorgrad as tg
from native import backend, native


@pytest.mark.parametrize("case", half_cases.CASES, ids=lambda case: case.__name__)
def test_programs_with_f16(case: Any) -> None:
    if "shader-f16" not in native().limits.features:
        pytest.skip("this adapter has no shader-f16")
    tg.sync(case(backend()))
