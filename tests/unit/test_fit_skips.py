"""`train.fit` where steps are skipped: what the record says of them, and what the schedule is told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad import optim
from training import SPECS, Net, assert_same, batch, start


async def fit(train: tg.Train, batches: Any, **options: Any) -> tg.Record:
    return await train.fit(batches, **{"progress": False, **options})


def test_losses_that_are_not_finite() -> None:
    async def run() -> None:
        bad = {**batch(1), "x": batch(1)["x"] * np.nan}
        batches = [batch(0), bad, batch(2)]
        train = await start("numpy", dropout=0.0)
        record = await fit(train, batches)
        assert np.isfinite(record.losses).tolist() == [True, False, True]
        assert (record.steps, record.skipped, train.state.steps) == (3, 1, 2)
        assert "1 step skipped" in str(record)
        assert "nan at last\n" in str(await fit(train, [bad])), "NumPy does not warn that there is no best"
        for on_step, made in ((None, 3), (lambda step, result: None, 1)):
            train = await start("numpy", dropout=0.0, nonfinite="raise")
            with pytest.raises(tg.NonFiniteError, match="the loss of step 2 is nan"):
                await fit(train, batches, on_step=on_step)
            assert train.record is not None
            assert train.record.stopped == "NonFiniteError"
            assert len(train.record.losses) == made

    tg.sync(run())


def test_mixed_precision_counts_what_was_skipped() -> None:
    async def run() -> None:
        train = await tg.compile(
            Net(0.0), lambda m, x, t: tg.cross_entropy(m(x), t) * 1e3, optim.SGD(1e-5),
            SPECS, device="numpy", dtype=tg.f16,
        )  # fmt: skip
        record = await fit(train, [batch(0)], steps=6)
        assert np.isfinite(record.losses).all()
        assert record.skipped == 6 - train.state.steps > 0, "the scale of 65536 overflows at first"

    tg.sync(run())


@pytest.mark.parametrize("dtype", [tg.f32, tg.f16])
def test_steps_that_are_skipped_at_first_do_not_move_the_schedule(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensorgrad.device.numpy.NumpyRuntime.at_once", 4_096)
    bad = {**batch(1), "x": batch(1)["x"] * np.nan}
    batches = [bad] * 3 + [batch(i) for i in range(9)]

    def steep(model: Net, x: tg.Tensor, t: tg.Tensor) -> tg.Tensor:
        return tg.cross_entropy(model(x), t) * (1e3 if dtype is tg.f16 else 1.0)  # the loss scale of 65536 overflows

    async def fresh() -> tg.Train:
        tg.nn.init.manual_seed(1)
        optimizer = optim.Adam(optim.StepLR(0.05, 3))
        return await tg.compile(Net(0.0), steep, optimizer, SPECS, device="numpy", dtype=dtype, seed=0)

    async def run() -> None:
        hand, looped, many = await fresh(), await fresh(), await fresh()
        results = [await hand.step(one) for one in batches]
        record = await fit(looped, batches)
        assert [result.skipped for result in results[:3]] == [True] * 3
        assert record.skipped == sum(result.skipped for result in results) > (3 if dtype is tg.f16 else 2)
        np.testing.assert_array_equal(record.losses, [result.loss for result in results])
        assert_same(await looped.state_dict(), await hand.state_dict())
        data = await many.upload({name: np.stack([one[name] for one in batches]) for name in batches[0]})
        assert (await fit(many, data)).skipped == record.skipped
        assert_same(await many.state_dict(), await hand.state_dict())

    tg.sync(run())


def test_a_skipped_step_moves_the_schedule_until_losses_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = {**batch(1), "x": batch(1)["x"] * np.nan}
    batches = [*(batch(i) for i in range(7)), bad, *(batch(i) for i in range(7, 20))]
    reads: list[int] = []

    async def run() -> None:
        hand = await start("numpy", dropout=0.0)
        expected = [(await hand.step(one)).loss for one in batches]
        for exact in (False, True):
            train = await start("numpy", dropout=0.0)
            read = train._read_losses

            async def counted(read: Any = read) -> Any:
                found = await read()
                reads.append(len(found[0]))
                return found

            monkeypatch.setattr(train, "_read_losses", counted)
            monkeypatch.setattr("tensorgrad.progress.BETWEEN_DRAWS", 0.0 if exact else 60.0)
            found = (await fit(train, batches)).losses.tolist()
            assert found[:8] == pytest.approx(expected[:8], nan_ok=True)
            assert (found[8:] == expected[8:]) == exact, "a quarter of a second is the longest, shown or not"
        assert reads == [1, 2, 4, 8, 1, 2, 3, *[1] * 21]

    tg.sync(run())
