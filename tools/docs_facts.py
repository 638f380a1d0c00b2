"""What a page of a public name tells: its signature, the sections of its docstring, and facts from elsewhere.

Gradients and what the numbers are compared with are those of `docs/coverage.md`.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import docs_examples
from docs_names import Member, Public, assigned, bases, by_name, member_names, members, publics, relative
from docs_text import block, coloured, inline, linker, parts, plain, rendered, summary, with_links
from paths import ROOT

LONG = 150
"""Lines of a source that a page still shows."""

WIDE = 80
"""Letters of a signature that stay in one line."""

NOT_PYTORCHS = [
    "bitcast",
    "cast",
    "checkpoint",
    "expand",
    "expand_dims",
    "geglu",
    "getitem",
    "iota",
    "left_shift",
    "linear_scan",
    "merge_heads",
    "nearest_upsample2d",
    "right_shift",
    "rope",
    "softmax_causal",
    "split_heads",
    "stop_gradient",
    "sum_to_shape",
    "swiglu",
    "take_along_axis",
    "where_causal",
    "window",
]
"""Functions whose numbers are compared with those of some expression in PyTorch, which has none of this name."""

ERRORS = (ValueError, TypeError, RuntimeError, tuple)
"""Python's classes that it helps to know a class to be one of."""

PYTORCH = "https://docs.pytorch.org/docs/stable/generated"


# Signatures ------------------------------------------------------------------------------


def signature(public: Public) -> str:
    """A function's or class's signature as code; what a constant is."""
    if public.kind == "constant":
        return f"{public.name} = {public.thing!r}"
    if "Made by `" in public.doc:
        return f"class {public.name}"
    return called(public.name, public.thing)


def called(name: str, thing: Callable[..., Any], *, bound: bool = False) -> str:
    """How something is called: in one line, or a parameter a line where that is too wide.

    Args:
        bound: leave out the first parameter, a method's `self`.
    """
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    parameters = list(found.parameters.values())[bound:]
    shown: list[str] = []
    for parameter in parameters:
        keyword = parameter.kind is parameter.KEYWORD_ONLY
        if keyword and "*" not in shown and not any(each.startswith("*") for each in shown):
            shown.append("*")
        shown.append(parameter_text(parameter))
    result = annotation(found.return_annotation)
    prefix = "async " if inspect.iscoroutinefunction(thing) else ""
    after = f" -> {result}" if result and not isinstance(thing, type) else ""
    line = f"{prefix}{name}({', '.join(shown)}){after}"
    if len(line) <= WIDE:
        return line
    return "\n".join([f"{prefix}{name}(", *(f"    {each}," for each in shown), f"){after}"])


def parameter_text(parameter: inspect.Parameter) -> str:
    """A parameter with its type and its default."""
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    kind = annotation(parameter.annotation)
    text = f"{stars}{parameter.name}{f': {kind}' if kind else ''}"
    if parameter.default is parameter.empty:
        return text
    default = repr(parameter.default)
    default = getattr(parameter.default, "__name__", "...") if " at 0x" in default or "<" in default else default
    return f"{text} = {default}" if kind else f"{text}={default}"


def annotation(value: Any) -> str:
    """A type as the source has it."""
    if value is inspect.Parameter.empty:
        return ""
    text = value if isinstance(value, str) else inspect.formatannotation(value)
    return re.sub(r"\b(?:tensorgrad|collections)\.(?:\w+\.)*|^['\"]|['\"]$", "", text)


# Docstrings ------------------------------------------------------------------------------


def sections(public: Public, doc: str, parameters: Any = None) -> list[dict[str, Any]]:
    """The parts of a docstring as HTML, each example with its program for the playground.

    Args:
        parameters: whose parameters are no links; by default those of `public`.
    """
    link = linker(public, names_of_parameters(parameters or public.thing))
    errors = linker(public)
    shown = []
    for part in parts(doc):
        if part.is_example:
            program = docs_examples.program(part.text)
            try_it = docs_examples.link(program)
            shown.append({"title": "Example", "html": block(part.text, "pycon"), "try": try_it, "terms": []})
            continue
        of = errors if part.title == "Raises" else link
        terms = [
            (marked(names, errors if part.title == "Raises" else None), inline(text, of)) for names, text in part.terms
        ]
        shown.append({"title": part.title, "html": rendered(part.text, of), "try": "", "terms": terms})
    return shown


def marked(names: str, link: Any) -> str:
    """The names that an entry of a list is about, each as code."""
    plain_names = [name.strip("`") for name in names.split(", ")]
    return ", ".join(inline(f"`{name}`", link or (lambda text: None)) for name in plain_names)


@functools.cache
def names_of_parameters(thing: Any) -> frozenset[str]:
    """The parameters of whatever can be called."""
    try:
        return frozenset(inspect.signature(thing).parameters) if callable(thing) else frozenset()
    except (TypeError, ValueError):
        return frozenset()


def member_parts(public: Public, member: Member) -> dict[str, Any]:
    """What a class's page shows of a member; `same` is the function that it is, where it has no words of its own."""
    function = getattr(member.value, "__func__", member.value)
    code, same, line = member.name, None, member.line
    doc = line.doc if line else ""
    if isinstance(function, property | functools.cached_property):
        getter = function.fget if isinstance(function, property) else function.func
        doc = function.__doc__ or ""
        kind = annotation(inspect.signature(getter).return_annotation) if getter else ""
        code += f": {kind}" if kind else ""
    elif inspect.isfunction(function):
        doc = function.__doc__ or ""
        code = called(member.name, function, bound=not isinstance(member.value, staticmethod))
    if isinstance(member.value, classmethod | staticmethod):
        code = f"{public.short}.{code}"
    if not doc:
        same = by_name().get(f"tg.{getattr(function, '__name__', member.name)}")
    return {
        "name": member.name,
        "code": with_links(coloured(code, "python"), linker(public)),
        "parts": sections(public, inspect.cleandoc(doc), function),
        "doc": inspect.cleandoc(doc),
        "summary": plain(summary(inspect.cleandoc(doc))),
        "same": same,
    }


def told_members(public: Public) -> list[dict[str, Any]]:
    """The members that a class's page tells: what has no words of its own may be told by the page of a base."""
    told = {name for base in bases(public) for name in member_names(base)} - {"forward"}
    shown = [member_parts(public, member) for member in members(public)]
    return [each for each in shown if each["parts"] or each["name"] not in told]


# Facts -----------------------------------------------------------------------------------


class Row(NamedTuple):
    """A line of docs/coverage.md: where a name runs, how its gradient is tested, and with what PyTorch's."""

    runs: str
    gradient: str
    pytorch: str


@functools.cache
def coverage() -> dict[str, Row]:
    """Name -> its line; functions by `tg.`, modules by `nn.`, training by `optim.`."""
    text = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
    found = {}
    for title, prefix in (("Functions", "tg"), ("Modules", "nn"), ("Training", "optim")):
        (table,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
        for line in re.findall(r"^\| (`.*) \|$", table, re.M):
            names, *cells = (cell.strip() for cell in f"{line} ".split("|"))
            found |= {f"{prefix}.{name}": Row(*cells) for name in re.findall(r"`(\w+)`", names)}
    return found


def aliases(public: Public, code: str) -> list[tuple[str, str]]:
    """The types in a signature that are short for something, with what the source says of them."""
    inside = vars(sys.modules[public.module])
    words = [word for word in dict.fromkeys(re.findall(r"\b[A-Z]\w+", code)) if word in inside]
    told = [(word, assigned(word, inside[word])) for word in words if not isinstance(inside[word], type)]
    return [(f"<code>{word}</code>", inline(doc, linker(public))) for word, (_, doc) in told if doc]


def about(public: Public, repository: str) -> list[tuple[str, str]]:
    """Facts of a name: what each is called, and HTML."""
    link = linker(public)
    facts = aliases(public, signature(public)) if public.kind in ("function", "class") else []
    if public.others:
        facts.append(("Also", ", ".join(f"<code>{name}</code>" for name in public.others)))
    if public.kind == "class":
        names = [each.name for each in bases(public)]
        names += [each.__name__ for each in public.thing.__mro__ if each in ERRORS]
        if names:
            facts.append(
                ("Is a" if len(names) == 1 else "Is also", ", ".join(inline(f"`{name}`", link) for name in names))
            )
    row = next((coverage()[name] for name in (public.name, *public.others) if name in coverage()), None)
    if row is not None:
        facts += tested(row)
        name = counterpart(public, row)
        if name:
            facts.append(("In PyTorch", f'<a href="{PYTORCH}/{name}.html"><code>{name}</code></a>'))
    twins = [each for each in by_key().get(key(public), ()) if each is not public]
    if twins:
        facts.append(("See also", ", ".join(inline(f"`{each.name}`", link) for each in twins)))
    where = relative(public.file)
    line = public.definition.start if public.definition else 1
    code = f"<code>{where}</code>, line {line}"
    facts.append(("Defined in", f'<a href="{repository}/{where}#L{line}">{code}</a>' if repository else code))
    return facts


def tested(row: Row) -> list[tuple[str, str]]:
    """What the tests say."""
    facts = []
    if row.gradient.isdigit():
        facts.append(("Gradient", f"compared in {row.gradient} {'case' if row.gradient == '1' else 'cases'}"))
    elif not row.gradient.startswith(("tests/", "-")):
        facts.append(("Gradient", f"none: {row.gradient}" if row.gradient != "steps" else "zero: steps"))
    if row.runs.isdigit():
        with_pytorch = f", {row.pytorch} with PyTorch's numbers" if row.pytorch else ""
        facts.append(("Tested", f"in {row.runs} {'case' if row.runs == '1' else 'cases'}{with_pytorch}"))
    else:
        facts.append(("Tested", f"by <code>{row.runs}</code>"))
    return [(name, f'<a href="coverage.html">{text}</a>' if name == "Tested" else text) for name, text in facts]


def counterpart(public: Public, row: Row) -> str:
    """What a name is called in PyTorch, "" where that is not known."""
    if not row.pytorch or public.short in NOT_PYTORCHS:
        return ""
    if public.name.startswith("optim."):
        place = "torch.optim.lr_scheduler" if public.module.endswith(".schedules") else "torch.optim"
    elif f"nn.functional.{public.short}" in (public.name, *public.others):
        place = "torch.nn.functional"
    elif f"nn.functional.{public.short}" in by_name():
        return ""
    else:
        place = "torch.nn" if public.name.startswith("nn.") else "torch"
    return f"{place}.{public.short}"


def key(public: Public) -> str:
    """The same for a module and its function: `nn.CrossEntropyLoss` and `tg.cross_entropy`."""
    is_layer = (
        public.name.startswith(("nn.", "tg.")) and public.name.count(".") == 1 and public.kind in ("class", "function")
    )
    return re.sub(r"loss$", "", public.short.lower().replace("_", "")) if is_layer else ""


@functools.cache
def by_key() -> dict[str, list[Public]]:
    """Modules and functions that belong together."""
    found: dict[str, list[Public]] = {}
    for public in publics():
        if key(public):
            found.setdefault(key(public), []).append(public)
    return found


def source(public: Public) -> str:
    """The source as coloured code, "" where it is long or a line says it all."""
    found = public.definition
    if found is None or public.kind == "constant" or found.end - found.start > LONG:
        return ""
    lines = public.file.read_text(encoding="utf-8").split("\n")
    return block("\n".join(lines[found.start - 1 : found.end]), "python")
