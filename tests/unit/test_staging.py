"""Where inputs are uploaded from: their own memory where that is what the device stores, else a copy."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tensorgrad.device.base import Slice, Upload
from tensorgrad.device.staging import COPIED, Staging

LARGE = COPIED // 4 + 1


def uploaded(staging: Staging, uploads: list[Upload]) -> list[np.ndarray]:
    """What the browser would read."""
    addresses = staging.memory[: 8 * len(uploads)].view(np.uintp)
    found = [ctypes.string_at(int(a), u.target.nbytes) for a, u in zip(addresses, uploads, strict=True)]
    return [np.frombuffer(data, np.uint8) for data in found]


def upload(shape: tuple[int, ...], storage: type[np.generic], nbytes: int) -> Upload:
    return Upload(Slice(1, 0, nbytes), shape, np.dtype(storage))


@pytest.mark.parametrize("size", [0, 1, 5, LARGE])
def test_every_kind_of_input_arrives(size: int) -> None:
    numbers = np.arange(size)
    arrays = [
        numbers.astype(np.float32),
        numbers % 3 == 0,  # stored as u32
        numbers.astype(np.float16),  # an odd number of them is padded
        np.repeat(numbers.astype(np.int32), 2)[::2],
        np.asfortranarray(numbers.astype(np.float32).reshape(size, 1).repeat(2, axis=1)),
    ]
    stored = [np.float32, np.uint32, np.float16, np.int32, np.float32]
    uploads = [
        upload(a.shape, s, -(-max(a.size * np.dtype(s).itemsize, 4) // 4) * 4)
        for a, s in zip(arrays, stored, strict=True)
    ]
    staging = Staging(uploads)
    for _ in range(2):
        staging.feed(arrays)
        for found, array, s in zip(uploaded(staging, uploads), arrays, stored, strict=True):
            expected = np.ascontiguousarray(array, s).reshape(-1).view(np.uint8)
            np.testing.assert_array_equal(found[: expected.size], expected)
            assert not found[expected.size :].any()
        arrays = [array[::-1].copy() for array in arrays]


def test_a_large_array_is_read_where_it_lies() -> None:
    array = np.ones(LARGE, np.float32)
    uploads = [upload(array.shape, np.float32, array.nbytes)]
    staging = Staging(uploads)
    staging.feed([array])
    array[:] = 2
    assert (uploaded(staging, uploads)[0].view(np.float32) == 2).all()


def test_converted_arrays_live_until_the_next_step() -> None:
    uploads = [upload((LARGE,), np.float32, 4 * LARGE)]
    staging = Staging(uploads)
    staging.feed([np.full(LARGE, 7, np.float32)])
    others = [np.zeros(LARGE, np.float32) for _ in range(8)]  # would take memory that was freed
    assert (uploaded(staging, uploads)[0].view(np.float32) == 7).all()
    del others
