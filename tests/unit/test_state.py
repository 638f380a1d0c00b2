"""What outlives a step: state dicts, exact resumes, and two optimizers on one state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from reference.stored import f
from tensorgrad import nn, optim
from tensorgrad.errors import CheckpointError
from training import assert_same

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


async def test_all_that_does_not_fit_is_listed_together_and_nothing_is_loaded() -> None:
    train = await start()
    await losses(train, 0, 2)
    before = await train.state_dict()
    model = {**before["model"], "into.weight": np.zeros((3, 4)), "more": np.zeros(1), "seen": np.zeros(1, complex)}
    del model["into.bias"]
    optimizer = {**before["optimizer"], "optim.exp_avg.into.weight": np.zeros(2), "optim.more": 1.0}
    del optimizer["optim.exp_avg_sq.into.bias"], optimizer["optim.steps"]
    given = {"model": model, "optimizer": optimizer, "calls": "many", "seed": -1}
    with pytest.raises(CheckpointError) as caught:
        await train.load_state_dict(given)
    listed = [line.strip() for line in str(caught.value).splitlines()]
    for text in (
        "missing: into.bias (f32[3])",
        "unexpected: more",
        "does not fit: into.weight has shape [3, 4], expected f32[3, 3]",
        "missing: optim.steps (i32[])",
        "missing: optim.exp_avg_sq.into.bias (f32[3])",
        "unexpected: optim.more",
        "does not fit: optim.exp_avg.into.weight has shape [2], expected f32[3, 3]",
        "'calls' of the state dict must be a whole number, got 'many'",
        "'seed' of the state dict must not be negative, got -1",
    ):
        assert text in listed
    assert any(line.startswith("does not fit: seen has dtype complex") for line in listed)
    assert_same(await train.state_dict(), before)
    # without strict, what has the wrong form is still an error
    with pytest.raises(CheckpointError) as caught:
        await train.load_state_dict(given, strict=False)
    text = str(caught.value)
    assert "missing" not in text
    assert "unexpected" not in text
    assert text.count("does not fit: ") == 3
    assert_same(await train.state_dict(), before)
    assert await losses(train, 2, 4) == (await losses(await start(), 0, 4))[2:]


async def test_without_strict_the_rest_is_loaded_and_told() -> None:
    train, other = await start(), await start(init=50)
    await losses(train, 0, 2)
    saved, old = await train.state_dict(), await other.state_dict()
    model = {**saved["model"], "more": np.zeros(1)}
    optimizer = {**saved["optimizer"], "optim.more": 1.0}
    del model["into.bias"], optimizer["optim.exp_avg.into.weight"]
    given = {"model": model, "optimizer": optimizer, "seed": 77}
    missing, unexpected = await other.load_state_dict(given, strict=False)
    assert (missing, unexpected) == (["into.bias", "optim.exp_avg.into.weight"], ["more", "optim.more"])
    expected: dict[str, Any] = {"model": {**saved["model"]}, "optimizer": {**saved["optimizer"]}}
    expected["model"]["into.bias"] = old["model"]["into.bias"]
    expected["optimizer"]["optim.exp_avg.into.weight"] = old["optimizer"]["optim.exp_avg.into.weight"]
    assert_same(await other.state_dict(), {**expected, "calls": 0, "seed": 77})
    assert other.state.steps == 2
    # weights alone say nothing of the optimizer
    assert await other.load_state_dict({"into.bias": np.ones(3)}, strict=False) == (
        ["seen", "into.weight", "out.weight", "out.bias"],
        [],
    )
    assert (await other.state_dict())["model"]["into.bias"].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"calls": 1.5}, "'calls' of the state dict must be a whole number, got 1.5"),
        ({"calls": np.zeros(2, int)}, "'calls' of the state dict must be a whole number"),
        ({"seed": None}, "'seed' of the state dict must be a whole number, got None"),
        ({"optimizer": None}, "maps names to arrays, got NoneType"),
        ({"optimizer": [1]}, "maps names to arrays, got list"),
    ],
    ids=str,
)
async def test_a_part_of_another_kind(change: dict[str, Any], text: str) -> None:
    train = await start()
    before = await train.state_dict()
    with pytest.raises(CheckpointError, match=text) as caught:
        await train.load_state_dict({**before, **change})
    assert str(caught.value).count("\n  at ") == 1, "the problems are many, the user's line is one"
    assert caught.value.site is not None
    assert caught.value.site.file == __file__
    assert_same(await train.state_dict(), before)
    for part in ("optimizer", "calls", "seed"):
        with pytest.raises(CheckpointError, match=f"no {part!r}" if part != "optimizer" else r"missing: optim\.steps"):
            await train.load_state_dict({name: value for name, value in before.items() if name != part})
    for given in (None, [1], "weights"):
        with pytest.raises(CheckpointError, match="maps names to arrays"):
            await train.load_state_dict(given)  # type: ignore[arg-type]
    numbers = {**before, "calls": np.array(5), "seed": np.uint32(2**32 - 1)}
    await train.load_state_dict(numbers)
    assert (train.state.calls, train.state.seed) == (5, 2**32 - 1)


async def test_arrays_that_are_saved_and_loaded_are_copies() -> None:
    train = await start()
    saved = await train.state_dict()
    expected = await losses(train, 0, 2)
    for part in ("model", "optimizer"):
        for array in saved[part].values():
            assert not np.shares_memory(array, train.state.module.into.weight.data)  # type: ignore[attr-defined]
    await train.load_state_dict(saved)
    for array in (*saved["model"].values(), *saved["optimizer"].values()):
        array[...] = 7
    assert await losses(train, 0, 2) == expected
