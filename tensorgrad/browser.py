"""Files between Python and whoever uses the page: downloads, a file picker, and checkpoints that the browser keeps.

What is kept is in IndexedDB, in a database beside the plan cache's. It stays until it is forgotten, or until the
browser needs the room. A worker has no document, so a page that runs Python in one says by `connect` what it does in
its place.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from tensorgrad.cache import indexeddb
from tensorgrad.callsite import call_site
from tensorgrad.errors import CheckpointError, InputError, UnsupportedError

__all__ = ["connect", "download", "forget", "keep", "kept", "read", "upload"]

DATABASE = "tensorgrad checkpoints"

PATIENCE = 60.0
"""Seconds after which a storage that does not answer counts as none: some browsers' hangs for good."""


class Page(NamedTuple):
    """What a page does for Python in a worker; see `connect`."""

    download: Callable[[str, bytes], Any]
    upload: Callable[[str], Awaitable[bytes | None]]


_page: Page | None = None


def connect(download: Callable[[str, bytes], Any], upload: Callable[[str], Awaitable[bytes | None]]) -> None:
    """Has `download` and `upload` call these, for Python in a worker.

    Args:
        download: takes a file's name and bytes.
        upload: takes what kinds of files there may be, as `<input accept>` has them; gives the bytes of one, or None.
    """
    global _page
    _page = Page(download, upload)


def download(name: str, data: bytes | bytearray | memoryview) -> None:
    """Gives the user of the page a file.

    Args:
        name: which the browser proposes, such as `"digits.safetensors"`.
        data: its bytes, such as `await train.save()`.

    Raises:
        UnsupportedError: there is no page.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InputError(f"a file is made of bytes, got {type(data).__name__}", call_site())
    if _page is not None:
        _page.download(str(name), bytes(data))
        return
    js = _document("a download")
    link = js.document.createElement("a")
    blob = js.Blob.new(_array([_bytes(data)]))
    link.href, link.download = js.URL.createObjectURL(blob), str(name)
    link.click()
    # the browser has taken it by then
    js.setTimeout(js.Function.new("url", "URL.revokeObjectURL(url)"), 10_000, link.href)


async def upload(accept: str = "") -> bytes:
    """Asks the user of the page for a file, and returns its bytes.

    Browsers open a file picker only within a few seconds of a click or of a key.

    Args:
        accept: what kinds of files to show, `".safetensors"` for example.

    Raises:
        InputError: the user chose none.
        UnsupportedError: there is no page, or the browser does not open a picker now.
    """
    found = await (_page.upload(accept) if _page is not None else _pick(accept))
    if found is None:
        raise InputError("no file was chosen", call_site())
    return found


async def _pick(accept: str) -> bytes | None:
    js = _document("a file picker")
    chooser = js.document.createElement("input")
    chooser.type, chooser.accept = "file", accept
    answer = asyncio.ensure_future(indexeddb.settled(chooser, "onchange", "oncancel"))
    await asyncio.sleep(0)  # it listens now
    try:
        chooser.showPicker()
    except Exception as error:  # JavaScript's
        answer.cancel()
        raise UnsupportedError(
            f"the browser opens no file picker now; call this right after a click: {error}"
        ) from None
    try:
        await answer
    except OSError:
        return None
    return (await chooser.files.item(0).arrayBuffer()).to_bytes()


def _document(what: str) -> Any:
    try:
        import js
    except ImportError:
        js = None
    if js is None or not getattr(js, "document", None):
        where = "in a worker, which has no page" if js is not None else "outside of a browser"
        raise UnsupportedError(f"{what} needs a page, and this Python runs {where}", call_site())
    return js


# -- what the browser keeps -------------------------------------------------------------------------


async def keep(name: str, data: bytes) -> None:
    """Has the browser keep bytes under a name, in place of what it kept there.

    Raises:
        CheckpointError: there is no room, or the browser keeps nothing, as in some private windows.
        UnsupportedError: there is no IndexedDB here, as outside of browsers.
    """
    async with _storage("keep") as storage:
        await storage.put(name, _bytes(data), time.time(), len(data))


async def read(name: str) -> bytes | None:
    """What the browser keeps under a name, or None where there is nothing; raises as `keep`."""
    async with _storage("read") as storage:
        found = await storage.get(name, time.time())
        return found.to_bytes() if hasattr(found, "to_bytes") else None


async def kept() -> dict[str, int]:
    """The names of all that is kept, with bytes; raises as `keep`."""
    async with _storage("list") as storage:
        return {name: size for name, (size, _) in (await storage.uses()).items()}


async def forget(name: str) -> None:
    """Deletes what is kept under a name, if there is something; raises as `keep`."""
    async with _storage("forget") as storage:
        await storage.delete([name])


@asynccontextmanager
async def _storage(what: str) -> AsyncIterator[indexeddb.IndexedDB]:
    try:
        async with asyncio.timeout(PATIENCE):
            storage = await indexeddb.connect(DATABASE)
            if storage is None:
                raise UnsupportedError(
                    "there is no IndexedDB here to keep checkpoints in; train.save(path) writes a file", call_site()
                )
            try:
                yield storage
            finally:
                storage.close()
    except UnsupportedError:
        raise
    except Exception as error:  # JavaScript's too
        hint = "; there is no room for it: tg.browser.forget(name) deletes others" * ("Quota" in str(error))
        why = f"{type(error).__name__} {error}".strip()
        raise CheckpointError(f"the browser cannot {what} checkpoints: {why}{hint}", call_site()) from None


def _bytes(data: bytes | bytearray | memoryview) -> Any:
    """As JavaScript's Uint8Array, with memory of its own."""
    from pyodide.ffi import to_js

    return to_js(memoryview(data))


def _array(values: list[Any]) -> Any:
    from pyodide.ffi import to_js

    return to_js(values)
