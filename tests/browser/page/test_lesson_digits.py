"""Lesson 3: a network is trained on digits, and reads a drawn one."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from lesson_driver import PHONE, WIDE, answer, lose_the_gpu, open_lesson
from page_driver import SUB_PATH, TRAIN, Repl
from tensorgrad.testing.server import StaticServer

pytestmark = pytest.mark.page

THREE = [(0.3, 0.25), (0.45, 0.17), (0.62, 0.2), (0.66, 0.33), (0.58, 0.44), (0.44, 0.48)]
THREE += [(0.6, 0.52), (0.68, 0.64), (0.64, 0.78), (0.48, 0.85), (0.3, 0.78)]


@pytest.fixture
def url(server: StaticServer) -> str:
    return f"{server.url}{SUB_PATH}lessons/digits.html"


def draw(page: Page, points: list[tuple[float, float]], scale: float = 1.0, at: tuple[float, float] = (0, 0)) -> None:
    """Draw one stroke on the pad, smaller and elsewhere where that is asked for."""
    box = page.locator("#pad").bounding_box()
    assert box is not None
    spots = [
        (box["x"] + box["width"] * (x * scale + at[0]), box["y"] + box["height"] * (y * scale + at[1]))
        for x, y in points
    ]
    page.mouse.move(*spots[0])
    page.mouse.down()
    for spot in spots[1:]:
        page.mouse.move(*spot, steps=3)
    page.mouse.up()


def test_a_drawn_three_is_a_three(open_page: Callable[..., Repl], url: str) -> None:
    lesson = open_lesson(open_page, url, viewport=WIDE)
    page = lesson.page
    expect(page.locator("#note")).to_contain_text("recorded")
    expect(page.locator("#steps")).not_to_have_text("0")
    lesson.wait_ready()
    page.click("#play")
    expect(page.locator("#accuracy")).to_have_text(re.compile(r"9[5-9]\."), timeout=TRAIN)
    page.click("#play")
    assert int(lesson.text("steps")) < 1500
    draw(page, THREE)
    expect(page.locator("#guess")).to_have_text("3")
    expect(page.locator("#bars [data-best] strong")).to_have_text("3")
    # A small one in a corner is moved and scaled.
    page.click("#clear")
    draw(page, THREE, 0.4, (0.55, 0.55))
    expect(page.locator("#pad-caption")).to_have_text("Your drawing.")
    expect(page.locator("#guess")).to_have_text("3")
    lesson.keep("lesson-digits")
    assert "accuracy of all digits" in lesson.check("try_each.py")
    assert lesson.check("try_each.py", answer("digits", "each")).startswith("✓ Right")
    # The next visit goes on from there.
    trained, accuracy = lesson.text("steps"), lesson.text("accuracy")
    page.reload()
    lesson.wait_ready()
    expect(page.locator("#note")).to_contain_text(f"Trained {trained} steps last time. Train goes on")
    expect(page.locator("#accuracy")).to_have_text(accuracy)
    expect(page.locator("#steps")).to_have_text(trained)
    assert lesson.problems == []


def test_on_a_phone_a_test_digit_is_looked_at(open_page: Callable[..., Repl], url: str) -> None:
    lesson = open_lesson(open_page, url, viewport=PHONE, color_scheme="dark")
    page = lesson.page
    expect(page.locator("#guess")).not_to_have_text("–")
    before = lesson.places()
    lesson.wait_ready()
    page.locator("#some").press("Enter")
    expect(page.locator("#pad-caption")).to_contain_text("A test digit: a")
    page.evaluate("scrollTo(0, 0)")
    assert lesson.places() == before
    assert "The sum of softmax" in lesson.check("try_softmax.py")
    half = "def softmax(numbers):\n    return np.exp(numbers) / np.exp(numbers).sum()"
    assert "exp(1000) is infinite" in lesson.check("try_softmax.py", half)
    assert lesson.check("try_softmax.py", answer("digits", "softmax")).startswith("✓ Right")
    lesson.keep("lesson-digits")
    # A check finds the GPU lost: that is nobody's mistake.
    lose_the_gpu(lesson, "try_softmax.py")
    assert "took the GPU away" in lesson.check("try_each.py", "per_digit = np.ones(10)")
    lesson.wait_ready()
    assert "The accuracy of the digit 0" in lesson.check("try_each.py")
    # What the reader has written is there at the next visit, until it is reset.
    page.reload()
    expect(lesson.cell("try_each.py").locator(".cell-state")).to_have_text("as you left it")
    lesson.wait_ready()
    assert lesson.code("try_each.py") == "per_digit = np.ones(10)"
    lesson.cell("try_each.py").get_by_role("button", name="Reset").click()
    page.reload()
    lesson.wait_ready()
    assert "np.ones" not in lesson.code("try_each.py")
    assert lesson.problems == []
