"""Checkpoints as files: an exact resume, PyTorch's weights, and what is said of a file that does not fit."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad import nn, optim, safetensors
from tensorgrad.data import DataLoader
from training import Net, assert_same, losses, start

PYTORCH = Path(__file__).parent.parent / "reference" / "pytorch.safetensors"


def test_a_resume_from_a_file_goes_on_exactly(tmp_path: Path) -> None:
    """With dropout, a schedule, running averages, momenta, and another start of everything."""

    async def run() -> None:
        whole = await start("numpy")
        expected = await losses(whole, 0, 8)
        part = await start("numpy")
        assert await losses(part, 0, 5) == expected[:5]
        data = await part.save(tmp_path / "run.safetensors")
        assert data == (tmp_path / "run.safetensors").read_bytes()
        for source in (data, tmp_path / "run.safetensors", io.BytesIO(data)):
            other = await start("numpy", init=7, seed=99)
            await losses(other, 0, 2)
            assert await other.load(source) == ([], [])
            assert await losses(other, 5, 8) == expected[5:]
            assert_same(await other.state_dict(), await whole.state_dict())

    tg.sync(run())


def test_a_file_keeps_the_form_of_a_state_dict() -> None:
    async def run() -> None:
        train = await start("numpy")
        await losses(train, 0, 2)
        state = await train.state_dict()
        data = tg.save(state)
        found = tg.load(data)
        assert found.keys() == state.keys()
        assert_same(found, state)
        assert state["model"].keys() < safetensors.load(data).keys(), "other programs find the plain names"
        assert safetensors.metadata(data)["format"] == "pt"
        opened = io.BytesIO()
        assert tg.save(Net().state_dict(), opened) == opened.getvalue()
        assert tg.load(opened.getvalue()).keys() == state["model"].keys()
        half = tg.load(tg.save(state, dtype="F16"))
        assert half["model"]["into.weight"].dtype == np.float16
        assert half["optimizer"]["optim.steps"].dtype == np.int32
        assert await train.load_state_dict(half) == ([], [])

    tg.sync(run())


def test_weights_of_pytorch_load_untransposed() -> None:
    async def run() -> None:
        model = nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7), nn.ReLU(), nn.Linear(7, 3))
        texts = safetensors.metadata(PYTORCH)
        x, y = (np.array(json.loads(texts[name]), np.float32) for name in "xy")
        predict = await tg.compile_forward(model, lambda m, x: m(x), {"x": tg.f32[4, 5]}, device="numpy")
        assert await predict.state.load_state_dict(tg.load(PYTORCH)) == ([], [])
        np.testing.assert_allclose(await predict(x=x), y, rtol=1e-5, atol=1e-6)  # f32, in another order
        specs = {"x": tg.f32[4, 5]}
        train = await tg.compile(model, lambda m, x: m(x).sum(), optim.SGD(0.1), specs, device="numpy")
        assert await train.load(PYTORCH) == ([], [])
        again = await train.attach(lambda m, x: m(x), specs)
        np.testing.assert_array_equal(await again(x=x), await predict(x=x))

    tg.sync(run())


def test_a_file_that_does_not_fit_changes_nothing_and_says_all() -> None:
    async def run() -> None:
        train = await start("numpy")
        await losses(train, 0, 1)
        before = await train.state_dict()
        good = before["model"]
        gone = {name: array for name, array in good.items() if name != "out.bias"}
        cases: list[tuple[dict[str, Any], tuple[str, ...]]] = [
            (gone | {"other": good["mean"]}, (r"missing: out\.bias \(f32\[3\]\)", "unexpected: other")),
            (
                {f"module.{name}": array for name, array in good.items()},
                (
                    r"missing: into\.weight",
                    r"unexpected: module\.into\.weight",
                    r"without 'module\.' names fit: \{k\.re",
                ),
            ),
            (
                {name.removeprefix("into."): array for name, array in good.items() if name.startswith("into.")},
                ("unexpected: weight", r"with 'into\.' before them names fit"),
            ),
            (
                good | {"into.weight": good["into.weight"].T, "mean": np.zeros(4)},
                (
                    r"into\.weight has shape \[5, 16\], expected f32\[16, 5\]; its transpose has that",
                    r"mean has shape \[4\], expected f32\[5\]$",
                ),
            ),
            (good | {"mean": np.zeros(5, bool)}, (r"mean has dtype bool, expected f32\[5\]",)),
        ]
        for state, messages in cases:
            for message in messages:
                with pytest.raises(tg.CheckpointError, match=f"(?m){message}"):
                    await train.load(tg.save(state))
        assert (await train.load(tg.save(gone), strict=False)).missing_keys == ["out.bias"]
        with pytest.raises(tg.CheckpointError, match="it is cut off"):
            await train.load(tg.save(before)[:-1])
        for numbers, message in (
            ("{", "is not JSON"),
            ("[" * 10_000, "is not JSON"),
            ("[1]", "has no numbers by name"),
            ('{"calls": -1, "seed": 0}', "'calls' of the state dict must not be negative"),
            ('{"calls": 1.5, "seed": 0}', "'calls' of the state dict must be a whole number"),
            ("{}", "the state dict has no 'calls'"),
        ):
            with pytest.raises(tg.CheckpointError, match=message):
                await train.load(safetensors.save(good, {"tensorgrad": numbers}))
        assert_same(await train.state_dict(), before)

    tg.sync(run())


@pytest.mark.parametrize("strict", [True, False])
def test_a_module_takes_its_weights_from_a_trainings_state(strict: bool) -> None:
    async def trained() -> tuple[dict[str, Any], dict[str, Any]]:
        specs = {"x": tg.f32[4, 3]}
        train = await tg.compile(nn.Linear(3, 2), lambda m, x: m(x).sum(), optim.Adam(0.1), specs, device="numpy")
        await train.step(x=np.ones((4, 3)))
        return await train.state_dict(), tg.load(await train.save())

    for state in tg.sync(trained()):
        model = nn.Linear(3, 2)
        assert model.load_state_dict(state, strict) == ([], [])
        np.testing.assert_array_equal(model.weight.data, state["model"]["weight"])


def test_what_cannot_be_saved_is_said() -> None:
    with pytest.raises(tg.InputError, match="'optimizer/x' has a name that stands for the optimizer's arrays"):
        tg.save({"model": {"optimizer/x": np.ones(1)}})
    with pytest.raises(tg.InputError, match="of a state dict are numbers or texts"):
        tg.save({"model": {}, "mine": object()})


def test_a_loaders_place_is_saved_along() -> None:
    async def run() -> None:
        rng = np.random.default_rng(0)
        arrays = {"x": rng.normal(size=(40, 5)), "t": rng.integers(0, 3, 40)}

        def loader(seed: int) -> DataLoader:
            return DataLoader(arrays, 8, shuffle=True, seed=seed)

        async def steps(train: tg.Train, data: DataLoader, count: int) -> list[float]:
            found: list[float] = []
            while len(found) < count:
                for batch in data:
                    found.append((await train.step(batch)).loss)
                    if len(found) == count:
                        break
            return found

        expected = await steps(await start("numpy"), loader(3), 12)
        first, data = await start("numpy"), loader(3)
        assert await steps(first, data, 7) == expected[:7]
        saved = await first.save(loader=data)
        second, other = await start("numpy", init=9, seed=5), loader(8)
        await second.load(saved, loader=other)
        assert await steps(second, other, 5) == expected[7:]
        place = other.state_dict()
        with pytest.raises(tg.CheckpointError, match="no place of a data loader was saved there"):
            await second.load(await first.save(), loader=other)
        broken = tg.load(saved)
        del broken["model"]["mean"]
        with pytest.raises(tg.CheckpointError, match="missing: mean"):
            await second.load(tg.save(broken), loader=other)
        assert other.state_dict() == place

    tg.sync(run())
