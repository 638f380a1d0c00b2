"""Drives the page in Firefox as a person would; used by `browser/page/test_firefox.py`.

Playwright drives only a Firefox of its own, so this goes through puppeteer-core, in Node: `firefox.mjs`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from system import find_firefox

ROOT = Path(__file__).parents[1]
PUPPETEER = ROOT / "build/puppeteer/node_modules/puppeteer-core/lib/esm/puppeteer/puppeteer-core.js"
PATIENCE = 120.0
"""Seconds in which Python loads or a program runs, on a busy machine."""

WEBGPU = {
    "dom.webgpu.enabled": True,
    "dom.webgpu.workers.enabled": True,
    "gfx.webgpu.ignore-blocklist": True,  # a software driver is on it
    "javascript.options.wasm_js_promise_integration": True,
}
NOTHING = dict.fromkeys(WEBGPU, False)
"""As a Firefox that has neither WebGPU nor JavaScript Promise Integration."""


class FirefoxPage:
    """The page as seen by somebody who uses Firefox; a context manager."""

    def __init__(self, preferences: dict[str, bool]) -> None:
        firefox, node = find_firefox(), shutil.which("node")
        assert firefox, "no Firefox was found: install it (Debian: firefox-esr), or set TENSORGRAD_FIREFOX to its path"
        assert node, "Node was not found"
        assert PUPPETEER.is_file(), "build/puppeteer is not there: `make browser` fetches it first"
        command = [node, ROOT / "tests/firefox.mjs", PUPPETEER, firefox, json.dumps(preferences)]
        self._process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.version = self._answer()

    def __enter__(self) -> FirefoxPage:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # the end of its input ends the browser

    def _answer(self) -> Any:
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line, f"Firefox or its driver ended with status {self._process.wait()}"
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer["value"]

    def _do(self, command: str, *args: Any) -> Any:
        assert self._process.stdin
        self._process.stdin.write(json.dumps([command, *args]) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def open(self, url: str) -> None:
        self._do("open", url)

    def reload(self) -> None:
        self._do("reload")

    def problems(self) -> list[str]:
        """Errors of the page and of its console, and files that were refused or missing, of all pages so far."""
        return self._do("problems")

    def read(self, expression: str) -> Any:
        """The value of an expression of JavaScript in the page."""
        return self._do("read", expression)

    def wait(self, expression: str) -> Any:
        """The value of an expression as soon as it is true."""
        end = time.monotonic() + PATIENCE
        while not (value := self.read(expression)):
            if time.monotonic() > end:
                words = self.read("document.body.innerText")
                raise AssertionError(f"{expression} is {value!r} after {PATIENCE:g} s; the page says:\n{words}")
            time.sleep(0.1)
        return value

    def wait_ready(self) -> None:
        """Until Python and the editor are there and nothing runs any more."""
        self.wait(
            "document.querySelector('#status')?.dataset.state === 'ready' && "
            "document.querySelector('#stop').disabled && document.querySelector('.cm-content') !== null"
        )

    def text(self, selector: str) -> str:
        """The text of the last element that fits, without its ends; empty where there is none."""
        return self.read(f"[...document.querySelectorAll({json.dumps(selector)})].at(-1)?.innerText.trim() ?? ''")

    def click(self, selector: str) -> None:
        self._do("click", selector)

    def type(self, text: str) -> None:
        """Type with real keys where the focus is."""
        self._do("type", text)

    def press(self, keys: str) -> None:
        """Press a key, with those that are held before it: `Control+a`."""
        self._do("press", keys)

    def write(self, source: str) -> None:
        """Put a program into the editor in place of what is there, through the clipboard."""
        self.click(".cm-line")
        self.press("Control+a")
        self.press("Delete")
        if source:
            self.read(f"navigator.clipboard.writeText({json.dumps(source)})")
            self.press("Control+v")
        self.wait(f"document.querySelector('#program').value === {json.dumps(source)}")

    def program(self, source: str) -> str:
        """Put a program into the editor, run it, and return what it printed."""
        self.write(source)
        return self.run("Shift+Enter")

    def start(self, line: str) -> None:
        """Type into the prompt and run it as it is."""
        self.click("#prompt")
        self.type(line)
        self._begin("Control+Enter")

    def enter(self, line: str) -> str:
        """Type a line at the prompt, run it, and return what it printed."""
        self.start(line)
        return self.printed()

    def run(self, keys: str) -> str:
        """Press the keys that run what has the focus, and return what it printed."""
        self._begin(keys)
        return self.printed()

    def _begin(self, keys: str) -> None:
        count = self.read("document.querySelectorAll('.entry').length")
        self.press(keys)
        self.wait(f"document.querySelectorAll('.entry').length > {count}")

    def printed(self) -> str:
        """What the last entry printed, once it is over."""
        self.wait("[...document.querySelectorAll('.entry .entry-time')].at(-1).innerText")
        return self.text(".entry-body")
