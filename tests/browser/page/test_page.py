"""The page, driven as a person would: keys typed, buttons pressed, words and curves read."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Playwright, expect

from page_driver import (
    START,
    SUB_PATH,
    TRAIN,
    Repl,
    launched,
    paste,
    places,
    screenshot,
    without_isolation,
    without_webgpu,
)
from tensorgrad.testing.browser import CHROMIUM_FLAGS, SOFTWARE_ADAPTER
from tensorgrad.testing.server import StaticServer

pytestmark = pytest.mark.page


def test_a_typed_line_shows_its_value_and_its_time(repl: Repl) -> None:
    repl.run("globals().pop('_', None)  # a loop over _ hides the last value, here as in any Python")
    repl.type("6 * 7")
    expect(repl.entry().locator(".value")).to_have_text("42\n")
    expect(repl.entry().locator(".entry-time")).to_have_text(re.compile(r"^(< 1|\d+) ms$"))
    assert repl.prompt.input_value() == ""
    repl.type("_ + 1")
    expect(repl.entry().locator(".value")).to_have_text("43\n")


def test_await_works_at_the_prompt(repl: Repl) -> None:
    repl.type("import asyncio")
    repl.wait_ready()
    repl.type("await asyncio.sleep(0.01, 'slept')")
    expect(repl.entry().locator(".value")).to_have_text("'slept'\n")


def test_a_block_is_typed_line_by_line_with_its_indentation(repl: Repl) -> None:
    repl.type("for i in range(3):")
    expect(repl.prompt).to_have_value("for i in range(3):\n    ")
    repl.type("if i:")
    expect(repl.prompt).to_have_value("for i in range(3):\n    if i:\n        ")
    repl.type("print('i is', i)")
    expect(repl.prompt).to_have_value("for i in range(3):\n    if i:\n        print('i is', i)\n        ")
    repl.prompt.press("Enter")
    expect(repl.entry().locator(".out")).to_have_text("i is 1\ni is 2\n")


def test_shift_enter_opens_a_line_in_a_finished_input(repl: Repl) -> None:
    repl.prompt.press_sequentially("a = 2")
    repl.prompt.press("Shift+Enter")
    repl.type("a ** 5")
    expect(repl.entry().locator(".value")).to_have_text("32\n")


def test_a_pasted_block_runs_as_one(repl: Repl) -> None:
    paste(
        repl.prompt,
        "def double(x):\n    return 2 * x\n\ntotal = 0\nfor k in range(4):\n    total += double(k)\n\ntotal",
    )
    repl.prompt.press("Enter")
    expect(repl.entry().locator(".value")).to_have_text("12\n")
    assert "def double" in repl.entry().locator(".entry-source").inner_text()


def test_a_pasted_session_loses_its_prompts_and_output(repl: Repl) -> None:
    paste(repl.prompt, ">>> n = 5\n>>> for i in range(2):\n...     n += i\n...\n>>> n\n6\n")
    repl.prompt.press("Enter")
    expect(repl.entry().locator(".value")).to_have_text("6\n")


def test_arrow_keys_bring_back_what_was_typed(repl: Repl) -> None:
    repl.run("first = 1")
    repl.run("for q in range(2):\n    pass")
    repl.prompt.fill("half typ")
    repl.prompt.press("ArrowUp")
    expect(repl.prompt).to_have_value("for q in range(2):\n    pass")
    repl.prompt.press("ArrowUp")
    expect(repl.prompt).to_have_value("first = 1")
    repl.prompt.press("ArrowDown")
    repl.prompt.press("ArrowDown")
    expect(repl.prompt).to_have_value("half typ")


def test_tab_completes_and_shows_a_list(repl: Repl) -> None:
    repl.run("import numpy as np")
    options = repl.page.locator("#completions [role=option]")
    repl.prompt.press_sequentially("np.linsp")
    repl.prompt.press("Tab")
    expect(repl.prompt).to_have_value("np.linspace")
    repl.prompt.fill("np.lin")
    repl.prompt.press("Tab")
    expect(options).to_have_text(["linalg", "linspace"])
    repl.prompt.press("Tab")
    repl.prompt.press("Tab")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    repl.prompt.press("Enter")
    expect(repl.prompt).to_have_value("np.linspace")
    expect(repl.page.locator("#completions")).to_be_hidden()


def test_tab_completes_the_names_of_an_import(repl: Repl) -> None:
    repl.prompt.fill("from tensorgrad import nn, opti")
    repl.prompt.press("Tab")
    expect(repl.prompt).to_have_value("from tensorgrad import nn, optim")


def test_output_is_seen_while_a_busy_loop_goes_on(repl: Repl) -> None:
    repl.start("import time\nprint('no newline', end='')\nwhile True:\n    pass")
    expect(repl.entry().locator(".out")).to_have_text("no newline")
    repl.page.keyboard.press("Control+c")
    repl.wait_ready()


def test_a_carriage_return_goes_over_the_line(repl: Repl) -> None:
    assert repl.run("for i in (1, 50, 100):\n    print(f'\\r{i} %', end='')") == "100 %"


def test_a_training_loop_redraws_its_line(repl: Repl) -> None:
    repl.run(
        "import numpy as np, tensorgrad as tg\nfrom tensorgrad import nn, optim\n"
        "loss = lambda m, x: tg.mean(m(x) ** 2)\n"
        "train = await tg.compile(nn.Linear(2, 1), loss, optim.SGD(0.1), {'x': tg.f32[4, 2]})"
    )
    shown = repl.run("record = await train.fit([{'x': np.ones((4, 2))}], steps=100)", TRAIN)
    assert re.fullmatch(r"\[#{24}\] 100/100 steps, loss .*, .* s", shown)
    assert repl.run("record").splitlines()[0].startswith("100 steps in ")


def test_files_are_downloaded_and_chosen(repl: Repl) -> None:
    repl.run("import tensorgrad as tg")
    with repl.page.expect_download() as download:
        assert repl.run("tg.browser.download('some.bin', bytes(range(256)))") == ""
    assert download.value.suggested_filename == "some.bin"
    assert download.value.path().read_bytes() == bytes(range(256))
    with repl.page.expect_file_chooser() as chooser:
        repl.start("data = await tg.browser.upload('.bin')")
    chooser.value.set_files({"name": "mine.bin", "mimeType": "application/octet-stream", "buffer": b"\x00\xffabc"})
    repl.wait_ready()
    assert repl.run("data") == r"b'\x00\xffabc'"


def test_what_is_entered_while_python_loads_runs_in_turn(open_page: Callable[..., Repl]) -> None:
    repl = open_page(ready=False)
    for line in ("first = 1 + 1", "first + 2"):
        repl.prompt.fill(line)
        repl.prompt.press("Control+Enter")
    repl.wait_ready()
    expect(repl.entry().locator(".entry-body")).to_have_text("4\n")


def test_control_c_stops_a_busy_loop_and_the_names_stay(repl: Repl) -> None:
    repl.run("kept = 'still here'")
    repl.start("while True: pass")
    repl.page.keyboard.press("Control+c")
    expect(repl.entry().locator(".trace")).to_contain_text("KeyboardInterrupt", timeout=5_000)
    assert repl.run("kept") == "'still here'"


def test_a_stop_waits_for_python_to_come_to_the_input(repl: Repl) -> None:
    """What Python is busy with before that, a callback here, must neither be hit by it nor swallow it."""
    repl.run("import asyncio\ndef busy():\n    global done\n    done = sum(range(30_000_000))\n")
    repl.run("done = asyncio.get_event_loop().call_later(0.3, busy)")
    repl.page.wait_for_timeout(400)
    repl.prompt.fill("while True: pass")
    repl.prompt.press("Control+Enter")
    repl.prompt.press("Control+c")
    expect(repl.entry().locator(".trace")).to_contain_text("KeyboardInterrupt", timeout=10_000)
    assert repl.run("done") == str(sum(range(30_000_000)))


def test_the_stop_button_ends_a_wait_and_the_code_can_catch_it(repl: Repl) -> None:
    repl.start("import asyncio\ntry:\n    await asyncio.sleep(1000)\nexcept KeyboardInterrupt:\n    print('tidy')")
    repl.page.click("#stop")
    expect(repl.entry().locator(".out")).to_have_text("tidy\n", timeout=5_000)
    repl.wait_ready()


def test_a_forgotten_await_is_pointed_out_once(repl: Repl) -> None:
    repl.run("async def answer():\n    return 42\n")
    assert "write await" in repl.run("answer()")
    # `_` lets go of the coroutine here: nothing more is said.
    assert repl.run("await answer()") == "42"
    looped = repl.run("for _ in range(30):\n    answer()")
    assert re.fullmatch(r"<input \d+>, line 2: answer\(\) has not run: write await before the call\.", looped)
    repl.program("for _ in range(30):\n    answer()")
    told = re.compile(r"^<program( \d+)?>, line 2: answer\(\) has not run: write await before the call\.\n$")
    expect(repl.entry().locator(".error")).to_have_text(told)
    repl.wait_ready()


def test_an_interrupt_reaches_code_that_waits_inside_a_plain_call(repl: Repl) -> None:
    repl.run("import asyncio\nfrom pyodide.ffi import run_sync")
    # Long waits: Pyodide breaks when the interrupt strikes while it hands the wait over to JavaScript.
    repl.start("while True:\n    run_sync(asyncio.sleep(0.3))")
    repl.page.wait_for_timeout(300)
    repl.page.keyboard.press("Control+c")
    expect(repl.entry().locator(".trace")).to_contain_text("KeyboardInterrupt", timeout=5_000)
    repl.wait_ready()
    assert repl.run("await asyncio.sleep(0.01, 'fine')") == "'fine'"


def test_a_traceback_shows_the_users_lines_only(repl: Repl) -> None:
    shown = repl.run("import tensorgrad as tg\ndef wrong(x):\n    return tg.relu(x)\n\nwrong(tg)")
    assert "return tg.relu(x)" in shown
    assert "wrong(tg)" in shown
    assert len(re.findall(r'File "', shown)) == len(re.findall(r'File "<input \d+>"', shown)) == 2


def test_a_syntax_error_points_at_the_place(repl: Repl) -> None:
    shown = repl.run("x = 1 +* 2")
    assert "SyntaxError" in shown
    assert "^" in shown
    unfinished = repl.run("for i in range(3):")
    assert "\nIndentationError: expected an indented block" in unfinished
    assert "incomplete" not in unfinished


def test_control_l_clears_and_exit_is_no_exit(repl: Repl) -> None:
    repl.run("exit()")
    expect(repl.page.locator(".entry-note").last).to_contain_text("Python goes on")
    repl.prompt.press("Control+l")
    expect(repl.page.locator(".entry")).to_have_count(0)
    assert repl.run("help(len)").startswith("Help on built-in function len")
    assert repl.run("help()").startswith("help(value) tells what a value is")
    assert repl.run("len?").startswith("len(obj, /)\n\nReturn the number of items")


def test_the_example_trains_with_a_curve_that_moves(repl: Repl) -> None:
    expect(repl.page.locator("#device")).to_contain_text("software adapter")
    repl.example()
    expect(repl.page.locator("#stop")).to_be_enabled()
    expect(repl.page.locator("#legend li")).to_have_count(1, timeout=TRAIN)
    seen = {repl.points()}
    while repl.page.locator("#stop").is_enabled():
        seen.add(repl.points())
        repl.page.wait_for_timeout(50)
    assert len(seen) > 4, "the curve came all at once"
    printed = repl.entry().locator(".out").inner_text()
    found = re.fullmatch(r"loss (\d\.\d+), accuracy (\d\.\d+)", printed.strip())
    assert found is not None, repl.entry().locator(".entry-body").inner_text()
    assert float(found[1]) < 0.2
    assert float(found[2]) > 0.95
    expect(repl.page.locator("#legend li")).to_have_attribute("data-points", "300")


def test_restart_forgets_names_and_keeps_the_history(open_page: Callable[..., Repl]) -> None:
    repl = open_page()
    repl.run("gone = 1")
    repl.start("while True: pass")
    repl.page.click("#restart")
    expect(repl.page.locator("#status")).to_have_attribute("data-state", "loading")
    repl.wait_ready(START)
    expect(repl.page.locator(".entry-note").last).to_contain_text("Python restarted")
    assert "NameError" in repl.run("gone")
    repl.page.reload()
    repl.prompt.press("ArrowUp")
    expect(repl.prompt).to_have_value("gone")
    assert repl.problems == []


def test_restart_mends_a_python_that_did_not_start_or_has_crashed(open_page: Callable[..., Repl]) -> None:
    wheel = re.compile(r"numpy.*\.whl$")
    repl = open_page(lambda page: page.route(wheel, lambda route: route.abort()), ready=False)
    expect(repl.page.locator("#status")).to_have_attribute("data-state", "failed", timeout=START)
    expect(repl.page.locator("#status-text")).to_contain_text("numpy")
    repl.page.unroute(wheel)
    repl.page.click("#restart")
    repl.wait_ready(START)
    assert repl.run("2 + 2") == "4"
    # Its parser goes deeper than the browser allows, which ends Python within the input, without an answer.
    repl.prompt.fill("eval('+'.join(['1'] * 200_000))")
    repl.prompt.press("Enter")
    expect(repl.page.locator(".entry-note").last).to_have_text("Python has crashed. Restart starts a new one.")
    expect(repl.page.locator("#status-text")).to_have_text("Python has crashed")
    expect(repl.page.locator("#entries")).to_contain_text("Maximum call stack size exceeded")
    repl.prompt.fill("3 + 3")
    repl.prompt.press("Enter")
    expect(repl.page.locator(".entry-note").get_by_text("Python has crashed")).to_have_count(2)
    expect(repl.prompt).to_have_value("3 + 3")
    repl.page.click("#restart")
    repl.wait_ready(START)
    assert repl.run("2 + 2") == "4"


def test_what_is_entered_while_python_loads_runs_afterwards(open_page: Callable[..., Repl]) -> None:
    repl = open_page(ready=False)
    repl.prompt.fill("'early ' + 'bird'")
    repl.prompt.press("Enter")
    expect(repl.page.locator(".entry .value")).to_have_text("'early bird'\n", timeout=START)


def test_the_page_is_isolated_and_takes_nothing_from_elsewhere(open_page: Callable[..., Repl]) -> None:
    asked: list[str] = []
    repl = open_page(lambda page: page.on("request", lambda request: asked.append(request.url)))
    assert repl.page.evaluate("crossOriginIsolated")
    origin = repl.page.evaluate("location.origin") + SUB_PATH
    assert [url for url in asked if not url.startswith(origin)] == []
    # The policy is in force: an inline script does not run.
    repl.page.evaluate(
        "document.head.append(Object.assign(document.createElement('script'), {text: 'window.ran = 1'}))"
    )
    assert repl.page.evaluate("window.ran") is None


def test_without_isolation_waits_stop_and_busy_loops_offer_a_restart(open_page: Callable[..., Repl]) -> None:
    repl = open_page(without_isolation)
    assert not repl.page.evaluate("crossOriginIsolated")
    repl.start("import asyncio\nwhile True:\n    await asyncio.sleep(0.01)")
    repl.page.click("#stop")
    expect(repl.entry().locator(".trace")).to_contain_text("KeyboardInterrupt", timeout=5_000)
    repl.start("while True: pass")
    repl.page.click("#stop")
    expect(repl.page.locator(".entry-note").last).to_contain_text("Stop again restarts", timeout=10_000)
    repl.page.click("#stop")
    repl.wait_ready(START)
    assert repl.run("40 + 2") == "42"


def trains_on_numpy(repl: Repl, why: str) -> None:
    expect(repl.page.locator("#device")).to_contain_text("NumPy on the CPU")
    expect(repl.page.locator("#device-detail")).to_contain_text(why)
    expect(repl.page.locator("header")).not_to_contain_text("GPU")
    repl.example()
    expect(repl.page.locator("#legend li")).to_have_attribute("data-points", "300", timeout=TRAIN)
    repl.wait_ready()
    # The reason stands in the status strip; the library does not repeat it in words of its own.
    expect(repl.entry().locator(".error")).to_have_count(0)
    assert re.search(r"accuracy (0\.9|1\.0)", repl.entry().locator(".out").inner_text())
    assert repl.problems == []


def test_a_browser_without_webgpu_trains_on_numpy(open_page: Callable[..., Repl]) -> None:
    trains_on_numpy(open_page(without_webgpu), "no WebGPU")


def test_a_browser_without_an_adapter_trains_on_numpy(playwright: Playwright, server: StaticServer) -> None:
    # Without the flag that allows it, Chromium has WebGPU but gives no software adapter.
    flags = [flag for flag in CHROMIUM_FLAGS if "webgpu" not in flag]
    with launched(playwright, *flags) as browser:
        trains_on_numpy(Repl(browser.new_page(), server.url + SUB_PATH), "no adapter")


def test_an_insecure_address_says_so_and_trains_on_numpy(playwright: Playwright, server: StaticServer) -> None:
    resolver = "--host-resolver-rules=MAP insecure.test 127.0.0.1"
    with launched(playwright, *CHROMIUM_FLAGS, SOFTWARE_ADAPTER, resolver) as browser:
        address = server.url.replace("127.0.0.1", "insecure.test") + SUB_PATH
        trains_on_numpy(Repl(browser.new_page(), address), "not secure")


@pytest.mark.parametrize(
    ("scheme", "width", "height"), [("light", 360, 740), ("dark", 1280, 800)], ids=["phone", "desktop"]
)
def test_it_fits_the_screen_and_nothing_jumps(
    open_page: Callable[..., Repl], scheme: str, width: int, height: int
) -> None:
    repl = open_page(ready=False, viewport={"width": width, "height": height}, color_scheme=scheme)
    before = places(repl.page)
    repl.wait_ready(START)
    repl.run("for i in range(50):\n    plot(i)")
    assert repl.page.evaluate("document.documentElement.scrollWidth") <= width
    assert places(repl.page) == before
    bottom = repl.prompt.evaluate("(prompt) => prompt.getBoundingClientRect().bottom + scrollY")
    assert bottom <= height, "the prompt is below the fold"
    background = repl.page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in re.findall(r"\d+", background)[:3])
    assert (brightness > 384) == (scheme == "light")
    screenshot(repl.page, f"{'phone' if width < 500 else 'desktop'}-{scheme}")
