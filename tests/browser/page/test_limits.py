"""What the page says and does where a browser or an address gives less, and without a network."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from lesson_driver import LessonPage, stop_a_busy_loop
from page_driver import SITE, START, SUB_PATH, TRAIN, Repl, without_isolation
from tensorgrad.testing.server import StaticServer

pytestmark = pytest.mark.page

FEW_STEPS = (
    "import numpy as np, tensorgrad as tg\nfrom tensorgrad import nn, optim\n"
    "train = await tg.compile(nn.Linear(2, 1), lambda m, x: tg.mean(m(x) ** 2), optim.SGD(0.1), {'x': tg.f32[4, 2]})\n"
    "first = await train.step(x=np.ones((4, 2)))\nlast = [await train.step(x=np.ones((4, 2))) for _ in range(9)][-1]\n"
    "last.loss < first.loss"
)


def notes(repl: Repl) -> str:
    return " ".join(repl.page.locator(".entry-note").all_inner_texts())


def test_without_promise_integration_await_is_asked_for(open_page: Callable[..., Repl]) -> None:
    def without_jspi(page: Page) -> None:
        def handle(route: Route) -> None:
            answer = route.fetch()
            hide = "for (const name of ['Suspending', 'promising', 'SuspendError']) delete WebAssembly[name];"
            route.fulfill(response=answer, body=answer.text() + hide)

        page.route("**/worker/worker.js", handle)

    repl = open_page(without_jspi)
    assert "no JavaScript Promise Integration (JSPI)" in notes(repl)
    assert repl.run(FEW_STEPS, TRAIN) == "True"
    assert "write `await ...` instead" in repl.run("import asyncio\ntg.sync(asyncio.sleep(0.01))")
    assert repl.problems == []


def test_little_memory_and_no_isolation_are_said_once(open_page: Callable[..., Repl]) -> None:
    def prepare(page: Page) -> None:
        without_isolation(page)
        page.add_init_script("Object.defineProperty(navigator, 'deviceMemory', {value: 1})")

    repl = open_page(prepare)
    said = notes(repl)
    assert "not cross-origin isolated" in said
    assert "little memory (1 GB)" in said
    repl.page.click("#restart")
    repl.wait_ready(START)
    assert notes(repl).count("little memory") == 1


def test_nothing_is_said_where_nothing_is_missing(open_page: Callable[..., Repl]) -> None:
    repl = open_page(lambda page: page.add_init_script("Object.defineProperty(navigator, 'deviceMemory', {value: 8})"))
    assert notes(repl) == ""


def test_a_full_memory_says_what_to_do(repl: Repl) -> None:
    assert "MemoryError" in repl.run("raise MemoryError")
    expect(repl.page.locator(".entry-note").last).to_contain_text("Python's memory is full")
    assert repl.run("1 + 1") == "2"


def test_a_lost_device_says_what_to_do_and_the_program_runs_again(repl: Repl) -> None:
    assert repl.run(FEW_STEPS, TRAIN) == "True"
    repl.run("train.state.backend.device.js_device.destroy()")
    assert "DeviceLostError: the GPU device was lost" in repl.run("await train.step(x=np.ones((4, 2)))")
    expect(repl.page.locator(".entry-note").last).to_contain_text("Run the program again")
    assert repl.run(FEW_STEPS, TRAIN) == "True"


def test_a_host_without_headers_is_isolated_by_the_service_worker_and_works_offline(browser: Browser) -> None:
    context = browser.new_context()
    with StaticServer({SUB_PATH: SITE}, headers={}) as server:
        repl = Repl(context.new_page(), server.url + SUB_PATH)
        assert repl.page.evaluate("crossOriginIsolated")
        repl.start("while True: pass")
        repl.page.keyboard.press("Control+c")
        expect(repl.entry().locator(".trace")).to_contain_text("KeyboardInterrupt", timeout=5_000)
        # what another copy of the site on this host keeps
        other = f"tensorgrad {server.url}/other/ 0"
        repl.page.evaluate("name => caches.open(name)", other)
        expect(repl.page.locator("#status-text")).to_contain_text("Works offline", timeout=START)
        assert other in repl.page.evaluate("caches.keys()")
    # The server is gone.
    repl.page.reload()
    repl.wait_ready(START)
    assert repl.page.evaluate("crossOriginIsolated")
    assert repl.run(FEW_STEPS, TRAIN) == "True"
    expect(repl.editor).to_be_visible()
    repl.page.select_option("#examples", "line.py")
    expect(repl.text).to_have_value((SITE / "examples" / "line.py").read_text(encoding="utf-8"))
    # The documentation is kept too, its search and pages that nobody has visited.
    repl.page.click(".to-docs")
    repl.page.locator("#search").fill("tg.softmax")
    expect(repl.page.locator("#results strong").first).to_have_text("tg.softmax")
    repl.page.keyboard.press("Enter")
    expect(repl.page.locator("h1")).to_have_text("tg.softmax")
    repl.page.goto(f"{server.url}{SUB_PATH}docs/guide.html?from=afar#examples")
    expect(repl.page.locator("h1")).to_have_text("Guide")
    repl.page.goto(f"{server.url}{SUB_PATH}lessons")  # which a server sends to the folder
    expect(repl.page).to_have_url(f"{server.url}{SUB_PATH}lessons/")
    context.close()


def test_a_lesson_too_is_isolated_by_the_service_worker_and_works_offline(browser: Browser) -> None:
    context = browser.new_context()
    with StaticServer({SUB_PATH: SITE}, headers={}) as server:
        lesson = LessonPage(Repl(context.new_page(), f"{server.url}{SUB_PATH}lessons/line.html", ready=False))
        lesson.wait_ready()
        assert lesson.page.evaluate("crossOriginIsolated")
        stop_a_busy_loop(lesson, "compiled.py")
        expect(lesson.page.locator("#status-text")).to_contain_text("Works offline", timeout=START)
    # The server is gone.
    lesson.page.goto(f"{server.url}{SUB_PATH}lessons/")
    lesson.page.locator(".lesson-list a").first.click()
    lesson.wait_ready()
    assert "a flat line" in lesson.run("loss.py")
    context.close()
