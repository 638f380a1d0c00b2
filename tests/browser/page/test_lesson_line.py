"""Lesson 1: a line is fitted to points, by hand, step by step and compiled."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import expect

from lesson_driver import PHONE, WIDE, LessonPage, answer, open_lesson, stop_a_busy_loop
from page_driver import SUB_PATH, TRAIN, Repl, write_code
from tensorgrad.testing.server import StaticServer

pytestmark = pytest.mark.page


@pytest.fixture
def url(server: StaticServer) -> str:
    return f"{server.url}{SUB_PATH}lessons/line.html"


def coordinates(text: str, name: str) -> list[float]:
    found = re.search(rf"^{name} = np.float32\(\[(.*)\]\)$", text, re.MULTILINE)
    assert found is not None
    return [float(number) for number in found[1].split(",")]


def best_of(lesson: LessonPage) -> np.ndarray:
    text = lesson.code("points.py")
    return np.polyfit(coordinates(text, "x"), coordinates(text, "y"), 1)


def walk_down(lesson: LessonPage) -> np.ndarray:
    """Press Play until the note says that it has arrived."""
    lesson.page.click("#play")
    expect(lesson.page.locator("#note")).to_contain_text("Arrived", timeout=TRAIN)
    return np.array([lesson.number("line-slope"), lesson.number("line-height")])


def test_a_line_is_fitted_with_the_mouse(open_page: Callable[..., Repl], url: str) -> None:
    lesson = open_lesson(open_page, url, viewport=WIDE)
    page = lesson.page
    # Something moves before Python is there.
    expect(page.locator("#note")).to_contain_text("recorded")
    before = lesson.text("line-slope")
    expect(page.locator("#line-slope")).not_to_have_text(before)
    lesson.wait_ready()
    start = [lesson.number("line-slope"), lesson.number("line-height")]
    assert start == [-0.6, 0.6]
    assert lesson.text("grad-slope") == lesson.text("hand-slope") == "−0.8589"
    found = walk_down(lesson)
    np.testing.assert_allclose(found, best_of(lesson), rtol=0.01, atol=0.001)
    # Another point, far from the line: its cell is written anew, and the walk goes on to the new line.
    old = best_of(lesson)
    box = page.locator("#points").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] * 0.9, box["y"] + box["height"] * 0.9)
    expect(page.locator("#points .point")).to_have_count(9)
    expect(page.locator("#steps")).to_have_text("0")
    assert np.abs(best_of(lesson) - old).max() > 0.1
    page.fill("#rate", "0.8")
    np.testing.assert_allclose(walk_down(lesson), best_of(lesson), rtol=0.01, atol=0.002)
    printed = lesson.run("compiled.py")
    one, other = re.findall(r"(-?\d\.\d{4}), (?:least squares says )?(-?\d\.\d{4})", printed.replace("height ", ""))
    np.testing.assert_allclose(np.float64(one), np.float64(other), rtol=0.01)
    lesson.keep("lesson-line")
    assert lesson.problems == []


def test_the_exercises_say_what_is_wrong(open_page: Callable[..., Repl], url: str) -> None:
    lesson = open_lesson(open_page, url, viewport=PHONE, color_scheme="dark")
    page = lesson.page
    expect(page.locator("#line-slope")).not_to_have_text("–")
    before = lesson.places()
    lesson.wait_ready()
    page.locator("#step").press("Enter")
    expect(page.locator("#steps")).to_have_text("1")
    page.evaluate("scrollTo(0, 0)")
    assert lesson.places() == before
    assert max(lesson.numbers_beside_lines()) < 1
    assert "At slope -0.6, height 0.6, to_slope is" in lesson.check("try_absolute.py")
    assert lesson.check("try_absolute.py", answer("line", "absolute")).startswith("✓ Right")
    # What is edited is not what was checked.
    lesson.cell("try_absolute.py").locator(".cm-content").press_sequentially("#")
    verdict = lesson.cell("try_absolute.py").locator(".verdict")
    expect(verdict).to_have_text("Edited since it was checked.")
    expect(verdict).not_to_have_attribute("data-passed", re.compile(""))
    assert "the walk leaves the picture" in lesson.check("try_rate.py")
    assert "too large: it jumps over the valley" in lesson.check("try_rate.py", "my_rate = 0.99")
    assert "too small" in lesson.check("try_rate.py", "my_rate = 0.1")
    assert "There is no `my_rate` yet" in lesson.check("try_rate.py", "del my_rate")
    assert "raised an error" in lesson.check("try_rate.py", "# Too small.\nmy_rate = 1 / 0")
    cell = lesson.cell("try_rate.py")
    expect(cell.locator(".wrong-line")).to_have_text("✗ 2")
    cell.locator(".cm-content").press("End")
    cell.locator(".cm-content").press_sequentially("\nslop")
    expect(page.locator(".cm-tooltip-autocomplete li")).to_have_text(["slope"])
    expect(cell.locator(".wrong-line")).to_have_count(0)
    assert cell.locator(".cm-line .tok-comment").count() == 1
    assert lesson.check("try_rate.py", answer("line", "rate")).startswith("✓ Right")
    assert "With a = 1 and the others 0, the loss is" in lesson.check("try_parabola.py")
    assert lesson.check("try_parabola.py", answer("line", "parabola")).startswith("✓ Right")
    # A check that does not end is stopped.
    write_code(cell, "while True: pass")
    cell.get_by_role("button", name="Check").click()
    expect(cell.locator(".cell-state")).to_have_text("running")
    cell.get_by_role("button", name="Stop").click()
    expect(cell.locator(".verdict")).to_contain_text("stopped before its end")
    # A point is moved with the keyboard.
    text = lesson.code("points.py")
    page.locator("#points .point").first.press("ArrowUp")
    moved = lesson.code("points.py")
    assert coordinates(moved, "y")[0] == pytest.approx(coordinates(text, "y")[0] + 0.05)
    # An endless loop is stopped, and what is there goes on.
    stop_a_busy_loop(lesson, "loss.py")
    assert "a flat line" in lesson.run("loss.py")
    lesson.keep("lesson-line")
    assert lesson.problems == []
