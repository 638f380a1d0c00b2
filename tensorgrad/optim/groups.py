"""Which parameters an optimizer trains, and how: said by their names, as the model's arrays move to the device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from tensorgrad.callsite import call_site
from tensorgrad.errors import InputError

Which = str | Callable[[str], bool]
"""The parameters of a group: a pattern such as `*.bias`, or a function of the name."""

Groups = Sequence[tuple[Which, Mapping[str, Any]]]


def fits(which: Which, name: str) -> bool:
    """Whether a parameter of this name belongs to a group."""
    return fnmatchcase(name, which) if isinstance(which, str) else bool(which(name))


def is_number(value: Any) -> bool:
    """Whether it is one number."""
    return isinstance(value, int | float | np.number)


def pairs(optimizer: str, groups: Any) -> tuple[tuple[Which, dict[str, Any]], ...]:
    """The groups as pairs.

    Raises:
        InputError: for PyTorch's dicts of parameters, and whatever else is no name.
    """
    found = []
    for group in groups:
        pair = group if isinstance(group, tuple | list) and len(group) == 2 else (None, None)
        which, changes = pair
        if not (isinstance(which, str) or _is_function(which)) or not isinstance(changes, Mapping):
            raise InputError(f"{optimizer}: a group is a pair of names and changes. {_HOW}", call_site())
        found.append((which, dict(changes)))
    return tuple(found)


def require_no_parameters(optimizer: str, lr: Any) -> None:
    """Raises InputError where parameters stand in the place of the learning rate, as in PyTorch."""
    if lr is not None and not is_number(lr) and not _is_function(lr):
        raise InputError(
            f"{optimizer} takes a learning rate or a schedule first, not a {type(lr).__name__}: the parameters are "
            f"those of the model that tg.compile is given. {_HOW}",
            call_site(),
        )


_HOW = (
    "Parameters are named, as in the state dict: groups=[('head.*', {'lr': 1e-4})] changes numbers for some, "
    "params='head.*' trains some alone"
)


def _is_function(value: Any) -> bool:
    """A module may be called, too, but is no function of a number or a name."""
    return callable(value) and not hasattr(value, "parameters")
