"""The plan cache: what was compiled once in this browser need not be compiled again.

The compiled program (buffers, WGSL and what the host needs, no parameters) is kept in
IndexedDB under a key of all that decides it; see `tensorgrad.cache.key`. On a hit only the
forward pass and the optimizer's update are traced, for the key. Whatever fails here (no IndexedDB,
no room, an entry that cannot be read) means that the program is compiled as if there were no cache;
`tg.debug(1)` says so.
A storage that hangs is not asked again in this session, until `clear` or `enable`.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeVar

from tensorgrad.cache import indexeddb
from tensorgrad.cache.key import Unkeyed, choices_key, digest
from tensorgrad.cache.text import decode, decode_choices, encode, encode_choices
from tensorgrad.debug import note
from tensorgrad.device.base import Limits
from tensorgrad.program import Choice, Program, Recipe

T = TypeVar("T")

__all__ = ["VARIABLE", "clear", "enable", "find", "find_choices", "save", "save_choices"]

VARIABLE = "TENSORGRAD_CACHE"
"""The environment's first setting: `0` switches the cache off."""

MOST_BYTES = 50_000_000
MOST_PROGRAMS = 64
"""What is kept; beyond it the programs that were used longest ago go."""

PATIENCE = 5.0
"""Seconds after which a storage that does not answer counts as none: some browsers' hangs for good."""


class Storage(Protocol):
    """Texts by key, with the time when each was used last."""

    async def get(self, key: str, now: float) -> Any: ...

    async def put(self, key: str, value: Any, now: float, size: int) -> None: ...

    async def uses(self) -> dict[str, tuple[int, float]]:
        """Key -> length, and when it was used last."""
        ...

    async def delete(self, keys: list[str]) -> None: ...

    async def clear(self) -> None: ...


_enabled = os.environ.get(VARIABLE, "1") != "0"
_storage: Storage | None = None
_hangs = False


def enable(on: bool = True) -> bool:
    """Switches the cache on or off for what is compiled from now on; returns how it was before.

    >>> import tensorgrad as tg
    >>> before = tg.cache.enable(False)
    >>> tg.cache.enable(before)
    False
    """
    global _enabled, _hangs
    before, _enabled, _hangs = _enabled, bool(on), False
    return before


async def clear() -> None:
    """Forgets every program of this origin; where there is no cache, there is nothing to do."""
    global _hangs
    _hangs = False
    await _try("clear", _clear())


async def find(recipe: Recipe, device: str, limits: Limits) -> tuple[str | None, Program | None]:
    """A recipe's place in the cache, or None if it can have none, and the program that is there."""
    if not _enabled or _hangs or not await _try("open", _open()):
        return None, None
    try:
        key = digest(recipe, device, limits)
    except Unkeyed as why:
        note(f"this program is not cached: {why}")
        return None, None
    program = await _try("read", _load(key, decode))
    if program and program.tuning and program.tuning.left and program.tuning.budget < recipe.tune:
        program = None  # there is time to measure what was left
    return key, program


async def save(key: str | None, program: Program) -> None:
    """Puts a program in its place."""
    if key is not None and not _hangs:
        await _try("write", _save(key, encode(program)))


async def find_choices(limits: Limits) -> dict[str, Choice]:
    """What tuning has chosen on an adapter, by the kernel's key."""
    if not _enabled or _hangs or not await _try("open", _open()):
        return {}
    return await _try("read", _load(choices_key(limits), decode_choices)) or {}


async def save_choices(limits: Limits, choices: Mapping[str, Choice]) -> None:
    """Keeps what tuning has chosen on an adapter, in place of what was kept before."""
    if _enabled and not _hangs and await _try("open", _open()):
        await _try("write", _save(choices_key(limits), encode_choices(choices)))


async def _try(what: str, work: Awaitable[T]) -> T | None:
    """The work's result, or None with a note where it fails."""
    global _storage, _hangs
    try:
        async with asyncio.timeout(PATIENCE):
            return await work
    except Exception as error:  # JavaScript's too: the cache is never in the way
        _storage, _hangs = None, isinstance(error, TimeoutError)
        note(f"the plan cache cannot {what}: {type(error).__name__} {error}")
        return None


async def _open() -> Storage | None:
    global _storage
    if _storage is None:
        _storage = await indexeddb.connect()
    return _storage


async def _clear() -> None:
    if storage := await _open():
        await storage.clear()


async def _load(key: str, decode: Callable[[str], T]) -> T | None:
    storage = await _open()
    text = await storage.get(key, time.time()) if storage else None
    if not isinstance(text, str):
        return None
    try:
        mark, _, body = text.partition("\n")
        if mark != _mark(body):
            raise ValueError("it is not what was written")
        return decode(body)
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        note(f"an entry of the plan cache is passed over: {error}")
        return None


async def _save(key: str, body: str) -> None:
    storage = await _open()
    if storage is None or len(body) > MOST_BYTES:
        return
    text = f"{_mark(body)}\n{body}"
    await storage.put(key, text, time.time(), len(text))
    kept = sorted((await storage.uses()).items(), key=lambda item: item[1][1], reverse=True)
    total, old = 0, []
    for count, (name, (nbytes, _)) in enumerate(kept, 1):
        total += nbytes
        if total > MOST_BYTES or count > MOST_PROGRAMS:
            old.append(name)
    if old:
        await storage.delete(old)


def _mark(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()
