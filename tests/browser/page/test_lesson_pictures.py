"""Lesson 5: a network is trained to write digits, and the reader moves the hand that writes them."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from lesson_driver import PHONE, WIDE, answer, open_lesson
from page_driver import SUB_PATH, TRAIN, Repl
from tensorgrad.testing.server import StaticServer

pytestmark = pytest.mark.page


@pytest.fixture
def url(server: StaticServer) -> str:
    return f"{server.url}{SUB_PATH}lessons/pictures.html"


def drawn(page: Page, name: str) -> str:
    """A picture as text, to be compared."""
    return page.locator(name).evaluate("canvas => canvas.toDataURL()")


def changes(page: Page, name: str, before: str) -> str:
    """Wait until a picture is another one."""
    page.wait_for_function(
        "([name, before]) => document.querySelector(name).toDataURL() !== before", arg=[name, before], timeout=TRAIN
    )
    return drawn(page, name)


def test_what_is_written_is_recognised_in_eight_of_ten(open_page: Callable[..., Repl], url: str) -> None:
    lesson = open_lesson(open_page, url, viewport=WIDE)
    page = lesson.page
    expect(page.locator("#note")).to_contain_text("recorded")
    expect(page.locator("#steps")).not_to_have_text("0")
    lesson.wait_ready()
    expect(page.locator("#steps")).to_have_text("0")
    expect(page.locator("#loss")).to_have_text("–")  # and not that of the recorded run
    untrained = float(lesson.text("recognised").removesuffix(" %"))
    assert untrained < 30
    page.click("#play")
    expect(page.locator("#recognised")).to_have_text(re.compile(r"^(8[0-9]|9\d|100)\."), timeout=TRAIN)
    page.click("#play")
    assert int(lesson.text("steps")) < 500
    # Another place of the plane is another hand: by the pointer, then by the keyboard.
    ring = page.locator("#plane .point")
    written = drawn(page, "#written")
    box = page.locator("#plane").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + box["height"] * 0.4, steps=4)
    page.mouse.up()
    expect(ring).to_have_attribute("aria-label", re.compile(r"at 1\.5 across, 0\.6 up"))
    written = changes(page, "#written", written)
    ring.press("Shift+ArrowLeft")
    expect(ring).to_have_attribute("aria-label", re.compile(r"at 1\.0 across"))
    changes(page, "#written", written)
    # The test digits; another digit; two other ends of the way.
    tiles = drawn(page, "#plane-tiles")
    page.check("#marks")
    tiles = changes(page, "#plane-tiles", tiles)
    page.get_by_role("button", name="show the 7").click()
    expect(page.locator("#reading")).to_contain_text("A 7 in this hand")
    changes(page, "#plane-tiles", tiles)
    middle = "#way canvas:nth-child(6)"
    way = drawn(page, middle)
    page.select_option("#first", "1")
    changes(page, middle, way)
    assert "drawn at random" in lesson.check("try_hand.py")
    assert lesson.check("try_hand.py", answer("pictures", "hand")).startswith("✓ Right: one hand")
    lesson.keep("lesson-pictures")
    assert lesson.problems == []


def test_on_a_phone_one_step_is_made_and_bits_are_counted(open_page: Callable[..., Repl], url: str) -> None:
    lesson = open_lesson(open_page, url, viewport=PHONE, color_scheme="dark")
    page = lesson.page
    expect(page.locator("#recognised")).not_to_have_text("–")
    before = lesson.places()
    lesson.wait_ready()
    page.locator("#step").press("Enter")
    expect(page.locator("#steps")).to_have_text("1")
    page.evaluate("scrollTo(0, 0)")
    assert lesson.places() == before
    assert "should hold two numbers" in lesson.check("try_bits.py")
    nats = answer("pictures", "bits").replace(" / np.log(2)", "")
    assert "a bit is log 2" in lesson.check("try_bits.py", nats)
    assert lesson.check("try_bits.py", answer("pictures", "bits")).startswith("✓ Right")
    lesson.keep("lesson-pictures")
    assert lesson.problems == []
