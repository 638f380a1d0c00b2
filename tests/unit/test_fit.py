"""`train.fit`: the same steps as a hand-written loop, from any kind of batches, with a record whatever ends it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad import optim
from tensorgrad.data import DataLoader
from training import LINE, ONES, assert_same, batch, losses, stacked, start

RNG = np.random.default_rng(0)
ARRAYS = {"x": RNG.normal(size=(44, 5)), "t": RNG.integers(0, 3, 44)}


def loader(**options: Any) -> DataLoader:
    return DataLoader(ARRAYS, **{"batch_size": 8, "shuffle": True, "drop_last": True, "seed": 1, **options})


async def by_hand(epochs: int) -> tuple[tg.Train, list[float]]:
    train, data = await start("numpy"), loader()
    found = [(await train.step(one)).loss for _ in range(epochs) for one in data]
    return train, found


async def fit(train: tg.Train, batches: Any, **options: Any) -> tg.Record:
    return await train.fit(batches, **{"progress": False, **options})


async def each(seeds: range) -> AsyncIterator[dict[str, np.ndarray]]:
    for seed in seeds:
        await asyncio.sleep(0)
        yield batch(seed)


def test_it_makes_the_steps_of_a_loop() -> None:
    async def run() -> None:
        hand, expected = await by_hand(3)
        for options in ({"epochs": 3}, {"steps": 15}, {"epochs": 3, "on_step": lambda step, result: None}):
            train = await start("numpy")
            record = await fit(train, loader(), **options)
            assert record is train.record
            assert record.losses.dtype == np.float32
            assert record.losses.tolist() == expected
            assert (record.steps, record.stopped, record.skipped) == (15, "", 0)
            assert_same(await train.state_dict(), await hand.state_dict())

    tg.sync(run())


def test_batches_of_every_kind() -> None:
    async def run() -> None:
        train = await start("numpy")
        expected = await losses(train, 0, 4)
        twice = expected + [(await train.step(batch(i))).loss for i in range(4)]

        def made() -> Iterator[Any]:
            return (batch(i) for i in range(4))

        one_epoch: list[Any] = [made(), each(range(4)), made, lambda: each(range(4)), [batch(i) for i in range(4)]]
        for batches in one_epoch:
            record = await fit(await start("numpy"), batches)
            assert record.losses.tolist() == expected
        for batches in (made, lambda: each(range(4)), tuple(batch(i) for i in range(4))):
            for options in ({"epochs": 2}, {"steps": 8}):
                record = await fit(await start("numpy"), batches, **options)
                assert record.losses.tolist() == twice
        for on_step in (None, lambda step, result: None):
            train = await start("numpy")
            data = await train.upload(stacked(range(4)))
            assert (await fit(train, data, on_step=on_step)).losses.tolist() == expected
            assert (await fit(train, data, steps=3)).losses.tolist() == twice[4:7]

    tg.sync(run())


def test_a_loader_goes_on_where_it_stands() -> None:
    async def run() -> None:
        _, expected = await by_hand(3)
        train, data = await start("numpy"), loader()
        found = (await fit(train, data, steps=7)).losses.tolist()
        saved = await train.save(loader=data)
        found += (await fit(train, data, steps=8)).losses.tolist()
        assert found == expected
        other, again = await start("numpy", init=9, seed=4), loader(seed=9)
        await other.load(saved, loader=again)
        assert (await fit(other, again, epochs=2)).losses.tolist() == expected[7:], "to the epochs' end"

    tg.sync(run())


def test_on_step_sees_every_step_and_stops() -> None:
    async def run() -> None:
        _, expected = await by_hand(1)
        seen: list[tuple[int, float]] = []

        async def note(step: int, result: tg.StepResult) -> bool:
            await asyncio.sleep(0)
            seen.append((step, result.loss))
            return step < 3

        train, data = await start("numpy"), loader()
        record = await fit(train, data, epochs=5, on_step=note)
        assert [loss for _, loss in seen] == record.losses.tolist() == expected[:3]
        assert [step for step, _ in seen] == [1, 2, 3]
        assert record.stopped == "on_step"
        assert data.state_dict()["batch"] == 3, "no batch was drawn that was not used"
        uploaded = await train.upload(stacked(range(4)))
        assert (await fit(train, uploaded, epochs=5, on_step=note)).steps == 3

    tg.sync(run())


def test_validation_after_epochs_or_so_many_steps() -> None:
    async def run() -> None:
        train = await start("numpy")
        count = await train.attach(lambda model, x: (model(x) > 0).astype(tg.f32).mean(), {"x": tg.f32[None, 5]})

        async def share(of: tg.Train) -> float:
            assert of is train
            return await count(x=ARRAYS["x"][:6])

        record = await fit(train, loader(), epochs=2, validate=share)
        assert [step for step, _ in record.validation] == [5, 10]
        assert record.validation[1].value == float(await count(x=ARRAYS["x"][:6]))
        by_name = lambda of: {"seen": np.float32(of.state.steps), "half": 0.5}  # noqa: E731
        record = await fit(train, loader(), steps=7, validate=by_name, validate_every=3)
        assert [(step, v) for step, v in record.validation] == [
            (step, {"seen": 10.0 + step, "half": 0.5}) for step in (3, 6, 7)
        ]
        data = await train.upload(stacked(range(4)))
        for options, expected in (
            ({"steps": 10}, [4, 8, 10]),
            ({"epochs": 2}, [4, 8]),
            ({"steps": 7, "validate_every": 3}, [3, 6, 7]),
        ):
            record = await fit(train, data, validate=lambda _: 0, **options)
            assert [step for step, _ in record.validation] == expected
        for bad in ("a", None, {"a": "b"}, [1]):
            with pytest.raises(tg.InputError, match="validate returns a number, or numbers by name, got"):
                await fit(train, loader(), steps=1, validate=lambda _, bad=bad: bad)

    tg.sync(run())


def test_what_does_not_fit_is_said() -> None:
    async def run() -> None:
        train = await start("numpy")
        before = await train.state_dict()
        small = {name: array[:7] for name, array in batch(0).items()}
        cases: list[tuple[Any, dict[str, Any], str]] = [
            (loader(), {"steps": 1, "epochs": 1}, "steps or of epochs, not both"),
            (loader(), {"steps": 0}, "the number of steps is a whole number, 1 or more, got 0"),
            (loader(), {"epochs": 1.5}, r"the number of epochs is a whole number, 1 or more, got 1\.5"),
            (loader(), {"epochs": True}, "got True"),
            (loader(), {"on_step": 3}, "on_step is a function, got 3"),
            (loader(), {"validate": "x"}, "validate is a function, got 'x'"),
            (loader(), {"validate_every": 2}, "there is no validate"),
            (loader(), {"validate": abs, "validate_every": 0}, "validate_every is a whole number, 1 or more, got 0"),
            (batch(0), {}, r"fit takes an iterable of batches, such as tg\.data\.DataLoader.*, not dict"),
            (3, {}, "an iterable of batches, .*, not int"),
            ("abc", {}, "an iterable of batches, .*, not str"),
            ([], {}, "there are no batches in this list"),
            ([], {"steps": 3}, "there are no batches in this list"),
            (lambda: each(range(0)), {}, "there are no batches in this function"),
            (loader(batch_size=50), {}, "there are no batches in this DataLoader"),
            (["ab"], {}, r"batch 1 of fit: the inputs: expected a mapping with \['x', 't'\], got str"),
            ([{"x": batch(0)["x"]}], {}, r"batch 1 of fit: the inputs: missing \['t'\]"),
            ([small], {}, r"batch 1 of fit: input 'x' has shape \[7, 5\], .*; a training step is compiled for one b"),
            ([{**batch(0), "t": batch(0)["t"] * 1.5}], {}, "batch 1 of fit: input 't' has dtype float64"),
            (
                loader(drop_last=False),
                {},
                "44 examples in batches of 8 leave 4 for the last one .*; DataLoader.*drop_la",
            ),
            (loader(drop_last=False), {"steps": 6}, "44 examples in batches of 8 leave 4"),
        ]
        for batches, options, message in cases:
            with pytest.raises(tg.InputError, match=message):
                await fit(train, batches, **options)
        assert_same(await train.state_dict(), before)
        assert (await fit(train, loader(drop_last=False), steps=5)).steps == 5
        with pytest.raises(
            tg.InputError, match=r"end in epoch 1: a generator can be read once; give a tg\.data\.DataLo"
        ):
            await fit(train, (batch(i) for i in range(2)), epochs=2)
        with pytest.raises(tg.InputError, match="batch 3 of fit"):
            await fit(train, [batch(0), batch(1), small])
        assert train.record is not None
        assert (train.record.steps, train.record.stopped) == (2, "InputError")

    tg.sync(run())


def test_queued_losses_of_before_are_not_its_own() -> None:
    async def run() -> None:
        train = await start("numpy")
        expected = await losses(await start("numpy"), 0, 3)
        await train.submit(batch(0))
        assert (await fit(train, [batch(1), batch(2)])).losses.tolist() == expected[1:]

    tg.sync(run())


def test_an_interrupt_keeps_the_record_and_whole_steps() -> None:
    async def run() -> None:
        expected = await losses(await start("numpy"), 0, 6)

        def interrupted() -> Iterator[Any]:
            yield from (batch(i) for i in range(3))
            raise KeyboardInterrupt

        train = await start("numpy")
        with pytest.raises(KeyboardInterrupt):
            await fit(train, interrupted())
        assert train.record is not None
        assert train.record.losses.tolist() == expected[:3]
        assert train.record.stopped == "interrupt"
        assert str(train.record).endswith("stopped by interrupt")
        assert (await train.step(batch(3))).loss == expected[3]

        async def endless() -> AsyncIterator[Any]:
            for i in range(4, 6):
                yield batch(i)
            reached.set()
            await asyncio.sleep(60)

        reached = asyncio.Event()
        task = asyncio.ensure_future(fit(train, endless()))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert train.record.stopped == "interrupt"
        assert train.record.losses.tolist() == expected[4:]
        assert train.state.steps == 6

    tg.sync(run())


def test_an_error_keeps_the_record_and_is_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        expected = await losses(await start("numpy"), 0, 4)
        error = OSError("the disk")

        def fails(*_: Any) -> Any:
            raise error

        def broken(train: Any = None) -> Iterator[Any]:
            yield from (batch(i) for i in range(4))
            if train:
                monkeypatch.setattr(train.built.executor, "losses", fails_too)
            fails()

        cases: list[tuple[Any, dict[str, Any]]] = [
            (broken(), {}),
            ([batch(i) for i in range(4)], {"validate": fails, "validate_every": 4}),
            ([batch(i) for i in range(4)], {"on_step": lambda step, _: step < 4 or fails()}),
        ]
        for batches, options in cases:
            train = await start("numpy")
            with pytest.raises(OSError, match="the disk") as caught:
                await fit(train, batches, **options)
            assert caught.value is error
            assert train.record is not None
            assert (train.record.losses.tolist(), train.record.stopped) == (expected, "OSError")
        train = await start("numpy")
        with pytest.raises(OSError, match="the disk") as caught:
            await fit(train, broken(train))
        assert caught.value is error
        assert error.__context__ is None
        assert train.record is not None
        assert (train.record.steps, len(train.record.losses)) == (4, 3)

    async def fails_too() -> np.ndarray:
        raise tg.DeviceLostError("it is gone")

    tg.sync(run())


def test_a_record_of_nan_alone_has_no_best_loss() -> None:
    async def run() -> str:
        train = await start("numpy")
        return repr(await train.fit([{**batch(0), "x": np.full((8, 5), np.nan)}], progress=False))

    text = tg.sync(run())
    assert "loss nan at first, nan at last\n1 step skipped" in text


def test_a_loop_that_is_closed_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        train = await start("numpy")
        monkeypatch.setattr(train.built.executor, "losses", lambda: asyncio.sleep(0))
        loop = fit(train, [batch(0)], steps=9)
        while train.record is None or not train.record.steps:
            loop.send(None)
        loop.close()

    tg.sync(run())


def test_more_steps_than_the_device_keeps_losses_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensorgrad.device.numpy.LOSS_RING", 10)
    monkeypatch.setattr("tensorgrad.fit.LOSS_RING", 10)

    async def run() -> None:
        train = await tg.compile(
            tg.nn.Linear(2, 1), lambda m, x: tg.mean(m(x) ** 2), optim.SGD(1e-2), LINE, device="numpy"
        )
        record = await fit(train, [{"x": ONES}], steps=25)
        assert len(record.losses) == 25
        assert (np.diff(record.losses) < 0).all(), "in their order"

    tg.sync(run())
