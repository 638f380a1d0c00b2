"""Modules and parameters in order or by name, so that they are found, named and trained."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar, overload

from tensorgrad.checks import is_whole, require
from tensorgrad.errors import ArgumentError, NoItemError
from tensorgrad.nn.module import Module
from tensorgrad.nn.parameter import Parameter

Self = TypeVar("Self", bound="_Sequence")


def _listed(where: str, items: Any) -> list[Any]:
    require(where, "its argument", items, isinstance(items, Iterable), "a list or another iterable")
    return list(items)


class _Sequence(Module):
    """Attributes named `0`, `1`, ... as a list."""

    _kind: type[Any] = Module

    def _items(self) -> list[Any]:
        return [value for name, value in self.__dict__.items() if name.isdigit()]

    def _fill(self, items: Iterable[Any]) -> None:
        new = _listed(type(self).__name__, items)
        for item in new:
            if not isinstance(item, self._kind):
                hint = "; a function has a module of its own, nn.ReLU() for tg.relu" if callable(item) else ""
                raise ArgumentError(
                    f"{type(self).__name__} holds objects of {self._kind.__name__}, got {type(item).__name__}{hint}"
                )
        for name in [name for name in self.__dict__ if name.isdigit()]:
            del self.__dict__[name]
        for i, item in enumerate(new):
            setattr(self, str(i), item)

    def append(self: Self, item: Any) -> Self:
        """Adds one at the end."""
        self._fill([*self._items(), item])
        return self

    def extend(self: Self, items: Iterable[Any]) -> Self:
        """Adds several at the end."""
        self._fill([*self._items(), *items])
        return self

    def insert(self: Self, index: int, item: Any) -> Self:
        """Adds one before a position."""
        items = self._items()
        items.insert(index, item)
        self._fill(items)
        return self

    def pop(self, index: int = -1) -> Any:
        """Removes one and returns it."""
        items = self._items()
        item = items.pop(index)
        self._fill(items)
        return item

    def __len__(self) -> int:
        return len(self._items())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items())

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self: Self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Any:
        if not isinstance(index, slice):
            items = self._items()
            if not (is_whole(index) and -len(items) <= index < len(items)):
                raise NoItemError(f"{type(self).__name__} has {len(items)} items, and none at {index!r}")
            return items[index]
        part = type(self).__new__(type(self))
        part._fill(self._items()[index])
        return part

    def __setitem__(self, index: int, item: Any) -> None:
        items = self._items()
        items[index] = item
        self._fill(items)

    def __delitem__(self, index: int | slice) -> None:
        items = self._items()
        del items[index]
        self._fill(items)


class Sequential(_Sequence):
    """Modules that run one after the other, each on what the one before returned.

    Args:
        *modules: modules, or one mapping of names to modules.

    >>> from tensorgrad import nn
    >>> nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    Sequential: 58 parameters
      0: Linear(4 -> 8)  weight f32[8, 4], bias f32[8]  (40)
      1: ReLU
      2: Linear(8 -> 2)  weight f32[2, 8], bias f32[2]  (18)
    """

    def __init__(self, *modules: Module | Mapping[str, Module]) -> None:
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                self.add_module(name, module)
        else:
            self._fill(modules)

    def _items(self) -> list[Any]:
        return [value for value in self.__dict__.values() if isinstance(value, Module)]

    def _fill(self, items: Iterable[Any]) -> None:
        # modules given by name keep their names
        names = {id(module): name for name, module in self.__dict__.items() if isinstance(module, Module)}
        new = list(items)
        if all(name.isdigit() for name in names.values()):
            super()._fill(new)
            return
        for name in names.values():
            del self.__dict__[name]
        for i, module in enumerate(new):
            self.add_module(names.get(id(module), str(i)), module)

    def forward(self, x: Any) -> Any:
        for module in self._items():
            x = module(x)
        return x


class ModuleList(_Sequence):
    """A list of modules.

    Args:
        modules: to start with.
    """

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        self._fill(modules)


class ParameterList(_Sequence):
    """A list of parameters.

    Args:
        values: to start with; arrays become parameters.
    """

    _kind = Parameter

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self._fill(values)

    def _fill(self, items: Iterable[Any]) -> None:
        given = _listed(type(self).__name__, items)
        super()._fill(item if isinstance(item, Parameter) else Parameter(item) for item in given)


class _Mapping(Module):
    """Attributes as a dict."""

    _kind: type[Any] = Module

    def _values(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if isinstance(value, self._kind)}

    def update(self, items: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Adds or replaces several."""
        given: Any = items
        if not isinstance(given, Mapping):
            given = _listed(type(self).__name__, items)
            pairs = all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in given)
            require(type(self).__name__, "its argument", items, pairs, "a mapping of names to items, or pairs of these")
        for name, item in dict(given).items():
            self[name] = item

    def keys(self) -> Iterable[str]:
        """The names, in order."""
        return self._values().keys()

    def values(self) -> Iterable[Any]:
        """What they name, in order."""
        return self._values().values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Both, in order."""
        return self._values().items()

    def __getitem__(self, name: str) -> Any:
        values = self._values()
        if name not in values:
            raise NoItemError(f"{type(self).__name__} has no {name!r}; it has {', '.join(values) or 'nothing'}")
        return values[name]

    def __setitem__(self, name: str, item: Any) -> None:
        if not isinstance(item, self._kind):
            kind = type(self).__name__
            raise ArgumentError(f"{kind} holds objects of {self._kind.__name__}, got {type(item).__name__}")
        text = isinstance(name, str)
        if not text or "." in name or not name or hasattr(type(self), name):
            why = "it is empty, dotted, or a method's name" if text else "a name is a text"
            raise ArgumentError(f"{name!r} cannot name an entry of {type(self).__name__}: {why}")
        setattr(self, name, item)

    def __delitem__(self, name: str) -> None:
        del self.__dict__[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values()

    def __iter__(self) -> Iterator[str]:
        return iter(self._values())

    def __len__(self) -> int:
        return len(self._values())


class ModuleDict(_Mapping):
    """Modules by name.

    Args:
        modules: to start with.
    """

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        self.update(modules or {})


class ParameterDict(_Mapping):
    """Parameters by name.

    Args:
        parameters: to start with; arrays become parameters. Names in a plain dict are sorted, as in PyTorch.
    """

    _kind = Parameter

    def __init__(self, parameters: Mapping[str, Any] | None = None) -> None:
        self.update(parameters or {})

    def update(self, items: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Adds or replaces several."""
        given: Any = items
        plain = isinstance(given, Mapping) and not isinstance(given, OrderedDict)
        super().update(sorted(given.items()) if plain else given)

    def __setitem__(self, name: str, item: Any) -> None:
        super().__setitem__(name, item if isinstance(item, Parameter) else Parameter(item))
