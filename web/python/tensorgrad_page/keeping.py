"""The weights of a lesson, which the browser keeps for the next visit; where it cannot, the lesson works without."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, MutableMapping
from typing import Any

from tensorgrad import browser, checkpoints
from tensorgrad.compile import Train
from tensorgrad.errors import CheckpointError, InputError, UnsupportedError

PATIENCE = 5.0
"""Seconds for the storage to answer: a lesson waits for it, and some browsers' hangs for good."""

NOTHING = CheckpointError, UnsupportedError, TimeoutError
"""What is raised where the browser keeps nothing: in a private window, on a full disk."""


async def keep(name: str, namespace: Mapping[str, Any]) -> bool | None:
    """Has the browser keep the reader's `train`; whether it does, or None where nothing was trained."""
    train = namespace.get("train")
    if not isinstance(train, Train) or not train.state.steps:
        return None
    data = await train.save()
    try:
        async with asyncio.timeout(PATIENCE):
            await browser.keep(name, data)
    except NOTHING:
        return False
    return True


async def resume(name: str, namespace: MutableMapping[str, Any]) -> dict[str, Any]:
    """Goes on from what is kept: gives the `steps` that were made, or that it is `unfit`, or neither.

    Where only the weights fit, since the reader had trained with another optimizer or with two, `anew` says that the
    optimizer begins anew.

    Args:
        name: under which it is kept.
        namespace: of the reader's cells: `train` gets the weights, `done` the number of steps.
    """
    train = namespace.get("train")
    if not isinstance(train, Train):
        return {}
    try:
        async with asyncio.timeout(PATIENCE):
            data = await browser.read(name)
    except NOTHING:
        return {}
    if data is None:
        return {}
    try:
        state = checkpoints.load(data)
        try:
            await train.load_state_dict(state)
        except CheckpointError:
            await train.load_state_dict(state.get("model", {}))
            found = {"steps": state["calls"], "anew": True}
        else:
            found = {"steps": train.state.steps}
    except (CheckpointError, InputError):
        return {"unfit": True}
    namespace["done"] = found["steps"]
    return found


async def forget(name: str, namespace: Mapping[str, Any]) -> bool:
    """Has the browser forget what it keeps; whether that is so."""
    try:
        async with asyncio.timeout(PATIENCE):
            await browser.forget(name)
    except NOTHING:
        return False
    return True
