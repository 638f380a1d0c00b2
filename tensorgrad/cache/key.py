"""The key of a program in the cache: a digest of all that decides what the compiler makes.

That is the traced graphs (constants' bytes included, the user's lines left out), the names of
the outputs, the kind of device and its limits, and the compiler itself. A tuned
program belongs to one adapter besides.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import Any

from tensorgrad.device.base import Limits
from tensorgrad.dtypes import DType
from tensorgrad.graph import Graph, TensorType
from tensorgrad.ops.core import Data
from tensorgrad.primitive import REGISTRY
from tensorgrad.program import Recipe

_PLAIN = frozenset({type(None), bool, int, float, str})
"""What repr tells apart as it is: 0.0 from -0.0, 1 from True, and NaN equals itself."""


class Unkeyed(Exception):
    """Something decides what the compiler makes that has no digest: a function of the user's, for example."""


def digest(recipe: Recipe, device: str, limits: Limits) -> str:
    """The key of a recipe on a device.

    Raises:
        Unkeyed: it has none.
    """
    if recipe.traced is None:
        raise Unkeyed("its update cannot be traced by itself")
    content = (
        compiler(),
        device,
        _allowed(limits),
        recipe.names,
        tuple(recipe.options),
        ("tuned", limits.adapter) if recipe.tune else None,
        [_graph(graph) for graph in recipe.traced],
    )
    return hashlib.sha256(repr(content).encode()).hexdigest()


def choices_key(limits: Limits) -> str:
    """The key of what tuning has chosen on an adapter.

    Raises:
        Unkeyed: the library's sources are not there to be read.
    """
    return "choices " + hashlib.sha256(repr((compiler(), limits.adapter, _allowed(limits))).encode()).hexdigest()


def _allowed(limits: Limits) -> list[tuple[str, Any]]:
    """What decides about kernels: all but the adapter's name."""
    found = [(name, value) for name, value in limits._asdict().items() if name != "adapter"]
    return [(name, sorted(value) if isinstance(value, frozenset) else value) for name, value in found]


@functools.cache
def compiler(folder: Path = Path(__file__).parent.parent) -> str:
    """A digest of the library's sources, its version among them: another library takes nothing that it did not make.

    A wheel's list of what it installed has theirs, and saves reading 200 files; sources that were not installed
    from one are read, so that an edited one counts as another.

    Raises:
        Unkeyed: the sources are not there to be read.
    """
    for listed in folder.parent.glob("tensorgrad_webgpu-*.dist-info/RECORD"):
        text = listed.read_text(encoding="utf-8")
        if f"\n{folder.name}/cache/key.py,sha256=" in f"\n{text}":
            return hashlib.sha256(text.encode()).hexdigest()
    sources = sorted(folder.rglob("*.py"))
    if not sources:
        raise Unkeyed("the library's sources are not there")
    found = hashlib.sha256()
    for path in sources:
        found.update(f"\0{path.relative_to(folder).as_posix()}\0".encode())
        found.update(path.read_bytes())
    return found.hexdigest()


def _graph(graph: Graph) -> list[Any]:
    """A graph as lists of numbers and text."""
    for op in {node.op for node in graph.nodes}:
        record = REGISTRY[op]
        for rule in (record.shape, record.eval, record.grad, record.lower):
            if rule is not None:
                _library(rule, f"the operation {op}")
    nodes = [
        (n.op, [tuple(v) for v in n.inputs], [(k, _plain(v)) for k, v in n.attrs.items()], [_plain(t) for t in n.types])
        for n in graph.nodes
    ]
    names = [
        [(_plain(key), _plain(value)) for key, value in table.items()]
        for table in (graph.leaves, graph.updates, graph.captures, graph.grads, graph.packs, graph.slots)
    ]
    return [nodes, [tuple(v) for v in graph.outputs], names]


def _plain(part: Any) -> Any:
    """A part of a graph as numbers and text whose repr tells it from any other."""
    kind = type(part)
    if kind in _PLAIN:
        return part
    if kind is DType:
        return part.name
    if kind is TensorType:
        return (part.dtype.name, part.shape)
    if isinstance(part, tuple):
        return tuple(map(_plain, part))
    if isinstance(part, Data):
        return ("data", part.array.dtype.str, part.array.shape, hashlib.sha256(part.array.tobytes()).hexdigest())
    if callable(part):
        if getattr(part, "__closure__", None):
            raise Unkeyed("a gradient rule holds values of its own")
        return _library(part, "a gradient rule")
    raise Unkeyed(f"{type(part).__name__} has no digest")


def _library(function: Any, what: str) -> tuple[str, str, int]:
    """Where a function of the library's own is; its text is in the digest of the sources."""
    code = getattr(function, "__code__", None)
    module = str(getattr(function, "__module__", ""))
    if code is None or not module.startswith("tensorgrad."):
        raise Unkeyed(f"{what} is not the library's own")
    return (module, function.__qualname__, code.co_firstlineno)
