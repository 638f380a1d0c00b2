"""README.md, ARCHITECTURE.md and CHANGELOG.md say what is so: their code runs and their links lead somewhere."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import tomllib
import warnings
from pathlib import Path
from typing import Any

import pytest

import docs_site
import tensorgrad as tg
from tensorgrad.testing import options
from tour import BEGIN, END, sections

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "docs/pytorch.md", "docs/embedding.md")
BLOCK = re.compile(r"^(<!-- page only -->\n)?```(\w+)\n(.*?)^```$", re.M | re.S)


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[tuple[bool, str]]:
    """The code blocks of a language: whether each is for a page only, and its text."""
    return [(bool(only), code) for only, name, code in BLOCK.findall(text_of(page)) if name == language]


class Plot:
    """Stands for the page's `plot`."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def __call__(self, value: float) -> None:
        self.values.append(value)

    def clear(self) -> None:
        self.values.clear()


def run(code: str) -> dict[str, Any]:
    """Runs code as the page's prompt does, on the numpy device; tests that it defines are called."""
    names: dict[str, Any] = {"plot": Plot(), "__name__": "readme"}
    compiled = compile(code, "README.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "running on the numpy device", RuntimeWarning)
        answer = eval(compiled, names)
        if inspect.iscoroutine(answer):
            asyncio.run(answer)
        for name, value in list(names.items()):
            if name.startswith("test_"):
                asyncio.run(value())
    return names


PYTHON = blocks("README.md", "python")


@pytest.mark.parametrize("number", [n for n, (only, _) in enumerate(PYTHON) if not only])
def test_the_readmes_python_runs(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    names = run(PYTHON[number][1])
    if "accuracy" in names:
        assert names["accuracy"] > 0.9, capsys.readouterr().out
        assert len(names["plot"].values) == 300


def test_the_python_for_those_who_know_pytorch_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Its parts go on with each other's names."""
    parts = [code for _, code in blocks("docs/pytorch.md", "python")]
    names = run("\n".join(parts))
    printed = capsys.readouterr().out.split()
    assert len(parts) == len(printed) + 1 == 4  # one loads weights and shows nothing
    assert float(printed[0]) < 0.3 < 0.8 < names["best"], printed


def test_what_runs_in_a_page_only_is_python() -> None:
    only = [code for only, code in PYTHON if only]
    assert len(only) == 1
    for code in only:
        compile(code, "README.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_the_first_example_is_the_pages() -> None:
    assert PYTHON[0][1] == (ROOT / "web" / "examples" / "first.py").read_text(encoding="utf-8")


def test_the_plugins_options_exist() -> None:
    declared = set(re.findall(r'addini\("(\w+)"', inspect.getsource(options)))
    for _, code in blocks("README.md", "toml"):
        named = tomllib.loads(code)["tool"]["pytest"]["ini_options"]
        assert named
        assert set(named) <= declared


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files(page: str) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text_of(page)):
        assert ((ROOT / page).parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES)
def test_make_targets_exist(page: str) -> None:
    targets = set(re.findall(r"^([a-z]+):", text_of("Makefile"), re.M))
    named = re.findall(r"^make ([a-z]+)", text_of(page), re.M) + re.findall(r"`make ([a-z]+)", text_of(page))
    assert set(named) <= targets
    assert page != "README.md" or {"demo", "serve", "test"} <= set(named)


@pytest.mark.parametrize("page", PAGES)
def test_public_names_exist(page: str) -> None:
    for name in re.findall(r"\btg\.(\w+)", text_of(page)):
        assert hasattr(tg, name), f"tg.{name}"
    for name in re.findall(r"\btrain\.(\w+)", text_of(page)):
        assert name in vars(tg.Train) or hasattr(tg.Train, name) or name in ("state", "graph"), f"train.{name}"


def test_figures_of_the_readme_are_the_measured_ones() -> None:
    speed = text_of("README.md").split("## How fast it is")[1].split("\n## ")[0]
    shown = re.findall(r"\| (\d+\.\d+) (?=\|)", speed)
    assert len(shown) == 11
    measured = text_of("bench/RESULTS.md").split("## Training steps on a GPU")[1].split("\n## ")[0]
    assert set(shown) <= set(re.findall(r"\d+\.\d+", measured))
    (first,) = re.findall(r"^\| first trained step \| (\S+) \| (\S+) \|$", text_of("bench/LOAD.md"), re.M)
    cold, warm = (f"{float(seconds):.1f}" for seconds in first)
    (size,) = re.findall(r"^\| together .* ([\d,]+) \|$", text_of("bench/SIZES.md"), re.M)
    loading = " ".join(text_of("README.md").split("## The page")[1].split("\n## ")[0].split())
    assert f"is downloaded, {int(size.replace(',', '')) // 1000} MB compressed" in loading
    assert f"{cold} seconds at the first visit and {warm} at the second" in loading


def test_one_name_for_what_other_pages_can_have() -> None:
    name, _ = text_of("docs/embedding.md").removeprefix("# ").split("\n", 1)
    assert docs_site.GUIDES["docs/embedding.md"][1] == name
    assert f"\n## {name}\n" in text_of("README.md")
    assert f'embed.html">{name}</a>' in text_of("web/templates/page.html")
    assert f"<h1>{name}</h1>" in text_of("web/embed.html")


def test_errors_of_the_readme_exist() -> None:
    named = set(re.findall(r"`(\w+Error)`", text_of("README.md")))
    for name in named - {"ValueError", "TypeError"}:
        assert issubclass(getattr(tg, name), tg.TensorgradError)


def test_files_of_the_tour_exist() -> None:
    for name in re.findall(r"`((?:tensorgrad|tools|tests|web|examples)/[\w/.*-]+)`", text_of("ARCHITECTURE.md")):
        assert list(ROOT.glob(name.rstrip("/"))), name


@pytest.mark.parametrize("title", sorted(sections()))
def test_the_tours_printouts_are_what_the_code_prints(title: str) -> None:
    """`python tools/tour.py --write` brings ARCHITECTURE.md up to date."""
    begin, end = BEGIN.format(title), END.format(title)
    page = text_of("ARCHITECTURE.md")
    assert page.count(begin) == 1
    shown = page.split(begin)[1].split(end)[0]
    assert shown.strip() == f"```{'wgsl' if title == 'wgsl' else 'text'}\n{sections()[title]}\n```"
