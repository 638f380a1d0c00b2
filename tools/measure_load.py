"""Measure how long a reader waits: from the page's address to Python, and to the first trained step.

Usage: `measure_load.py [--runs 5] [--write] [SITE ...]`. Each run opens the playground in a browser that has never
seen it (cold), presses Run at once as a hurried reader does, closes the page, and opens it again (warm: files, compiled
code and programs are kept). Several sites are measured by turns, so that a busy machine is equally busy for all.
CPU time is that of all of the browser's processes (Linux): it hardly changes with what else the machine does.
`--write` keeps the table in `bench/LOAD.md`.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import BrowserContext, Playwright, expect, sync_playwright

from paths import ROOT, SITE
from tensorgrad.testing.browser import CHROMIUM_FLAGS, SOFTWARE_ADAPTER, find_chromium
from tensorgrad.testing.server import StaticServer

PREFIX = "tensorgrad: "
FIRST_STEP = "first trained step"
PATIENCE = 120_000
"""Milliseconds, for a machine that is busy."""

TABLE = ROOT / "bench" / "LOAD.md"
HEAD = """# Load times

Made by `.venv/bin/python tools/measure_load.py --runs {runs} --write`: medians of {runs} runs, seconds from the page's
address. Cold is a browser that has never seen the page, warm the second visit; the program is the first example, run
as soon as Python is there. The server is on the same machine, and sends files as they are. {where}.

"""


class Load(NamedTuple):
    """One visit.

    Attributes:
        stages: when each was over, in seconds from the page's address, in order.
        cpu: seconds that the browser's processes computed, all together; NaN where that is not known.
    """

    stages: dict[str, float]
    cpu: float


def visit(context: BrowserContext, url: str) -> Load:
    """Open the page and run its program as soon as it lets one."""
    page, before = context.new_page(), cpu_seconds()
    page.goto(url)
    page.click("#run-program", timeout=PATIENCE)
    page.wait_for_function(
        "name => performance.getEntriesByName(name).length", arg=PREFIX + FIRST_STEP, timeout=PATIENCE
    )
    cpu = cpu_seconds() - before
    # what the first visit keeps is written before the second
    expect(page.locator("#status-text")).to_contain_text("Works offline", timeout=PATIENCE)
    marks: list[dict[str, Any]] = page.evaluate("performance.getEntriesByType('mark')")
    page.close()
    stages = {mark["name"].removeprefix(PREFIX): mark["startTime"] / 1e3 for mark in marks}
    return Load(dict(sorted(stages.items(), key=lambda stage: stage[1])), cpu)


def measure(playwright: Playwright, site: Path) -> tuple[Load, Load]:
    """A cold visit and a warm one, in a browser with a profile of its own."""
    with tempfile.TemporaryDirectory() as profile, StaticServer({"/": site}) as server:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=find_chromium(), args=[*CHROMIUM_FLAGS, SOFTWARE_ADAPTER]
        )
        try:
            return visit(context, server.url + "/"), visit(context, server.url + "/")
        finally:
            context.close()


def cpu_seconds() -> float:
    """What this process' descendants have computed so far; NaN where there is no /proc."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        parents[int(folder.name)] = int(fields[1])
        ticks[int(folder.name)] = int(fields[11]) + int(fields[12]) + int(fields[13]) + int(fields[14])

    def is_ours(process: int) -> bool:
        parent = parents.get(process, 0)
        return parent == os.getpid() or (parent != 0 and is_ours(parent))

    ours = sum(time for process, time in ticks.items() if is_ours(process))
    return ours / os.sysconf("SC_CLK_TCK") if ticks else float("nan")


def table(visits: Iterable[tuple[Load, Load]]) -> str:
    """Medians by stage, as Markdown."""
    cold, warm = zip(*visits, strict=True)
    lines = ["| stage over | cold (s) | warm (s) |", "|---|---:|---:|"]
    lines += [f"| {stage} | {_median(cold, stage):.2f} | {_median(warm, stage):.2f} |" for stage in cold[0].stages]
    cpu = [statistics.median(load.cpu for load in loads) for loads in (cold, warm)]
    return "\n".join([*lines, f"| CPU time until then | {cpu[0]:.2f} | {cpu[1]:.2f} |"])


def _median(loads: Iterable[Load], stage: str) -> float:
    return statistics.median(load.stages[stage] for load in loads)


def main() -> None:
    """Measure, print, and write the table where that is asked for."""
    parser = argparse.ArgumentParser(description="Measure how long a reader waits.")
    parser.add_argument("sites", nargs="*", type=Path, default=[SITE], metavar="SITE")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--write", action="store_true", help=f"keep the table of the first site in {TABLE.name}")
    arguments = parser.parse_args()
    found: dict[Path, list[tuple[Load, Load]]] = {site: [] for site in arguments.sites}
    with sync_playwright() as playwright:
        for _ in range(arguments.runs):
            for site, visits in found.items():
                visits.append(measure(playwright, site))
    for site, visits in found.items():
        print(f"\n{site}, medians of {arguments.runs}\n\n{table(visits)}")
    if arguments.write:
        where = f"Measured on {platform.machine()} with {os.cpu_count()} cores and Chromium's software adapter"
        text = HEAD.format(runs=arguments.runs, where=where) + table(found[arguments.sites[0]])
        TABLE.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
