"""What an optimizer is given: hyper-parameters, and which parameters they are for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from tensorgrad.checks import DECAY, NOT_NEGATIVE, POSITIVE, require, require_number, require_numbers, require_whole
from tensorgrad.errors import InputError
from tensorgrad.tensor import Tensor

LearningRate = float | Callable[[int], float]
"""A number, or a function of the number of steps that were made before (0 at the first)."""

Which = str | Callable[[str], bool]
"""The parameters of a group: a pattern such as `*.bias`, or a function of the name."""

Groups = Sequence[tuple[Which, Mapping[str, Any]]]

SHOWN = 12
"""Names of parameters that a message lists."""

_NOT_NEGATIVE = frozenset(
    {"alpha", "eps", "initial_accumulator_value", "lr_decay", "momentum", "momentum_decay", "weight_decay"}
)
_OR_NONE = {"clip_norm": POSITIVE, "clip_value": POSITIVE, "ema_decay": DECAY}


def check_hyper(who: str, hyper: Mapping[str, Any]) -> None:
    """Raises InputError for hyper-parameters that make no sense, of those whose names several optimizers share.

    Args:
        who: the optimizer, for messages.
    """
    lr = hyper["lr"]
    if isinstance(lr, type) or not callable(lr):
        require_number(who, "lr", lr, NOT_NEGATIVE)
    for name in _NOT_NEGATIVE & hyper.keys():
        require_number(who, name, hyper[name], NOT_NEGATIVE)
    if "betas" in hyper:
        require_numbers(who, "betas", hyper["betas"], 2)
        require(who, "betas", hyper["betas"], all(0 <= b < 1 for b in hyper["betas"]), "two numbers, 0 <= beta < 1")


def check_option(who: str, name: str, value: Any) -> None:
    """Raises InputError for an option that makes no sense, of those that all optimizers have."""
    if name == "params":
        fits = value is None or _names_parameters(value)
        require(who, name, value, fits, "a pattern such as '*.bias', or a function of the name")
    elif name == "normalize":
        require(who, name, value, isinstance(value, bool), "True or False")
    elif name == "accumulate":
        require_whole(who, name, value, 1)
    elif name in _OR_NONE and value is not None:
        require_number(who, name, value, _OR_NONE[name])


def rate_at(who: str, lr: LearningRate, step: int) -> float:
    """The learning rate after so many steps.

    Raises:
        InputError: the schedule gave no number.
    """
    rate: Any = lr(step) if callable(lr) else lr
    try:
        return float(rate)
    except (TypeError, ValueError):
        raise InputError(f"{who}: lr must give a number for every step, but {lr!r} gives {rate!r} for {step}") from None


def fits(which: Which, name: str) -> bool:
    """Whether a parameter is among those meant."""
    return fnmatchcase(name, which) if isinstance(which, str) else bool(which(name))


def checked_groups(who: str, groups: Any, known: Sequence[str]) -> tuple[tuple[Which, dict[str, Any]], ...]:
    """The groups as an optimizer keeps them.

    Args:
        who: the optimizer, for messages.
        known: hyper-parameters that a group may change.

    Raises:
        InputError: these are no pairs of parameters and hyper-parameters.
    """
    pairs = isinstance(groups, list | tuple) and all(map(_is_group, groups))
    require(who, "groups", groups, pairs, 'pairs such as [("*.bias", {"weight_decay": 0.0})]')
    for _, changes in groups:
        if unknown := sorted(map(str, changes.keys() - set(known))):
            raise InputError(f"{who} has no hyper-parameter {unknown[0]!r}; it has {', '.join(known)}")
    return tuple((which, dict(changes)) for which, changes in groups)


def _is_group(pair: Any) -> bool:
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        return False
    return _names_parameters(pair[0]) and isinstance(pair[1], Mapping)


def _names_parameters(which: Any) -> bool:
    """A module can be called too, but not with a name."""
    return isinstance(which, str) or (callable(which) and not hasattr(which, "named_parameters"))


def check_used(who: str, groups: Groups, params: Which | None, names: Sequence[str]) -> None:
    """Raises InputError for `params`, or a group, that no parameter of the model belongs to: a slip in a pattern.

    Args:
        who: the optimizer, for messages.
        names: of all parameters of the model.
    """
    has = f"the model has {listed(names)}"
    if params is not None and not any(fits(params, name) for name in names):
        raise InputError(f"{who}: params={_of(params)} fits no parameter; {has}")
    free = list(names)
    for which, _ in groups:
        members = [name for name in free if fits(which, name)]
        if not members:
            why = f"fits no parameter; {has}"
            if taken := [name for name in names if fits(which, name)]:
                why = f"comes too late: {listed(taken)} belong to a group before it, and the first that fits counts"
            raise InputError(f"{who}: the group {_of(which)} {why}")
        free = [name for name in free if name not in members]


def refuse_parameters(who: str, first: object) -> None:
    """Raises InputError where an optimizer is given parameters, as PyTorch's are."""
    if isinstance(first, Iterator | Mapping | Tensor | list | tuple) or hasattr(first, "named_parameters"):
        raise InputError(
            f"{who} is given no parameters: tg.compile gives it those of the model. Its first argument is the learning "
            f"rate, {who}(lr=...); params='generator.*' has it train some parameters only, groups= gives some of them "
            "hyper-parameters of their own"
        )


def listed(names: Sequence[str]) -> str:
    """Names as messages list them."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return (", ".join(names[:SHOWN]) or "none") + more


def _of(which: Which) -> str:
    return repr(which) if isinstance(which, str) else f"of the function {getattr(which, '__name__', repr(which))!r}"
