"""`download(name, data)` gives a file to the reader; `read_image(name)` reads one as an array."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

import numpy as np

import tensorgrad as tg
from tensorgrad_page.pictures import is_picture, picture


class Download:
    """Give a file to the reader, in the browser's folder of downloads.

    Args:
        post: takes the file's name and its bytes.

    Example:
        >>> sent = []
        >>> download = Download(lambda name, data: sent.append((name, data)))
        >>> download("note.txt", "two")
        >>> sent
        [('note.txt', b'two')]
    """

    def __init__(self, post: Callable[[str, bytes], None]) -> None:
        self._post = post

    def __repr__(self) -> str:
        return "download(name, data=None): gives data, or the file of that name, to the reader as a file"

    def __call__(self, name: str, data: Any = None) -> None:
        """Download `data` as a file called `name`; without data, the file of that name in the working folder.

        Bytes and text are taken as they are. Otherwise the name says what is made: `.npy`, `.csv` or `.png` of an
        array, `.npz` or `.safetensors` of arrays by name (a state dict, too), `.json` of what JSON can hold.
        """
        if data is None:
            with open(name, "rb") as file:
                data = file.read()
        self._post(PurePosixPath(name).name, contents(name, data))


def contents(name: str, data: Any) -> bytes:
    """The bytes of a file with that name that holds `data`."""
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    if isinstance(data, str):
        return data.encode()
    kind = PurePosixPath(name).suffix.lower()
    if kind == ".json":
        return json.dumps(data).encode()
    if kind in (".npz", ".safetensors"):
        if not isinstance(data, Mapping):
            raise TypeError(f"a {kind} file holds arrays by name: give a dict, not {type(data).__name__}")
        return tg.save(data) if kind == ".safetensors" else _written(lambda file: np.savez(file, **data))
    if kind == ".npy":
        return _written(lambda file: np.save(file, np.asarray(data), allow_pickle=False))
    if kind == ".csv":
        return _written(lambda file: np.savetxt(file, np.asarray(data), delimiter=",", fmt="%.9g"))
    if kind == ".png":
        if not is_picture(np.asarray(data)):
            raise TypeError(f"a .png file holds rows and columns of numbers, not {np.shape(data)}")
        return picture(np.asarray(data))[0]
    raise TypeError(
        f"download() cannot make {name!r} of {type(data).__name__}: give bytes or text, or a name that ends in "
        ".npy, .npz, .csv, .png, .json or .safetensors"
    )


def _written(write: Callable[[io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


async def read_image(name: str) -> np.ndarray[Any, Any]:
    """The image of a file , of any kind that the browser reads, as bytes (height, width, 3 or 4)."""
    from js import Blob, OffscreenCanvas, createImageBitmap
    from pyodide.ffi import JsException, to_js

    with open(name, "rb") as file:
        data = to_js(file.read())
    try:
        bitmap = await createImageBitmap(Blob.new(to_js([data])))
    except JsException:
        raise ValueError(f"{name!r} is no image that this browser can read") from None
    width, height = bitmap.width, bitmap.height
    context = OffscreenCanvas.new(width, height).getContext("2d")
    context.drawImage(bitmap, 0, 0)
    pixels = np.asarray(context.getImageData(0, 0, width, height).data.to_py()).reshape(height, width, 4)
    return pixels if (pixels[:, :, 3] < 255).any() else pixels[:, :, :3]
