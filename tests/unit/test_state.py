"""What outlives a step: state dicts, exact resumes, and two optimizers on one state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from reference.stored import f
from tensorgrad import nn, optim
from tensorgrad.errors import CheckpointError

SPECS = {"x": tg.f32[4, 3], "t": tg.i32[4]}


class Net(nn.Module):
    """Dropout, a buffer that counts, and tied weights."""

    def __init__(self) -> None:
        self.into = nn.Linear(3, 3)
        self.out = nn.Linear(3, 3)
        self.out.weight = self.into.weight
        self.drop = nn.Dropout(0.3)
        self.seen = nn.Buffer([0.0])
        self.scratch = nn.Buffer([0.0], persistent=False)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        tg.update_state(self.seen, self.seen + 1.0)
        tg.update_state(self.scratch, self.scratch + 2.0)
        return self.out(self.drop(tg.tanh(self.into(x))))


def loss_fn(model: nn.Module, x: tg.Tensor, t: tg.Tensor) -> tg.Tensor:
    return tg.cross_entropy(model(x), t)


def batch(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {"x": f(rng.normal(size=(4, 3))), "t": rng.integers(0, 3, 4).astype(np.int32)}


async def start(seed: int = 3, init: int = 1, **kw: Any) -> tg.Train:
    nn.init.manual_seed(init)
    return await tg.compile(Net(), loss_fn, optim.Adam(optim.StepLR(0.1, 2)), SPECS, device="numpy", seed=seed, **kw)


async def losses(train: tg.Train, first: int, last: int) -> list[float]:
    return [(await train.step(batch(step))).loss for step in range(first, last)]


def test_a_resume_goes_on_exactly() -> None:
    async def run() -> None:
        whole = await start()
        expected = await losses(whole, 0, 6)
        assert len(set(expected)) == 6
        part = await start()
        assert await losses(part, 0, 3) == expected[:3]
        saved = await part.state_dict()
        other = await start(seed=99, init=50)
        await losses(other, 0, 1)
        assert await other.load_state_dict(saved) == ([], [])
        assert other.state.steps == 3
        assert await losses(other, 3, 6) == expected[3:]

    tg.sync(run())


def test_a_state_dict_has_pytorchs_keys_and_loads_weights_alone() -> None:
    async def run() -> None:
        train = await start()
        await losses(train, 0, 2)
        saved = await train.state_dict()
        names = ["seen", "into.weight", "into.bias", "out.weight", "out.bias"]
        assert list(saved["model"]) == list(Net().state_dict()) == names
        np.testing.assert_array_equal(saved["model"]["into.weight"], saved["model"]["out.weight"])
        assert saved["model"]["seen"] == 2
        fresh = Net()
        fresh.load_state_dict(saved["model"])
        other = await start(init=50)
        assert await other.load_state_dict({n: a for n, a in saved["model"].items() if n != "out.weight"}) == ([], [])
        for found in (fresh.state_dict(), (await other.state_dict())["model"]):
            for name, array in saved["model"].items():
                np.testing.assert_array_equal(found[name], array)

    tg.sync(run())


def test_a_state_dict_that_does_not_fit_changes_nothing() -> None:
    async def run() -> None:
        train = await start()
        await losses(train, 0, 2)
        before = await train.state_dict()
        wrong: list[tuple[dict[str, Any], str]] = [
            ({**before, "model": {**before["model"], "seen": np.zeros(2)}}, "seen"),
            ({**before, "model": {"seen": np.zeros(1)}}, r"missing: into\.weight"),
            ({**before, "optimizer": {}}, r"missing: optim\.exp_avg"),
            ({**before, "calls": "many"}, "calls"),
            ({**before, "model": {**before["model"], "out.weight": np.zeros((3, 3))}}, "tied"),
        ]
        for given, text in wrong:
            with pytest.raises(CheckpointError, match=text):
                await train.load_state_dict(given)
            after = await train.state_dict()
            for part in ("model", "optimizer"):
                for name, array in before[part].items():
                    np.testing.assert_array_equal(after[part][name], array)
            assert after["calls"] == before["calls"]

    tg.sync(run())


def test_reset_goes_back_to_the_start() -> None:
    async def run() -> None:
        train = await start()
        expected = await losses(train, 0, 3)
        await train.reset()
        assert train.state.steps == 0
        assert await losses(train, 0, 3) == expected

    tg.sync(run())


class Pair(nn.Module):
    def __init__(self) -> None:
        self.generator = nn.Linear(2, 2, bias=False)
        self.judge = nn.Linear(2, 1, bias=False)
        self.generator.weight.data[...] = [[1, 0], [0, 1]]
        self.judge.weight.data[...] = [[0.5, 0.25]]


def judge_loss(model: Pair, x: tg.Tensor) -> tg.Tensor:
    return tg.sum(model.judge(model.generator(x).detach()))


def generator_loss(model: Pair, x: tg.Tensor) -> tg.Tensor:
    return -tg.sum(model.judge(model.generator(x)))


def test_two_losses_train_two_networks_against_each_other() -> None:
    """Each optimizer moves its own network, by its own number of steps."""

    async def run() -> None:
        model, specs = Pair(), {"x": tg.f32[1, 2]}
        first = optim.AdamW(0.5, weight_decay=0.5)
        judge = await tg.compile(model, judge_loss, first, specs, device="numpy")
        second = optim.Adam(0.25, params="generator.*")
        generator = await tg.compile(model, generator_loss, second, specs, state=judge.state)
        assert (first.prefix, second.prefix) == ("optim", "optim2")
        x = {"x": f([[1, 2]])}
        await judge.step(x)
        weights = (await judge.state_dict())["model"]
        # no gradient reaches the generator, so it does not decay either
        np.testing.assert_array_equal(weights["generator.weight"], np.eye(2))
        np.testing.assert_allclose(weights["judge.weight"], [[0.5 * 0.75 - 0.5, 0.25 * 0.75 - 0.5]], rtol=1e-6)
        await judge.step(x)
        before = (await judge.state_dict())["model"]
        await generator.step(x)
        after = (await generator.state_dict())["model"]
        np.testing.assert_array_equal(after["judge.weight"], before["judge.weight"])
        # Adam's first step has the size of the learning rate, however many steps the judge made
        assert (np.sign(before["judge.weight"]) == -1).all()
        np.testing.assert_allclose(after["generator.weight"], np.eye(2) - 0.25, rtol=1e-6)
        assert judge.state.counts == {"optim": 2, "optim2": 1}
        saved = await judge.state_dict()
        assert int(saved["optimizer"]["optim.steps"]) == 2
        assert int(saved["optimizer"]["optim2.steps"]) == 1
        await generator.step(x)
        await judge.load_state_dict(saved)
        assert judge.state.counts == {"optim": 2, "optim2": 1}

    tg.sync(run())
