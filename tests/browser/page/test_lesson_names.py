"""Lesson 4: a transformer is trained on names, and shows its chances and its attention."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from lesson_driver import PHONE, WIDE, LessonPage, answer, open_lesson
from page_driver import SUB_PATH, TRAIN, Repl
from tensorgrad.testing.server import StaticServer

pytestmark = pytest.mark.page

HIGHEST = {0.2: 6, 3.0: 27}
"""Of a trained network, the most letters among which it may be undecided, by temperature."""


@pytest.fixture
def url(server: StaticServer) -> str:
    return f"{server.url}{SUB_PATH}lessons/names.html"


def attention(page: Page) -> np.ndarray:
    """The numbers of the chosen head, as they stand in the table; nothing where its mask is."""
    texts = page.locator("#map tbody td").all_inner_texts()
    size = round(len(texts) ** 0.5)
    return np.array([float(text or "nan") for text in texts]).reshape(size, size)


def undecided(lesson: LessonPage, temperature: float) -> float:
    lesson.page.fill("#temperature", str(temperature))
    expect(lesson.page.locator("#temperature-value")).to_have_text(f"{temperature:.1f}")
    return lesson.number("undecided")


def test_the_network_gets_below_the_bigrams(open_page: Callable[..., Repl], url: str) -> None:
    lesson = open_lesson(open_page, url, viewport=WIDE)
    page = lesson.page
    # Before Python is there, a recorded run moves; the temperature can be changed already.
    expect(page.locator("#note")).to_contain_text("recorded")
    expect(page.locator("#steps")).not_to_have_text("0")
    assert undecided(lesson, 0.2) < undecided(lesson, 3.0)
    lesson.wait_ready()
    expect(page.locator("#steps")).to_have_text("0")
    bigrams = lesson.number("bigrams")
    assert 2.5 < bigrams < 2.6
    assert lesson.number("test") > 3
    page.click("#step")
    expect(page.locator("#steps")).to_have_text("1")
    page.click("#play")
    while not lesson.number("test") < bigrams:
        at = lesson.text("test")
        expect(page.locator("#test")).not_to_have_text(at, timeout=TRAIN)
        assert int(lesson.text("steps")) < 300
    page.click("#play")
    expect(page.locator("#legend li")).to_have_count(3)
    expect(page.locator("#invented tr").nth(1)).to_contain_text(re.compile(r"[a-z]+, [a-z]+"))
    cold, hot = undecided(lesson, 0.2), undecided(lesson, 3.0)
    assert 1 <= cold < HIGHEST[0.2]
    assert cold < hot <= HIGHEST[3.0]
    # What is typed is looked at, by every head: the numbers of each letter are 1 together, and none is ahead of it.
    page.fill("#beginning", "Jo-sé")
    expect(page.locator("#beginning")).to_have_value("jos")
    expect(page.locator("#note")).to_contain_text("a to z only")
    expect(page.locator("#map tbody th")).to_have_text([".", "j", "o", "s"], timeout=TRAIN)
    maps = []
    for head in page.locator(".head").all():
        head.click()
        expect(head).to_have_attribute("aria-pressed", "true")
        maps.append(attention(page))
        assert (np.isnan(maps[-1]) == np.triu(np.ones((4, 4), bool), 1)).all()
        np.testing.assert_allclose(np.nansum(maps[-1], 1), 1, atol=4 * 0.005)  # two digits are shown
    assert len(maps) == 8
    assert max(np.nanmax(abs(one - maps[0])) for one in maps) > 0.02
    page.locator("#map tbody td").nth(4).hover()
    expect(page.locator("#map-caption")).to_contain_text("Layer 2, head 4: “j” (letter 1) takes")
    page.click("#finish")
    expect(page.locator("#finished li")).to_have_text([re.compile("^jos")] * 8, timeout=TRAIN)
    lesson.keep("lesson-names-desktop-light")
    # Without the mask it copies; the reader's test finds that out.
    assert "There is no `peeking_answers` yet" in lesson.check(
        "try_ahead.py", answer("names", "ahead").partition("print")[0]
    )
    first, last = map(float, re.findall(r"\d\.\d+", lesson.run("peek.py")))
    assert last < 0.5 < first
    assert lesson.check("try_ahead.py", answer("names", "ahead")).startswith("✓ Right")
    assert lesson.problems == []


def test_on_a_phone_the_keyboard_is_enough(open_page: Callable[..., Repl], url: str) -> None:
    lesson = open_lesson(open_page, url, viewport=PHONE, color_scheme="dark")
    page = lesson.page
    expect(page.locator("#loss")).not_to_have_text("–")
    before = lesson.places()
    lesson.wait_ready()
    page.locator("#step").press("Enter")
    expect(page.locator("#steps")).to_have_text("1")
    page.evaluate("scrollTo(0, 0)")
    assert lesson.places() == before
    page.locator("#beginning").press("End")
    page.keyboard.type("a")
    expect(page.locator("#map tbody th")).to_have_text([*".maria"], timeout=TRAIN)
    # The cells of the table share its width: it is rounded, by less than one can see.
    np.testing.assert_allclose(lesson.places(), before, atol=0.1)
    # The table is one stop of Tab; arrows walk in it, and what is reached is told.
    page.locator("#map td[tabindex='0']").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    expect(page.locator("#map-caption")).to_contain_text("takes 0.0 % from “r” (letter 3). The mask forbids it")
    expect(page.locator("#map td[tabindex='0']")).to_have_count(1)
    page.locator("#temperature").press("ArrowRight")
    expect(page.locator("#temperature-value")).to_have_text("0.9")
    # Letters are drawn one after the other, each by the chances after the one before, until the name is full.
    for _ in range(30):
        page.locator("#letter").press("Enter")
    expect(page.locator("#beginning")).to_have_value(re.compile("^maria[a-z]{8}$"), timeout=TRAIN)
    expect(page.locator("#map tbody th")).to_have_count(14, timeout=TRAIN)
    expect(page.locator("#note")).to_have_text(re.compile("The point was drawn|room for 13 letters"))
    assert "That is the loss of bigrams" in lesson.check("try_trigrams.py")
    unseen = answer("names", "trigrams").replace("np.ones", "np.zeros")
    assert "The loss is infinite" in lesson.check("try_trigrams.py", unseen)
    assert lesson.check("try_trigrams.py", answer("names", "trigrams")).startswith("✓ Right: 2.333")
    assert "the temperature is not used" in lesson.check("try_temperature.py")
    turned = answer("names", "temperature").replace("/ temperature", "* temperature")
    assert "turned round" in lesson.check("try_temperature.py", turned)
    assert lesson.check("try_temperature.py", answer("names", "temperature")).startswith("✓ Right")
    lesson.keep("lesson-names-phone-dark")
    assert lesson.problems == []
