"""What crosses the border between Python and JavaScript in a step, counted: the same for every model."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad import nn, optim
from training import batch, start

pytestmark = pytest.mark.webgpu


COUNT_SET = """
map => {
  let made = 0;
  const set = map.set;
  map.set = (...entry) => { made++; return set.apply(map, entry); };
  return () => made;
}
"""

COUNT_WAKE = """
program => {
  let woken = 0;
  const { wake } = program;
  program.wake = (...answer) => { woken++; return wake(...answer); };
  return () => { program.wake = wake; return woken; };
}
"""


class Counted:
    """A JavaScript object each of whose attributes is counted when it is looked up and when it is called."""

    def __init__(self, target: Any, name: str, counts: Counter[str]) -> None:
        self._held = target, name, counts

    def __getattr__(self, name: str) -> Any:
        target, path, counts = self._held
        counts[f"get {path}.{name}"] += 1
        found = getattr(target, name)
        return Counted(found, f"{path}.{name}", counts) if callable(found) else found

    def __call__(self, *args: Any) -> Any:
        target, path, counts = self._held
        counts[f"call {path}"] += 1
        return target(*args)


@contextmanager
def counted(train: tg.Train) -> Iterator[Counter[str]]:
    """Counts what a training's steps do at the border, and with Python's event loop."""
    import pyodide_js
    from pyodide.code import run_js

    counts: Counter[str] = Counter()
    program = train.built.executor._program  # type: ignore[attr-defined]
    held = program._js, program._replay, program._device._engine
    program._js = Counted(program._js, "program", counts)
    program._replay = Counted(program._replay, "program.replay", counts)
    program._device._engine = Counted(program._device._engine, "engine", counts)
    woken = run_js(COUNT_WAKE)(held[0])
    loop: Any = asyncio.get_running_loop()
    schedule = loop.call_later

    def call_later(*args: Any, **options: Any) -> Any:
        counts["turn of the event loop"] += 1
        return schedule(*args, **options)

    loop.call_later = call_later
    tracker = pyodide_js._module
    tracker.enable_pyproxy_allocation_tracing()
    made = run_js(COUNT_SET)(tracker.pyproxy_alloc_map)
    try:
        yield counts
    finally:
        counts["wake"] = woken()
        counts["PyProxy"] = made()
        tracker.disable_pyproxy_allocation_tracing()
        del loop.call_later
        program._js, program._replay, program._device._engine = held


class Deep(nn.Module):
    def __init__(self, layers: int) -> None:
        self.layers = nn.ModuleList(nn.Linear(5, 5) for _ in range(layers))

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        for layer in self.layers:
            x = tg.tanh(layer(x))
        return x


async def deep(layers: int) -> tg.Train:
    loss_fn = lambda model, x, t: tg.cross_entropy(model(x), t)  # noqa: E731
    return await tg.compile(
        Deep(layers), loss_fn, optim.Adam(1e-3), {"x": tg.f32[8, 5], "t": tg.i32[8]}, device="webgpu"
    )


STEPS = 5


async def test_a_step_is_one_call_whatever_the_model() -> None:
    kernels = set()
    for train in (await deep(1), await deep(6), await start("webgpu")):
        kernels.add(len(train.built.kernels))
        await train.step(batch(0))
        with counted(train) as counts:
            for i in range(STEPS):
                await train.step(batch(i))
        assert counts == {"call program.replay": STEPS, "wake": STEPS, "PyProxy": 0}
    assert len(kernels) == 3


async def test_queueing_a_step_is_one_call() -> None:
    for train in (await deep(1), await deep(6)):
        await train.step(batch(0))
        with counted(train) as counts:
            await train.submit(batch(1))
            await train.submit(batch(2))
        assert counts == {"call program.replay": 2, "wake": 0, "PyProxy": 0}
        with counted(train) as counts:
            assert (await train.losses()).shape == (2,)
        assert (counts["call program.losses"], counts["wake"], counts["PyProxy"]) == (1, 1, 0)
        assert counts["turn of the event loop"] == 0


async def test_many_steps_are_one_call() -> None:
    found = []
    for train in (await deep(1), await deep(6)):
        data = await train.upload({name: np.stack([value] * 2) for name, value in batch(0).items()})
        train._chunk = 16
        await train.run_steps(16, data)
        train._chunk = 16
        with counted(train) as counts:
            await train.run_steps(16, data)
        assert (counts["call program.replayMany"], counts["wake"]) == (1, 1)
        found.append(counts)
    assert found[0] == found[1]
