"""The browser's IndexedDB as a storage of values by key: the plan cache's, and that of checkpoints.

Values are in one object store and what is known of them in another, so that finding the oldest
loads no values. A transaction ends as soon as it has nothing to do, and nothing of Python's waits
for an event before then: each one is asked for all that it has to do at once.
"""

from __future__ import annotations

import asyncio
from typing import Any

NAME, VERSION = "tensorgrad", 1
TEXTS, USES = "texts", "uses"


async def connect(database: str = NAME) -> IndexedDB | None:
    """A database of this origin, made where it is missing; None where there is no IndexedDB.

    Raises:
        Exception: the browser refuses it, as some do in private windows.
    """
    try:
        import js
    except ImportError:
        return None
    factory = getattr(js, "indexedDB", None)
    if not factory:
        return None
    request = factory.open(database, VERSION)

    def create(_: Any) -> None:
        for name in (TEXTS, USES):
            request.result.createObjectStore(name)

    await settled(request, "onsuccess", "onerror", onupgradeneeded=create)
    return IndexedDB(request.result)


class IndexedDB:
    """An open database; see `tensorgrad.cache.Storage`."""

    def __init__(self, database: Any) -> None:
        self.database = database

    def close(self) -> None:
        """Ends the connection, once what is under way is done."""
        self.database.close()

    def _begin(self) -> tuple[Any, Any, Any]:
        """A transaction, and both stores in it."""
        transaction = self.database.transaction(_array([TEXTS, USES]), "readwrite")
        return transaction, transaction.objectStore(TEXTS), transaction.objectStore(USES)

    async def get(self, key: str, now: float) -> Any:
        """A value, which is used by that; None where there is none."""
        transaction, texts, uses = self._begin()
        request, known = texts.get(key), uses.get(key)
        await _done(transaction)
        if not known.result:
            return None
        transaction, _, uses = self._begin()
        uses.put(_array([known.result[0], now]), key)
        return request.result

    async def put(self, key: str, value: Any, now: float, size: int) -> None:
        """Writes a text, or an array of bytes, over another of its key."""
        transaction, texts, uses = self._begin()
        texts.put(value, key)
        uses.put(_array([size, now]), key)
        await _done(transaction)

    async def uses(self) -> dict[str, tuple[int, float]]:
        """Key -> size, and when it was used last."""
        transaction, _, uses = self._begin()
        keys, found = uses.getAllKeys(), uses.getAll()
        await _done(transaction)
        return {key: (int(nbytes), float(used)) for key, (nbytes, used) in zip(keys.result, found.result, strict=True)}

    async def delete(self, keys: list[str]) -> None:
        """Forgets some values."""
        transaction, texts, uses = self._begin()
        for key in keys:
            texts.delete(key)
            uses.delete(key)
        await _done(transaction)

    async def clear(self) -> None:
        """Forgets all of them."""
        transaction, texts, uses = self._begin()
        texts.clear()
        uses.clear()
        await _done(transaction)


def _array(values: list[Any]) -> Any:
    from pyodide.ffi import to_js

    return to_js(values)


async def _done(transaction: Any) -> None:
    await settled(transaction, "oncomplete", "onabort")


async def settled(target: Any, good: str, bad: str, **handlers: Any) -> None:
    """Waits until a request or transaction has succeeded.

    Raises:
        OSError: it failed, with what the browser says.
    """
    from pyodide.ffi import create_proxy

    answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def succeed(_: Any) -> None:
        if not answer.done():
            answer.set_result(None)

    def fail(_: Any) -> None:
        if not answer.done():
            answer.set_exception(OSError(str(target.error)))

    proxies = {name: create_proxy(call) for name, call in {good: succeed, bad: fail, **handlers}.items()}
    for name, proxy in proxies.items():
        setattr(target, name, proxy)
    try:
        await answer
    finally:
        for name, proxy in proxies.items():
            setattr(target, name, None)
            proxy.destroy()
