"""Record the runs that the lessons show while Python loads: `web/lessons/recorded/*.json`.

Each is a list of what `show` sends when the lesson's own code runs, here on the numpy device.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import linecache
import subprocess
import sys
from collections.abc import Callable
from types import CodeType, ModuleType, SimpleNamespace
from typing import Any

from paths import ROOT

LESSONS = ROOT / "web" / "lessons"
sys.path.insert(0, str(ROOT / "web" / "python"))


class Runner:
    """Runs cells as the page does: one after the other in one namespace, with `await` at the top.

    Attributes:
        shown: what `show` was given, as the page gets it.
        namespace: of the cells.
    """

    def __init__(self) -> None:
        from tensorgrad_page.showing import Show

        self.shown: list[dict[str, Any]] = []
        self.plotted: dict[str, list[float]] = {}
        self.namespace: dict[str, Any] = {
            "__name__": "__main__",
            "show": Show(lambda text: self.shown.append(json.loads(text))),
            "plot": _Plot(self.plotted),
            "display": lambda *values: None,
        }

    async def run(self, source: str, name: str = "<cell>") -> None:
        """Run one cell."""
        linecache.cache[name] = len(source), None, source.splitlines(True), name
        code: CodeType = compile(source, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        found = eval(code, self.namespace)
        if inspect.isawaitable(found):
            await found

    async def cell(self, name: str) -> None:
        """Run the cell in a file of `web/lessons`."""
        await self.run((LESSONS / name).read_text(encoding="utf-8"), name)


class _Plot:
    def __init__(self, plotted: dict[str, list[float]]) -> None:
        self._plotted = plotted

    def __call__(self, value: Any, name: str = "loss", *, step: float | None = None) -> None:
        self._plotted.setdefault(name, []).append(float(value))

    def clear(self, name: str | None = None) -> None:
        self._plotted.clear()


async def line() -> list[dict[str, Any]]:
    """Lesson 1: a walk down."""
    runner = Runner()
    for name in ("points", "loss", "gradient", "descend"):
        await runner.cell(f"line/{name}.py")
    await runner.run("rate = 0.25\nawait descend(40)")
    first, *others = runner.shown
    return [{**first, **others[0]}, *others[1::2]]


async def pattern() -> list[dict[str, Any]]:
    """Lesson 2: the spiral, with coarse pictures."""
    runner = Runner()
    await runner.run(pattern_program(side=24))
    for _ in range(16):
        await runner.run("await advance(32)")
    first, *others = runner.shown
    return [{**first, **others[0]}, *others[1:]]


def pattern_program(**settings: Any) -> str:
    """The program that the page of lesson 2 writes for some settings."""
    module = (LESSONS / "js" / "pattern_program.js").as_uri()
    script = (
        f"import {{ program, DEFAULTS }} from '{module}';"
        "process.stdout.write(program({ ...DEFAULTS, ...JSON.parse(process.argv[1]) }));"
    )
    command = ["node", "--input-type=module", "--eval", script, json.dumps(settings)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


async def digits() -> list[dict[str, Any]]:
    """Lesson 3: what a test digit looks like to a network that learns."""
    page_file()
    runner = Runner()
    for name in ("data", "model", "learn"):
        await runner.cell(f"digits/{name}.py")
    await runner.run("drawing = test_images[test_labels == 3][:1]\nshow(step=0)\nawait guess()")
    for steps in (2, 2, 4, 4, 8, 10, 10):
        await runner.run(f"await learn({steps})")
    counts, pictures = runner.shown[2::2], runner.shown[3::2]
    return [{**count, **picture} for count, picture in zip(counts, pictures, strict=True)]


async def gpu() -> list[dict[str, Any]]:
    """Lesson 6: three expressions, with fusion and without."""
    runner = Runner()
    for name in ("relu", "stages", "groups"):
        await runner.cell(f"gpu/{name}.py")
    stages, groups = runner.shown
    frames = [{**stages, **groups, "fusion": True, "work": "relu.py"}]
    for name in ("softmax", "norm"):
        frames.append({"fusion": False})
        await runner.cell(f"gpu/{name}.py")
        await runner.run("await look()")
        frames.append({**runner.shown[-1], "fusion": True, "work": f"{name}.py"})
    return frames


def page_file() -> None:
    """What the page's Python has and this one has not: a way to fetch the data."""
    module = ModuleType("pyodide.http")

    async def pyfetch(url: str) -> Any:
        file = SimpleNamespace()
        data = (ROOT / "build" / url.removeprefix("../")).read_bytes()
        file.bytes = lambda: asyncio.sleep(0, data)
        return file

    module.pyfetch = pyfetch  # type: ignore[attr-defined]
    sys.modules["pyodide.http"] = module
    sys.modules.setdefault("pyodide", ModuleType("pyodide"))


RECORDINGS: dict[str, Callable[[], Any]] = {"line": line, "pattern": pattern, "digits": digits, "gpu": gpu}


def main() -> None:
    """Write the recordings that the command line names, or all."""
    for name in sys.argv[1:] or RECORDINGS:
        text = json.dumps(asyncio.run(RECORDINGS[name]()), separators=(",", ":"))
        path = LESSONS / "recorded" / f"{name}.json"
        path.write_text(text + "\n", encoding="utf-8")
        print(f"{path.relative_to(ROOT)}: {len(text) / 1e3:.1f} kB")


if __name__ == "__main__":
    main()
