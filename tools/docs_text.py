"""Text of the documentation as HTML: docstrings in their sections, Markdown, code in colours, names as links.

A docstring is prose in Markdown, with the sections `Args`, `Attributes`, `Options`, `Raises`, `Returns` and `Source`,
and with examples as a prompt shows them. A name between backticks that is a public one becomes a link to its page.
"""

from __future__ import annotations

import functools
import html
import re
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

import docs_names

SECTION = re.compile(r"(Args|Attributes|Options|Raises|Returns|Source)(, [^:\n]*)?: *(.*)")
TITLES = {"Args": "Parameters"}
ENTRY = re.compile(r"(\S[^:`]*(?:`[^`]*`)?[^:`]*): +(.*)", re.S)
TERMS = ("Args", "Attributes", "Options", "Raises")

SENTENCE = 50
"""Letters of a table's cell that want a wide column."""

Link = Callable[[str], str | None]
"""From a name, as it stands in a text, to the address of what it is."""


class Part(NamedTuple):
    """A piece of a docstring.

    Attributes:
        title: of a section, "" for prose and examples.
        text: Markdown, or an example.
        terms: of a section that is a list: names and what is said of each.
    """

    title: str
    text: str
    terms: Sequence[tuple[str, str]] = ()

    @property
    def is_example(self) -> bool:
        """Whether it is what a prompt shows."""
        return self.text.startswith(">>>")


def parts(doc: str) -> list[Part]:
    """The pieces of a docstring, in their order."""
    found: list[Part] = []
    for block in re.split(r"\n[ \t]*\n", doc.strip("\n")):
        (text, example) = re.findall(r"\A(.*?)((?:^>>> .*)?)\Z", block, re.S | re.M)[0]
        for piece in (*re.split(r"\s(?=Source: )", text.rstrip()), example):
            if piece:
                add(found, piece)
    return found


def add(found: list[Part], block: str) -> None:
    """One more paragraph: a section, or more of the prose or of the example that is there already."""
    head = SECTION.match(block)
    last = found[-1] if found else None
    if head is not None:
        section, rest, inline = head.groups()
        body = textwrap.dedent(block[head.end() :].strip("\n"))
        title = TITLES.get(section, section) + (rest or "")
        if section in TERMS:
            found.append(Part(title, "", terms(body)))
        else:
            found.append(Part(title, f"{inline}\n{textwrap.dedent(body)}".strip()))
    elif last and not last.title and last.is_example == block.startswith(">>>"):
        found[-1] = Part("", f"{last.text}\n\n{block}")
    else:
        found.append(Part("", block))


def terms(body: str) -> list[tuple[str, str]]:
    """The entries `name: text` of a section, of which each begins at the margin."""
    entries = re.split(r"\n(?=\S)", body)
    split = [ENTRY.fullmatch(entry) for entry in entries]
    return [(found[1], " ".join(found[2].split())) for found in split if found]


def summary(doc: str) -> str:
    """The first sentence, Markdown."""
    first = " ".join(re.split(r"\n[ \t]*\n|\n>>>", doc, maxsplit=1)[0].split())
    return re.split(r"(?<=[^.][.])\s(?=[A-Z`>])", first, maxsplit=1)[0].removesuffix(":")


def plain(markdown: str) -> str:
    """Markdown as text."""
    return markdown.replace("`", "").replace("**", "")


# Code ------------------------------------------------------------------------------------


_FORMATTER = HtmlFormatter(nowrap=True)
_lexer = functools.cache(functools.partial(get_lexer_by_name, stripnl=False))


def coloured(code: str, language: str) -> str:
    """Code with a class for each kind of word."""
    return highlight(code, _lexer(language), _FORMATTER).rstrip("\n")


def block(code: str, language: str) -> str:
    """Code as a block that scrolls by itself, and so can be reached by the keyboard."""
    return f'<pre class="code" tabindex="0"><code>{coloured(code, language)}</code></pre>\n'


def with_links(coloured_code: str, link: Link) -> str:
    """Coloured code whose names of public classes are links."""

    def replaced(found: re.Match[str]) -> str:
        address = link(found[1]) if found[1][0].isupper() else None
        return f'<a href="{address}">{found[1]}</a>' if address else found[0]

    return re.sub(r'<span class="(?:n|ne|nc|nb)">(\w+)</span>', replaced, coloured_code)


# Markdown --------------------------------------------------------------------------------


def slug(title: str) -> str:
    """The name of a heading in an address."""
    return re.sub(r"[^\w\s-]", "", title.lower()).strip().replace(" ", "-")


def topic_page(title: str) -> str:
    """File name of a topic's page."""
    return f"topic-{slug(title)}.html"


def _code(self: Any, tokens: Sequence[Token], at: int, options: Any, env: dict[str, Any]) -> str:
    text = tokens[at].content
    is_linked = sum(token.nesting for token in tokens[:at] if token.type.startswith("link_"))
    address = None if is_linked else env["link"](text)
    code = f"<code>{html.escape(text)}</code>"
    return f'<a href="{html.escape(address)}">{code}</a>' if address else code


def _fence(self: Any, tokens: Sequence[Token], at: int, options: Any, env: dict[str, Any]) -> str:
    return block(tokens[at].content, tokens[at].info.strip() or "text")


def _indented(self: Any, tokens: Sequence[Token], at: int, options: Any, env: dict[str, Any]) -> str:
    return block(tokens[at].content, "python")


def _open_table(self: Any, tokens: Sequence[Token], at: int, options: Any, env: dict[str, Any]) -> str:
    return '<div class="wide" tabindex="0"><table>\n'


def _close_table(self: Any, tokens: Sequence[Token], at: int, options: Any, env: dict[str, Any]) -> str:
    return "</table></div>\n"


@functools.cache
def _markdown(with_html: bool) -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": with_html}).enable("table")
    rules = {"code_inline": _code, "fence": _fence, "code_block": _indented}
    for name, rule in {**rules, "table_open": _open_table, "table_close": _close_table}.items():
        markdown.add_render_rule(name, rule)
    return markdown


def rendered(text: str, link: Link) -> str:
    """Markdown of a docstring as HTML."""
    return _markdown(False).render(text, {"link": link})


def inline(text: str, link: Link) -> str:
    """One line of Markdown as HTML, without a paragraph around it."""
    return _markdown(False).renderInline(text, {"link": link})


def breakable(name: str) -> Markup:
    """A name as HTML that may go on in another line where one of its words ends."""
    return Markup(re.sub(r"(?<=[._])(?=[^_])", "<wbr>", html.escape(name)))


class Heading(NamedTuple):
    """A heading of a page: its level, its text and its name in an address."""

    level: int
    text: str
    slug: str


def page(text: str, link: Link, target: Callable[[str], str | None]) -> tuple[str, list[Heading]]:
    """A Markdown file as HTML, and its headings.

    Args:
        target: from a link's or picture's address in the file to the one in the site; None leaves the text alone.
    """
    markdown = _markdown(True)
    tokens = markdown.parse(re.sub(r"<!--.*?-->\n?", "", text, flags=re.S))
    found = []
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type == "heading_open" and after is not None:
            found.append(Heading(int(token.tag[1]), plain(after.content), slug(after.content)))
            token.attrSet("id", slug(after.content))
        if token.attrs.pop("style", "") == "text-align:right":  # the policy allows no style in a page
            token.attrSet("class", "number")
        elif token.type == "td_open" and after is not None and room(after.content):
            token.attrSet("class", room(after.content))
        if token.children:
            token.children = pointed(token.children, target)
    return markdown.renderer.render(tokens, markdown.options, {"link": link}), found


def room(cell: str) -> str:
    """The class of a table's cell that wants room on a phone, too: for names in one piece, or for a sentence."""
    if re.fullmatch(r"`[\w.]+`(, `[\w.]+`)*", cell):
        return "whole"
    return "sentence" if len(plain(cell)) > SENTENCE else ""


def pointed(tokens: list[Token], target: Callable[[str], str | None]) -> list[Token]:
    """The tokens of a line with the addresses of the site; links that lead nowhere there are left out."""
    kept, dropped = [], False
    for token in tokens:
        if token.type in ("link_open", "image"):
            name = "href" if token.type == "link_open" else "src"
            address = target(str(token.attrs[name]))
            dropped = dropped or (address is None and token.type == "link_open")
            if address is None:
                continue
            token.attrSet(name, address)
        elif token.type == "link_close" and dropped:
            dropped = False
            continue
        kept.append(token)
    return kept


# Names -----------------------------------------------------------------------------------

INSTANCES = {"train": "tg.Train", "predict": "tg.Predictor"}
"""What a variable of this name is in every example."""


@functools.cache
def linker(scope: docs_names.Public | None = None, without: frozenset[str] = frozenset()) -> Link:
    """Links of the names in a text.

    Args:
        scope: what the text is of; its members, and names of the same module, are found first.
        without: names that mean something else here, such as parameters.
    """
    known = docs_names.by_name()
    home = "" if scope is None else scope.name if scope.kind == "module" else scope.name.rpartition(".")[0]

    def public(name: str) -> docs_names.Public | None:
        tried = (f"{place}.{name}" if place else name for place in (home, "", "tg", "nn", "optim"))
        return next((known[each] for each in tried if each in known), None)

    @functools.cache
    def link(text: str) -> str | None:
        found = re.fullmatch(r"(?:await )?([A-Za-z_][\w.]*)(\(.*\))?", text, re.S)
        if found is None or found[1].split(".")[0] in without or len(found[1]) < 3:
            return None
        name = found[1]
        if scope is not None and scope.kind == "class" and name in docs_names.member_names(scope):
            return f"{scope.page}#{name}"
        whole = public(name)
        if whole is not None:
            return None if whole is scope else whole.page
        before, _, last = name.rpartition(".")
        owner = public(INSTANCES.get(before, before)) if before else None
        owners = [owner, *docs_names.bases(owner)] if owner is not None and owner.kind == "class" else []
        return next((f"{each.page}#{last}" for each in owners if last in docs_names.member_names(each)), None)

    return link
