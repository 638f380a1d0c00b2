"""What a reader sees before Python is there, and how long it takes."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from page_driver import START, TRAIN, Repl, places

pytestmark = pytest.mark.page

MARKS = """Object.fromEntries(performance.getEntriesByType('mark').filter(({name}) => name.startsWith('tensorgrad: '))
    .map(({name, startTime}) => [name.replace('tensorgrad: ', ''), startTime / 1000]))"""
MOVED = """() => new Promise(resolve => {
    new PerformanceObserver(list => resolve(list.getEntries().reduce((sum, {value}) => sum + value, 0)))
        .observe({type: 'layout-shift', buffered: true});
    setTimeout(() => resolve(0), 300);
})"""


def test_a_recording_plays_until_something_runs_and_loading_is_told_by_part(
    open_page: Callable[..., Repl], record_property: Callable[[str, object], None]
) -> None:
    repl = open_page(ready=False)
    page, pause = repl.page, repl.page.locator("#recorded-pause")
    picture, step = page.locator("#recorded"), page.locator("#legend [data-part=step]")
    expect(picture).to_be_visible()
    before = places(page)
    expect(page.locator("#recorded-note")).to_contain_text("A recorded run")
    expect(page.locator("#legend [data-part=name]")).to_have_text("loss, recorded")
    pause.click()
    page.wait_for_timeout(50)  # what was on its way is drawn
    stopped = step.inner_text()
    expect(page.locator(".status-files")).to_have_text(
        re.compile(r"Python ✓, its library ✓, NumPy ✓, tensorgrad ✓"), timeout=START
    )
    expect(page.locator("#status-text")).to_have_text(re.compile(r"^Starting Python: 19\.\d of 19\.\d MB are here$"))
    assert step.inner_text() == stopped  # and it did stop
    pause.click()
    expect(pause).to_contain_text("Play again", timeout=START)
    expect(step).to_have_text("step 300")
    page.click("#run-program")
    expect(page.locator("#legend li")).to_have_attribute("data-points", "300", timeout=TRAIN)
    expect(picture).to_be_hidden()
    expect(pause).to_be_hidden()
    repl.wait_ready()
    expect(repl.editor).to_be_visible(timeout=START)
    assert places(page) == before
    assert page.evaluate(MOVED) < 0.01
    stages: dict[str, float] = page.evaluate(MARKS)
    told = ", ".join(f"{name} {at:.2f}" for name, at in stages.items())
    record_property("measured", f"seconds from the page's address, on a machine that tests: {told}")
    order = ["worker", "loader", "Python with its packages", "import of tensorgrad", "ready", "program runs"]
    times = [stages[name] for name in [*order, "first trained step"]]
    assert times == sorted(times)
    assert times[-1] < 90  # it does not hang; `tools/measure_load.py` measures
    assert repl.problems == []


def test_without_motion_the_recording_is_a_still_picture(open_page: Callable[..., Repl]) -> None:
    repl = open_page(ready=False, reduced_motion="reduce")
    expect(repl.page.locator("#recorded")).to_be_visible()
    expect(repl.page.locator("#legend [data-part=step]")).to_have_text("step 300")
    expect(repl.page.locator("#recorded-pause")).to_contain_text("Play again")
    repl.page.click("#plot-clear")
    expect(repl.page.locator("#recorded")).to_be_hidden()
    expect(repl.page.locator("#legend li")).to_have_count(0)
    expect(repl.page.locator("#plot-empty")).to_be_visible()


def test_the_recording_is_not_beside_another_program(open_page: Callable[..., Repl]) -> None:
    repl = open_page()
    repl.page.locator("#examples").select_option("line.py")
    repl.page.locator("#share").click()
    expect(repl.page).to_have_url(re.compile("#code="))
    repl.page.evaluate("history.replaceState(null, '')")  # as whoever opens the link
    repl.page.reload()
    expect(repl.page.locator("#program-note")).to_contain_text("came with the link")
    expect(repl.page.locator("#plot-empty")).to_be_visible()
    expect(repl.page.locator("#recorded")).to_be_hidden()


def test_what_python_has_the_browser_keep_is_told_at_once_and_at_the_next_visit(open_page: Callable[..., Repl]) -> None:
    repl = open_page()
    notes = repl.page.locator(".note")
    repl.run("import tensorgrad as tg")
    told = notes.count()
    repl.run("await tg.browser.keep('my run', bytes(2000))")
    expect(notes.last).to_contain_text('now keeps "my run", 2.0 kB, for your next visits')
    repl.run("await tg.browser.keep('my run', bytes(3000))")
    assert notes.count() == told + 1  # once is enough
    repl.page.reload()
    repl.wait_ready(START)
    expect(notes.last).to_contain_text('keeps "my run" (3.0 kB) from before')
    repl.run("import tensorgrad as tg\nawait tg.browser.forget('my run')\nawait tg.browser.kept()")
    expect(repl.entry().locator(".value")).to_have_text("{}\n")
    assert repl.problems == []
