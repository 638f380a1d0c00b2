"""The lessons' code, on CPython: what their cells compute, their checks, and the recorded runs."""

from __future__ import annotations

import asyncio
import doctest
import importlib.util
import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pages
from pages import list_of_lessons, rendered
from record_lessons import LESSONS, Runner, line, pattern_program

pytestmark = pytest.mark.filterwarnings("ignore:running on the numpy device")

HALF = Path(__file__).parents[2] / "web" / "python"
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="the page's JavaScript writes this program")


@pytest.fixture(autouse=True)
def importable() -> Iterator[None]:
    sys.path.insert(0, str(HALF))
    yield
    sys.path.remove(str(HALF))


def verdict(runner: Runner, lesson: str, name: str) -> dict[str, Any]:
    """What a check of a lesson says about what has been run."""
    from tensorgrad_page.checking import check

    spec = importlib.util.spec_from_file_location(f"{lesson}_checks", LESSONS / lesson / "checks.py")
    assert spec is not None
    assert spec.loader is not None
    checks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(checks)
    return asyncio.run(check(getattr(checks, name), runner.namespace))


def test_show_and_check_do_what_their_examples_say() -> None:
    from tensorgrad_page import checking, showing

    results = [doctest.testmod(module) for module in (checking, showing)]
    assert sum(result.attempted for result in results) >= 8
    assert sum(result.failed for result in results) == 0


def test_the_list_has_every_lesson_and_pages_name_files_that_exist() -> None:
    found = {Path(path).name: text for path, text in rendered().items() if path.startswith("lessons/")}
    links = {name: re.findall(r'(?:href|src)="([^"#:]+)"', text) for name, text in found.items()}
    assert {f"./{name}" for name in found} - {"./index.html"} <= set(links["index.html"])
    for name, text in found.items():
        assert not re.search(r"<script(?![^>]* src=)|\sstyle=|\son\w+=", text), f"{name} has inline code or style"
        for link in links[name]:
            made_later = "../vendor/" in link
            assert made_later or (LESSONS / link).exists(), f"{name} names {link}"
        for cell in re.findall(r'data-code="([^"]+)"(?![^>]*data-written)', text):
            assert (LESSONS / Path(name).stem / cell).is_file(), f"{name} has a cell {cell}"


def test_each_lesson_leads_to_the_one_before_and_the_one_after() -> None:
    names = [lesson["name"] for lesson in list_of_lessons()]
    for name, before, after in zip(names, ["", *names], [*names[1:], ""], strict=False):
        (nav,) = re.findall(r"<nav.*?</nav>", rendered()[f"lessons/{name}.html"], re.DOTALL)
        assert re.findall(r'href="\./(\w+)\.html">← ', nav) == [before] * bool(before)
        assert re.findall(r'href="\./(\w+)\.html">[^<]* →<', nav) == [after] * bool(after)


def test_a_page_without_the_frame_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lessons").mkdir()
    (tmp_path / "lessons" / "lessons.json").write_text("[]")
    (tmp_path / "_headers").write_text("/*\n  Content-Security-Policy: default-src 'none'\n")
    (tmp_path / "bare.html").write_text("<!doctype html><title>Bare</title>")
    monkeypatch.setattr(pages, "WEB", tmp_path)
    with pytest.raises(SystemExit):
        pages.rendered()
    assert "web/bare.html does not have the site's policy" in capsys.readouterr().err


def test_show_refuses_what_no_picture_can_use() -> None:
    from tensorgrad_page.showing import Show

    with pytest.raises(TypeError, match="not object"):
        Show(print)(thing=object())


@pytest.mark.parametrize(
    ("exercise", "wrong"),
    [
        ("absolute", "At slope -0.6, height 0.6, to_slope is -0.8589; it should be"),
        ("rate", "the walk leaves the picture"),
        ("parabola", "With a = 1 and the others 0, the loss is 3.333; it should be 1.000."),
    ],
)
def test_the_exercises_of_the_line(exercise: str, wrong: str) -> None:
    async def run(name: str) -> Runner:
        runner = Runner()
        for cell in ("points", "loss", name):
            await runner.cell(f"line/{cell}.py")
        return runner

    found = verdict(asyncio.run(run(f"try_{exercise}")), "line", exercise)
    assert not found["passed"]
    assert wrong in found["text"]
    found = verdict(asyncio.run(run(f"answer_{exercise}")), "line", exercise)
    assert found["passed"], found["text"]


def test_a_check_says_what_a_number_lacks() -> None:
    from tensorgrad_page.checking import Wrong, compare

    compare("It", 1.0, 1.0005)
    for given, why in ((-2.0, "the sign is turned round"), (1.0, "a factor of 2 is missing"), ([1, 2], "it has 2")):
        with pytest.raises(Wrong, match=why):
            compare("It", given, 2.0)


def test_the_recorded_line_is_what_its_code_shows() -> None:
    recorded = json.loads((LESSONS / "recorded" / "line.json").read_text(encoding="utf-8"))
    for old, new in zip(recorded, asyncio.run(line()), strict=True):
        assert old.keys() == new.keys()
        for name in old:
            assert new[name] == pytest.approx(old[name], abs=1e-4)


@needs_node
@pytest.mark.parametrize(
    "settings",
    [
        {"data": "circles", "activation": "ReLU", "width": 3, "depth": 1, "batch": 200},
        {"data": "xor", "features": ["product", "square1", "sine2"], "regularisation": "l1", "depth": 4, "width": 1},
        {"data": "gaussians", "regularisation": "l2", "strength": 0.01, "noise": 1, "batch": 1, "activation": "GELU"},
    ],
    ids=lambda settings: settings["data"],
)
def test_what_the_controls_write_learns(settings: dict[str, Any]) -> None:
    async def run() -> Runner:
        runner = Runner()
        await runner.run(pattern_program(side=8, **settings))
        await runner.run("await advance(60)\ntrain.set_lr(0.003)\nawait advance(1)")
        return runner

    shown = asyncio.run(run()).shown
    assert shown[1]["step"] == 0
    assert shown[-1]["step"] == 61
    assert shown[-1]["train"]["loss"] < shown[1]["train"]["loss"]
    assert [len(layer) for layer in shown[-1]["weights"]] == [settings.get("width", 8)] * settings.get("depth", 2) + [1]


@needs_node
def test_the_recorded_spiral_is_what_its_code_shows() -> None:
    recorded = json.loads((LESSONS / "recorded" / "pattern.json").read_text(encoding="utf-8"))
    assert recorded[-1]["test"]["accuracy"] > 0.95

    async def run() -> Runner:
        runner = Runner()
        await runner.run(pattern_program(side=24))
        return runner

    first = asyncio.run(run()).shown
    assert first[0]["points"] == recorded[0]["points"]
    assert first[1]["weights"][0] == [pytest.approx(row, abs=1e-5) for row in recorded[0]["weights"][0]]


def test_the_softmax_of_the_digits() -> None:
    async def run(source: str) -> Runner:
        runner = Runner()
        await runner.run("import numpy as np")
        await runner.run(source)
        return runner

    tried, right = ((LESSONS / "digits" / f"{name}_softmax.py").read_text("utf-8") for name in ("try", "answer"))
    assert "The sum of softmax([1.0, 2.0, 3.0])" in verdict(asyncio.run(run(tried)), "digits", "softmax")["text"]
    small = right.replace("numbers - np.max(numbers)", "numbers")
    assert "exp(1000) is infinite" in verdict(asyncio.run(run(small)), "digits", "softmax")["text"]
    assert verdict(asyncio.run(run(right)), "digits", "softmax")["passed"]


@needs_node
def test_the_exercises_of_the_pattern() -> None:
    async def run(**settings: Any) -> Runner:
        runner = Runner()
        await runner.run(pattern_program(side=8, **settings))
        return runner

    runner = asyncio.run(run(data="circles", depth=1, width=8))
    assert verdict(runner, "pattern", "small")["text"].startswith("It has 33 weights")
    runner = asyncio.run(run(data="circles", depth=1, width=4, batch=200))
    assert "press Play" in verdict(runner, "pattern", "small")["text"]
    asyncio.run(runner.run("await advance(400)"))
    assert verdict(runner, "pattern", "small")["text"].startswith("Right: 17 weights")
    asyncio.run(runner.cell("pattern/try_loss.py"))
    assert "through tg.sigmoid first" in verdict(runner, "pattern", "loss")["text"]
    asyncio.run(runner.cell("pattern/answer_loss.py"))
    assert verdict(runner, "pattern", "loss")["passed"]
    assert verdict(runner, "pattern", "small")["text"].startswith("Right")
