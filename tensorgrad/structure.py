"""Structures of inputs: a nest of specs as the user wrote it, and its leaves by name.

`{"x": f32[64, 784], "y": i32[64]}` has the leaves `x` and `y`; nests join names with dots.
The same structure describes what a traced function is called with and what a step is
given.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tensorgrad.callsite import call_site
from tensorgrad.checks import is_whole, shown
from tensorgrad.dtypes import DType, Spec, bool_, f32, from_numpy
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
        if not is_nest(specs):
            raise InputError(
                f"inputs are a mapping or a tuple of specs, such as {{'x': tg.f32[64, 784]}}, got {shown(specs)}",
                call_site(),
            )
        if isinstance(specs, Mapping) and (odd := [key for key in specs if not isinstance(key, str)]):
            raise InputError(f"an input's name becomes a keyword, so it must be a string, got {odd[0]!r}", call_site())
        self.specs = specs
        leaves = list(_flatten(specs))
        self.leaves: dict[str, Spec] = dict(leaves)
        self._flat = frozenset(specs) if isinstance(specs, Mapping) and specs.keys() == self.leaves.keys() else None
        if len(self.leaves) < len(leaves):
            names = [name for name, _ in leaves]
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"two inputs are named {twice!r}", call_site())

    @property
    def is_concrete(self) -> bool:
        return all(spec.is_concrete for spec in self.leaves.values())

    def arguments(self, values: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Leaves by name as the arguments of a call: a mapping's are keywords, a tuple's positional."""
        built = _build(self.specs, "", values)
        return ([], built) if isinstance(self.specs, Mapping) else (list(built), {})

    def call(self, fn: Callable[..., Any], model: Any, values: Mapping[str, Any]) -> Any:
        """Calls `fn(model, **inputs)`, or `fn(model, *inputs)` for a tuple, with the leaves' values."""
        args, kwargs = self.arguments(values)
        return fn(model, *args, **kwargs)

    def check_call(self, what: str, fn: Any) -> None:
        """Raises InputError for what `call` cannot call: nothing was traced yet.

        Args:
            what: how the message calls it.
        """
        args, kwargs = self.arguments(dict.fromkeys(self.leaves))
        shape = ", ".join(["model", *(f"input{i}" for i in range(len(args))), *(f"{name}={name}" for name in kwargs)])
        if not callable(fn):
            raise InputError(f"{what} must be a function that is called as fn({shape}), got {shown(fn)}", call_site())
        inner = getattr(fn, "forward", fn)  # a module's `__call__` takes anything
        try:
            signature = inspect.signature(inner)
        except (ValueError, TypeError):  # built in, or wrapped by something odd
            return
        try:
            signature.bind(None, *args, **kwargs)
        except TypeError as error:
            name = getattr(inner, "__qualname__", type(fn).__name__)
            code = getattr(inspect.unwrap(inner), "__code__", None)
            place = f" at {code.co_filename}:{code.co_firstlineno}" if code else ""
            how = "inputs are passed by their names" if kwargs else "inputs are passed in their order"
            raise InputError(
                f"{what} does not take these inputs: {error}. It is called as fn({shape}), since the model comes first "
                f"and {how}; it is {name}{signature}{place}. Let its arguments and `inputs` agree",
                call_site(),
            ) from None

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
        given: Any = args if args or not (kwargs or isinstance(self.specs, Mapping)) else kwargs
        if len(args) == 1 and self._is_whole(args[0]):
            given = args[0]
        if isinstance(given, dict) and self._flat == given.keys():
            return dict(given)  # what nearly every step is given
        return dict(_match(self.specs, given, ""))

    def _is_whole(self, given: Any) -> bool:
        """Whether the only argument stands for the structure, not for its only part."""
        if isinstance(self.specs, Mapping):
            return True
        return isinstance(given, tuple | list) and (len(self.specs) != 1 or len(given) == 1)

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


def is_nest(value: Any) -> bool:
    """Whether it has parts: a mapping, tuple (named or not) or list."""
    return isinstance(value, Mapping | tuple | list)


def parts(nest: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a nest with their keys or positions."""
    items = nest.items() if isinstance(nest, Mapping) else enumerate(nest)
    return ((str(key), child) for key, child in items)


def rebuild(nest: Any, children: Iterable[Any]) -> Any:
    """A nest of the same form with other parts."""
    if isinstance(nest, Mapping):
        return dict(zip(nest, children, strict=True))
    return type(nest)(*children) if hasattr(nest, "_fields") else type(nest)(children)


def _flatten(nest: Any, prefix: str = "") -> Iterator[tuple[str, Spec]]:
    for key, child in parts(nest):
        name = f"{prefix}{key}"
        if is_nest(child) and not _is_shape(child):
            yield from _flatten(child, f"{name}.")
        elif isinstance(child, Spec):
            yield name, child
        else:
            rule = f"input {name!r} must be a spec such as tg.f32[64, 784], got {shown(child)}"
            raise InputError(f"{rule}{_spec_hint(child)}", call_site())


def _is_shape(value: Any) -> bool:
    """Whether it is sizes without a dtype, which were meant as a spec."""
    return isinstance(value, tuple | list) and bool(value) and all(n is None or is_whole(n) for n in value)


def _spec_hint(value: Any) -> str:
    """What to write instead, where that can be seen."""
    dtype, shape = f32, getattr(value, "shape", None)
    if _is_shape(value):
        shape = value
    elif isinstance(value, DType):
        dtype, shape = value, None
    elif isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        dtype = from_numpy(value.dtype)
    elif not isinstance(shape, tuple):
        return ""
    sizes = ", ".join(map(str, shape)) if shape else "()"
    return f"; write tg.{dtype.name + '_' * (dtype is bool_)}[{sizes}]" + " for one number" * (not shape)


def _build(nest: Any, prefix: str, values: Mapping[str, Any]) -> Any:
    def one(name: str, child: Any) -> Any:
        return _build(child, f"{name}.", values) if is_nest(child) else values[name]

    return rebuild(nest, (one(f"{prefix}{key}", child) for key, child in parts(nest)))


def _match(nest: Any, given: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    where = f"input {prefix[:-1]!r}" if prefix else "the inputs"
    expected = [key for key, _ in parts(nest)]
    if isinstance(nest, Mapping):
        if not isinstance(given, Mapping):
            raise InputError(f"{where}: expected a mapping with {expected}, got {type(given).__name__}")
        have = {str(key): value for key, value in given.items()}
    else:
        if isinstance(given, Mapping) or not isinstance(given, tuple | list):
            raise InputError(f"{where}: expected {len(expected)} parts, got {type(given).__name__}")
        have = dict(parts(given))
    if set(have) != set(expected):
        missing, extra = sorted(set(expected) - set(have)), sorted(set(have) - set(expected))
        problems = [f"missing {missing}"] * bool(missing) + [f"unknown {extra}"] * bool(extra)
        raise InputError(f"{where}: {' and '.join(problems)}; expected {expected}")
    for key, child in parts(nest):
        name = f"{prefix}{key}"
        if is_nest(child):
            yield from _match(child, have[key], f"{name}.")
        else:
            yield name, have[key]


def _shape(name: str, spec: Spec, value: Any) -> tuple[int, ...]:
    try:
        shape = tuple(np.shape(value))
    except (ValueError, TypeError) as error:
        raise InputError(f"input {name!r} is not an array: {error}") from None
    if len(shape) != len(spec.shape) or any(n not in (None, m) for n, m in zip(spec.shape, shape, strict=True)):
        raise InputError(f"input {name!r} has shape {list(shape)}, expected {spec}")
    return shape
