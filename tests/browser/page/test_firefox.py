"""The page in Firefox: another engine, another shader compiler, and what it says where that has less.

Loading, running, training and interrupting, not everything that the page can do: Chromium's tests are for that.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from firefox_driver import NOTHING, WEBGPU, FirefoxPage
from page_driver import SITE, SUB_PATH
from tensorgrad.testing.server import StaticServer

pytestmark = pytest.mark.page


async def trained(device: str | None) -> tuple[list[float], list[float]]:
    """Losses and seconds of thirty steps of a small network; here, and as text in the page."""
    import time

    import numpy as np

    import tensorgrad as tg
    from tensorgrad import nn, optim

    x = np.linspace(-1, 1, 32).reshape(32, 1)
    nn.init.manual_seed(1)
    train = await tg.compile(
        nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1)),
        lambda model, x, y: tg.mse_loss(model(x), y),
        optim.Adam(0.02),
        {"x": tg.f32[32, 1], "y": tg.f32[32, 1]},
        device=device,
        seed=0,
    )
    losses, clock = [], [time.perf_counter()]
    for _ in range(30):
        losses.append((await train.step(x=x, y=np.sin(3 * x))).loss)
        clock.append(time.perf_counter())
    return losses, np.diff(clock).tolist()


@pytest.fixture(scope="module")
def firefox(server: StaticServer) -> Iterator[FirefoxPage]:
    with FirefoxPage(WEBGPU) as page:
        page.open(server.url + SUB_PATH)
        page.wait_ready()
        yield page


def test_it_has_webgpu_and_says_so(firefox: FirefoxPage) -> None:
    device, why = firefox.text("#device"), firefox.text("#device-detail")
    assert "WebGPU" in device, f"no adapter (Mesa's driver for CPUs is one): {why}"
    assert firefox.read("crossOriginIsolated")
    assert firefox.text(".entry-note") == ""  # nothing is missing


def test_a_program_typed_into_the_editor_runs(firefox: FirefoxPage) -> None:
    firefox.write("")
    for line in ("def keyed(n):", "return n * 7", "print('typed', keyed(6))"):
        firefox.type(line)
        firefox.press("Enter")
    assert firefox.run("Control+Enter") == "typed 42"


def test_a_model_trains_as_the_reference_does_and_is_not_kept_waiting(firefox: FirefoxPage) -> None:
    printed = firefox.program(inspect.getsource(trained) + "\nprint(*await trained('webgpu'), sep='\\n')\n")
    losses, seconds = map(json.loads, printed.splitlines())
    with ThreadPoolExecutor() as thread:  # pytest's own may have an event loop, of Playwright
        reference, _ = thread.submit(asyncio.run, trained("numpy")).result()
    assert losses == pytest.approx(reference, abs=1e-4)  # f32 in another order, amplified by the updates
    assert losses[-1] < losses[0] / 2
    # Firefox by itself notices finished work ten times a second.
    assert sorted(seconds)[len(seconds) // 4] < 0.08, seconds


def test_control_c_stops_a_busy_loop_and_the_names_stay(firefox: FirefoxPage) -> None:
    firefox.enter("kept = 'still here'")
    firefox.start("while True: pass")
    firefox.press("Control+c")
    assert "KeyboardInterrupt" in firefox.printed()
    assert firefox.enter("kept") == "'still here'"


def test_names_complete(firefox: FirefoxPage) -> None:
    firefox.enter("import numpy as np")
    firefox.type("np.linsp")
    firefox.press("Tab")
    firefox.wait("document.querySelector('#prompt').value === 'np.linspace'")
    firefox.press("Control+a")
    firefox.press("Delete")
    firefox.write("def counted(): pass\n\n")
    firefox.press("Control+End")
    firefox.type("coun")
    firefox.wait("document.querySelector('.cm-tooltip-autocomplete [role=option]')?.innerText === 'counted'")
    firefox.press("Tab")
    firefox.wait("document.querySelector('#program').value.endsWith('\\n\\ncounted')")


def test_a_traceback_marks_the_line(firefox: FirefoxPage) -> None:
    printed = firefox.program("a = 6\n\ndef f():\n    return a / 0\n\nf()")
    assert "ZeroDivisionError" in printed
    assert firefox.text(".wrong-line") == "✗ 4"
    assert firefox.text(".cm-wrong-line") == "return a / 0"


def test_lessons_run_train_and_go_on_after_a_reload(firefox: FirefoxPage, server: StaticServer) -> None:
    ready = "!document.querySelector('#play').disabled && document.querySelector('.cell .cm-content') !== null"
    firefox.open(f"{server.url}{SUB_PATH}lessons/line.html")
    firefox.wait(ready)
    firefox.click("[data-code='loss.py'] button.primary")
    firefox.wait("document.querySelector('[data-code=\"loss.py\"]').dataset.runs === '2'")
    assert "a flat line" in firefox.text("[data-code='loss.py'] .cell-output")
    firefox.open(f"{server.url}{SUB_PATH}lessons/pattern.html")
    firefox.wait(ready)
    firefox.click("#step")
    firefox.wait("document.querySelector('#note').innerText.includes('keeps the weights')")
    # A reload brings back what buttons were; they wait for Python all the same.
    firefox.reload()
    assert "recorded run" in firefox.text("#note")
    assert firefox.read("document.querySelector('#play').disabled")
    firefox.wait(ready)
    firefox.wait("document.querySelector('#note').innerText.includes('Trained 1 step last time')")
    assert firefox.text("#steps") == "1"


def test_the_page_had_no_errors_and_its_policy_refused_nothing(firefox: FirefoxPage) -> None:
    assert firefox.problems() == []
    # Such things are noticed: an inline script is refused.
    firefox.read("document.head.append(Object.assign(document.createElement('script'), {text: 'window.ran = 1'}))")
    assert firefox.read("window.ran") is None
    firefox.read("new Promise(resolve => setTimeout(() => resolve(true), 100))")
    assert "script-src" in firefox.problems()[0]


def test_without_webgpu_and_headers_it_says_so_goes_on_and_works_offline() -> None:
    with FirefoxPage(NOTHING) as page:
        with StaticServer({SUB_PATH: SITE}, headers={}) as server:
            page.open(server.url + SUB_PATH)
            page.wait_ready()
            assert "NumPy on the CPU" in page.text("#device")
            assert "no WebGPU" in page.text("#device-detail")
            assert "no JavaScript Promise Integration (JSPI)" in page.text(".entry-note")
            assert page.read("crossOriginIsolated")  # by the service worker
            page.wait("document.querySelector('#status-text').innerText.includes('Works offline')")
        # The server is gone.
        page.reload()
        page.wait_ready()
        assert (
            page.program(
                inspect.getsource(trained) + "\nlosses, _ = await trained(None)\nprint(losses[-1] < losses[0] / 2)"
            )
            == "True"
        )
        page.start("while True: pass")
        page.press("Control+c")
        assert "KeyboardInterrupt" in page.printed()
        assert page.problems() == []
