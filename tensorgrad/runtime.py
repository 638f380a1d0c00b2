"""A plan and its kernels on a device.

`create_runtime` places every buffer of a plan, records the kernels, and returns a
`Runtime`: parameters up and down by name, and steps. What outlives a step (parameters
and states) lives in a `Store`, which several runtimes on one device may share: a
trainer, a second loss, a predictor.
"""

from __future__ import annotations

import asyncio
import struct
import weakref
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tensorgrad.callsite import call_site
from tensorgrad.device.base import Feed, KernelTime, Limits, Program, Recording, Slice
from tensorgrad.device.batches import Batches, Tables, upload_batches
from tensorgrad.device.convert import as_array, check_names, from_bytes, to_bytes
from tensorgrad.device.store import Placement, Store, Stored, place, record
from tensorgrad.dtypes import DType
from tensorgrad.errors import InputError, TensorgradError
from tensorgrad.plan import BufferPlan, BufferSpec, KernelSpec
from tensorgrad.turns import Turns

if TYPE_CHECKING:
    import numpy.typing as npt  # only annotations name it, and it takes 2 ms to import

__all__ = ["Runtime", "Store", "Stored", "create_runtime"]


async def create_runtime(
    plan: BufferPlan,
    kernels: Sequence[KernelSpec],
    *,
    device: Any = None,
    store: Store | None = None,
    values: Mapping[str, npt.ArrayLike] | None = None,
    chunk: int = 0,
    debug_groups: bool = True,
    label: str = "tensorgrad step",
) -> Runtime:
    """Put a plan on a device.

    Args:
        plan: the buffers; the loss is the output named `loss`.
        kernels: what a step runs, in order. Those without source or threads are skipped.
        device: a `base.Device`, or a JavaScript GPUDevice; it is never destroyed here.
            None requests one, which `Runtime.destroy` gives back.
        store: parameters and states to share. What it holds is used, and must fit; what
            it lacks is allocated, initialised and added. None makes a store of its own.
        values: what parameters and states that the store lacks start with, by name, in their exact
            shapes and dtypes; others start as the plan says, parameters with zeros.
        chunk: most kernels in one submission, for kernels so long that a browser's
            watchdog would stop a whole step; 0 submits a step at once.
        debug_groups: whether the operations' names show in the browser's GPU tools; without
            them, encoding a kernel takes half as long (0.6 us instead of 1.2).
        label: names the steps there.

    Raises:
        NoDeviceError: no device was given, and there is none.
        OutOfMemoryError: names the tensor that did not fit and the plan's total.
        ShaderError: with every kernel that did not compile.
        InputError: the store holds a tensor of another shape or dtype under a name.
    """
    own_device, own_store = device is None and store is None, store is None
    device = await _find_device(device, store)
    placement = program = None
    try:
        store = store if store is not None else Store(device)
        async with store.lock:
            placement = await place(plan, device, store)
            recording = record(plan, kernels, placement, label, chunk=chunk, groups=debug_groups)
            program = await _compile(device, recording, _write_values(device, placement, values or {}))
            placement.commit(store)
        return Runtime(plan, kernels, device, store, placement, program, own_device, own_store)
    except BaseException:
        if placement is not None:
            placement.undo(device)
        if own_device:
            device.close()
        raise


async def _compile(device: Any, recording: Recording, meanwhile: Coroutine[Any, Any, None]) -> Program:
    """The recording's program; `meanwhile` runs while the browser compiles it."""
    task = asyncio.ensure_future(meanwhile)
    try:
        program = await device.compile(recording)
        await task
    except BaseException:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise
    return program


async def _write_values(device: Any, placement: Placement, values: Mapping[str, npt.ArrayLike]) -> None:
    for name, stored in placement.tensors.items():
        if name in values:
            device.write(stored.range, to_bytes(values[name], stored.dtype, stored.range.nbytes))


async def _find_device(device: Any, store: Store | None) -> Any:
    """The device to use: the store's, the given one, or a new one."""
    if store is not None:
        store.check_alive()
        if device is None or device is store.device or device == getattr(store.device, "js_device", None):
            return store.device
        raise InputError("the store's tensors are on another device than the one given")
    from tensorgrad.device.webgpu import WebGPUDevice, request_device

    if device is None:
        return await request_device()
    return device if hasattr(device, "alloc") else WebGPUDevice(device)


class _Slot(NamedTuple):
    """An input, and what its value has to be."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    spec: BufferSpec


class Runtime:
    """A plan on a device, ready to step. Made by `create_runtime`.

    Attributes:
        plan, kernels: what it was made from.
        device: the device; `limits` is what it allows.
        store: the parameters and states.
    """

    at_once = 4_096
    """Most steps of one `run_steps`."""

    def __init__(
        self,
        plan: BufferPlan,
        kernels: Sequence[KernelSpec],
        device: Any,
        store: Store,
        placement: Placement,
        program: Program,
        own_device: bool,
        own_store: bool,
    ) -> None:
        self.plan = plan
        self.kernels = tuple(kernels)
        self.device = device
        self.store = store
        self._slices = placement.slices
        self._program = program
        self._turns = Turns()
        self._tables = Tables(device, placement.owned)
        specs = ((name, plan.buffers[index]) for name, index in plan.inputs.items())
        self._slots = [_Slot(name, spec.dtype.numpy, spec.shape, spec) for name, spec in specs]
        self._names = frozenset(plan.inputs)
        self._reads: dict[tuple[str, ...], tuple[Slice, ...]] = {}
        loss = plan.outputs.get("loss")
        self._loss = None if loss is None else plan.buffers[loss].dtype
        own = store if own_store else None
        self._finalizer = weakref.finalize(self, _release, program, device, placement.owned, own, own_device)
        self._finalizer.atexit = False

    @property
    def limits(self) -> Limits:
        """What the device allows: sizes of buffers, bindings and workgroups."""
        return self.device.limits

    # -- steps ------------------------------------------------------------------------------

    async def step(self, inputs: Mapping[str, Any]) -> float:
        """Run one step and return its loss.

        Raises:
            InputError: before anything is uploaded, for a missing, unknown or ill-fitting input.
            DeviceLostError: the device is gone, or goes while this waits.
        """
        dtype = self._loss_dtype()
        async with self._turns:
            self._gather(inputs)
            bits = await self._program.step()
        return _decode(bits, dtype)

    async def run(self, inputs: Mapping[str, Any], read: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """Run one step and return outputs by name, all in one readback.

        Args:
            read: names of outputs; None reads all of them.
        """
        names = tuple(self.plan.outputs if read is None else read)
        slices = self._reads.get(names)
        if slices is None:
            if unknown := [name for name in names if name not in self.plan.outputs]:
                have = sorted(self.plan.outputs)
                raise InputError(f"there is no output {unknown[0]!r}; the outputs are {have}")
            slices = self._reads[names] = tuple(self._slices[self.plan.outputs[name]] for name in names)
        async with self._turns:
            self._gather(inputs)
            data = await self._program.run(slices, with_loss="loss" in names)
        specs = (self.plan.buffers[self.plan.outputs[name]] for name in names)
        return {n: from_bytes(d, s.shape, s.dtype) for n, d, s in zip(names, data, specs, strict=True)}

    async def submit(self, inputs: Mapping[str, Any]) -> None:
        """Queue one step and return without its loss; waits only while 3 are in flight, short ones counted together."""
        async with self._turns:
            self._gather(inputs)
            await self._program.submit()

    async def upload_batches(self, arrays: Mapping[str, np.ndarray], count: int) -> Batches:
        """Put `count` values of some inputs, along the arrays' first axis, on the device for `run_steps`."""
        self._check_alive()
        specs = {name: self.plan.buffers[self.plan.inputs[name]] for name in arrays}
        return await upload_batches(self.device, specs, arrays, count)

    async def run_steps(self, batches: Batches, first: int, count: int, own: Mapping[str, np.ndarray]) -> np.ndarray:
        """Run `count` steps in one call into the device and return their losses.

        Args:
            batches: the inputs' values; step i takes `first + i`, and begins anew after the last.
            own: inputs of which each step has its own value, along the first axis.
        """
        dtype = self._loss_dtype()
        async with self._turns:
            self._check_alive()
            where = {name: (self._slices[index], self.plan.buffers[index]) for name, index in self.plan.inputs.items()}
            feeds = [await self._tables.feed(name, *where[name], values) for name, values in own.items()]
            # last, because while this waited they may have been destroyed
            batches.check(self.device, {n: (s.shape, s.dtype) for n, (_, s) in where.items() if n not in own})
            feeds += [Feed(where[name][0], *held.place, turn=batches.count) for name, held in batches.inputs.items()]
            bits = await self._program.run_many(feeds, first, count)
        return _floats(bits, dtype)

    async def losses(self) -> np.ndarray:
        """The losses of all steps whose loss was not returned yet, oldest first.

        The device keeps the last 1,024; where more were queued without reading, the oldest
        of them are forgotten.
        """
        dtype = self._loss_dtype()
        async with self._turns:
            self._check_alive()
            bits = await self._program.losses()
        return _floats(bits, dtype)

    async def profile(self, inputs: Mapping[str, Any], repeats: int = 1) -> list[KernelTime]:
        """Run one step, which counts as any other, with each kernel timed on the GPU by itself.

        Args:
            repeats: how often each kernel runs, one time after the other; its time is the mean. What updates a state in
                place does it as often.

        Raises:
            UnsupportedError: the device has no timestamp queries; nothing was run.
        """
        async with self._turns:
            self._gather(inputs)
            running = [kernel for kernel in self.kernels if kernel.runs]
            times = await self._program.profile([repeats] * len(running) if repeats > 1 else ())
        return [KernelTime(k.name, k.op_index, t / repeats) for k, t in zip(running, times, strict=True)]

    def _gather(self, inputs: Mapping[str, Any]) -> None:
        """Check the inputs, then give them to the program: its next step uploads them."""
        self._check_alive()
        if inputs.keys() != self._names:
            check_names("inputs", inputs, self._names)
        arrays = []
        for name, dtype, shape, spec in self._slots:
            value = inputs[name]
            if type(value) is not np.ndarray or value.dtype != dtype or value.shape != shape:
                value = as_array(f"input {name!r}", value, shape, spec.dtype)
            arrays.append(value)
        self._program.feed(arrays)

    # -- parameters and states --------------------------------------------------------------

    def upload(self, values: Mapping[str, Any], *, strict: bool = False) -> None:
        """Overwrite parameters and states by name; `strict` wants every one of them."""
        self._upload("parameters and states", {**self.plan.params, **self.plan.states}, values, strict)

    def upload_params(self, params: Mapping[str, Any], strict: bool = True) -> None:
        """Overwrite the parameters.

        Args:
            params: arrays by name.
            strict: whether every parameter has to be there. Unknown names and wrong shapes
                are refused either way, before anything is uploaded.
        """
        self._upload("parameters", self.plan.params, params, strict)

    def upload_states(self, states: Mapping[str, Any], strict: bool = True) -> None:
        """Overwrite the states, as `upload_params` does parameters."""
        self._upload("states", self.plan.states, states, strict)

    async def download(self, names: Iterable[str] | None = None) -> dict[str, np.ndarray]:
        """Parameters and states by name; None is all of them."""
        ids = {**self.plan.params, **self.plan.states}
        return await self._download("parameters and states", ids, ids if names is None else names)

    async def download_params(self) -> dict[str, np.ndarray]:
        """All parameters by name."""
        return await self._download("parameters", self.plan.params, self.plan.params)

    async def download_states(self) -> dict[str, np.ndarray]:
        """All states by name."""
        return await self._download("states", self.plan.states, self.plan.states)

    async def download_param_grads(self) -> dict[str, np.ndarray]:
        """The gradients of the last step, by parameter name."""
        if self.plan.params and not self.plan.grads:
            raise TensorgradError("this plan keeps no gradients after a step; compile with keep_grads=True")
        return await self._download("gradients", self.plan.grads, self.plan.grads)

    async def download_outputs(self, names: Iterable[str] | None = None) -> dict[str, np.ndarray]:
        """Outputs of the last step by name; None is all of them."""
        return await self._download("outputs", self.plan.outputs, self.plan.outputs if names is None else names)

    def _upload(self, what: str, ids: Mapping[str, int], values: Mapping[str, Any], strict: bool) -> None:
        self._check_alive()
        check_names(what, values, ids if strict else [*(n for n in ids if n in values)])
        ready = []
        for name, value in values.items():
            spec = self.plan.buffers[ids[name]]
            array = as_array(f"{spec.kind} {name!r}", value, spec.shape, spec.dtype)
            ready.append((self._slices[spec.id], to_bytes(array, spec.dtype, spec.nbytes)))
        for target, data in ready:
            self.device.write(target, data)

    async def _download(self, what: str, ids: Mapping[str, int], names: Iterable[str]) -> dict[str, np.ndarray]:
        names = list(names)
        if unknown := [name for name in names if name not in ids]:
            check_names(what, [*ids, *unknown], ids)
        async with self._turns:
            self._check_alive()
            data = await self.device.read([self._slices[ids[name]] for name in names])
        specs = [self.plan.buffers[ids[name]] for name in names]
        return {n: from_bytes(d, s.shape, s.dtype) for n, d, s in zip(names, data, specs, strict=True)}

    # -- life -------------------------------------------------------------------------------

    def destroy(self) -> None:
        """Free everything that it owns: its buffers, its own store, its own device. Safe twice.

        A given device and a given store live on, as do the parameters that this runtime added to it.
        """
        self._finalizer()

    def _check_alive(self) -> None:
        if not self._finalizer.alive:
            raise TensorgradError("this runtime was destroyed; compile again to get another", call_site())
        self.store.check_alive()

    def _loss_dtype(self) -> DType:
        if self._loss is None:
            self._check_alive()
            raise TensorgradError("this plan has no output named 'loss'; call run() and read its outputs")
        return self._loss

    def __repr__(self) -> str:
        state = "" if self._finalizer.alive else ", destroyed"
        return f"Runtime({len(self.kernels)} kernels, {self.plan.nbytes:,} bytes on {self.device!r}{state})"


def _release(program: Program, device: Any, owned: list[int], store: Store | None, own_device: bool) -> None:
    """What destroying a runtime, or forgetting it, frees."""
    program.close()
    device.free(owned)
    if store is not None:
        store.destroy()
    if own_device:
        device.close()


def _floats(bits: np.ndarray, dtype: DType) -> np.ndarray:
    """The numbers that losses' 4 bytes each (uint32) hold."""
    width = bits.astype(f"uint{8 * dtype.itemsize}") if dtype.itemsize < 4 else bits
    return width.view(dtype.storage)


_BITS = struct.Struct("<I")
_NUMBERS = {name: struct.Struct(form) for name, form in {"f32": "<f", "i32": "<i", "u32": "<I", "bool": "<I"}.items()}
_HALF = struct.Struct("<e")


def _decode(bits: int, dtype: DType) -> float:
    """The number that a loss's 4 bytes hold; a 16-bit float is in the lower two."""
    return _NUMBERS.get(dtype.name, _HALF).unpack_from(_BITS.pack(bits))[0]
