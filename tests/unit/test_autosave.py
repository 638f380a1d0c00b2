"""Checkpoints that a browser keeps, with a storage of the tests' own, and files where there is no page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad import browser
from tensorgrad.cache import indexeddb
from tensorgrad.data import DataLoader
from training import assert_same, start

RNG = np.random.default_rng(0)
ARRAYS = {"x": RNG.normal(size=(40, 5)), "t": RNG.integers(0, 3, 40)}


class Kept:
    """Bytes, as JavaScript gives them."""

    def __init__(self, data: bytes) -> None:
        self.to_bytes = lambda: data


class Storage:
    """A database whose writes may fail."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.writes, self.room, self.open = 0, 10**9, 0

    async def get(self, key: str, now: float) -> Any:
        return Kept(self.values[key]) if key in self.values else None

    async def put(self, key: str, value: bytes, now: float, size: int) -> None:
        self.writes += 1
        if size > self.room:
            raise OSError("QuotaExceededError: no room")
        self.values[key] = value

    async def uses(self) -> dict[str, tuple[int, float]]:
        return {key: (len(value), 0.0) for key, value in self.values.items()}

    async def delete(self, keys: list[str]) -> None:
        for key in keys:
            self.values.pop(key, None)

    def close(self) -> None:
        self.open -= 1


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Storage:
    made = Storage()

    async def connect(database: str) -> Storage:
        assert database == "tensorgrad checkpoints"
        made.open += 1
        return made

    monkeypatch.setattr(indexeddb, "connect", connect)
    monkeypatch.setattr(browser, "_bytes", bytes)
    return made


def loader(seed: int = 1) -> DataLoader:
    return DataLoader(ARRAYS, 8, shuffle=True, seed=seed)


def test_a_training_resumes_from_what_was_kept(storage: Storage) -> None:
    async def run() -> None:
        whole = await start("numpy")
        expected = (await whole.fit(loader(), steps=12, progress=False)).losses.tolist()
        part = await start("numpy")
        assert not await part.resume("run")
        found = (await part.fit(loader(), steps=7, progress=False, autosave="run")).losses.tolist()
        assert storage.writes == 1, "at the end"
        other, data = await start("numpy", init=5, seed=8), loader(9)
        assert await other.resume("run", loader=data)
        record = await other.fit(data, steps=5, progress=False, autosave="run", autosave_every=0.0)
        assert found + record.losses.tolist() == expected
        assert storage.writes == 1 + 5 + 1
        assert_same(await other.state_dict(), await whole.state_dict())
        kept = await browser.kept()
        assert kept == {"run": len(storage.values["run"])}
        assert tg.load(await browser.read("run") or b"")["loader"] == data.state_dict()
        await browser.forget("run")
        assert await browser.kept() == {}
        assert await browser.read("run") is None
        assert storage.open == 0

    tg.sync(run())


def test_an_autosave_that_fails_is_a_warning_and_one_that_was_asked_for_an_error(storage: Storage) -> None:
    async def run() -> None:
        storage.room = 10
        train = await start("numpy")
        with pytest.raises(
            tg.CheckpointError, match=r"cannot keep checkpoints: OSError QuotaExceeded.*; there is no room"
        ):
            await train.autosave("run")
        with pytest.warns(RuntimeWarning, match="autosave is off: the browser cannot keep checkpoints") as warned:
            await train.fit(loader(), steps=4, progress=False, autosave="run", autosave_every=0.0)
        assert [one.filename for one in warned] == [__file__]
        assert train.state.steps == 4
        assert storage.writes == 2
        storage.values["run"] = b"damaged"
        with pytest.raises(tg.CheckpointError, match="it has 7 bytes"):
            await train.resume("run")

    tg.sync(run())


def test_outside_of_a_browser_nothing_is_kept() -> None:
    async def run() -> None:
        train = await start("numpy")
        for work in (train.autosave("run"), train.resume("run"), browser.kept(), browser.forget("run")):
            with pytest.raises(tg.UnsupportedError, match=r"no IndexedDB here .*; train\.save\(path\) writes a file"):
                await work
        with pytest.raises(tg.UnsupportedError, match="no IndexedDB here"):
            await train.fit(loader(), steps=4, progress=False, autosave="run")
        assert train.state.steps == 0, "it is said before the training"
        with pytest.raises(
            tg.UnsupportedError, match="a download needs a page, and this Python runs outside of a brow"
        ):
            browser.download("a", b"b")
        with pytest.raises(tg.UnsupportedError, match="a file picker needs a page"):
            await browser.upload()

    tg.sync(run())


def test_a_page_connects_downloads_and_uploads(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[str, bytes]] = []
    answers: list[bytes | None] = [b"abc", None]

    async def upload(accept: str) -> bytes | None:
        assert accept == ".bin"
        return answers.pop(0)

    async def run() -> None:
        monkeypatch.setattr(browser, "_page", None)
        browser.connect(lambda name, data: given.append((name, data)), upload)
        browser.download("a.bin", memoryview(b"xy"))
        assert given == [("a.bin", b"xy")]
        with pytest.raises(tg.InputError, match="a file is made of bytes, got str"):
            browser.download("a.bin", "text")  # type: ignore[arg-type]
        assert await browser.upload(".bin") == b"abc"
        with pytest.raises(tg.InputError, match="no file was chosen"):
            await browser.upload(".bin")

    tg.sync(run())
