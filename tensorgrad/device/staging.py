"""Where the browser finds the inputs of a step in Python's memory."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from tensorgrad.device.base import Upload

COPIED = 16 * 1024
"""Bytes of an input below which it is copied: that takes less time than finding its address."""


class Staging:
    """Host memory from which inputs are uploaded: their addresses, then a place for each."""

    def __init__(self, uploads: Sequence[Upload]) -> None:
        table = len(uploads) * np.dtype(np.uintp).itemsize
        sizes = (_aligned(u.target.nbytes) for u in uploads)
        starts = list(itertools.accumulate(sizes, initial=_aligned(table)))
        self.memory = np.zeros(max(starts[-1], 4), np.uint8)
        self._addresses = self.memory[:table].view(np.uintp)
        self._places = []
        for (target, shape, storage), start in zip(uploads, starts, strict=False):
            nbytes = math.prod(shape) * storage.itemsize
            place = self.memory[start : start + nbytes].view(storage).reshape(shape)
            # padded to whole words, or copied sooner than its address is found out
            copied = nbytes != target.nbytes or nbytes < COPIED
            self._places.append((place, storage, copied, _address(self.memory) + start))
        self._addresses[:] = [own for *_, own in self._places]
        self._held: Sequence[np.ndarray] = ()

    def feed(self, arrays: Sequence[np.ndarray]) -> None:
        """See `base.Program`."""
        for i, (array, (place, storage, copied, own)) in enumerate(zip(arrays, self._places, strict=True)):
            if copied:
                place[...] = array
            elif array.dtype == storage and array.flags.c_contiguous:
                self._addresses[i] = _address(array)
            else:
                place[...] = array
                self._addresses[i] = own
        self._held = arrays  # until the next ones: nobody else may hold what was converted


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _aligned(nbytes: int) -> int:
    return -(-nbytes // 16) * 16
