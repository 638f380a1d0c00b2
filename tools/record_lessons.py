"""Record the runs that the pages show while Python loads: `web/lessons/recorded/*.json` and `web/recorded/first.json`.

Each is a list of what `show` sends when the page's own code runs, here on the numpy device. One is no run but the
weights that lesson 3 ends with, for lesson 5: `reader.safetensors`.
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

WEB = ROOT / "web"
LESSONS = WEB / "lessons"
sys.path.insert(0, str(WEB / "python"))


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


async def first() -> list[dict[str, Any]]:
    """The playground's first program: its curve, and now and then what it answers all over the square."""
    runner = Runner()
    source = (WEB / "examples" / "first.py").read_text(encoding="utf-8")
    head, start, rest = source.partition("for _ in range(300):\n")
    loop = start + rest
    side, every = 24, 12
    await runner.run(head)
    await runner.run(
        f"x, y = np.meshgrid(np.linspace(-1.5, 1.5, {side}), np.linspace(1.5, -1.5, {side}))\n"
        "everywhere = np.column_stack([x.ravel(), y.ravel()])\n"
        "ask = await train.attach(lambda model, x: tg.softmax(model(x))[:, 1], {'x': tg.f32[None, 2]})\n"
        "losses, shown = [], 0\n"
        "async def look():\n"
        f"    if len(losses) == 1 or len(losses) % {every} == 0:\n"
        f"        answer = (await ask(x=everywhere)).reshape({side}, {side})\n"
        "        show(losses=[round(loss, 4) for loss in losses[shown:]], answer=answer)\n"
        "        globals()['shown'] = len(losses)\n"
        "show(points=np.round(points, 2).tolist(), arm=arm.tolist())\n"
    )
    plotted = "    plot(result.loss)\n"
    assert loop.count(plotted) == 1
    await runner.run(loop.replace(plotted, "    losses.append(float(result.loss))\n    await look()\n"))
    return runner.shown


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


async def names() -> list[dict[str, Any]]:
    """Lesson 4: what follows a beginning, and what is invented, while it learns."""
    page_file()
    runner = Runner()
    for name in ("data", "bigrams", "model", "learn"):
        await runner.cell(f"names/{name}.py")
    for steps in (10, 10, 10, 20, 30, 40, 60, 90, 130):
        await runner.run(f"await learn({steps})\nawait test()")
    look, test, *others = runner.shown
    parts = zip(others[::3], others[1::3], others[2::3], strict=True)
    return [{**look, **test}, *({**learned, **seen, **tested} for learned, seen, tested in parts)]


async def reader() -> bytes:
    """The weights of lesson 3's network after 1,000 steps, as a file."""
    import tensorgrad as tg

    page_file()
    runner = Runner()
    for name in ("data", "model", "learn"):
        await runner.cell(f"digits/{name}.py")
    await runner.run("await learn(1000)\nweights = (await train.state_dict())['model']\nprint(await accuracy())")
    return tg.save(runner.namespace["weights"], dtype="F16")


async def pictures() -> list[dict[str, Any]]:
    """Lesson 5: digits that get better, then the ten in hands from a walk around the plane."""
    page_file()
    runner = Runner()
    for name in ("digits/data", "pictures/reader", "pictures/model", "pictures/learn"):
        await runner.cell(f"{name}.py")
    frames = [_joined(runner.shown)]
    for steps in (10, 20, 40, 80, 150):
        runner.shown.clear()
        await runner.run(f"await advance({steps})")
        frames.append(_joined(runner.shown))
    for frame in frames[1:-1]:  # large pictures come at the start and at the end
        del frame["samples"], frame["read"], frame["tiles"], frame["way"], frame["ends"]
    runner.shown.clear()
    for turn in range(6):
        await runner.run(f"await at(1.5 * np.sin({turn}), 1.5 * np.cos({turn}) - 1.5)")
    return frames + runner.shown


def _joined(shown: list[dict[str, Any]]) -> dict[str, Any]:
    """What several calls of `show` gave, as one."""
    return {name: value for values in shown for name, value in values.items()}


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
        folder = "web" if url.startswith("../lessons/") else "build"
        data = (ROOT / folder / url.removeprefix("../")).read_bytes()
        file.bytes = lambda: asyncio.sleep(0, data)
        return file

    module.pyfetch = pyfetch  # type: ignore[attr-defined]
    sys.modules["pyodide.http"] = module
    sys.modules.setdefault("pyodide", ModuleType("pyodide"))


RECORDINGS: dict[str, Callable[[], Any]] = {
    "first": first,
    "line": line,
    "pattern": pattern,
    "digits": digits,
    "names": names,
    "reader": reader,
    "pictures": pictures,
    "gpu": gpu,
}


def main() -> None:
    """Write the recordings that the command line names, or all."""
    for name in sys.argv[1:] or RECORDINGS:
        recorded = asyncio.run(RECORDINGS[name]())
        path = (WEB if name == "first" else LESSONS) / "recorded" / f"{name}.json"
        if isinstance(recorded, bytes):
            path = path.with_suffix(".safetensors")
        else:
            recorded = (json.dumps(recorded, separators=(",", ":")) + "\n").encode()
        path.write_bytes(recorded)
        print(f"{path.relative_to(ROOT)}: {len(recorded) / 1e3:.1f} kB")


if __name__ == "__main__":
    main()
