"""Inputs of many steps that live on the device: arrays with a leading axis of batches, uploaded once."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tensorgrad.device.base import Feed, Slice
from tensorgrad.device.convert import to_bytes
from tensorgrad.dtypes import DType, Shape
from tensorgrad.errors import InputError
from tensorgrad.plan import BufferSpec

WRITE_AT_ONCE = 64 * 2**20
"""Bytes that are written before the browser gets a turn."""


class Held(NamedTuple):
    """An input's values.

    Attributes:
        shape, dtype: of one of them.
        place: where they are: what the device that made the batches understands.
    """

    shape: Shape
    dtype: DType
    place: Any


class Batches:
    """Batches on a device, for `train.run_steps`. Made by `train.upload`.

    They are freed with the last reference to them, or by `destroy`.

    Attributes:
        count: how many there are.
        inputs: name -> what is held of it.
        outside: a label or an index among them that is out of range, in words.
    """

    outside: str | None = None

    def __init__(self, device: Any, count: int, inputs: Mapping[str, Held], buffers: Sequence[int] = ()) -> None:
        self.device, self.count, self.inputs = device, count, dict(inputs)
        self._finalizer = weakref.finalize(self, _free, device, list(buffers))
        self._finalizer.atexit = False

    def destroy(self) -> None:
        """Free them; safe twice."""
        self._finalizer()

    def check(self, device: Any, wanted: Mapping[str, tuple[Shape, DType]]) -> None:
        """Raise InputError unless they are on this device, for these inputs."""
        if not self._finalizer.alive:
            raise InputError("these batches were destroyed; upload them again")
        if self.device is not device:
            raise InputError("these batches are on another device than the training; upload them again")
        have = {name: (held.shape, held.dtype) for name, held in self.inputs.items()}
        if have != wanted:
            raise InputError(f"these batches hold {_show(have)}, but a step takes {_show(wanted)}")

    def __repr__(self) -> str:
        held = _show({name: (held.shape, held.dtype) for name, held in self.inputs.items()})
        return f"Batches({self.count} of {held}{'' if self._finalizer.alive else ', destroyed'})"


def _show(inputs: Mapping[str, tuple[Shape, DType]]) -> str:
    return ", ".join(f"{name} {dtype}[{', '.join(map(str, shape))}]" for name, (shape, dtype) in inputs.items())


def _free(device: Any, buffers: list[int]) -> None:
    if buffers:
        device.free(buffers)


async def upload_batches(
    device: Any, specs: Mapping[str, BufferSpec], arrays: Mapping[str, np.ndarray], count: int
) -> Batches:
    """Batches in buffers of their own, several to an input where one would be too large.

    Args:
        device: a `base.Device`.
        specs: the inputs of a step.
        arrays: their values, `count` of them along the first axis.
    """
    each = {name: max(1, min(count, device.limits.buffer_size // spec.nbytes)) for name, spec in specs.items()}
    pieces = [(name, at, min(each[name], count - at)) for name in specs for at in range(0, count, each[name])]
    buffers = await device.alloc([(f"batches of {name}", size * specs[name].nbytes) for name, _, size in pieces])
    inputs = {
        name: Held(
            spec.shape,
            spec.dtype,
            (tuple(b for b, (of, _, _) in zip(buffers, pieces, strict=True) if of == name), each[name]),
        )
        for name, spec in specs.items()
    }
    batches = Batches(device, count, inputs, buffers)
    for buffer, (name, at, size) in zip(buffers, pieces, strict=True):
        await _write(device, buffer, specs[name], arrays[name][at : at + size])
    return batches


async def _write(device: Any, buffer: int, spec: BufferSpec, values: np.ndarray) -> None:
    """Several values of an input, one after the other, each padded to whole words."""
    stride, some = spec.nbytes, max(1, WRITE_AT_ONCE // spec.nbytes)
    for at in range(0, len(values), some):
        if at:
            await asyncio.sleep(0)
        part = values[at : at + some]
        data = to_bytes(part, spec.dtype, part.size * spec.dtype.itemsize).reshape(len(part), -1)
        if data.shape[1] < stride:
            data = np.pad(data, ((0, 0), (0, stride - data.shape[1])))
        device.write(Slice(buffer, at * stride, data.nbytes), data)


class Tables:
    """Device memory for inputs of which each step of a call has its own value, such as the learning rate.

    Args:
        device: a `base.Device`.
        owned: handles that belong to the runtime, which frees them.
    """

    def __init__(self, device: Any, owned: list[int]) -> None:
        self._device, self._owned = device, owned
        self._tables: dict[str, tuple[int, int]] = {}

    async def feed(self, name: str, target: Slice, spec: BufferSpec, values: np.ndarray) -> Feed:
        """Write the values to the table, which grows to hold them."""
        buffer, room = self._tables.get(name, (0, 0))
        if room < len(values):
            grown = 1 << (len(values) - 1).bit_length()
            (fresh,) = await self._device.alloc([(f"table of {name}", grown * spec.nbytes)])
            self._owned.append(fresh)
            if room:
                self._owned.remove(buffer)
                self._device.free([buffer])
            buffer, room = self._tables[name] = fresh, grown
        await _write(self._device, buffer, spec, values)
        return Feed(target, (buffer,), room, 0)
