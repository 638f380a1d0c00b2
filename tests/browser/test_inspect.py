"""Profiles and checks on the GPU: the kernels that a test has broken are found, and nothing is changed by looking."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from inspected import BATCH, MLP, SPECS, loss_fn
from models import CharGPT, characters, next_token_loss
from tensorgrad import backend, optim
from tensorgrad.lower.lowering import Lowered
from tensorgrad.plan import KernelSpec
from tensorgrad.wgsl import rows

pytestmark = pytest.mark.webgpu


async def compiled() -> tg.Train:
    return await tg.compile(MLP(dropout=0.25), loss_fn, optim.AdamW(1e-2), SPECS, device="webgpu", seed=5)


def runtime(train: tg.Train) -> tg.Runtime:
    assert isinstance(train.built.executor, tg.Runtime)
    return train.built.executor


Corrupt = Callable[[KernelSpec], str]


def corrupted(monkeypatch: pytest.MonkeyPatch, index: int, change: Corrupt) -> None:
    """Makes the code generator give kernel `index` another source."""
    generate = backend.generate

    def broken(*args: Any) -> list[KernelSpec]:
        specs = generate(*args)
        text = change(specs[index])
        assert text != specs[index].wgsl, "the test's change changes nothing"
        specs[index] = specs[index]._replace(wgsl=text)
        return specs

    monkeypatch.setattr(backend, "generate", broken)


def minus(spec: KernelSpec) -> str:
    """A sum subtracts instead: in a loop, or in a map the last addition that is not of a constant."""
    head, tail = spec.wgsl.split("fn main", 1)
    patterns = {"row": r"(acc0 )\+(?== )", "matmul": r"((?:sums|c\d)\S* )\+(?== )", "map": r"(.* )\+(?= [a-z(])"}
    changed = re.sub(patterns[spec.name.split()[0]], r"\1-", tail, count=1, flags=re.DOTALL)
    return f"{head}fn main{changed}"


async def test_every_kernel_of_a_step_agrees_and_nothing_changes() -> None:
    watched, twin = await compiled(), await compiled()
    for train in (watched, twin):
        await train.step(**BATCH)
    before = await watched.state_dict()
    report = await watched.check(**BATCH)
    again = await watched.check()
    assert report.kernels == again.kernels == len(watched.kernels) > 5
    assert report.values > report.kernels
    assert "all" in str(report)
    assert "on the GPU" in str(report)
    after = await watched.state_dict()
    assert (before["calls"], before["seed"]) == (after["calls"], after["seed"]) == (1, 5)
    for part in ("model", "optimizer"):
        for name, array in before[part].items():
            np.testing.assert_array_equal(after[part][name], array, err_msg=name)
    # what the check ran has left no trace in what follows
    for _ in range(3):
        mine, other = await watched.step(**BATCH), await twin.step(**BATCH)
        assert mine.loss == other.loss


@pytest.mark.parametrize("template", ["map", "row", "matmul"])
async def test_a_corrupted_kernel_is_found(monkeypatch: pytest.MonkeyPatch, template: str) -> None:
    good = await compiled()
    specs = good.built.kernels
    index = next(k.index for k in good.kernels if k.template == template and minus(specs[k.index]) != k.wgsl)
    corrupted(monkeypatch, index, minus)
    train = await compiled()
    before = await train.state_dict()
    with pytest.raises(tg.CheckError) as caught:
        await train.check(**BATCH)
    error = caught.value
    assert error.kernel is not None
    assert error.difference is not None
    assert error.kernel.index == index, str(error)
    assert f"kernel {index} of {len(good.kernels)}" in str(error)
    assert error.kernel.formula.splitlines()[0] in str(error)
    # the update belongs to the line that compiles
    assert ("test_inspect.py" if template == "map" else "inspected.py") in str(error)
    assert "the fault is in the WGSL" in str(error)
    assert error.difference.got != error.difference.expected
    after = await train.state_dict()
    for name, array in before["model"].items():
        np.testing.assert_array_equal(after["model"][name], array)


async def test_one_wrong_element_of_many_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    good = await compiled()
    index = len(good.kernels) - 1
    assert good.kernels[index].template == "map"

    def spoil(spec: KernelSpec) -> str:
        # the 18th element of the first store alone
        wrong = r"\g<1>select(\g<2>, (\g<2>) * 1.01 + 1e-3, r == 17u);"
        return re.sub(r"(b\d+\[r\] = )(.+);", wrong, spec.wgsl, count=1)

    corrupted(monkeypatch, index, spoil)
    train = await compiled()
    with pytest.raises(tg.CheckError) as caught:
        await train.check(**BATCH)
    assert caught.value.kernel is not None
    assert caught.value.kernel.index == index
    assert caught.value.difference is not None
    assert (caught.value.difference.index, caught.value.difference.count) == ((17,), 1)


async def test_a_fault_of_a_template_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "IDENTITY", {**rows.IDENTITY, "sum": lambda dtype: 1})
    train = await compiled()
    with pytest.raises(tg.CheckError, match="first that differs") as caught:
        await train.check(**BATCH)
    assert caught.value.kernel is not None
    assert caught.value.kernel.template == "row"
    assert "sum_" in caught.value.kernel.formula


async def test_a_fault_of_the_buffer_plan_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    lower = backend.lower

    def overwriting(*args: Any, **options: Any) -> Lowered:
        lowered = lower(*args, **options)
        kernels, where, buffers = lowered.kernels, lowered.memory.where, lowered.memory.plan.buffers
        temporary = [v for k in kernels for v in k.writes if buffers[where[v]].kind == "temp"]
        touches = {v: [i for i, k in enumerate(kernels) if v in k.loads() or v in k.writes] for v in temporary}
        for a in temporary:
            for b in temporary:
                apart = not set(touches[a]) & set(touches[b]) and where[a] != where[b]
                fits = lowered.graph.type(b).nbytes <= buffers[where[a]].nbytes
                if apart and fits and touches[a][0] < touches[b][0] < touches[a][-1]:
                    where[b] = where[a]
                    return lowered
        raise AssertionError("no value can be put in another's way")

    monkeypatch.setattr(backend, "lower", overwriting)
    train = await compiled()
    with pytest.raises(tg.CheckError, match="buffer plan") as caught:
        await train.check(**BATCH)
    assert caught.value.kernel is None


async def test_a_transformer_and_its_predictor_agree() -> None:
    model = CharGPT(layers=1, width=32, heads=2, context=16, vocabulary=20)
    specs = {"x": tg.i32[2, 16], "y": tg.i32[2, 16]}
    train = await tg.compile(model, next_token_loss, optim.AdamW(1e-3), specs, device="webgpu")
    x, y = characters(2, 16, 20)
    report = await train.check(x=x, y=y)
    assert report.kernels == len(train.kernels)
    predict = await train.attach(lambda model, x: tg.softmax(model(x)), {"x": tg.i32[None, 16]})
    await predict(x=x)
    report = await predict.check(x=x)
    assert report.kernels == len(predict.kernels) < len(train.kernels)


async def test_a_check_frees_what_it_allocated() -> None:
    train = await compiled()
    await train.check(**BATCH)
    device = runtime(train).device
    before = device.buffer_count
    await train.check(**BATCH)
    after = device.buffer_count
    assert after == before


async def test_a_profile_times_every_kernel() -> None:
    train = await compiled()
    if "timestamp-query" not in runtime(train).limits.features:
        with pytest.raises(tg.UnsupportedError, match="timestamp"):
            await train.profile(**BATCH)
        assert (train.state.calls, train.state.steps) == (0, 0)
        return
    profile = await train.profile(**BATCH)
    assert (train.state.calls, train.state.steps) == (1, 1)
    assert len(profile.rows) == len(train.kernels)
    assert profile.nanoseconds > 0
    assert sum(row.share for row in profile.rows) == pytest.approx(1)
    assert [row.nanoseconds for row in profile.rows] == sorted((r.nanoseconds for r in profile.rows), reverse=True)
    longest = profile.rows[0]
    kernel = train.kernels[longest.index]
    assert longest.name == kernel.name
    assert longest.gbps == pytest.approx(kernel.nbytes / longest.nanoseconds)
    assert longest.gflops == pytest.approx(kernel.flops / longest.nanoseconds)
    assert kernel.name in str(profile)
    # the device's peaks were measured, and what stays in its caches may be above them
    peaks = profile.peaks
    assert peaks is not None
    assert 0 < peaks.gbps < 20_000
    assert 0 < peaks.gflops < 1_000_000
    assert longest.of_peak == max(longest.gbps / peaks.gbps, (longest.gflops or 0) / peaks.gflops)
    assert f"{longest.of_peak:.0%} {longest.bound}" in str(profile)
    assert (await train.profile()).peaks is peaks


async def test_a_profile_without_timestamps_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    train = await compiled()
    device = runtime(train).device
    limits = device.limits._replace(features=device.limits.features - {"timestamp-query"})
    monkeypatch.setattr(device, "limits", limits)
    with pytest.raises(tg.UnsupportedError, match="timestamp"):
        await train.profile(**BATCH)
    assert (await train.state_dict())["calls"] == 0
