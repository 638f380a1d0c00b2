"""Tuning without a device: what is measured, in which order, and what is chosen of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import SimpleNamespace, TracebackType
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from cached import Memory, loss_fn, recipe
from steps import LARGE
from tensorgrad import cache
from tensorgrad.backend import WebGPU
from tensorgrad.cache import indexeddb
from tensorgrad.cache.text import decode, decode_choices, encode, encode_choices
from tensorgrad.compiled import Compiled
from tensorgrad.device.base import Limits
from tensorgrad.errors import InputError, OutOfMemoryError
from tensorgrad.inspect.tuning import TuningReport
from tensorgrad.lower.lowering import Lowered, lower
from tensorgrad.passes import optimize
from tensorgrad.plan import KernelSpec
from tensorgrad.program import Choice, Program, Tuning
from tensorgrad.tuning import NOTHING, choices_of, tune
from tensorgrad.wgsl.generate import Writer, generate, key_of
from tensorgrad.wgsl.variants import variants
from training import ONES, line

GPU = LARGE._replace(features=frozenset({"timestamp-query", "subgroups"}), adapter="a card")


class Fake:
    """A timer of kernels that take what a function says; its clock goes on by a second a measurement.

    Attributes:
        asked: the names of the kernels of each measurement, the defaults' first.
        closed: how many that were prepared were given up unmeasured.
    """

    def __init__(self, time: Callable[[KernelSpec], float]) -> None:
        self.time, self.now = time, 0.0
        self.asked: list[list[KernelSpec]] = []
        self.closed = self.opened = 0

    def __call__(self, specs: Sequence[KernelSpec]) -> Fake:
        self.opened += 1
        return self

    async def __aenter__(self) -> Fake:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.opened -= 1

    async def prepare(self, kernels: Sequence[KernelSpec]) -> Any:
        async def measure(*, rivals: bool = True) -> list[float]:
            self.asked.append(list(kernels))
            self.now += 1
            return [self.time(kernel) for kernel in kernels]

        def close() -> None:
            self.closed += 1

        return SimpleNamespace(measure=measure, close=close)


def network(layers: int = 3) -> Lowered:
    """Alike layers, whose kernels have the same text, then a smaller one."""

    def run() -> Any:
        x = tg.tensor_input("x", (512, 256))
        for i in range(layers):
            x = tg.softmax(x @ tg.param_input(f"w{i}", (256, 256)))
        return x @ tg.param_input("last", (256, 16))

    return lowered(run)


def lowered(run: Callable[[], tg.Tensor]) -> Lowered:
    graph = optimize(tg.trace(run), GPU)
    return lower(graph, {"y": graph.outputs[0]})


def tuned(low: Lowered, fake: Fake, budget: float = 100.0, known: Any = NOTHING) -> Tuning:
    return asyncio.run(tune(low, GPU, fake, budget, known, lambda: fake.now))


def by_size(spec: KernelSpec) -> float:
    """Something that differs from variant to variant."""
    return 1e5 + len(spec.wgsl) % 97 * 1e3


def test_kernels_of_one_text_are_measured_once_the_most_expensive_first() -> None:
    low = network()
    texts = [key_of(spec) for spec in generate(low, GPU)]
    assert len(texts) > len(set(texts)) > 2
    cost = {"matmul": 5e5, "row": 2e5}
    fake = Fake(lambda spec: cost[spec.name.split()[0]] * (1 if "128x64" not in spec.name else 1.5))
    result = tuned(low, fake)
    defaults, *each = fake.asked
    assert [key_of(spec) for spec in defaults] == list(dict.fromkeys(texts))
    assert sorted(key_of(specs[0]) for specs in each) == sorted(set(texts))
    # three matmuls of one text cost more than three rows, and those more than the last matmul
    totals = [texts.count(key_of(specs[0])) * fake.time(specs[0]) for specs in each]
    assert totals == sorted(totals, reverse=True)
    assert [c.repeats for c in result.choices] == [texts.count(c.key) for c in result.choices]
    assert (result.left, fake.opened) == (0, 0)


def test_the_fastest_variant_is_chosen_and_written() -> None:
    low = network()
    writer = Writer(low, GPU)
    wanted = {}
    for kernel in low.kernels:
        options = writer.alternatives(kernel)
        assert len(options) > 1
        wanted[key_of(writer.write(kernel))] = [*options][-1]
    best = {writer.alternatives(k)[wanted[key_of(writer.write(k))]].wgsl for k in low.kernels}
    result = tuned(low, Fake(lambda spec: 1e5 if spec.wgsl in best else 2e5))
    assert choices_of(result) == wanted
    assert {spec.wgsl for spec in generate(low, GPU, choices_of(result))} == best
    # the buffers stay those of the default
    for old, new in zip(generate(low, GPU), generate(low, GPU, choices_of(result)), strict=True):
        assert {b.buffer: b.write for b in old.bindings} == {b.buffer: b.write for b in new.bindings}
        assert old.op_index == new.op_index


def test_of_equals_the_default_stays() -> None:
    low = network()
    first = {writer.write(k).wgsl for writer in [Writer(low, GPU)] for k in low.kernels}
    for gain in (0.0, 0.02):  # differences that small come and go
        result = tuned(low, Fake(lambda spec, gain=gain: 1e5 if spec.wgsl in first else 1e5 * (1 - gain)))
        assert generate(low, GPU, choices_of(result)) == generate(low, GPU)
        assert all(c.before == c.after for c in result.choices)
        assert len(result.choices) == len(set(map(key_of, generate(low, GPU))))


def test_what_cannot_run_is_skipped() -> None:
    low = network()
    first = {spec.wgsl for spec in generate(low, GPU)}
    result = tuned(low, Fake(lambda spec: 1e5 if spec.wgsl in first else float("inf")))
    assert generate(low, GPU, choices_of(result)) == generate(low, GPU)
    assert {c.tried for c in result.choices} == {1}


def test_the_budget_ends_the_measurements() -> None:
    low = network()
    kinds = len(set(map(key_of, generate(low, GPU))))
    fake = Fake(by_size)
    result = tuned(low, fake, budget=2.5)  # a second for the defaults, and a second a kernel
    assert len(result.choices) == 2
    assert result.left == kinds - 2
    assert len(fake.asked) == 3
    assert (result.budget, result.seconds) == (2.5, 3.0)
    assert fake.closed == result.left  # those that were compiled ahead are given up
    assert [tuned(low, Fake(by_size), budget=1.0).left, tuned(low, Fake(by_size)).left] == [kinds, 0]
    assert tuned(low, Fake(by_size), budget=1.0001).left == kinds - 1


def test_known_choices_are_taken_over() -> None:
    low = network()
    first = tuned(low, Fake(by_size))
    fake = Fake(by_size)
    again = tuned(low, fake, known={c.key: c for c in first.choices})
    assert fake.asked == []
    assert again.choices == first.choices
    # another program has the kernels in another number
    more = tuned(network(layers=5), fake, known={c.key: c for c in first.choices})
    assert fake.asked == []
    assert [c.variant for c in more.choices] == [c.variant for c in first.choices]
    assert max(c.repeats for c in more.choices) == 5
    # one that is not known is measured, and only that
    rest = tuned(low, fake, known={c.key: c for c in first.choices[1:]})
    assert [key_of(specs[0]) for specs in fake.asked] == [first.choices[0].key] * 2
    assert rest.choices == first.choices


def test_what_is_cheap_is_left_as_it_is() -> None:
    low = network()
    last = generate(low, GPU)[-1].wgsl
    fake = Fake(lambda spec: 1e2 if spec.wgsl == last else 1e5)
    assert key_of(generate(low, GPU)[-1]) not in choices_of(tuned(low, fake))


def test_a_choice_that_is_no_variant_is_passed_over() -> None:
    low = network()
    texts = generate(low, GPU)
    assert generate(low, GPU, {key_of(spec): "Tile(of=another)" for spec in texts}) == texts


def test_kernels_whose_work_the_data_decide_have_no_variants() -> None:
    def run() -> Any:
        table, rows = tg.param_input("table", (512, 64)), tg.tensor_input("rows", (256,), tg.i32)
        return tg.softmax(tg.take(table, rows, axis=0) * 2.0)

    assert [len(variants(kernel, GPU)) for kernel in lowered(run).kernels] == [1]


# -- as `tg.compile` does it --------------------------------------------------------------------


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    memory = Memory()

    async def connect() -> Memory:
        return memory

    monkeypatch.setattr(indexeddb, "connect", connect)
    monkeypatch.setattr(cache, "_storage", None)
    before = cache.enable()
    yield memory
    cache.enable(before)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    found = Fake(by_size)
    monkeypatch.setattr("tensorgrad.device.timer.Timer", lambda device, plan, specs: found(specs))
    monkeypatch.setattr("tensorgrad.backend.tune", partial(tune, clock=lambda: found.now))
    return found


async def compiled(limits: Limits = GPU, tune: float = 100.0, **options: Any) -> Compiled:
    """Compiles and saves, as building on a device does."""
    device = SimpleNamespace(limits=limits, begin=lambda kernel: None)
    result = await WebGPU(device).compile(recipe(**options)._replace(tune=tune))
    if not result.cached:
        assert result.program is not None
        await cache.save(result.key, result.program)
    return result


def program(found: Compiled) -> Program:
    assert found.program is not None
    return found.program


def tuning(found: Compiled) -> Tuning:
    result = program(found).tuning
    assert result is not None
    return result


async def test_a_second_compilation_takes_the_tuned_program_from_the_cache(storage: Memory, fake: Fake) -> None:
    first = await compiled()
    assert any(c.after < c.before for c in tuning(first).choices)
    asked = len(fake.asked)
    second = await compiled()
    assert (first.cached, second.cached, len(fake.asked)) == (False, True, asked)
    assert program(second).kernels == program(first).kernels
    assert tuning(second) == tuning(first)
    # what is made again for those who ask is the tuned program
    assert second.made.program is not None
    assert second.made.program.kernels == program(first).kernels


async def test_tuned_and_untuned_programs_are_not_confused(storage: Memory, fake: Fake) -> None:
    tuned_, plain = await compiled(), await compiled(tune=0.0)
    assert not plain.cached
    assert program(plain).tuning is None
    assert program(plain).kernels != program(tuned_).kernels
    assert program(await compiled(tune=0.0)).kernels == program(plain).kernels
    assert program(await compiled()).kernels == program(tuned_).kernels
    # a tuned program belongs to one card, an untuned one to all of these limits
    other = GPU._replace(adapter="another card")
    asked = len(fake.asked)
    assert (await compiled(other, tune=0.0)).cached
    assert not (await compiled(other)).cached
    assert len(fake.asked) == 2 * asked


async def test_another_program_takes_over_what_was_chosen_for_the_same_kernels(storage: Memory, fake: Fake) -> None:
    first = await compiled()
    before = {c.key for c in tuning(first).choices}
    fake.asked.clear()
    again = await compiled(loss=lambda m, x, y: loss_fn(m, x, y) * 0.5)
    shared = before & {c.key for c in tuning(again).choices}
    assert not again.cached
    assert shared
    assert not shared & {key_of(specs[0]) for specs in fake.asked}


async def test_a_larger_budget_goes_on_where_a_smaller_ended(storage: Memory, fake: Fake) -> None:
    first = tuning(await compiled(tune=1.5))
    assert (len(first.choices), first.left > 0) == (1, True)
    asked = len(fake.asked)
    same = await compiled(tune=1.5)
    assert (same.cached, len(fake.asked)) == (True, asked)
    more = tuning(await compiled(tune=100.0))
    assert more.left == 0
    assert {c.key for c in more.choices} > {first.choices[0].key}
    assert first.choices[0].key not in {key_of(specs[0]) for specs in fake.asked[asked:]}
    assert (await compiled(tune=200.0)).cached  # nothing was left


async def test_choices_come_back_from_their_text() -> None:
    choices = (Choice("k", "Tile(m=1)", "matmul 1x1 nn", 3, 1234.5, 0.1, 7), Choice("l", "v", "row", 1, 2.0, 2.0, 1))
    assert decode_choices(encode_choices({c.key: c for c in choices})) == {c.key: c for c in choices}
    found = program(await compiled(tune=0.0))._replace(tuning=Tuning(choices, 10.0, 3.3, 2))
    assert decode(encode(found)).tuning == found.tuning


# -- where nothing can be tuned -------------------------------------------------------------------


async def test_without_timestamp_queries_the_defaults_run_with_a_warning(fake: Fake) -> None:
    limits = GPU._replace(features=frozenset({"subgroups"}))
    with pytest.warns(RuntimeWarning, match="tune has no effect: .*timestamp-query"):
        found = await compiled(limits)
    assert program(found).tuning is None
    assert program(found).kernels == program(await compiled(limits, tune=0.0)).kernels
    assert not fake.asked


async def test_without_room_to_measure_the_defaults_run_with_a_warning(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(self: Fake) -> Fake:
        raise OutOfMemoryError("the GPU has no room for 'scratch 0'")

    monkeypatch.setattr(Fake, "__aenter__", full)
    with pytest.warns(RuntimeWarning, match="tune has no effect: .*scratch 0"):
        assert program(await compiled()).tuning is None


@pytest.mark.parametrize("device", ["numpy", "interpret"])
async def test_the_other_devices_warn(device: str) -> None:
    with pytest.warns(RuntimeWarning, match=f"tune has no effect: the {device} device runs no kernels"):
        train = await line(device=device, tune=True)
    assert train.tuning is None
    assert np.isfinite((await train.step(x=ONES)).loss)


@pytest.mark.parametrize("tune", [-1, float("nan"), float("inf"), "yes", None])
async def test_a_budget_is_a_number_of_seconds(tune: Any) -> None:
    with pytest.raises(InputError, match="tune is True, False or a number of seconds"):
        await line(tune=tune)


def test_a_report_shows_what_was_chosen() -> None:
    choices = (
        Choice("k", "Tile(m=64)", "matmul 32x32x32 nn add", 6, 30_000.0, 20_000.0, 5),
        Choice("l", "Shape()", "row sum", 2, 5_000.0, 5_000.0, 4),
    )
    report = TuningReport(Tuning(choices, 10.0, 1.25, 3))
    assert repr(report) == (
        "<tuning: 1 of 2 kernels changed: 190 µs -> 130 µs of a step, measured in 1.2 s of 10 s; "
        "no time was left for 3 more kernels; print it for a table>"
    )
    lines = str(report).splitlines()
    assert lines[2].split() == ["matmul", "32x32x32", "nn", "add", "6", "30", "µs", "20", "µs", "5", "Tile(m=64)"]
    assert lines[3].split() == ["row", "sum", "2", "5", "µs", "5", "µs", "4", "default"]
    assert "Tile(m=64)" in report._repr_html_()
