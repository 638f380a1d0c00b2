"""The table of primitives on WebGPU: values and gradients, a program of many cases for each row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from programs import assert_close, on_numpy, on_webgpu, program
from table import Case, Row, weighted
from table_rows import TABLE
from tensorgrad.autodiff import append_grad
from tensorgrad.tensor import Tensor

pytestmark = pytest.mark.webgpu(timeout=300)


def in_one(cases: Sequence[Case], gradients: bool):
    """One program of all the cases: each one's value, and the gradients of a weighted sum of it."""
    inputs = [np.asarray(a) for case in cases for a in case.inputs]

    def fn(*leaves: Tensor) -> list[Tensor]:
        found: list[Tensor] = []
        start = 0
        for case in cases:
            own = leaves[start : start + len(case.inputs)]
            start += len(own)
            y = case.fn(*own)
            found.append(y)
            if gradients and case.grads:
                found += append_grad(weighted(y), [own[n] for n in case.grads])
        return found

    return program(fn, inputs)


def labels(cases: Sequence[Case], gradients: bool) -> list[tuple[str, bool]]:
    named: list[tuple[str, bool]] = []
    for case in cases:
        named.append((case.name, False))
        if gradients:
            named += [(f"{case.name}: gradient {n}", True) for n in case.grads]
    return named


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.cases[0].name.split(":")[0])
async def test_row(row: Row) -> None:
    # a case that an operation's edges are put into has no gradient to compare
    p = in_one(row.cases, gradients=True)
    wanted = on_numpy(p)
    found, _ = await on_webgpu(p)
    rtol, atol, _ = row.tolerance
    problems = []
    for a, b, (name, is_gradient) in zip(found, wanted, labels(row.cases, True), strict=True):
        if is_gradient:
            scale = float(np.abs(b).max(initial=1e-30))
            loose = (10 * rtol + 1e-6, 10 * atol + 2e-6 * scale)
        else:
            loose = (rtol, atol)
        try:
            assert_close(a, b, *loose, name)
        except AssertionError as error:
            problems.append(str(error))
    assert not problems, "\n".join(problems)
