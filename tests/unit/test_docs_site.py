"""The documentation's pages: every public name has one, every link leads somewhere, every example runs by itself."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import functools
import gzip
import hashlib
import html
import importlib
import inspect
import io
import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from types import ModuleType
from urllib.parse import urldefrag

import pytest

import docs_calls
import docs_examples
import docs_facts
import docs_names
import docs_site
import docs_text


@functools.cache
def built() -> dict[str, str | bytes]:
    return docs_site.rendered()


def files() -> dict[str, str]:
    return {name: content for name, content in built().items() if isinstance(content, str)}


@functools.cache
def parsed(page: str) -> tuple[list[str], set[str]]:
    """The addresses that a page links to or shows, and the names in it that can be linked to."""
    text = files()[page]
    linked = [html.unescape(address) for address in re.findall(r'(?:href|src)="([^"]*)"', text)]
    return linked, set(re.findall(r'\bid="([^"]*)"', text))


def test_every_public_name_has_a_page_that_names_it() -> None:
    names = dict(docs_names.named())
    assert len(names) > 600
    assert {"tg.softmax", "tg.pi", "nn.Linear", "nn.functional.softmax", "optim.AdamW", "tg.data.DataLoader"} <= set(
        names
    )
    for name in names:
        page = files()[docs_names.by_name()[name].page].replace("<wbr>", "")
        assert f"<h1>{name}</h1>" in page or f"<code>{name}</code>" in page, name


def test_no_module_with_public_names_is_left_out() -> None:
    for path in docs_names.MODULES:
        module = importlib.import_module(path)
        for name in getattr(module, "__all__", ()):
            if isinstance(getattr(module, name), ModuleType):
                assert f"{path}.{name}" in (*docs_names.MODULES, "tensorgrad.ops")


def test_every_public_name_says_what_it_is() -> None:
    assert [public.name for public in docs_names.publics() if not public.doc.strip()] == []


def test_every_member_says_what_it_is_or_which_function() -> None:
    silent = [
        f"{public.name}.{shown['name']}"
        for public in docs_names.publics()
        if public.kind == "class"
        for shown in docs_facts.told_members(public)
        if not shown["parts"] and not shown["same"] and shown["name"] != "forward"
    ]
    assert silent == []


def test_every_name_has_one_topic() -> None:
    listed = [public for members in docs_names.topics().values() for public in members]
    assert len(listed) == len(set(listed))
    assert [each.name for each in docs_names.publics() if each.kind != "module" and each not in listed] == []


def test_pages_differ_by_more_than_case() -> None:
    assert len({name.lower() for name in files()}) == len(files())


def test_no_link_is_broken() -> None:
    root = {"../", "../lessons/", "../icon.svg"}
    broken = []
    for page in files():
        if not page.endswith(".html"):
            continue
        for address in parsed(page)[0]:
            path, anchor = urldefrag(address)
            if re.match(r"https?:", address) or path in root:
                continue
            if path.startswith("../"):
                exists = (docs_site.WEB / path.removeprefix("../")).exists()
            elif path.startswith("examples/"):
                exists = (docs_site.ROOT / "docs" / path).exists()
            else:
                target = {"": page, "./": "index.html"}.get(path, path)
                exists = target in files() and (not anchor or anchor in parsed(target)[1])
            if not exists:
                broken.append((page, address))
    assert broken == []


def test_pages_have_no_style_of_their_own() -> None:
    assert [name for name, text in files().items() if re.search(r"<[^>]* style=", text)] == []
    assert '<td class="number">' in files()["load-times.html"]


def test_the_search_leads_to_pages() -> None:
    entries = json.loads(files()["search.json"])
    for name, address, kind, *_ in entries:
        page, anchor = urldefrag(address)
        assert not anchor or anchor in parsed(page)[1], (name, address)
        assert page in files(), (name, address)
        assert kind in ("function", "class", "constant", "module", "member", "topic", "guide", "background")
    assert {name for name, *_ in entries} >= {"tg.cross_entropy", "Train.fit", "Mixed precision", "Losses"}
    assert len(files()["search.json"]) < 160_000


def test_what_is_kept_without_a_network_has_every_page() -> None:
    pages = json.loads(gzip.decompress(docs_site.packed(built())))
    assert pages == {name: text for name, text in files().items() if name not in ("index.html", "search.json")}


def test_another_process_builds_the_same() -> None:
    """One whose hashes and addresses differ."""
    code = "import docs_site, hashlib; print(hashlib.sha256(repr(docs_site.rendered()).encode()).hexdigest())"
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=path, check=True)
    assert done.stdout.strip() == hashlib.sha256(repr(built()).encode()).hexdigest()
    assert not any(" at 0x" in text for text in files().values())


def programs() -> list[tuple[str, str]]:
    """Every example of a docstring as the playground gets it."""
    found = []
    for public in docs_names.publics():
        docs = [(public.name, docs_calls.doc(public))]
        if public.kind == "class":
            members = docs_names.members(public)
            docs += [(f"{public.name}.{each.name}", inspect.getdoc(each.value) or "") for each in members]
        for name, doc in docs:
            examples = [part.text for part in docs_text.parts(doc) if part.is_example]
            found += [(name, docs_examples.program(text)) for text in examples]
    return found


def test_examples_take_names_from_where_they_are_public() -> None:
    """`from tensorgrad.optim.adam import AdamW` would show a newcomer a place that may change."""
    inner = [
        (name, module)
        for name, code in programs()
        for node in ast.walk(compile(code, name, "exec", flags=docs_examples.FLAGS | ast.PyCF_ONLY_AST))
        for module in (
            [node.module] if isinstance(node, ast.ImportFrom) else [each.name for each in getattr(node, "names", ())]
        )
        if isinstance(node, ast.Import | ast.ImportFrom)
        if str(module).startswith("tensorgrad") and module not in docs_names.MODULES
    ]
    assert inner == []


WITHOUT_EXAMPLE = ("errors", "browser", "cache", "inspect", "trace", "runtime", "step", "record")
"""Modules of names that show nothing by themselves: errors, what is in a page only, what other calls give."""


def test_every_function_and_class_shows_an_example() -> None:
    shown = {name for name, _ in programs()}
    lacking = [
        public.name
        for public in docs_names.publics()
        if public.kind in ("function", "class")
        and public.module.split(".")[1] not in WITHOUT_EXAMPLE
        and not any(name == public.name or name.startswith(f"{public.name}.") for name in shown)
    ]
    # what an optimizer's rule, `train.upload` and a step give, and take
    assert lacking == ["optim.Rule", "tg.Batches", "tg.step_scalar"]


def test_calls_are_of_names_whose_docstrings_have_no_example() -> None:
    for name in docs_calls.calls():
        public = docs_names.by_name()[name]
        assert not any(part.is_example for part in docs_text.parts(public.doc)), f"{name}: docs/calls.txt has one too"
        assert ">>> " in docs_calls.doc(public), name


def test_every_example_runs_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some write files
    assert len(programs()) > 480
    for name, code in programs():
        assert "device='numpy'" not in code
        assert 'device="numpy"' not in code
        run = compile(code, name, "exec", flags=docs_examples.FLAGS)
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # there is no GPU here
            answer = eval(run, {"__name__": "__main__"})
            if inspect.iscoroutine(answer):
                asyncio.run(answer)


def test_a_program_prints_what_the_prompt_shows() -> None:
    text = """>>> import numpy as np
>>> twice = tg.jit(lambda x: 2 * x, device="numpy")
>>> float(tg.sync(twice(np.ones(2)))[0])  # the first
2.0
>>> asyncio.run(later())
>>> Linear(1, 2)
Linear"""
    assert docs_examples.program(text) == (
        "import tensorgrad as tg\nimport numpy as np\ntwice = tg.jit(lambda x: 2 * x)\n"
        "print(float((await twice(np.ones(2)))[0]))  # the first\nawait later()\nprint(Linear(1, 2))\n"
    )


def test_a_docstring_falls_into_its_parts() -> None:
    doc = """What it is. Source: Somebody (2000).

Args:
    a, b: numbers
        of two lines.

>>> 1
1"""
    assert docs_text.parts(doc) == [
        docs_text.Part("", "What it is."),
        docs_text.Part("Source", "Somebody (2000)."),
        docs_text.Part("Parameters", "", [("a, b", "numbers of two lines.")]),
        docs_text.Part("", ">>> 1\n1"),
    ]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("tg.softmax", "tg.softmax.html"),
        ("optim.AdamW(1e-3)", "optim.AdamW.html"),
        ("await train.step()", "tg.Train.html#step"),
        ("train.kernels", "tg.inspect.Inspected.html#kernels"),
        ("Tensor", "tg.Tensor-class.html"),
        ("nn.functional.relu", "tg.relu.html"),
        ("weight", None),
        ("1 + 1", None),
    ],
)
def test_names_in_a_text_lead_to_their_pages(text: str, address: str | None) -> None:
    assert docs_text.linker()(text) == address


def test_parameters_are_no_links() -> None:
    public = docs_names.by_name()["tg.compile"]
    assert docs_text.linker(public, frozenset({"optim"}))("optim.SGD") is None


def test_facts_come_from_the_table_of_coverage() -> None:
    facts = dict(docs_facts.about(docs_names.by_name()["tg.cross_entropy"], "https://example.org/code"))
    assert "PyTorch's numbers" in facts["Tested"]
    assert "torch.nn.functional.cross_entropy" in facts["In PyTorch"]
    assert "nn.CrossEntropyLoss.html" in facts["See also"]
    assert facts["Defined in"].startswith('<a href="https://example.org/code/tensorgrad/ops/cross_entropy.py#L')
    assert "true or false" in dict(docs_facts.about(docs_names.by_name()["tg.isnan"], ""))["Gradient"]
