"""Tuning on a device: the tuned step trains as the untuned one does, and a second compilation measures nothing."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Sequence
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from models import CharGPT, characters, next_token_loss
from tensorgrad import cache, nn, optim
from tensorgrad.device.timer import Timer
from tensorgrad.plan import KernelSpec
from tensorgrad.wgsl.generate import Writer

pytestmark = pytest.mark.webgpu


@pytest.fixture(autouse=True)
async def on() -> AsyncIterator[None]:
    before = cache.enable(True)
    await cache.clear()
    yield
    await cache.clear()
    cache.enable(before)


class Watch:
    """Which kernels were measured."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kernels: list[KernelSpec] = []
        prepare = Timer.prepare

        async def watched(timer: Timer, kernels: Sequence[KernelSpec]) -> Any:
            self.kernels += kernels
            return await prepare(timer, kernels)

        monkeypatch.setattr(Timer, "prepare", watched)


async def compiled(**options: Any) -> tg.Train:
    nn.init.manual_seed(1)
    model = CharGPT(layers=1, width=32, heads=2, context=16, vocabulary=20)
    specs = {"x": tg.i32[2, 16], "y": tg.i32[2, 16]}
    return await tg.compile(model, next_token_loss, optim.AdamW(1e-2), specs, device="webgpu", seed=1, **options)


async def losses(train: tg.Train) -> np.ndarray:
    x, y = characters(2, 16, 20)
    return np.array([(await train.step(x=x, y=y)).loss for _ in range(8)])


def device(train: tg.Train) -> Any:
    assert isinstance(train.built.executor, tg.Runtime)
    return train.built.executor.device


async def test_a_tuned_step_trains_the_same_and_is_tuned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = await compiled()
    assert "timestamp-query" in device(plain).limits.features
    expected = await losses(plain)
    gc.collect()  # what earlier tests left is gone
    before = device(plain).buffer_count
    twin = await compiled()
    own = device(twin).buffer_count - before
    watch = Watch(monkeypatch)
    tuned = await compiled(tune=5)
    assert device(tuned).buffer_count == before + 2 * own  # those to measure on are freed
    report = tuned.tuning
    assert report is not None
    assert report.choices
    assert report.seconds < 20  # what was begun is finished, however busy the machine is
    assert len(watch.kernels) > len(report.choices)
    assert report.after <= report.before
    assert all(0 < c.after <= c.before for c in report.choices)
    # rounding alone may differ: sums are added up in another order
    np.testing.assert_allclose(await losses(tuned), expected, rtol=1e-4)
    assert expected[-1] < 0.9 * expected[0]
    await tuned.check()
    watch.kernels.clear()
    again = await compiled(tune=5)
    assert again.built.compiled.cached
    assert not watch.kernels
    assert again.tuning is not None
    assert again.tuning.choices == report.choices
    np.testing.assert_allclose(await losses(again), expected, rtol=1e-4)
    assert [kernel.wgsl for kernel in again.kernels] == [kernel.wgsl for kernel in again.built.kernels]


async def test_a_variant_that_does_not_compile_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    alternatives = Writer.alternatives

    def with_nonsense(writer: Writer, kernel: Any) -> dict[str, KernelSpec]:
        found = alternatives(writer, kernel)
        first = next(iter(found.values()))
        return {**found, "nonsense": first._replace(wgsl=first.wgsl.replace("fn main", "fn main nonsense"))}

    monkeypatch.setattr(Writer, "alternatives", with_nonsense)
    tuned = await compiled(tune=3)
    assert tuned.tuning is not None
    assert tuned.tuning.choices
    assert all(c.variant != "nonsense" and c.tried > 0 for c in tuned.tuning.choices)
    assert np.isfinite(await losses(tuned)).all()
