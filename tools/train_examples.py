"""`make examples`: train every example in full in headless Chromium, and write `docs/examples.md`.

`EXAMPLES="convnet vae"` trains those alone; what the others reached stands in `docs/examples/results.json`.
Fails where a figure misses its target.
"""

from __future__ import annotations

import ast
import json
import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import in_browser
from paths import ROOT, fail
from picture import draw

PAGE = ROOT / "docs" / "examples.md"
FOLDER = ROOT / "docs" / "examples"
RESULTS = FOLDER / "results.json"

PYTORCH = json.loads((ROOT / "tests" / "reference" / "examples.json").read_text(encoding="utf-8"))
"""What the same models have in PyTorch."""


class Target(NamedTuple):
    """What a figure must be.

    Attributes:
        sign: `>=` or `<=`.
        bound: that it may reach.
    """

    sign: str
    bound: float

    def met(self, figure: float) -> bool:
        return figure >= self.bound if self.sign == ">=" else figure <= self.bound

    def __str__(self) -> str:
        return f"{'≥' if self.sign == '>=' else '≤'} {self.bound:g}"


class Run(NamedTuple):
    """An example, the arguments of its `main`, and what the figures of its result must be.

    Attributes:
        picture: whether the result is worth one.
    """

    module: str
    targets: dict[str, Target]
    arguments: Mapping[str, int] = MappingProxyType({})
    picture: bool = False

    @property
    def name(self) -> str:
        return " ".join([self.module, *(f"{key}={value}" for key, value in self.arguments.items())])

    @property
    def about(self) -> str:
        """The first line of the example's docstring."""
        tree = ast.parse((ROOT / "examples" / f"{self.module}.py").read_text(encoding="utf-8"))
        return (ast.get_docstring(tree) or "").partition("\n")[0].rstrip(".")


ACCURACY = "held-out accuracy"
RUNS = (
    Run("mnist", {ACCURACY: Target(">=", 0.95)}, picture=True),
    Run("convnet", {ACCURACY: Target(">=", 0.97)}),
    Run("convnet", {ACCURACY: Target(">=", 0.98)}, {"shift": 2}, picture=True),
    Run("resnet", {ACCURACY: Target(">=", 0.98)}, picture=True),
    Run(
        "vae",
        {
            "held-out ELBO, nats": Target(">=", -110),
            "written digits read with 90% certainty": Target(">=", 0.4),
            "kinds of digits written": Target(">=", 10),
        },
        picture=True,
    ),
    Run(
        "names",
        {
            "validation loss": Target("<=", 1.02 * PYTORCH["names in full"][0]),
            "less than that of bigrams by": Target(">=", 0),
        },
    ),
    Run("gru", {ACCURACY: Target(">=", 0.95)}, picture=True),
    Run(
        "gan",
        {"kinds of digits drawn": Target(">=", 8), "mean certainty": Target(">=", 0.75)},
        picture=True,
    ),
)


def missed(results: dict[str, Any]) -> list[str]:
    """Runs that never ran, lack a figure, or miss a target."""
    found = []
    for run in RUNS:
        if run.name not in results:
            found.append(f"{run.name} has not run")
            continue
        figures = results[run.name]["figures"]
        for figure, target in run.targets.items():
            if figure not in figures or not target.met(figures[figure]):
                found.append(f"{run.name}: {figure} is {figures.get(figure, 'missing')}, not {target}")
    return found


def page(results: dict[str, Any]) -> str:
    """The report's text."""
    lines = [
        "# Examples",
        "",
        "Each file of [examples/](../examples) was trained in full in a page of headless Chromium, on WebGPU, as",
        "`make examples` does it, and this page was made from `docs/examples/results.json`. Seconds are those of",
        "compilation, training and evaluation together; the final loss is the mean of the last 50 steps.",
        "",
        "| example | what it is | figure | reached | target | steps | final loss | seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    done = [run for run in RUNS if run.name in results]
    for run in done:
        result = results[run.name]
        cells = [f"[{run.name}](../examples/{run.module}.py)", run.about]
        rest = [str(result["steps"]), f"{result['loss']:.4f}", f"{result['seconds']:.0f}"]
        for figure, value in result["figures"].items():
            target = str(run.targets.get(figure, ""))
            lines.append(f"| {' | '.join([*cells, figure, f'{value:.4g}', target, *rest])} |")
            cells, rest = [""] * len(cells), [""] * len(rest)
    lines += ["", "## Where they ran", ""]
    for where in dict.fromkeys(results[run.name]["where"] for run in done):
        names = ", ".join(run.name for run in done if results[run.name]["where"] == where)
        lines.append(f"- {names}: {where}")
    for run in done:
        result = results[run.name]
        if run.picture or result["text"]:
            lines += ["", f"## {run.name}", ""]
        if run.picture:
            lines.append(f"![{run.about}](examples/{picture_of(run).name})")
        if result["text"]:
            lines += ["```text", result["text"].rstrip("\n"), "```"]
    return "\n".join(lines) + "\n"


def picture_of(run: Run) -> Path:
    return FOLDER / f"{run.name.replace(' ', '-').replace('=', '')}.png"


def machine() -> str:
    """The processor and the system."""
    info = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line]
    return f"{os.cpu_count()} cores ({names[0] if names else platform.machine()}), {platform.system()}"


def stored() -> dict[str, Any]:
    """What was reached, by the name of the run."""
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}


def train(run: Run) -> dict[str, Any]:
    """Trains, draws, and returns what the report says of it."""
    print(f"\n{run.name}: {run.about}", flush=True)
    trained = in_browser.train(run.module, run.arguments)
    result = trained.result
    if run.picture:
        draw(result, picture_of(run), dpi=60)
    for figure, value in result.figures.items():
        print(f"{figure}: {value:.4g} {run.targets.get(figure, '')}", flush=True)
    last = result.losses[-50:]
    return {
        "figures": result.figures,
        "steps": len(result.losses),
        "loss": sum(last) / len(last),
        "seconds": trained.seconds,
        "where": f"{machine()}; {trained.where}",
        "text": result.text,
    }


def main(names: list[str]) -> None:
    """Trains the examples of these names, or all, and writes the report."""
    chosen = [run for run in RUNS if not names or run.module in names]
    if unknown := set(names) - {run.module for run in RUNS}:
        fail(f"there are no examples {', '.join(sorted(unknown))}")
    results = stored()
    for run in chosen:
        results[run.name] = train(run)
        FOLDER.mkdir(parents=True, exist_ok=True)
        in_order = {run.name: results[run.name] for run in RUNS if run.name in results}
        RESULTS.write_text(json.dumps(in_order, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        PAGE.write_text(page(in_order), encoding="utf-8")
    problems = [text for text in missed(results) if text.partition(":")[0] in {run.name for run in chosen}]
    if problems:
        fail("\n".join(problems))


if __name__ == "__main__":
    main(sys.argv[1:])
