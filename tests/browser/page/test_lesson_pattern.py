"""Lesson 2: a small network learns a pattern, while everything about it can be changed."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from lesson_driver import PHONE, WIDE, answer, lose_the_gpu, open_lesson
from page_driver import SUB_PATH, TRAIN, Repl
from tensorgrad.testing.server import StaticServer

pytestmark = pytest.mark.page
KEPT = "import tensorgrad as tg\nprint(await tg.browser.kept())"


@pytest.fixture
def url(server: StaticServer) -> str:
    return f"{server.url}{SUB_PATH}lessons/pattern.html"


def test_the_spiral_is_learned_with_the_suggested_settings(open_page: Callable[..., Repl], url: str) -> None:
    lesson = open_lesson(open_page, url, viewport=WIDE)
    page = lesson.page
    expect(page.locator("#note")).to_contain_text("recorded")
    expect(page.locator("#steps")).not_to_have_text("0")
    lesson.wait_ready()
    expect(page.locator("#steps")).to_have_text("0")
    drawn = page.locator("#answer").evaluate("canvas => canvas.toDataURL()")
    page.click("#play")
    # Another learning rate goes on where it is; the program says so, too.
    expect(page.locator("#steps")).to_have_text(re.compile(r"\d\d"), timeout=TRAIN)
    page.select_option("#rate", "0.03")
    expect(page.locator("#note")).to_contain_text("nothing was compiled")
    assert "optim.Adam(0.03)" in lesson.code("program.py")
    expect(page.locator("#test-accuracy")).to_have_text(re.compile(r"9[5-9]\.|100\."), timeout=TRAIN)
    page.click("#play")
    reached = int(lesson.text("steps"))
    assert 50 < reached < 1500
    assert page.locator("#answer").evaluate("canvas => canvas.toDataURL()") != drawn
    print(f"{lesson.text('speed')} steps and {lesson.text('pictures')} pictures a second")
    # The strength of nothing: the network stays.
    page.select_option("#strength", "0.01")
    expect(page.locator("#note")).to_contain_text("as soon as L1 or L2 is chosen")
    assert int(lesson.text("steps")) >= reached
    assert "0.01 *" not in lesson.code("program.py")
    # What runs over and over is kept once.
    count = "import linecache\nprint(sum(name.startswith('<input') for name in linecache.cache))"
    assert int(lesson.run("try_small.py", count)) < 15
    # What a neuron answers.
    page.get_by_role("button", name="Layer 2, neuron 3").focus()
    expect(page.locator("#answer-caption")).to_contain_text("neuron 3 of layer 2")
    lesson.keep("lesson-pattern")
    # Another network: another program, which starts anew.
    page.locator("#depth").fill("1")
    expect(page.locator("#note")).to_contain_text("A new network", timeout=TRAIN)
    expect(page.locator("#steps")).to_have_text("0")
    expect(page.locator(".neuron")).to_have_count(8)
    page.click("#step")
    expect(page.locator("#steps")).to_have_text("1")
    # The GPU is lost: the next step finds out, and the program runs again on a new one.
    lose_the_gpu(lesson, "try_small.py")
    runs = int(lesson.cell("program.py").get_attribute("data-runs") or 0)
    page.click("#step")
    expect(lesson.cell("program.py")).to_have_attribute("data-runs", str(runs + 1), timeout=TRAIN)
    expect(page.locator("#note")).to_contain_text("Trained 1 step before.")
    page.click("#step")
    expect(page.locator("#steps")).to_have_text("2")
    # The next visit goes on, with these settings.
    for _ in range(2):  # the step's end, then the keeping
        assert "lesson pattern" in lesson.run("try_small.py", KEPT)
    page.reload()
    expect(page.locator("#note")).to_have_text("A recorded run with other settings than yours, until Python is here.")
    lesson.wait_ready()
    expect(page.locator("#note")).to_contain_text("Trained 2 steps last time. Play goes on from there")
    expect(page.locator("#steps")).to_have_text("2")
    expect(page.locator("#depth")).to_have_value("1")
    # What is no file of weights is left aside; the lesson works.
    lesson.run("try_small.py", "import tensorgrad as tg\nawait tg.browser.keep('lesson pattern', b'junk')")
    page.reload()
    page.locator("#width").fill("4")  # before Python is there
    lesson.wait_ready()
    expect(page.locator("#note")).to_contain_text("does not fit this network")
    expect(page.locator(".neuron")).to_have_count(4)
    page.reload()
    expect(lesson.cell("program.py")).to_have_attribute("data-state", "running", timeout=TRAIN)
    page.locator("#width").fill("3")  # while it compiles the other
    expect(page.locator("#note")).to_contain_text("A new network", timeout=TRAIN)
    expect(page.locator(".neuron")).to_have_count(3)
    assert "(3, 2)" in lesson.run("try_small.py", "print(model[0].weight.shape)")
    page.click("#step")
    expect(page.locator("#note")).to_contain_text("keeps the weights")
    page.click("#over")
    expect(page.locator("#note")).to_contain_text("A new network", timeout=TRAIN)
    assert lesson.run("try_small.py", KEPT) == "{}\n"
    assert lesson.problems == []


def test_on_a_phone_the_reader_changes_the_pattern_and_the_loss(open_page: Callable[..., Repl], url: str) -> None:
    lesson = open_lesson(open_page, url, viewport=PHONE, color_scheme="dark")
    page = lesson.page
    expect(page.locator("#train-loss")).not_to_have_text("–")
    before = lesson.places()
    page.locator("#pause-recording").focus()
    lesson.wait_ready()
    expect(page.locator(".stage")).to_be_focused()  # the button has gone: Tab goes on from its place
    page.locator("#step").press("Enter")
    expect(page.locator("#steps")).to_have_text("1")
    page.evaluate("scrollTo(0, 0)")
    assert lesson.places() == before
    assert "choose the circles" in lesson.check("try_small.py")
    for link, place in (("controls", "#data"), ("Play", "#play")):
        page.get_by_role("link", name=link, exact=True).click()
        expect(page.locator(place)).to_be_in_viewport()
    page.select_option("#data", "circles")
    expect(page.locator("#note")).to_contain_text("A new network", timeout=TRAIN)
    assert "at most 25" in lesson.check("try_small.py")
    assert "tg.sigmoid first" in lesson.check("try_loss.py")
    assert lesson.check("try_loss.py", answer("pattern", "loss")).startswith("✓ Right")
    page.click("#step")
    expect(page.locator("#steps")).to_have_text("1")
    # The next visit begins with the first loss and its optimizer; the weights go on.
    for _ in range(2):
        assert "lesson pattern" in lesson.run("try_small.py", KEPT)
    page.reload()
    lesson.wait_ready()
    expect(page.locator("#note")).to_contain_text("Trained 1 step last time. The optimizer was another one then")
    expect(page.locator("#steps")).to_have_text("1")
    # The program is the reader's: an error is shown below it.
    lesson.run("program.py", "def advance(steps):\n    raise ValueError('mine')")
    page.click("#step")
    expect(page.locator("#note")).to_contain_text("raised an error")
    assert "ValueError: mine" in lesson.cell("program.py").locator(".cell-output").inner_text()
    # So is what has to be stopped.
    lesson.run("program.py", "async def advance(steps):\n    while True:\n        pass")
    page.click("#step")
    lesson.cell("program.py").get_by_role("button", name="Stop").click()
    expect(lesson.cell("program.py").locator(".cell-output")).to_contain_text("KeyboardInterrupt")
    lesson.keep("lesson-pattern")
    assert lesson.problems == []
