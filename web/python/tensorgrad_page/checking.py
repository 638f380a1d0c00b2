"""Checks of a lesson's exercises: what is right, or what is wrong and by how much."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tensorgrad import DeviceLostError
from tensorgrad_page.frames import format_exception


class Wrong(Exception):
    """An answer that is not right; the message says what is wrong."""


class Work:
    """What the reader's cells have defined.

    Example:
        >>> Work({"rate": 0.1}).rate
        0.1
        >>> Work({}).rate
        Traceback (most recent call last):
            ...
        tensorgrad_page.checking.Wrong: There is no `rate` yet: the cell above has to define it.
    """

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace

    def __getattr__(self, name: str) -> Any:
        try:
            return self._namespace[name]
        except KeyError:
            raise Wrong(f"There is no `{name}` yet: the cell above has to define it.") from None


async def check(examine: Callable[[Work], Any], namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Runs one check: whether the answer has `passed`, and the `text` that says why.

    Args:
        examine: is given the reader's work and returns praise, or raises Wrong; it may be a coroutine.
        namespace: of the reader's cells.

    Raises:
        DeviceLostError: the GPU went away meanwhile.
    """
    try:
        found = examine(Work(namespace))
        text = await found if inspect.isawaitable(found) else found
    except Wrong as error:
        return {"passed": False, "text": str(error)}
    except DeviceLostError:
        raise  # nobody's mistake: the page mends it
    except Exception as error:
        last = format_exception(error).strip().splitlines()[-1]
        return {"passed": False, "text": f"Your code raised an error when it was tried: {last}"}
    return {"passed": True, "text": text}


def number(what: str, value: Any) -> float:
    """The number that an answer gave, or Wrong."""
    try:
        found = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise Wrong(f"{what} should be a number; it is {type(value).__name__}.") from None
    if found.size != 1:
        raise Wrong(f"{what} should be one number; it has {found.size}, of shape {list(found.shape)}.")
    if not np.isfinite(found).all():
        raise Wrong(f"{what} is {found.item()}.")
    return float(found.item())


def compare(what: str, got: Any, expected: float, *, tolerance: float = 1e-3) -> None:
    """Raises Wrong where a number is not the expected one; says so where a sign or a factor explains it."""
    value = number(what, got)
    if abs(value - expected) <= tolerance * max(1.0, abs(expected)):
        return
    ratio = value / expected if expected else np.nan
    hints = {-1.0: "the sign is turned round", 0.5: "a factor of 2 is missing", 2.0: "there is a factor of 2 too much"}
    why = next((hint for factor, hint in hints.items() if abs(ratio - factor) < 1e-3), "")
    raise Wrong(f"{what} is {value:.4g}; it should be {expected:.4g}" + (f": {why}." if why else "."))
