"""Train an example in headless Chromium: its progress on the terminal, and what it found."""

from __future__ import annotations

import io
import json
import queue
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

import numpy as np

from example import Result
from paths import BUILD, ROOT, SITE, fail
from tensorgrad.testing.browser import (
    CHROMIUM_FLAGS,
    QUICK_SHADERS,
    SOFTWARE_ADAPTER,
    BrowserThread,
    find_chromium,
)
from tensorgrad.testing.server import StaticServer

PATIENCE = 600.0
"""Seconds without a sign of life after which we give up."""

PAGE = ROOT / "tools" / "example_page"
FLAGS = (*CHROMIUM_FLAGS, SOFTWARE_ADAPTER, QUICK_SHADERS)


class Trained(NamedTuple):
    """What came out of a run.

    Attributes:
        result: what the example returned.
        seconds: of its `main`: compilation, training and evaluation.
        where: names the browser, the adapter and Python.
    """

    result: Result
    seconds: float
    where: str


def train(name: str, arguments: Mapping[str, Any] | None = None) -> Trained:
    """Runs an example's `main` in a page of its own; a failure ends the program."""
    began, losses, where = time.monotonic(), [], ""
    for message in _messages(name, arguments or {}):
        match message.pop("kind"):
            case "ready":
                where = f"{message['browser']}, adapter {message['adapter']}, Pyodide {message['pyodide']}"
                print(f"{where}: ready after {time.monotonic() - began:.1f} s", flush=True)
                began = time.monotonic()
            case "step":
                losses.append(message["loss"])
                show_progress(message["step"], message["steps"], losses, time.monotonic() - began)
            case "result":
                seconds, images = message.pop("seconds"), message.pop("images")
                images = None if images is None else np.array(images)
                return Trained(Result(**message, images=images), seconds, where)
            case _:
                fail(message["message"])
    raise AssertionError("a run ends with a result or an error")


def _messages(name: str, arguments: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What the page says, until its result."""
    messages: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    browser = BrowserThread(find_chromium(), FLAGS)
    try:
        with StaticServer({"/example/": PAGE, "/examples.zip": _files(), "/": SITE}) as server:
            query = urlencode({"name": name, "arguments": json.dumps(arguments)})
            page = browser.open(
                f"{server.url}/example/index.html?{query}",
                lambda message: messages.put(message),
                lambda: messages.put({"kind": "error", "message": "the page crashed"}),
            )
            version = page.context.browser.version if page.context.browser else "?"
            kind = ""
            while kind not in ("result", "error"):
                try:
                    message = messages.get(timeout=PATIENCE)
                except queue.Empty:
                    message = {"kind": "error", "message": f"no sign of life from the page for {PATIENCE:.0f} s"}
                kind = message["kind"]
                yield {**message, "browser": f"Chromium {version}"} if kind == "ready" else message
    finally:
        browser.close()


def _files() -> bytes:
    """The examples, what runs them, and the data, as one archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for file in (*ROOT.glob("examples/*.py"), PAGE / "run_example.py", *BUILD.glob("data/*")):
            archive.write(file, file.name)
    return buffer.getvalue()


def show_progress(step: int, steps: int, losses: list[float], seconds: float) -> None:
    """A bar that is drawn over itself in a terminal; elsewhere a line for each tenth."""
    if not sys.stdout.isatty() and step * 10 // steps == (step - 1) * 10 // steps:
        return
    width = 32
    filled = width * step // steps
    loss = float(np.mean(losses[-50:]))
    text = f"[{'#' * filled}{'.' * (width - filled)}] step {step}/{steps}  loss {loss:.4f}  {seconds:5.1f} s"
    if sys.stdout.isatty():
        print(f"\r{text}", end="\n" if step == steps else "", flush=True)
    else:
        print(text, flush=True)
