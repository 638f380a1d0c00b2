"""What the search of the documentation knows; `web/js/docs_ranking.js` says which of it comes first.

An entry is a name, its page, its kind, a sentence, its other names, and the further words of what is said of it there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from docs_facts import told_members
from docs_names import Public, bases, publics, topics
from docs_text import Heading, parts, plain, summary, topic_page
from paths import ROOT

FAMILIES = frozenset(("nn.Module", "optim.Optimizer", "optim.Schedule"))
"""Classes whose members the search knows once, not of each class that derives from them."""

TOLD = ("README.md", "docs/embedding.md")
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
        yield [public.name, public.page, public.kind, sentence, " ".join(public.others), more]
    for title in topics():
        yield [title, topic_page(title), "topic", "Every function and class of it, each in a sentence.", "", ""]
    for public in publics():
        if public.kind == "class" and FAMILIES.isdisjoint(each.name for each in bases(public)):
            yield from found_members(public)


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
            yield [heading.text, address, kind, title, "", words(told.get(heading.text, ""), heading.text)]


def prose(doc: str) -> str:
    """A docstring without its examples."""
    return "\n".join(
        f"{part.text} {' '.join(f'{name} {text}' for name, text in part.terms)}"
        for part in parts(doc)
        if not part.is_example
    )


def words(text: str, known: str = "") -> str:
    """Each word of a text once, but for those that are known already."""
    before, found = ({word.lower() for word in re.findall(r"[^\W\d_]{3,}", each)} for each in (known, text))
    return " ".join(sorted(found - before))
