"""What all lessons share: the recorded run, what they say where something is missing, and cells that wait."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from lesson_driver import WIDE, open_lesson
from page_driver import SUB_PATH, Repl, looked_at, screenshot, without_isolation, without_webgpu, write_code
from pages import list_of_lessons
from tensorgrad.testing.server import StaticServer

pytestmark = pytest.mark.page

LESSONS = [lesson["name"] for lesson in list_of_lessons()]


def without_python(page: Page) -> None:
    """As while it loads, for as long as one likes."""
    page.route("**/worker/worker.js", lambda route: None)


def picture(page: Page) -> str:
    """The picture, in words and in pixels, to be compared; without the button of the recorded run."""
    return page.locator(".stage").first.evaluate(
        """stage => [...stage.querySelectorAll('figure, table, ul')].map(part => part.innerText).join() +
            [...stage.querySelectorAll('canvas')].map(canvas => canvas.toDataURL()).join()"""
    )


@pytest.mark.parametrize("name", LESSONS)
def test_the_recorded_run_stops_where_one_wants(
    open_page: Callable[..., Repl], server: StaticServer, name: str
) -> None:
    url = f"{server.url}{SUB_PATH}lessons/{name}.html"

    def prepare(page: Page) -> None:
        without_python(page)
        page.clock.install()

    page = open_lesson(open_page, url, prepare=prepare).page
    button = page.get_by_role("button", name="Pause the recorded run")
    expect(button).to_be_visible()
    first = picture(page)
    page.clock.run_for(3_500)
    button.press("Enter")
    expect(button).to_have_count(0)
    moved = picture(page)
    assert moved != first
    page.clock.run_for(3_500)
    assert picture(page) == moved
    page.get_by_role("button", name="Play the recorded run").press("Enter")
    assert any(picture(page) != moved for _ in range(8) if page.clock.run_for(1_000) is None)  # it may rest at its end
    # Where motion is not wanted, it is the end of the run that stands there.
    still = open_lesson(open_page, url, prepare=prepare, reduced_motion="reduce").page
    expect(still.get_by_role("button", name="Play the recorded run")).to_be_visible()
    last = picture(still)
    assert last != first
    still.clock.run_for(60_000)
    assert picture(still) == last


def test_what_is_missing_is_said_as_in_the_playground(open_page: Callable[..., Repl], server: StaticServer) -> None:
    url = f"{server.url}{SUB_PATH}lessons/line.html"

    def prepare(page: Page) -> None:
        without_isolation(page)
        without_webgpu(page)
        page.add_init_script("Object.defineProperty(navigator, 'deviceMemory', {value: 1})")
        page.add_init_script("for (const name of ['Suspending', 'promising', 'SuspendError']) delete WebAssembly[name]")

    page = open_lesson(open_page, url, prepare=prepare, viewport=WIDE).page
    notes = page.locator(".lead ~ .entry-note")
    expect(notes).to_have_count(3)
    expect(notes).to_contain_text(["not cross-origin isolated", "no JavaScript Promise", "little memory (1 GB)"])
    expect(notes.last).to_contain_text("what you have written is kept")
    expect(page.locator("#device-detail")).to_contain_text("no WebGPU")
    looked_at(page, "lesson-limits", [WIDE], ["light"])
    whole = open_lesson(open_page, url).page
    expect(whole.locator("#device-detail")).to_contain_text("No graphics card is used")
    expect(whole.locator(".entry-note")).to_have_count(0)


def test_without_python_a_lesson_says_so_and_its_controls_stay_off(
    open_page: Callable[..., Repl], server: StaticServer
) -> None:
    url = f"{server.url}{SUB_PATH}lessons/digits.html"
    page = open_lesson(
        open_page, url, prepare=lambda page: page.route("**/pyodide.mjs", lambda route: route.abort())
    ).page
    expect(page.locator("#note")).to_contain_text("Python did not start, so nothing runs here")
    expect(page.locator("#status-text")).to_contain_text("Python did not start:")
    expect(page.locator("#play")).to_be_disabled()


def test_a_cell_says_what_it_waits_for_and_stop_always_ends_it(
    open_page: Callable[..., Repl], server: StaticServer
) -> None:
    lesson = open_lesson(open_page, f"{server.url}{SUB_PATH}lessons/line.html", viewport=WIDE)
    lesson.wait_ready()
    first, second = lesson.cell("try_rate.py"), lesson.cell("try_parabola.py")
    write_code(first, "import asyncio\nfuture = asyncio.Future()\nprint(await future)")
    write_code(second, "future.set_result('from below')")
    first.get_by_role("button", name="Run").click()
    expect(first.locator(".cell-state")).to_have_text("running")
    second.get_by_role("button", name="Run").click()
    expect(second.locator(".cell-output")).to_contain_text("Waits until “The rate” has ended")
    screenshot(lesson.page, "lesson-waits")
    first.get_by_role("button", name="Stop").click()
    expect(first.locator(".cell-state")).to_have_text("◼ stopped")
    expect(second.locator(".cell-output")).to_contain_text(re.compile("InvalidStateError"))
    expect(second.locator(".cell-output")).not_to_contain_text("Waits")
    # What hears no Stop is replaced with its Python by the second one.
    deaf = "while True:\n    try:\n        while True:\n            pass\n    except KeyboardInterrupt:\n        pass"
    write_code(first, deaf)
    first.get_by_role("button", name="Run").click()
    expect(first.locator(".cell-state")).to_have_text("running")
    first.get_by_role("button", name="Stop").click()
    expect(lesson.page.locator("#note")).to_contain_text("Stop again restarts it")
    first.get_by_role("button", name="Stop").click()
    expect(lesson.page.locator("#note")).to_contain_text("Python restarted: the cells run again.")
    expect(first.locator(".cell-state")).to_have_text("↻ restarted")
    lesson.wait_ready()
    # A Python that has come to its end is replaced at once.
    lesson.run("try_rate.py", "import os\nos.abort()")
    expect(first.locator(".cell-state")).to_have_text("✗ crashed")
    expect(lesson.page.locator("#note")).to_contain_text("Python has crashed and starts anew: the cells run again.")
    lesson.wait_ready()
    lesson.page.click("#step")
    expect(lesson.page.locator("#steps")).to_have_text("1")
