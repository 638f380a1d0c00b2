"""The table of primitives on the numpy and interpret devices, and against finite differences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from programs import Program, assert_close, lowered, on_interpret, on_numpy, program
from table import Case, Row, weighted
from table_rows import TABLE
from tensorgrad.autodiff import append_grad
from tensorgrad.device.base import Limits
from tensorgrad.dtypes import DType, f16, f32, from_numpy
from tensorgrad.ops import zeros
from tensorgrad.plan import MAX_WORKGROUPS
from tensorgrad.tensor import Tensor
from tensorgrad.trace import tensor_input, trace
from tensorgrad.wgsl.generate import generate

ROWS = [pytest.param(row, case, id=case.name) for row in TABLE for case in row.cases]
DIFFERENTIABLE = [pytest.param(row, case, id=case.name) for row in TABLE for case in row.cases if case.grads]
ORDERS = [
    pytest.param(row, case, order, id=f"{case.name}, order {order}")
    for row in TABLE
    for case in row.cases
    for order in (1, 2)
    if case.grads and not case.long and (order == 1 or case.smooth)
]
STEP = 1e-5


def wide(a: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) if a.dtype.kind == "f" else a


@pytest.mark.parametrize(("row", "case"), ROWS)
def test_values(row: Row, case: Case) -> None:
    p = program(case.fn, case.inputs)
    assert any(node.op == row.op for node in p.traced.nodes), f"no {row.op} in\n{p.traced}"
    (traced,) = on_numpy(p, p.traced)
    (y,) = on_numpy(p)
    np.testing.assert_array_equal(traced, y, err_msg="before and after the passes")
    rtol, atol, _ = row.tolerance
    if case.formula is not None:
        with np.errstate(all="ignore"):
            wanted = np.asarray(case.formula(*(wide(np.asarray(a)) for a in case.inputs)))
            narrow = wanted.astype(np.float32) if wanted.dtype.kind == "f" else wanted
        assert_close(y, narrow, rtol, atol, "numpy against the formula")
    for fuse in (True, False):
        assert_close(on_interpret(p, lowered(p, fuse))[0], y, rtol, atol, f"interpret with fuse={fuse}")


# what brings numbers of its own dtype, or the second operand's
OWN_DTYPE = {"const", "array", "iota", "random_bits", "pow", "pack"}


@pytest.mark.parametrize("row", [row for row in TABLE if row.op not in OWN_DTYPE], ids=lambda row: row.op)
def test_a_result_of_f16_is_f16(row: Row) -> None:
    def dtype(case: Case, floats: DType) -> DType:
        arrays = [np.asarray(a) for a in case.inputs]
        dtypes = [floats if a.dtype.kind == "f" else from_numpy(a.dtype) for a in arrays]
        graph = trace(lambda: case.fn(*(tensor_input(f"x{n}", a.shape, dtypes[n]) for n, a in enumerate(arrays))))
        return graph.type(graph.outputs[0]).dtype

    for case in row.cases:
        if any(a.dtype.kind == "f" for a in case.inputs) and dtype(case, f32) == f32:
            assert dtype(case, f16) == f16, case.name


LIMITS = (Limits(), Limits(software=True), Limits(subgroup_size=32))


@pytest.mark.parametrize("limits", LIMITS, ids=["plain", "software", "subgroups"])
def test_every_case_has_kernels_for_every_kind_of_device(limits: Limits) -> None:
    """Their text; whether it is right, the browser's tests see."""
    for row in TABLE:
        for case in row.cases:
            p = gradients(case) if case.grads else program(case.fn, case.inputs)
            for spec in generate(lowered(p), limits):
                assert spec.wgsl.count("@compute") == 1
                assert spec.workgroup_size <= limits.invocations
                assert len(spec.bindings) <= limits.storage_buffers
                assert max(spec.workgroups) <= MAX_WORKGROUPS


def gradients(case: Case, order: int = 1) -> Program:
    """The program of a case's value and its gradients (order 2: of the gradients of those)."""

    def fn(*leaves: Tensor) -> list[Tensor]:
        wrt = [leaves[n] for n in case.grads]
        value = weighted(case.fn(*leaves))
        for again in range(order - 1):
            grads = append_grad(value, wrt)
            value = sum((weighted(g, 0.3 + n + again) for n, g in enumerate(grads)), start=zeros(()))
        return [value, *append_grad(value, wrt)]

    return program(fn, case.inputs)


@pytest.mark.parametrize(("row", "case", "order"), ORDERS)
def test_gradients_against_finite_differences(row: Row, case: Case, order: int) -> None:
    p = gradients(case, order)
    p.values = {name: wide(a) for name, a in p.values.items()}
    _, *grads = on_numpy(p)
    height = p.graph.outputs[:1]
    p.graph.outputs = height
    rng = np.random.default_rng(1)
    for n, grad in zip(case.grads, grads, strict=True):
        name = f"x{n}"
        for direction in rng.normal(size=(2, *grad.shape)):
            moved = {s: {**p.values, name: p.values[name] + s * STEP * direction} for s in (1, -1)}
            slope = (on_numpy(p, values=moved[1])[0] - on_numpy(p, values=moved[-1])[0]) / (2 * STEP)
            scale = float(np.abs(grad * direction).sum())
            np.testing.assert_allclose(np.sum(grad * direction), slope, rtol=0, atol=1e-6 + 1e-5 * scale, err_msg=name)


@pytest.mark.parametrize(("row", "case"), DIFFERENTIABLE)
def test_gradients_under_interpret(row: Row, case: Case) -> None:
    p = gradients(case)
    wanted = on_numpy(p)
    fused, unfused = lowered(p), lowered(p, fuse=False)
    for low in (fused, unfused):
        compare_gradients(row, on_interpret(p, low), wanted)
    assert len(fused.kernels) <= len(unfused.kernels)


def compare_gradients(row: Row, found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> None:
    """To ten times the row's tolerance, on the scale of each gradient: their terms cancel."""
    for a, b in zip(found, wanted, strict=True):
        scale = float(np.abs(b).max(initial=1e-30))
        assert_close(a, b, 10 * row.tolerance.rtol + 1e-6, 10 * row.tolerance.atol + 2e-6 * scale, "a gradient")


def composed(case: Case) -> Program:
    """The operation, and its result less the mean of each row: three kernels without fusion."""

    def fn(*leaves: Tensor) -> list[Tensor]:
        y = case.fn(*leaves).astype(f32)
        return [y, y - y.mean(-1, keepdims=True)] if y.ndim > 1 else [y]

    return program(fn, case.inputs)


def has_rows(p: Program) -> bool:
    shape = p.graph.type(p.graph.outputs[0]).shape
    return len(shape) > 1 and min(shape) > 1


@pytest.mark.parametrize("row", TABLE, ids=lambda r: r.cases[0].name.split(":")[0])
def test_fusion_makes_fewer_kernels(row: Row) -> None:
    p = next(filter(has_rows, map(composed, row.cases)))
    fused, unfused = lowered(p), lowered(p, fuse=False)
    assert len(fused.kernels) < len(unfused.kernels)
    wanted = on_numpy(p)
    for low in (fused, unfused):
        for a, b in zip(on_interpret(p, low), wanted, strict=True):
            assert_close(a, b, row.tolerance.rtol + 1e-6, row.tolerance.atol + 1e-5)
