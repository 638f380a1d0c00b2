"""The documentation of the site: a page for each public name, for each topic, and for the guides of the repository.

`rendered()` gives every file of `docs/` in the site; `tools/assemble_site.py` writes them.
"""

from __future__ import annotations

import functools
import gzip
import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import docs_calls
from docs_facts import about, sections, signature, source, told_members
from docs_index import entries
from docs_names import Public, publics, relative, topics
from docs_text import Heading, block, breakable, coloured, inline, linker, page, plain, summary, topic_page, with_links
from pages import WEB, environment, policy_of
from paths import ROOT

GUIDES = {
    "README.md": ("guide", "Guide"),
    "docs/pytorch.md": ("from-pytorch", "From PyTorch"),
    "ARCHITECTURE.md": ("architecture", "Architecture"),
    "docs/embedding.md": ("embedding", "For your page"),
    "docs/coverage.md": ("coverage", "Coverage"),
    "docs/examples.md": ("examples", "Examples"),
    "CHANGELOG.md": ("changelog", "Changelog"),
}
"""File -> its page, and the page's name in the navigation."""

FIGURES = {
    "bench/RESULTS.md": ("measurements", "Measurements"),
    "bench/README.md": ("measuring", "Measuring"),
    "bench/LOAD.md": ("load-times", "Load times"),
    "bench/SIZES.md": ("sizes", "Sizes by part"),
}
"""The same of files that guides refer to and the navigation does not name."""

PAGES = GUIDES | FIGURES

NOT_IN_THE_GUIDE = ("Two commands", "Work on it", "Licence")
"""What README.md says to whoever has the repository."""


PACKED = "pages.bin"
"""All pages in one file. It is not called .gz, which some hosts have browsers unpack: its hash would not fit."""


def rendered(policy: str = "") -> dict[str, str | bytes]:
    """Every file of the documentation, by its name in `docs/` of the site.

    Args:
        policy: the pages' Content-Security-Policy; by default that of `_headers`.
    """
    templates = environment()
    templates.filters["breakable"] = breakable
    common = {
        "root": "../",
        "policy": policy or policy_of(WEB / "_headers"),
        "guides": [(f"{name}.html", title) for name, title in GUIDES.values()],
    }
    files: dict[str, str | bytes] = {}
    headings: dict[str, list[Heading]] = {}
    for file in (*PAGES, *example_files()):
        name, context, headings[file] = guide(file)
        files[f"{name}.html"] = templates.get_template("docs_guide.html").render(common | context)
    for public in publics():
        template = "docs_module.html" if public.kind == "module" else "docs_name.html"
        context = module_page(public) if public.kind == "module" else name_page(public)
        files[public.page] = templates.get_template(template).render(common | context)
    for title, listed in topics().items():
        description = f"{title} in tensorgrad: every function and class, each in a sentence."
        context = {"name": title, "description": description, "listed": [entry(each) for each in listed]}
        files[topic_page(title)] = templates.get_template("docs_topic.html").render(common | context)
    overview = [(title, topic_page(title), listed) for title, listed in topics().items()]
    modules = [entry(each) for each in publics() if each.kind == "module"]
    about_all = "Every public name of tensorgrad, by topic, with a search."
    context = {"name": "Documentation", "topics": overview, "modules": modules, "description": about_all}
    files["index.html"] = templates.get_template("docs_index.html").render(common | context)
    index = entries({file: (*PAGES[file], found) for file, found in headings.items() if file in PAGES})
    files["search.json"] = json.dumps(index, ensure_ascii=False, separators=(",", ":"))
    for picture in sorted((ROOT / "docs" / "examples").glob("*.png")):
        files[f"examples/{picture.name}"] = picture.read_bytes()
    return files


def write(folder: Path) -> None:
    """Every file, into a new folder."""
    (folder / "examples").mkdir(parents=True)
    files = rendered()
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (folder / PACKED).write_bytes(packed(files))


def is_packed(name: str) -> bool:
    """Whether a file of the documentation is kept in the packed one: its pages, but for the first."""
    return name.endswith(".html") and name != "index.html"


def packed(files: Mapping[str, str | bytes]) -> bytes:
    """The pages in one file, which the service worker keeps and takes them from."""
    pages = {name: content for name, content in files.items() if is_packed(name)}
    return gzip.compress(json.dumps(pages, ensure_ascii=False).encode(), mtime=0)


def entry(public: Public) -> dict[str, str]:
    """A name in a list: its page, and what it is in a sentence."""
    text = inline(summary(public.doc), linker(public))
    return {"name": public.name, "page": public.page, "summary": text, "others": ", ".join(public.others)}


# Names -----------------------------------------------------------------------------------


def name_page(public: Public) -> dict[str, Any]:
    """What the page of a function, a class or a constant shows."""
    topic = next(title for title, listed in topics().items() if public in listed)
    link = linker(public)
    context = {
        "public": public,
        "name": public.name,
        "description": plain(summary(public.doc)),
        "signature": with_links(coloured(signature(public), "python"), link),
        "parts": sections(public, docs_calls.doc(public)),
        "facts": about(public, repository()),
        "source": source(public),
        "topic": (topic, topic_page(topic)),
        "siblings": topics()[topic],
        "members": [],
        "borrowed": [],
    }
    if public.kind == "class":
        for shown in told_members(public):
            context["members" if shown["parts"] or not shown["same"] else "borrowed"].append(shown)
    return context


def module_page(public: Public) -> dict[str, Any]:
    """What the page of a module shows: its docstring, and its names."""
    inside = f"{public.name}."
    listed = [
        each
        for each in publics()
        if any(name.startswith(inside) and "." not in name[len(inside) :] for name in (each.name, *each.others))
    ]
    return {
        "name": public.name,
        "description": plain(summary(public.doc)),
        "parts": sections(public, public.doc),
        "facts": about(public, repository()),
        "listed": [entry(each) for each in listed if each is not public],
    }


# Guides ----------------------------------------------------------------------------------


def example_files() -> list[str]:
    """The examples of the repository, which have pages of their own."""
    return [relative(file) for file in sorted((ROOT / "examples").glob("*.py"))]


def guide(file: str) -> tuple[str, dict[str, Any], list[Heading]]:
    """The page of a file: its name, what it shows, and its headings."""
    text = (ROOT / file).read_text(encoding="utf-8")
    if file.endswith(".py"):
        name, title = file.split("/")[-1].removesuffix(".py"), file
        return (
            f"example-{name}",
            {"name": file, "text": block(text, "python"), "contents": [], "description": described(file), "here": ""},
            [],
        )
    name, title = PAGES[file]
    if file == "README.md":
        text = re.sub(rf"^## (?:{'|'.join(NOT_IN_THE_GUIDE)})\n.*?(?=^## |\Z)", "", text, flags=re.M | re.S)
    text = re.sub(r"\A# .*\n", "", text)
    shown, found = page(text, linker(), lambda address: target(file, address))
    contents = [each for each in found if each.level == 2]
    context = {
        "name": title,
        "text": shown,
        "contents": contents,
        "description": described(file),
        "here": f"{name}.html",
    }
    return name, context, found


def described(file: str) -> str:
    """What a page of a file is, for those who look for it."""
    return f"{file} of tensorgrad, which trains neural networks on the GPU from a web page."


def target(file: str, address: str) -> str | None:
    """Where a link of a file leads in the site: to a page, to the repository if it has an address, or nowhere."""
    if re.match(r"https?:|#", address):
        return address
    path, _, anchor = address.partition("#")
    where = relative((ROOT / file).parent / path)
    anchor = f"#{anchor}" if anchor else ""
    if where in PAGES:
        return f"{PAGES[where][0]}.html{anchor}"
    if where in example_files():
        return f"example-{where.split('/')[-1].removesuffix('.py')}.html"
    if where == "examples":
        return "examples.html"
    if where.startswith("docs/examples/"):
        return where.removeprefix("docs/")
    if where.startswith("web/"):
        return f"../{where.removeprefix('web/')}"
    module = where.removesuffix("/__init__.py").removesuffix(".py").replace("/", ".")
    public = next((each for each in publics() if each.kind == "module" and each.module == module), None)
    if public is not None:
        return public.page
    return f"{repository()}/{where}" if repository() else None


@functools.cache
def repository() -> str:
    """The address of the sources, as `[project.urls]` of pyproject.toml has it; "" without one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project.get("urls", {}).get("Source", "")).rstrip("/")
