"""What the search of the documentation knows; `web/js/docs_ranking.js` says which of it comes first.

An entry is a name, its page, its kind, a sentence, its other names, and the further words of what is said of it there.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence

from docs_facts import told_members
from docs_names import Public, bases, by_name, publics, topics
from docs_text import Heading, linker, parts, plain, summary, topic_page
from paths import ROOT

FAMILIES = frozenset(("nn.Module", "optim.Optimizer", "optim.Schedule"))
"""Classes whose members the search knows once, not of each class that derives from them."""

TOLD = ("README.md", "docs/pytorch.md", "docs/embedding.md")
"""Guides that answer questions: of these the search knows each word, of the others the headings."""

Guides = Mapping[str, tuple[str, str, Sequence[Heading]]]
"""File -> its page, its name, and its headings."""


def entries(guides: Guides) -> list[list[str]]:
    """All that can be found."""
    return [*found_by_name(), *found_by_heading(guides)]


def found_by_name() -> Iterator[list[str]]:
    """The public names, the topics, and the members of classes."""
    for public in publics():
        sentence = plain(summary(public.doc))
        more = words(prose(public.doc), sentence)
        others = dict.fromkeys((*public.others, *methods().get(public.name, ())))
        yield [public.name, public.page, public.kind, sentence, " ".join(others), more]
    for title in topics():
        yield [title, topic_page(title), "topic", "Every function and class of it, each in a sentence.", "", ""]
    for public in publics():
        if public.kind == "class" and FAMILIES.isdisjoint(each.name for each in bases(public)):
            yield from found_members(public)


@functools.cache
def methods() -> dict[str, list[str]]:
    """Function -> what it is called as a method of tensors, where that is another name: `view` is `tg.reshape`."""
    found: dict[str, list[str]] = {}
    for shown in told_members(by_name()["tg.Tensor"]):
        same: Public | None = shown["same"]
        if same is not None and shown["name"] not in (name.rpartition(".")[2] for name in (same.name, *same.others)):
            found.setdefault(same.name, []).append(shown["name"])
    return found


def found_members(public: Public) -> Iterator[list[str]]:
    """The members of a class that its page tells of."""
    for shown in told_members(public):
        if not shown["same"]:
            address, more = f"{public.page}#{shown['name']}", words(prose(shown["doc"]), shown["summary"])
            yield [f"{public.short}.{shown['name']}", address, "member", shown["summary"], "", more]


def found_by_heading(guides: Guides) -> Iterator[list[str]]:
    """The guides and their headings."""
    for file, (name, title, headings) in guides.items():
        kind = "guide" if file in TOLD else "background"
        text = re.sub(r"^```.*?^```$", "", (ROOT / file).read_text(encoding="utf-8"), flags=re.M | re.S)
        told = {
            plain(title): text
            for title, text in re.findall(r"^#{2,} (.*)\n((?:(?!##).*\n?)*)", text, re.M)
            if file in TOLD
        }
        yield [title, f"{name}.html", kind, "", "", ""]
        for heading in headings:
            address = f"{name}.html#{heading.slug}"
            said = told.get(heading.text, "")
            yield [heading.text, address, kind, title, " ".join(explained(said)), words(said, heading.text)]


def explained(text: str) -> list[str]:
    """The names in code that have no page of their own: a question for one of them means this text."""
    link, shape = linker(), re.compile(r"(?:with |await )?[\w.]*?(\w{3,})(?:\(.*\))?:?")
    codes = [code for code in re.findall(r"`([^`\n]+)`", text) if link(code) is None]
    return list(dict.fromkeys(found[1] for code in codes if (found := shape.fullmatch(code))))


def prose(doc: str) -> str:
    """A docstring without its examples."""
    return "\n".join(
        f"{part.text} {' '.join(f'{name} {text}' for name, text in part.terms)}"
        for part in parts(doc)
        if not part.is_example
    )


NAMES_AND_WORDS = r"[^\W\d_]+(?:[-_][^\W\d_]+)+|[^\W\d_]{3,}"
"""`batch_size` and `in-place` are one word; so is whatever has three letters."""


def words(text: str, known: str = "") -> str:
    """Each word of a text once, but for those that are known already."""
    before, found = ({word.lower() for word in re.findall(NAMES_AND_WORDS, each)} for each in (known, text))
    return " ".join(sorted(found - before))
