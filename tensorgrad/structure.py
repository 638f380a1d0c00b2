"""Structures of inputs: a nest of specs as the user wrote it, and its leaves by name.

`{"x": f32[64, 784], "y": i32[64]}` has the leaves `x` and `y`; nests join names with dots.
The same structure describes what a traced function is called with and what a step is
given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tensorgrad.callsite import call_site
from tensorgrad.dtypes import Spec
from tensorgrad.errors import InputError


class Structure:
    """A mapping or a tuple of specs, nested at will.

    Args:
        specs: the nest.

    Raises:
        InputError: for a leaf that is no spec such as `tg.f32[64, 784]`.

    >>> import tensorgrad as tg
    >>> Structure({"x": tg.f32[2], "pair": (tg.i32[1], tg.f32[3])}).leaves
    {'x': f32[2], 'pair.0': i32[1], 'pair.1': f32[3]}
    """

    def __init__(self, specs: Any) -> None:
        if not isinstance(specs, Mapping | tuple | list):
            raise InputError(
                f"inputs are a mapping or a tuple of specs, such as {{'x': tg.f32[64, 784]}}, got {specs!r}",
                call_site(),
            )
        self.specs = specs
        self.leaves: dict[str, Spec] = dict(_flatten(specs, _spec))

    @property
    def is_concrete(self) -> bool:
        return all(spec.is_concrete for spec in self.leaves.values())

    def arguments(self, values: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Leaves by name as the arguments of a call: a mapping's are keywords, a tuple's positional."""
        built = _build(self.specs, "", values)
        return ([], built) if isinstance(self.specs, Mapping) else (list(built), {})

    def flatten(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """What a step was called with, by leaf name.

        Args:
            args: one nest of the structure's form or, for a tuple, its parts.
            kwargs: the parts of a mapping.

        Raises:
            InputError: names, or a form, that are not the structure's.
        """
        if args and kwargs:
            raise InputError("give a step one structure, or its parts as keywords, not both", call_site())
        given: Any = kwargs
        if args:
            whole = len(args) == 1 and (isinstance(self.specs, Mapping) or isinstance(args[0], tuple | list))
            given = args[0] if whole else args
        return dict(_match(self.specs, given, ""))

    def shapes(self, values: Mapping[str, Any]) -> tuple[tuple[int, ...], ...]:
        """The shapes of the leaves' values, which must fit the specs; open sizes take any.

        Raises:
            InputError: another number of axes or another fixed size.
        """
        return tuple(_shape(name, spec, values[name]) for name, spec in self.leaves.items())

    def concrete(self, shapes: Sequence[tuple[int, ...]]) -> Structure:
        """The structure with every open size filled in from `shapes`, in the leaves' order."""
        filled = dict(zip(self.leaves, shapes, strict=True))
        named = {name: spec.concrete(filled[name]) for name, spec in self.leaves.items()}
        return Structure(_build(self.specs, "", named))


def _spec(name: str, leaf: Any) -> Spec:
    if not isinstance(leaf, Spec):
        raise InputError(f"input {name!r} must be a spec such as tg.f32[64, 784], got {leaf!r}", call_site())
    return leaf


def _children(nest: Any) -> Iterator[tuple[str, Any]]:
    items = nest.items() if isinstance(nest, Mapping) else enumerate(nest)
    return ((str(key), child) for key, child in items)


def _flatten(nest: Any, leaf: Callable[[str, Any], Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, child in _children(nest):
        name = f"{prefix}{key}"
        if isinstance(child, Mapping | tuple | list):
            yield from _flatten(child, leaf, f"{name}.")
        else:
            yield name, leaf(name, child)


def _build(nest: Any, prefix: str, values: Mapping[str, Any]) -> Any:
    def one(key: str, child: Any) -> Any:
        name = f"{prefix}{key}"
        return _build(child, f"{name}.", values) if isinstance(child, Mapping | tuple | list) else values[name]

    if isinstance(nest, Mapping):
        return {key: one(str(key), child) for key, child in nest.items()}
    return type(nest)(one(key, child) for key, child in _children(nest))


def _match(nest: Any, given: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    where = f"input {prefix[:-1]!r}" if prefix else "the inputs"
    expected = [key for key, _ in _children(nest)]
    if isinstance(nest, Mapping):
        if not isinstance(given, Mapping):
            raise InputError(f"{where}: expected a mapping with {expected}, got {type(given).__name__}")
        have = {str(key): value for key, value in given.items()}
    else:
        if isinstance(given, Mapping) or not isinstance(given, tuple | list):
            raise InputError(f"{where}: expected {len(expected)} parts, got {type(given).__name__}")
        have = dict(_children(given))
    if set(have) != set(expected):
        missing, extra = sorted(set(expected) - set(have)), sorted(set(have) - set(expected))
        parts = [f"missing {missing}"] * bool(missing) + [f"unknown {extra}"] * bool(extra)
        raise InputError(f"{where}: {' and '.join(parts)}; expected {expected}")
    for key, child in _children(nest):
        name = f"{prefix}{key}"
        if isinstance(child, Mapping | tuple | list):
            yield from _match(child, have[key], f"{name}.")
        else:
            yield name, have[key]


def _shape(name: str, spec: Spec, value: Any) -> tuple[int, ...]:
    shape = tuple(np.shape(value))
    if len(shape) != len(spec.shape) or any(n not in (None, m) for n, m in zip(spec.shape, shape, strict=True)):
        raise InputError(f"input {name!r} has shape {list(shape)}, expected {spec}")
    return shape
