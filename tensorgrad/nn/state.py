"""State dicts: matching arrays by name with what a model expects, before anything changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Coroutine, Iterable, Mapping
from inspect import isawaitable
from typing import Any, NamedTuple

import numpy as np

from tensorgrad.callsite import call_site
from tensorgrad.device.convert import as_array
from tensorgrad.errors import CheckpointError, InputError
from tensorgrad.graph import TensorType


class IncompatibleKeys(NamedTuple):
    """What a state dict that was loaded with `strict=False` did not fit."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class Matched(NamedTuple):
    """Arrays of the exact shapes and dtypes that were wanted, and the keys that did not fit."""

    arrays: dict[str, np.ndarray]
    keys: IncompatibleKeys


def match_state(
    wanted: Mapping[str, TensorType],
    given: Mapping[str, Any],
    strict: bool = True,
    optional: Collection[str] = (),
) -> Matched:
    """Checks a state dict against what is expected; nothing is changed.

    Args:
        wanted: the expected types by name.
        given: arrays by name; float64 narrows, integers are checked to fit.
        strict: whether every expected name has to be there, and no other.
        optional: names that may be missing all the same.

    Raises:
        CheckpointError: lists all missing and unexpected names (with `strict`), and every
            array of another shape or dtype (always).

    >>> from tensorgrad.dtypes import f32
    >>> match_state({"w": TensorType((2,), f32)}, {"v": [1.0, 2.0]})
    Traceback (most recent call last):
    ...
    tensorgrad.errors.CheckpointError: the state dict does not fit:
      missing: w (f32[2])
      unexpected: v
      at ...
    """
    require_state(given)
    missing = [name for name in wanted if name not in given and name not in optional]
    unexpected = [str(name) for name in given if name not in wanted]
    arrays: dict[str, np.ndarray] = {}
    wrong: list[str] = []
    for name, type_ in wanted.items():
        if name in given:
            try:
                arrays[name] = as_array(name, given[name], type_.shape, type_.dtype)
            except InputError as error:
                turned = len(type_.shape) > 1 and np.shape(given[name]) == type_.shape[::-1]
                wrong.append(f"{error.message}{'; its transpose has that' * turned}")
    problems = [f"does not fit: {text}" for text in wrong]
    if strict:
        problems = [
            *[f"missing: {name} ({wanted[name]})" for name in missing],
            *[f"unexpected: {name}" for name in unexpected],
            *problems,
            *_hints(missing, unexpected),
        ]
    if problems:
        raise CheckpointError("\n  ".join(["the state dict does not fit:", *problems]), call_site())
    return Matched(arrays, IncompatibleKeys(missing, unexpected))


def require_state(given: object) -> None:
    """Raises CheckpointError for what is no state dict."""
    if isawaitable(given):
        if isinstance(given, Coroutine):
            given.close()  # else Python warns of it, too
        raise CheckpointError("a state dict has to be awaited: load_state_dict(await train.state_dict())", call_site())
    if not isinstance(given, Mapping):
        raise CheckpointError(f"a state dict maps names to arrays, got {type(given).__name__}", call_site())


def _hints(missing: list[str], unexpected: list[str]) -> list[str]:
    """What would make the names fit, if one prefix is in the way, such as that of a wrapper around the model."""
    given, wanted = _prefix(unexpected, missing), _prefix(missing, unexpected)
    if given:
        return [f"without {given!r} names fit: {{k.removeprefix({given!r}): v for k, v in state_dict.items()}}"]
    if wanted:
        return [f"with {wanted!r} before them names fit: {{{wanted!r} + k: v for k, v in state_dict.items()}}"]
    return []


def _prefix(long: Iterable[str], short: Collection[str]) -> str:
    """What most often stands before one of the short names in a long one; "" where nothing does."""
    known, found = set(short), Counter[str]()
    for name in long:
        for at, letter in enumerate(name):
            if letter == "." and name[at + 1 :] in known:
                found[name[: at + 1]] += 1
    return found.most_common(1)[0][0] if found else ""
