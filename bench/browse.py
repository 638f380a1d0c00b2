"""Opens a page of a folder in headless Chromium and prints what it posts: browse.py FOLDER 'PAGE?QUERY' [SECONDS].

A page posts `[key, value]` as JSON to `/r` and ends with the key DONE. Pyodide is at `/pyodide/`. With each post
stands, on standard error, the CPU time that the browser's GPU process has taken so far (Linux): what the software
adapter computes, however busy the machine is.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from playwright.async_api import Route, async_playwright

from tensorgrad.testing.browser import CHROMIUM_FLAGS, SOFTWARE_ADAPTER, find_chromium
from tensorgrad.testing.server import StaticServer

PYODIDE = Path(__file__).parents[1] / "build" / "site" / "pyodide"


def gpu_seconds() -> float:
    """CPU time of the GPU processes among this one's descendants."""
    parents: dict[str, str] = {}
    times: dict[str, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_text()
        except OSError:  # it has ended
            continue
        parents[folder.name] = fields[1]
        if "--type=gpu-process" in command:
            times[folder.name] = int(fields[11]) + int(fields[12])

    def is_ours(process: str) -> bool:
        return process == str(os.getpid()) or (process in parents and is_ours(parents[process]))

    return sum(ticks for process, ticks in times.items() if is_ours(process)) / os.sysconf("SC_CLK_TCK")


async def browse(url: str, seconds: float) -> dict[str, Any]:
    """What the page posted, by key."""
    posted: dict[str, Any] = {}
    done = asyncio.Event()

    async def receive(route: Route) -> None:
        key, value = json.loads(route.request.post_data or "null")
        posted[key] = value
        print(key, json.dumps(value), flush=True)
        print(f"GPU process: {gpu_seconds():.2f} s", file=sys.stderr)
        await route.fulfill(status=204)
        if key in ("DONE", "FATAL"):
            done.set()

    async with async_playwright() as playwright:
        flags = [*CHROMIUM_FLAGS, SOFTWARE_ADAPTER]
        browser = await playwright.chromium.launch(executable_path=find_chromium(), args=flags)
        page = await browser.new_page()
        page.on("pageerror", lambda error: print(error, file=sys.stderr))
        await page.route("**/r", receive)
        await page.goto(url)
        try:
            await asyncio.wait_for(done.wait(), seconds)
        finally:
            await browser.close()
    return posted


if __name__ == "__main__":
    folder, page, *seconds = sys.argv[1:]
    with StaticServer({"/": Path(folder), "/pyodide/": PYODIDE}) as server:
        asyncio.run(browse(f"{server.url}/{page}", float(seconds[0]) if seconds else 120.0))
