"""Checks of plain arguments: numbers, sizes, names. Each says what the argument has to be, and what it was.

Hyper-parameters, schedules and sizes of layers are checked where they are given, since an error that comes steps later
names neither.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tensorgrad.errors import InputError


class Range(NamedTuple):
    """Which numbers an argument may be, in words and as a test."""

    rule: str
    holds: Callable[[float], bool]


ANY = Range("a number", lambda number: not math.isnan(number))
NOT_NEGATIVE = Range("0 or more", lambda number: number >= 0)
POSITIVE = Range("positive", lambda number: number > 0)
SHARE = Range("from 0 to 1", lambda number: 0 <= number <= 1)
DECAY = Range("from 0 to below 1", lambda number: 0 <= number < 1)

_WORDS = {2: "two", 3: "three"}


def require(where: str, name: str, value: object, fits: bool, rule: str) -> None:
    """Raises InputError, naming function and argument, unless the value fits."""
    if not fits:
        raise InputError(f"{where}: {name} must be {rule}, got {shown(value)}")


def require_number(where: str, name: str, value: Any, range: Range = ANY) -> None:
    """Raises InputError for what is no number, or one out of range.

    >>> require_number("Adam", "lr", 0.01, NOT_NEGATIVE)
    """
    require(where, name, value, is_number(value), "a number")
    require(where, name, value, range.holds(value), range.rule)


def require_whole(where: str, name: str, value: Any, least: int = 0) -> None:
    """Raises InputError for what is no whole number, or one below `least`: a count, a size."""
    require(where, name, value, is_whole(value) and value >= least, f"a whole number, {least} or more")


def require_numbers(where: str, name: str, value: Any, count: int) -> None:
    """Raises InputError for anything but a tuple or list of so many numbers."""
    some = isinstance(value, list | tuple) and len(value) == count and all(map(is_number, value))
    require(where, name, value, some, f"{_WORDS.get(count, count)} numbers")


def is_number(value: object) -> bool:
    """Whether it is one real number, of Python or NumPy; text is none."""
    return isinstance(value, int | float | np.integer | np.floating)


def is_whole(value: object) -> bool:
    """Whether it is a whole number by its type; True is none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def shown(value: object) -> str:
    """A value as messages print it: arrays by shape and dtype, anything else shortened.

    >>> shown("0.01"), shown(np.zeros((16, 4)))
    ("'0.01'", 'an array of shape [16, 4] and dtype float64')
    """
    if isinstance(value, np.ndarray):
        return f"an array of shape [{', '.join(map(str, value.shape))}] and dtype {value.dtype}"
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
