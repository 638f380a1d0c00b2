"""The line of progress: redrawn in a terminal and in a notebook, printed now and then elsewhere."""

from __future__ import annotations

import io
import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import tensorgrad as tg
from tensorgrad import progress
from tensorgrad.progress import Progress, progress_line
from training import batch, stacked, start


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_line() -> None:
    assert progress_line(0, 10, 0.0, "") == "[------------------------] 0/10 steps, 0/s"
    assert progress_line(10, 10, 2.0, "loss 1", last=True) == "[########################] 10/10 steps, loss 1, 5/s, 2 s"
    assert progress_line(12, 10, 2.0, "").startswith("[########################] 12/10"), "a length that was wrong"
    assert progress_line(123_456, None, 2.0, "") == "123,456 steps, 61,728/s"


def test_a_terminal_redraws_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(progress, "BETWEEN_DRAWS", 0.0)
    monkeypatch.setattr(progress.shutil, "get_terminal_size", lambda: os.terminal_size((30, 10)))
    tg.sync(fitted())
    drawn = out.getvalue().split("\r")
    assert drawn[0] == ""
    assert len(drawn) >= 4, "a time for each step, and the last"
    assert all(line.endswith("\x1b[K") and len(line) <= 29 + 3 for line in drawn[1:-1])
    assert drawn[-1].startswith("[########################] 3/\x1b[K")
    assert out.getvalue().count("\n") == 1
    assert out.getvalue().endswith("\x1b[K\n")


def test_a_file_gets_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "BETWEEN_DRAWS", 0.0)
    tg.sync(fitted())
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("[########################] 3/3 steps, loss ")
    assert ", validation right 0.25, " in line
    monkeypatch.setattr(progress, "BETWEEN_LINES", 0.0)
    tg.sync(fitted())
    assert len(capsys.readouterr().out.splitlines()) == 4
    tg.sync(fitted(progress=False))
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(sys, "stdout", None)
    tg.sync(fitted())


def test_a_notebook_updates_its_output(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[str] = []

    def display(data: dict[str, str], *, raw: bool, display_id: bool) -> Any:
        assert (raw, display_id) == (True, True)
        return SimpleNamespace(update=lambda data, raw: shown.append(data["text/plain"]))

    ipython: Any = SimpleNamespace(get_ipython=lambda: SimpleNamespace())
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    bar = Progress(4)
    bar.draw(1, "loss 2")
    bar.draw(4, "loss 1", last=True)
    assert [line.split(",")[0] for line in shown] == ["[######------------------] 1/4 steps", f"[{'#' * 24}] 4/4 steps"]
    terminal = type("TerminalInteractiveShell", (), {})()
    for shell in (None, terminal):
        ipython.get_ipython = lambda shell=shell: shell
        Progress(4).draw(4, "", last=True)
    assert len(shown) == 2
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_an_interrupted_run_ends_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> Any:
        yield batch(0)
        raise KeyboardInterrupt

    async def run() -> None:
        train = await start("numpy")
        monkeypatch.setattr(sys, "stdout", out := Terminal())
        with pytest.raises(KeyboardInterrupt):
            await train.fit(interrupted())
        assert out.getvalue().endswith("\x1b[K\n")
        assert "\r1 steps, loss " in out.getvalue()

    tg.sync(run())


def test_who_follows_gets_every_loss_of_what_shows_its_progress(capsys: pytest.CaptureFixture[str]) -> None:
    async def run() -> None:
        train, found = await start("numpy"), []
        progress.follow(lambda losses: found.extend(losses.tolist()))
        try:
            record = await train.fit([batch(i) for i in range(3)], epochs=2)
            assert found == record.losses.tolist()
            await train.fit(await train.upload(stacked(range(3))))
            assert len(found) == 9
            await train.fit([batch(0)], on_step=lambda step, result: None)
            await train.fit([batch(0)], progress=False)
        finally:
            progress.follow(None)
        await train.fit([batch(0)])
        assert len(found) == 9

    tg.sync(run())
    assert "loss" in capsys.readouterr().out


async def fitted(**options: Any) -> None:
    train = await start("numpy")
    await train.fit([batch(i) for i in range(3)], validate=lambda _: {"right": 0.25}, **options)
