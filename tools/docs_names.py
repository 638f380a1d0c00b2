"""The public names of the library, what each is, where it is defined, and the topic that it belongs to.

Names are those of the imported package, since it makes some of them while it is imported (aliases, methods of Tensor);
lines and the docstrings of constants come from the parsed sources.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NamedTuple

from paths import ROOT
from tensorgrad.methods import Method

Kind = Literal["function", "class", "constant", "module"]

MODULES = (
    "tensorgrad", "tensorgrad.nn", "tensorgrad.nn.functional", "tensorgrad.nn.init", "tensorgrad.optim",
    "tensorgrad.data", "tensorgrad.einops", "tensorgrad.inspect", "tensorgrad.safetensors", "tensorgrad.cache",
    "tensorgrad.browser", "tensorgrad.testing",
)  # fmt: skip
"""Those whose names are public. `tensorgrad.ops` has no page: its names are those of `tensorgrad`."""

TOPICS = {
    "Training": "compile step predict record sync transform checkpoints",
    "Modules and containers": "nn.module nn.parameter nn.containers",
    "Linear layers and dropout": "nn.layers nn.functional tg.linear tg.bilinear tg.embedding tg.one_hot "
    "tg.alpha_dropout tg.dropout tg.dropout1d tg.dropout2d",
    "Activations": "nn.activations ops.activations tg.softmax tg.log_softmax tg.sigmoid tg.tanh tg.logsigmoid "
    "tg.softsign tg.tanhshrink",
    "Losses": "nn.losses nn.margins ops.cross_entropy ops.losses ops.likelihoods ops.margins",
    "Convolutions and pools": "nn.convolution nn.pooling ops.convolution ops.conv_transpose ops.pooling ops.adaptive "
    "ops.patches ops.windows",
    "Normalization": "nn.batch_norm nn.normalization ops.batch_norm ops.normalization tg.layer_norm",
    "Attention and transformers": "nn.attention nn.transformer ops.attention ops.heads tg.softmax_causal "
    "tg.where_causal",
    "Recurrent layers": "nn.recurrent",
    "Padding, resizing, flattening": "nn.shaping ops.padding ops.interpolate ops.grid",
    "Initial values": "nn.init",
    "Optimizers": "optim.optimizer optim.adam optim.adaptive optim.lion optim.muon optim.sgd optim.clip",
    "Learning-rate schedules": "optim.schedules",
    "Tensors, dtypes and creation": "tensor dtypes ops.creation ops.core tg.arange tg.iota",
    "Elementwise mathematics": "ops.elementwise ops.arithmetic ops.custom ops.trigonometry",
    "Comparison, logic and bits": "ops.logic tg.equal tg.not_equal tg.less tg.less_equal tg.greater tg.greater_equal "
    "tg.isfinite tg.isinf tg.isnan tg.where tg.bitcast tg.bitwise_and tg.bitwise_not tg.bitwise_or tg.bitwise_xor "
    "tg.left_shift tg.right_shift tg.all tg.any",
    "Reductions and statistics": "ops.reduce ops.statistics tg.logsumexp",
    "Products": "ops.matmul ops.einsum ops.products",
    "Shapes and views": "ops.views ops.arrange ops.joining",
    "Indexing and masks": "ops.indexing ops.scatter ops.getitem ops.masking",
    "Scans and order": "ops.scan ops.sorting ops.ranking",
    "Random numbers": "ops.random ops.sampling",
    "Tracing and gradients": "trace autodiff ops.checkpoint tg.stop_gradient debug runtime",
    "Looking inside": "inspect.check inspect.face inspect.graphs inspect.kernels inspect.memory inspect.profile "
    "inspect.reference",
    "Data, files and the browser": "data device.batches safetensors cache browser",
    "einops": "einops",
    "Errors": "errors",
}
"""Title -> modules and single names in it; a name goes before its module."""


class Definition(NamedTuple):
    """Where something is defined: lines from `start` to `end`, and the string that follows an assignment."""

    start: int
    end: int
    doc: str


@dataclass(frozen=True, eq=False)
class Public:
    """A public thing.

    Attributes:
        name: as a program has it, `tg.softmax` or `nn.Linear`.
        others: its other public names.
        module: that defines it.
        doc: its docstring, without indentation.
        page: file name of its page.
    """

    name: str
    others: tuple[str, ...]
    kind: Kind
    thing: Any
    module: str
    doc: str
    page: str

    @property
    def short(self) -> str:
        """Its last name."""
        return self.name.rsplit(".", 1)[-1]

    @property
    def file(self) -> Path:
        """Its source."""
        return Path(sys.modules[self.module].__file__ or "")

    @property
    def definition(self) -> Definition | None:
        """Its place in the source; None for a module."""
        found = definitions(self.file)
        return found.get(getattr(self.thing, "__qualname__", ""), found.get(self.short))


@functools.cache
def definitions(file: Path) -> dict[str, Definition]:
    """What a file defines: functions, classes, their members and whatever has a name assigned."""
    found: dict[str, Definition] = {}

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node, after in zip(body, [*body[1:], None], strict=True):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                start = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                found[prefix + node.name] = Definition(start, node.end_lineno or start, "")
                if isinstance(node, ast.ClassDef):
                    visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                said = after.value if isinstance(after, ast.Expr) else None
                text = said.value if isinstance(said, ast.Constant) and isinstance(said.value, str) else ""
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name):
                        end = node.end_lineno or node.lineno
                        found[prefix + target.id] = Definition(node.lineno, end, inspect.cleandoc(text))

    visit(ast.parse(file.read_text(encoding="utf-8")).body, "")
    return found


def names_of(module: ModuleType) -> list[str]:
    """A module's public names; without `__all__`, the functions and classes that it defines."""
    listed = getattr(module, "__all__", None)
    if listed is None:
        own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
        listed = [name for name in own if not name.startswith("_") and callable(getattr(module, name))]
        listed = [name for name in listed if hasattr(getattr(module, name), "__qualname__")]
    # What pytest calls of the plugin is no user's; `tg.ops` is `tg` once more.
    return [name for name in listed if not name.startswith("pytest_") and name != "ops"]


def written(module: str, name: str = "") -> str:
    """A name as programs have it: after `import tensorgrad as tg` and `from tensorgrad import nn, optim`."""
    full = f"{module}.{name}" if name else module
    return re.sub(r"^tensorgrad\b", "tg", re.sub(r"^tensorgrad\.(nn|optim)\b", r"\1", full))


def assigned(name: str, value: Any) -> tuple[str, str]:
    """The module that assigns something to a name, and what it says of it; nothing where none does."""
    for module, loaded in sorted(sys.modules.items()):
        if module.startswith("tensorgrad") and vars(loaded).get(name, module) is value and loaded.__file__:
            definition = definitions(Path(loaded.__file__)).get(name)
            if definition is not None:
                return module, definition.doc
    return "", ""


def named() -> Iterator[tuple[str, Any]]:
    """Every public name with its thing, modules among them."""
    for path in MODULES:
        module = importlib.import_module(path)
        yield written(path), module
        for name in names_of(module):
            if not isinstance(getattr(module, name), ModuleType):
                yield written(path, name), getattr(module, name)


@functools.cache
def publics() -> tuple[Public, ...]:
    """Every public thing once, in the order of their names."""
    groups: dict[object, list[tuple[str, Any]]] = {}
    for name, thing in named():
        groups.setdefault(id(thing) if callable(thing) or isinstance(thing, ModuleType) else name, []).append(
            (name, thing)
        )
    found, taken = [], set()
    for group in groups.values():
        thing = group[0][1]
        names = [name for name, _ in group]
        name = next((each for each in names if each.split(".")[-1] == getattr(thing, "__name__", "")), names[0])
        others = tuple(each for each in names if each != name)
        if isinstance(thing, ModuleType):
            kind, module, doc = "module", thing.__name__, inspect.getdoc(thing) or ""
        elif isinstance(thing, type) or inspect.isfunction(thing):
            kind = "class" if isinstance(thing, type) else "function"
            module, doc = thing.__module__, inspect.cleandoc(thing.__doc__ or "")
            if thing.__qualname__ not in definitions(Path(sys.modules[module].__file__ or "")):
                module, _ = assigned(name.split(".")[-1], thing)  # made by a function
        else:
            kind, (module, doc) = "constant", assigned(name.split(".")[-1], thing)
        found.append((name, others, kind, thing, module, doc))
    # Not all file systems tell tg.Tensor from tg.tensor.
    functions = {name.lower() for name, _, kind, *_ in found if kind != "class"}
    for name, *rest in found:
        clash = rest[1] == "class" and name.lower() in functions
        taken.add(Public(name, *rest, page=f"{name}{'-class' if clash else ''}.html"))
    return tuple(sorted(taken, key=lambda each: (each.name.lower(), each.name)))


@functools.cache
def by_name() -> dict[str, Public]:
    """Every public name, also with `tensorgrad` in full -> what it is of."""
    found = {name: public for public in publics() for name in (public.name, *public.others)}
    full = {re.sub(r"^(tg|(?=nn|optim))\b\.?", "tensorgrad.", name): public for name, public in found.items()}
    return {**full, "tensorgrad": found["tg"], **found}


@functools.cache
def topics() -> dict[str, tuple[Public, ...]]:
    """Title -> its names. Whatever no topic has is left out; a test knows."""
    of = {word: title for title, words in TOPICS.items() for word in words.split()}
    found: dict[str, list[Public]] = {title: [] for title in TOPICS}
    for public in publics():
        if public.kind != "module":
            names = (public.name, *public.others, public.module.removeprefix("tensorgrad."))
            title = next((of[name] for name in names if name in of), None)
            if title:
                found[title].append(public)
    return {title: tuple(members) for title, members in found.items()}


class Member(NamedTuple):
    """A public attribute of a class: its name, what the class has under it, and its place in the source."""

    name: str
    value: Any
    line: Definition | None


@functools.cache
def members(public: Public) -> tuple[Member, ...]:
    """A class's public methods, properties, and attributes that are documented in the source.

    Bases with a page of their own tell theirs there.
    """
    told = {base for other in bases(public) for base in other.thing.__mro__}
    found: dict[str, Member] = {}
    for base in public.thing.__mro__:
        if base.__module__.split(".")[0] != "tensorgrad" or base in told:
            continue
        lines = definitions(Path(sys.modules[base.__module__].__file__ or ""))
        for name, value in vars(base).items():
            line = lines.get(f"{base.__qualname__}.{name}")
            is_member = inspect.isroutine(value) or isinstance(value, property | classmethod | staticmethod | Method)
            if not name.startswith("_") and (is_member or (line and line.doc)):
                found.setdefault(name, Member(name, value, line))
    return tuple(found.values())


def bases(public: Public) -> list[Public]:
    """The classes that a class derives from and that have pages, the nearest first."""
    pages = {each.thing: each for each in publics() if each.kind == "class"}
    return [pages[base] for base in public.thing.__mro__[1:] if base in pages]


@functools.cache
def member_names(public: Public) -> frozenset[str]:
    """The names of a class's members."""
    return frozenset(member.name for member in members(public))


def relative(file: Path) -> str:
    """A file's path in the repository."""
    return file.resolve().relative_to(ROOT).as_posix()
