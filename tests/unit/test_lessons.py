"""The lessons' code, on CPython: what their cells compute, their checks, and the recorded runs."""

from __future__ import annotations

import asyncio
import doctest
import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pages
from pages import list_of_lessons, rendered
from record_lessons import LESSONS, Runner, gpu, line, page_file, pattern_program

pytestmark = pytest.mark.filterwarnings("ignore:running on the numpy device")


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
            made_later = link.startswith(("../vendor/", "../docs/"))
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


def test_the_recorded_stages_are_what_their_code_shows() -> None:
    recorded = json.loads((LESSONS / "recorded" / "gpu.json").read_text(encoding="utf-8"))
    assert recorded == json.loads(json.dumps(asyncio.run(gpu())))
    for frame in recorded:
        if "ways" in frame:
            fused, apart = frame["ways"]["fused"], frame["ways"]["apart"]
            assert len(fused["kernels"]) == fused["stored"] == 1
            assert len(apart["kernels"]) == apart["stored"] == apart["operations"] >= 4
            assert fused["nbytes"] * 3 < apart["nbytes"]
            assert fused["temporary"] == 0 < apart["temporary"]


def test_a_training_step_at_each_stage() -> None:
    async def run() -> Runner:
        runner = Runner()
        for name in ("step", "stages", "measure"):
            await runner.cell(f"gpu/{name}.py")
        await runner.run("await measure()")
        return runner

    told, times = asyncio.run(run()).shown
    assert times == {"times": {"n": 1024, "no_gpu": True}}
    fused = told["ways"]["fused"]["kernels"]
    product = next(i for i, text in enumerate(told["source"], 1) if "tg.relu" in text)
    nodes = {node["id"]: node for node in told["graph"]}
    assert {kernel["name"].split()[0] for kernel in fused if product in kernel["lines"]} >= {"matmul", "row"}
    for kernel in fused:
        lines = {nodes[i]["line"] for i in kernel["nodes"]} - {None}
        assert lines == set(kernel["lines"])
        named = {i for _, found in kernel["wgsl"] for i in found}
        assert named & set(kernel["nodes"]), "it stores what it computes"


@pytest.mark.parametrize(
    ("exercise", "wrong"),
    [
        ("one", "Right numbers, in 4 kernels: map exp"),
        ("bytes", "`fused_bytes` is 0"),
        ("two", "It compiles to 1: map add."),
    ],
)
def test_the_exercises_of_the_gpu(exercise: str, wrong: str) -> None:
    async def run(name: str) -> Runner:
        runner = Runner()
        for cell in ("relu", "stages", name):
            await runner.cell(f"gpu/{cell}.py")
        return runner

    found = verdict(asyncio.run(run(f"try_{exercise}")), "gpu", exercise)
    assert not found["passed"]
    assert wrong in found["text"]
    found = verdict(asyncio.run(run(f"answer_{exercise}")), "gpu", exercise)
    assert found["passed"], found["text"]


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


def test_the_recorded_names_get_below_the_bigrams() -> None:
    recorded = json.loads((LESSONS / "recorded" / "names.json").read_text(encoding="utf-8"))
    assert recorded[0]["test"] > recorded[0]["bigrams"] > recorded[-1]["test"]
    for frame in recorded:
        for heads in frame["attention"]:
            for weights in np.array(heads):
                np.testing.assert_allclose(weights.sum(1), 1, atol=1e-5)  # six digits are recorded
                assert not np.triu(weights, 1).any()


def test_the_exercises_of_the_names() -> None:
    async def run(name: str, **given: Any) -> Runner:
        runner = Runner()
        runner.namespace |= {"np": np, **given}
        source = (LESSONS / "names" / f"{name}.py").read_text("utf-8")
        await runner.run(source.partition("name = ")[0])  # without the drawing of a name, which wants a network
        return runner

    def started(text: str) -> np.ndarray:
        return np.array([[0, *(ord(letter) - 96 for letter in text)]])

    async def answers(tokens: np.ndarray) -> np.ndarray:
        return np.cumsum(tokens, 1)[..., None]

    async def peeking(tokens: np.ndarray) -> np.ndarray:
        return np.pad(tokens[:, 1:], ((0, 0), (0, 1)))[..., None]

    for name, given, wrong in (
        ("temperature", {}, "the temperature is not used"),
        ("ahead", {"started": started, "answers": answers, "peeking_answers": peeking}, "accuses the network that has"),
    ):
        assert wrong in verdict(asyncio.run(run(f"try_{name}", **given)), "names", name)["text"]
        assert verdict(asyncio.run(run(f"answer_{name}", **given)), "names", name)["passed"]
    runner = asyncio.run(run("answer_ahead", started=started, answers=answers, peeking_answers=answers))
    assert "though it looks ahead" in verdict(runner, "names", "ahead")["text"]


IMAGES_OF_NOISE = """
import numpy as np
from pyodide.http import pyfetch
import tensorgrad as tg
from tensorgrad import nn, optim

test_images = images = np.random.default_rng(0).random((500, 1, 28, 28), np.float32)
test_labels = labels = np.arange(500, dtype=np.int32) % 10
"""


def test_the_code_of_the_pictures_and_its_exercises() -> None:
    async def run() -> Runner:
        page_file()
        runner = Runner()
        await runner.run(IMAGES_OF_NOISE)
        for name in ("reader", "model", "learn"):
            await runner.cell(f"pictures/{name}.py")
        runner.shown.clear()
        await runner.run("await advance(2)\nawait at(1, -2)")
        return runner

    runner = asyncio.run(run())
    recorded = json.loads((LESSONS / "recorded" / "pictures.json").read_text(encoding="utf-8"))
    trained = [frame for frame in recorded if "step" in frame]
    assert trained[-1].keys() == {name for values in runner.shown for name in values}
    assert trained[0]["recognised"] < 0.3
    assert trained[-1]["recognised"] > 0.8
    assert runner.shown[-1]["hand"] == [1, -2]
    for exercise, wrong in (("hand", "the hand is drawn at random"), ("bits", "should hold two numbers")):
        asyncio.run(runner.cell(f"pictures/try_{exercise}.py"))
        assert wrong in verdict(runner, "pictures", exercise)["text"]
        asyncio.run(runner.cell(f"pictures/answer_{exercise}.py"))
        found = verdict(runner, "pictures", exercise)
        assert found["passed"], found["text"]
    asyncio.run(runner.run("bits = bits * np.log(2)"))
    assert "a bit is log 2" in verdict(runner, "pictures", "bits")["text"]
    zero = (
        "async def in_the_hand_of(i, text):\n    return await write(place=places[:len(text)], digit=each[:len(text)])"
    )
    asyncio.run(runner.run(zero))
    assert "is not what the decoder writes" in verdict(runner, "pictures", "hand")["text"]
