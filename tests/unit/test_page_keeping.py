"""The weights of a lesson: kept, gone on from, put aside where they do not fit, and done without where none are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad import browser, nn, optim
from tensorgrad.errors import CheckpointError
from tensorgrad_page import keeping

NAME = "lesson test"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """What the browser keeps."""
    kept: dict[str, bytes] = {}

    async def put(name: str, data: bytes) -> None:
        kept[name] = data

    async def read(name: str) -> bytes | None:
        return kept.get(name)

    async def delete(name: str) -> None:
        kept.pop(name, None)

    for function, stands_for in ((put, "keep"), (read, "read"), (delete, "forget")):
        monkeypatch.setattr(browser, stands_for, function)
    return kept


async def lesson(width: int = 2, steps: int = 0) -> dict[str, Any]:
    """The namespace of a lesson's cells."""
    specs = {"x": tg.f32[1, 3]}
    train = await tg.compile(
        nn.Linear(3, width), lambda model, x: model(x).sum(), optim.Adam(0.1), specs, device="numpy"
    )
    for _ in range(steps):
        await train.step(x=np.ones((1, 3)))
    return {"train": train, "done": steps}


async def weights(namespace: dict[str, Any]) -> np.ndarray:
    return (await namespace["train"].state_dict())["model"]["weight"]


def test_the_next_visit_goes_on_from_the_weights(store: dict[str, bytes]) -> None:
    async def visits() -> None:
        first, second = await lesson(steps=3), await lesson()
        assert await keeping.keep(NAME, first) is True
        assert await keeping.resume(NAME, second) == {"steps": 3}
        assert second["done"] == 3
        np.testing.assert_array_equal(await weights(second), await weights(first))
        assert await keeping.forget(NAME, second) is True
        assert await keeping.resume(NAME, await lesson()) == {}

    tg.sync(visits())


@pytest.mark.parametrize("second", ["another loss", "another optimizer"])
def test_weights_that_fit_are_taken_from_a_training_that_does_not(store: dict[str, bytes], second: str) -> None:
    async def visits() -> None:
        first, again = await lesson(steps=3), await lesson()
        train = first["train"]
        module, specs = train.state.module, {"x": tg.f32[1, 3]}
        if second == "another loss":  # as in the exercise of lesson 2
            other: dict[str, Any] = {"state": train.state}
        else:
            other = {"device": "numpy"}
            module.load_state_dict((await train.state_dict())["model"])
        first["train"] = await tg.compile(module, lambda m, x: (m(x) ** 2).sum(), optim.SGD(0.01), specs, **other)
        for _ in range(2):
            await first["train"].step(x=np.ones((1, 3)))
        assert await keeping.keep(NAME, first) is True
        made = 5 if second == "another loss" else 2
        assert await keeping.resume(NAME, again) == {"steps": made, "anew": True}
        assert again["done"] == made
        np.testing.assert_array_equal(await weights(again), await weights(first))
        await again["train"].step(x=np.ones((1, 3)))
        assert again["train"].state.steps == 1

    tg.sync(visits())


@pytest.mark.parametrize("kind", ["wider", "damaged", "no file", "of other names"])
def test_what_does_not_fit_is_put_aside(store: dict[str, bytes], kind: str) -> None:
    async def visit() -> None:
        whole = await (await lesson(width=4 if kind == "wider" else 2, steps=1))["train"].save()
        other = tg.save({"elsewhere": np.ones(3, np.float32)})
        store[NAME] = {"wider": whole, "damaged": whole[:-9], "no file": b"junk", "of other names": other}[kind]
        namespace = await lesson()
        before = await weights(namespace)
        assert await keeping.resume(NAME, namespace) == {"unfit": True}
        assert namespace["done"] == 0
        np.testing.assert_array_equal(await weights(namespace), before)

    tg.sync(visit())


def test_what_is_not_trained_is_not_kept(store: dict[str, bytes]) -> None:
    assert tg.sync(keeping.keep(NAME, tg.sync(lesson()))) is None
    assert tg.sync(keeping.keep(NAME, {"train": "the reader's own"})) is None
    assert tg.sync(keeping.resume(NAME, {})) == {}
    assert store == {}


def test_a_full_storage_or_none_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    namespace = tg.sync(lesson(steps=1))
    assert tg.sync(keeping.resume(NAME, namespace)) == {}  # no IndexedDB here
    assert tg.sync(keeping.forget(NAME, namespace)) is False

    async def full(name: str, data: bytes) -> None:
        raise CheckpointError("the browser cannot keep checkpoints: QuotaExceededError")

    monkeypatch.setattr(browser, "keep", full)
    assert tg.sync(keeping.keep(NAME, namespace)) is False
