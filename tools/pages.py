"""The pages of web/, rendered with Jinja2 on the frame that web/templates holds.

A page is a file of web/ that extends a template and fills its blocks. `web/lessons/lessons.json` lists the lessons in
their order; the index and the links from one to the next are made of it.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from paths import ROOT, fail

WEB = ROOT / "web"
TEMPLATES = WEB / "templates"


def rendered(policy: str = "") -> dict[str, str]:
    """Every page of web/ by its path in the site.

    Args:
        policy: the Content-Security-Policy of all pages, for hosts that send no headers; by default that of `_headers`.
    """
    policy = policy or policy_of(WEB / "_headers")
    templates = environment()
    lessons = list_of_lessons()
    pages = {}
    for file in sorted(WEB.rglob("*.html")):
        path = file.relative_to(WEB)
        if file.is_relative_to(TEMPLATES):
            continue
        here = {lesson["path"]: lesson for lesson in lessons}.get(path.as_posix())
        context = {"root": "../" * (len(path.parts) - 1) or "./", "policy": policy, "lessons": lessons, "lesson": here}
        pages[path.as_posix()] = templates.get_template(path.as_posix()).render(context)
        if pages[path.as_posix()].count(f'content="{policy}"') != 1:
            fail(f"web/{path} does not have the site's policy: it has to extend page.html, or a template that does")
    return pages


def environment() -> Environment:
    """What finds templates, in web/templates and as pages of web/."""
    made = Environment(
        loader=FileSystemLoader([TEMPLATES, WEB]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals["modules_of"] = modules_of
    return made


def modules_of(script: str) -> list[str]:
    """The modules that a module of web/ imports, and those that they import: a page asks for all of them at once."""
    found, waiting = [], [script]
    while waiting:
        module = waiting.pop(0)
        text = (WEB / module).read_text(encoding="utf-8")
        for name in re.findall(r"^(?:import|export|\}) .*?from '(\.[^']+)';$", text, re.MULTILINE):
            imported = os.path.normpath(Path(module).parent / name)
            if imported not in found and imported != script:
                found.append(imported)
                waiting += [imported] * (WEB / imported).is_file()  # vendored ones import nothing
    return found


def policy_of(headers: Path) -> str:
    """The Content-Security-Policy of a file of headers."""
    (policy,) = re.findall(r"Content-Security-Policy: (.*)", headers.read_text(encoding="utf-8"))
    return policy


def list_of_lessons() -> list[dict[str, Any]]:
    """The lessons in their order, each with its number, its path in the site and the lessons before and after it."""
    listed = json.loads((WEB / "lessons" / "lessons.json").read_text(encoding="utf-8"))
    lessons = [{**entry, "number": i + 1, "path": f"lessons/{entry['name']}.html"} for i, entry in enumerate(listed)]
    for lesson, before, after in zip(lessons, [None, *lessons], [*lessons[1:], None], strict=False):
        lesson |= {"before": before, "after": after}
    return lessons
