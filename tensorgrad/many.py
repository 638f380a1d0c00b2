"""Many training steps in one call, `train.run_steps` on batches that live on the device; losses that are read later.

The device is given whole chunks of steps, so that Python's part of a step is what the row of host
numbers takes to compute. Between two chunks everything else gets its turn, and an interrupt is heard.
"""

from __future__ import annotations

import operator
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from tensorgrad.callsite import call_site, warn
from tensorgrad.compiled import Built
from tensorgrad.device.batches import Batches
from tensorgrad.device.convert import as_array
from tensorgrad.errors import InputError, NonFiniteError, TensorgradError
from tensorgrad.optim.optimizer import Optimizer
from tensorgrad.outside import Held, Positions
from tensorgrad.state import State
from tensorgrad.structure import Structure

CHUNK_SECONDS = 0.25
"""What a chunk of steps should take: long enough to waste nothing, short enough to be stopped."""

GROWTH = 8
"""How much larger than the last one a chunk may be, while it is not known how long a step takes."""


class ManySteps(ABC):
    """Gives a training step `upload` and `run_steps`; a subclass is what `compile.Train` is."""

    state: State
    optimizer: Optimizer
    inputs: Structure
    _prefix: str
    _row: np.ndarray
    _since: int
    _snapshot_every: int | None
    _nonfinite: str
    _positions: Positions
    _held: Held
    _queued: int
    _last: dict[str, Any] | None
    _chunk = 1
    _destroyed = False
    _stepped = False

    def __repr__(self) -> str:
        return f"<Train of {self.state} with {self.optimizer!r}; await train.step({self.inputs})>"

    @property
    @abstractmethod
    def built(self) -> Built: ...

    @property
    @abstractmethod
    def _half(self) -> bool:
        """Whether the step is of mixed precision."""

    @abstractmethod
    async def _maybe_snapshot(self) -> None: ...

    async def upload(self, batches: Any) -> Batches:
        """Puts batches on the device once, for any number of `run_steps`.

        Args:
            batches: arrays in the structure given to `tg.compile`, each with a leading axis of batches:
                `{"x": images, "y": labels}` of shapes [n, 64, 784] and [n, 64], for inputs f32[64, 784] and i32[64].

        Returns:
            A handle. The device's memory is freed with its last reference, or by its `destroy()`.

        Raises:
            InputError: names, shapes, dtypes or ranges that do not fit, or different numbers of batches.
            OutOfMemoryError: the device has no room for them.
        """
        given = self.inputs.flatten((batches,), {})
        arrays = {name: _array(name, value) for name, value in given.items()}
        counts = {name: array.shape[0] if array.ndim else None for name, array in arrays.items()}
        if len(set(counts.values())) > 1 or None in counts.values() or 0 in counts.values():
            raise InputError(
                f"every input needs the same number of batches, one or more, on its first axis; got {_show(arrays)}",
                call_site(),
            )
        count = next(iter(counts.values()), 1) or 1
        for name, spec in self.inputs.leaves.items():
            shape = (count, *spec.static_shape)
            arrays[name] = as_array(f"the array of batches of {name!r}", arrays[name], shape, spec.dtype)
        batches = await self.built.executor.upload_batches(arrays, count)
        batches.outside = self._positions.wrong(arrays)
        self._positions.look(arrays)
        return batches

    async def run_steps(self, k: int, batches: Any) -> np.ndarray:
        """Runs `k` training steps on batches that live on the device: step i takes batch i, round and round.

        They are the same steps as `k` calls of `step`, without their cost in Python. The device is given as many
        at a time as take it a quarter of a second. In between, other tasks go on (a prediction sees the weights
        of that moment), and an interrupt leaves the weights of a whole step.

        Args:
            k: how many steps, 1 or more.
            batches: what `upload` returned, or what it takes, which is then on the device for this call only.

        Returns:
            The `k` losses, f32[k]. Captures are not read.

        Raises:
            InputError: as `upload`; nothing was changed.
            DeviceLostError: the device is gone; `restore` goes on from the last snapshot.
            NonFiniteError: a loss is, and `tg.compile` was told to raise. Later steps of its chunk were made.

        A loss that is not finite leaves parameters, optimizer state and step count as they were. Up to the end
        of its chunk, the learning rate's schedule and bias corrections are then a step ahead, as with `submit`; the
        first chunk, and the next after a skipped step, is one step.

        >>> import asyncio
        >>> import numpy as np
        >>> import tensorgrad as tg
        >>> from tensorgrad import nn, optim
        >>> async def fit():
        ...     loss_fn = lambda model, x, y: tg.mse_loss(model(x), y)
        ...     specs = {"x": tg.f32[8, 1], "y": tg.f32[8, 1]}
        ...     train = await tg.compile(nn.Linear(1, 1), loss_fn, optim.SGD(0.1), specs, device="numpy")
        ...     x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8, 1)
        ...     data = await train.upload({"x": x, "y": 3 * x + 1})
        ...     losses = await train.run_steps(400, data)
        ...     return losses.shape, round(float(losses[-1]), 4)
        >>> asyncio.run(fit())
        ((400,), 0.0)
        """
        k = _whole(k)
        data = batches if isinstance(batches, Batches) else await self.upload(batches)
        found: list[np.ndarray] = []
        try:
            while (done := sum(map(len, found))) < k:
                found.append(await self._run_chunk(data, done, k - done))
                await self._maybe_snapshot()
                self._check_finite(found[-1], data)
        finally:
            if data is not batches:
                data.destroy()
        return np.concatenate(found)

    async def _run_chunk(self, data: Batches, first: int, most: int) -> np.ndarray:
        """The losses of as many steps as make a chunk, at most `most`, from the batch `first` on."""
        state = self.state
        async with state.turns:
            await self._settle()
            executor = self.built.executor
            count = min(most, self._chunk, executor.at_once)
            if self._snapshot_every:
                count = min(count, max(1, self._snapshot_every - self._since))
            start = time.perf_counter()
            counted = state.counts[self._prefix]
            own = {"step": self._rows(count)} if "step" in self.built.interface.inputs else {}
            with state.running(count):
                losses = await executor.run_steps(data, first, count, own)
            pace = max(time.perf_counter() - start, 1e-6) / count
            self._chunk = max(1, min(int(CHUNK_SECONDS / pace), GROWTH * max(count, self._chunk)))
            if self._half:
                await state.recount()  # which gradients were finite only the device knows
            else:
                state.counts[self._prefix] += int(np.isfinite(losses).sum())
            if state.counts[self._prefix] < counted + count:
                self._chunk = 1  # some were skipped: what comes next is not a step ahead
            self._since, self._stepped = self._since + count, True
        return losses

    async def _settle(self) -> None:
        """Before a step: there is one to run, and how many were made is known."""
        if self._destroyed:
            raise TensorgradError("this training step was destroyed; compile again to get another", call_site())
        if self.state.unsure:
            await self.state.recount()

    def _rows(self, count: int) -> np.ndarray:
        """The host's numbers of the next steps, u32[count, slots]."""
        rows = np.repeat(self._row[None], count, axis=0)
        floats, step = rows.view(np.float32), self.state.counts[self._prefix] + 1
        for i in range(count):
            self._fill(rows[i], floats[i], self.state.calls + i, step + i)
        return rows

    def _fill(self, row: np.ndarray, floats: np.ndarray, call: int, step: int) -> None:
        """Writes the host's numbers of a step into a row: `floats` is the same memory."""
        row[0], row[1] = self.state.seed % 2**32, call % 2**32
        if self.optimizer.prefix != self._prefix:  # an optimizer may train on several states
            self.optimizer.prefix = self._prefix
        slots = self.built.interface.slots
        for name, number in self.optimizer.scalars(step).items():
            if name in slots:
                floats[slots[name]] = number

    async def losses(self) -> np.ndarray:
        """The losses of the steps queued since the last call, oldest first; the device keeps 1,024."""
        losses, given = await self._read_losses()
        self._explain(losses, given)
        return losses

    async def _read_losses(self) -> tuple[np.ndarray, dict[str, Any] | None]:
        """The losses of the queued steps, and of the first that an input has made NaN the inputs that are positions."""
        async with self.state.turns:
            losses = await self.built.executor.losses()
            forgotten, self._queued = self._queued > len(losses), 0
            if forgotten or self._half or not np.isfinite(losses).all():
                await self.state.recount()
        return losses, self._held.blamed(losses)

    def _check_finite(self, losses: np.ndarray, given: Mapping[str, Any] | Batches | None = None) -> None:
        """Raises NonFiniteError for losses that were just made, where that was asked for; else warns if it knows why.

        Args:
            given: the inputs of the steps.
        """
        bad = np.flatnonzero(~np.isfinite(losses))
        if self._nonfinite == "raise" and bad.size:
            later = int(np.isfinite(losses[bad[0] :]).sum())
            step = self.state.counts[self._prefix] + 1 - later
            now = "weights, optimizer state and step count are as before it"
            if later:
                now = f"it changed nothing, but later steps of its chunk were made, {later} of them"
            why = self._outside(given)
            advice = (
                f"The reason: {why}"
                if why
                else "Look at the batch (is NaN in it, or a label out of range?), or lower the learning rate"
            )
            raise NonFiniteError(f"the loss of step {step} is {losses[bad[0]]}; {now}. {advice}", call_site())
        self._explain(losses, given)

    def _explain(self, losses: np.ndarray, given: Mapping[str, Any] | Batches | None) -> None:
        """Warns where a loss is not finite because of a label or an index out of range."""
        if not np.isfinite(losses).all() and (why := self._outside(given)):
            warn(f"the loss is not finite, and the step changed nothing: {why}")

    def _outside(self, given: Mapping[str, Any] | Batches | None) -> str | None:
        return given.outside if isinstance(given, Batches) else self._positions.wrong(given or {})


def _array(name: str, value: Any) -> np.ndarray:
    try:
        return np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InputError(f"the batches of {name!r} are not an array: {error}", call_site()) from None


def _show(arrays: dict[str, np.ndarray]) -> str:
    return ", ".join(f"{name} of shape {list(array.shape)}" for name, array in arrays.items())


def _whole(k: Any) -> int:
    try:
        count = operator.index(k)
    except TypeError:
        count = 0
    if count < 1 or isinstance(k, bool):
        raise InputError(f"the number of steps must be a whole number, 1 or more, got {k!r}", call_site())
    return count
