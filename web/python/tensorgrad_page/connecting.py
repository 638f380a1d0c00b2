"""Downloads and a file picker for Python in the page's worker: `tg.browser.download` and `tg.browser.upload`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyodide.ffi import JsException, to_js

from tensorgrad import UnsupportedError, browser


def connect(post_file: Callable[[str, Any], None], choose_file: Callable[[str], Any]) -> None:
    """Has the library call these.

    Args:
        post_file: takes a file's name and bytes to the page.
        choose_file: gives a promise of the bytes of a file that the user chooses, or of null.
    """

    def download(name: str, data: bytes) -> None:
        post_file(name, to_js(memoryview(data)))

    async def upload(accept: str) -> bytes | None:
        try:
            found = await choose_file(accept)
        except JsException as error:
            raise UnsupportedError(f"the browser opens no file picker now; run this by a key: {error}") from None
        return found.to_bytes() if found else None

    browser.connect(download, upload)
