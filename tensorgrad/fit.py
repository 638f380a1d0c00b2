"""The training loop: `train.fit` draws batches, makes steps, validates, shows how far it is, and keeps a record.

Steps are queued, and losses are read a few times a second, so that the device need not wait for Python; only where
`on_step` wants to see every loss, each is read. Each is at first, too, and after one that was skipped: the reading
tells how many steps count, on which the schedule depends. Batches that are on the device run as with `run_steps`.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import time
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from typing import Any, NamedTuple

import numpy as np

from tensorgrad import browser
from tensorgrad.callsite import call_site, warn
from tensorgrad.checkpoints import Checkpoints
from tensorgrad.data import DataLoader
from tensorgrad.device.base import LOSS_RING
from tensorgrad.device.batches import Batches
from tensorgrad.errors import CheckpointError, InputError
from tensorgrad.many import ManySteps
from tensorgrad.progress import Progress
from tensorgrad.record import Metrics, Record, Validation, metrics
from tensorgrad.step import StepResult

PATIENCE = 2.0
"""Seconds that a run which an interrupt or an error ends waits for the losses of what it has queued."""


class Fitting(ManySteps, Checkpoints):
    """Gives a training step `fit`; a subclass is what `compile.Train` is.

    Attributes:
        record: of the last `fit`, also of one that was interrupted or failed; None before the first.
    """

    record: Record | None = None

    @abstractmethod
    async def step(self, *args: Any, **kwargs: Any) -> StepResult: ...

    @abstractmethod
    async def submit(self, *args: Any, **kwargs: Any) -> None: ...

    async def fit(
        self,
        batches: Any,
        *,
        steps: int | None = None,
        epochs: int | None = None,
        on_step: Callable[[int, StepResult], Any] | None = None,
        validate: Callable[[Any], Metrics | Awaitable[Metrics]] | None = None,
        validate_every: int | None = None,
        progress: bool = True,
        autosave: str | None = None,
        autosave_every: float = 30.0,
    ) -> Record:
        """Trains on batches and validates, for some epochs.

        The steps are those of a loop over `step`, but for one thing: a step that is skipped, for what is not finite, is
        noticed when the losses are read. That is after each step at the beginning and after a skipped one, then after 2
        more, 4 more and so on, up to 1,024 steps or a quarter of a second. Until then the learning rate's schedule and
        bias corrections count it. With `on_step` they never do; for batches of `train.upload`, see `run_steps`.

        Args:
            batches: a `tg.data.DataLoader`, or any iterable or async iterable of batches in the structure given to
                `tg.compile`. For several epochs it is iterated again; a generator can be read once only, so give the
                function that makes it. Or what `train.upload` gave: then Python has nothing to do with single steps.
                A loader goes on where it stands, in the middle of an epoch too.
            steps: how many steps to make, epoch after epoch.
            epochs: how many times to go through all batches instead; 1 by default.
            on_step: called (and awaited, if it is a coroutine function) after every step with its number, from 1, and
                its `StepResult`; `False` ends the training. The device then waits for it at every step.
            validate: called (and awaited) with this object; returns a number or numbers by name, which a function
                of `attach` computes. After every epoch and at the end, or as `validate_every` says.
            validate_every: a number of steps; `validate` is called each so many, and at the end.
            progress: whether to show how far it is, with the last loss; the site's pages draw the losses as a curve
                too, unless there is an `on_step` that may.
            autosave: a name under which the browser keeps a checkpoint (with the loader's place), for `train.resume`.
                Where it cannot, there is a warning, and the training goes on.
            autosave_every: seconds from one checkpoint to the next; one is made at the end, too.

        Returns:
            The record, which is `train.record` too. That is there as well after an interrupt or an error, which
            leave a whole number of steps.

        Raises:
            InputError: a batch that does not fit; no batches; both `steps` and `epochs`.
            NonFiniteError: a loss is, and `tg.compile` was told to raise. Some later steps were made.

        >>> import numpy as np
        >>> import tensorgrad as tg
        >>> from tensorgrad import nn, optim
        >>> async def run():
        ...     loss_fn, specs = lambda model, x, y: tg.mse_loss(model(x), y), {"x": tg.f32[8, 1], "y": tg.f32[8, 1]}
        ...     train = await tg.compile(nn.Linear(1, 1), loss_fn, optim.SGD(0.1), specs, device="numpy")
        ...     x = np.linspace(-1, 1, 64).reshape(64, 1)
        ...     loader = tg.data.DataLoader({"x": x, "y": 3 * x + 1}, batch_size=8, shuffle=True, seed=0)
        ...     record = await train.fit(loader, epochs=30, progress=False)
        ...     return record.steps, round(float(record.losses[-1]), 4)
        >>> tg.sync(run())
        (240, 0.0)
        """
        _check(batches, on_step, validate, validate_every)
        extent = _extent(batches, steps, epochs)
        _check_last_batch(batches, extent)
        record = self.record = Record()
        run = _Run(self, record, extent, on_step, validate, validate_every, progress)
        if autosave is not None:
            run.saving = _Autosave(self, autosave, autosave_every, batches if isinstance(batches, DataLoader) else None)
            await run.saving.try_(browser.kept())
        try:
            if isinstance(batches, Batches):
                await run.on_device(batches)
            else:
                await run.from_host(batches, extent.epochs)
            await run.read()
            await run.validated()
            if run.saving:
                await run.saving.save()
        except BaseException as error:
            interrupted = isinstance(error, KeyboardInterrupt | asyncio.CancelledError)
            record.stopped = "interrupt" if interrupted else type(error).__name__
            if not isinstance(error, GeneratorExit):  # a coroutine that is closed may not wait
                with suppress(Exception):  # whatever is wrong with the losses, the first error goes on
                    async with asyncio.timeout(PATIENCE):
                        await run.read()
            raise
        finally:
            run.close()
        return record


class _Run:
    """A `fit` that runs."""

    def __init__(
        self,
        train: Fitting,
        record: Record,
        extent: _Extent,
        on_step: Callable[[int, StepResult], Any] | None,
        validate: Callable[[Any], Any] | None,
        every: int | None,
        show: bool,
    ) -> None:
        self.train, self.record, self.most = train, record, extent.steps
        self.on_step, self.validate, self.every = on_step, validate, every
        self.progress = Progress(extent.shown, show)
        self.saving: _Autosave | None = None
        self._queued, self._most_queued = 0, 1
        self._counted = train.state.counts[train._prefix]

    @property
    def over(self) -> bool:
        return bool(self.record.stopped) or self.record.steps == self.most

    async def from_host(self, batches: Any, epochs: int | None) -> None:
        """Steps on batches that Python gives, epoch after epoch."""
        for epoch in itertools.count() if epochs is None else range(epochs):
            before = self.record.steps
            async with aclosing(_stream(batches)) as stream:
                async for batch in stream:
                    await self._step(batch)
                    if self.over:
                        return
            if self.record.steps == before:
                raise InputError(_nothing(batches, epoch), call_site())
            if self.every is None:
                await self.validated()

    async def on_device(self, data: Batches) -> None:
        """Steps on batches that are on the device, as many at a time as may be."""
        train, record, every = self.train, self.record, self.every or data.count
        assert self.most is not None
        while not self.over:
            left = self.most - record.steps
            most = 1 if self.on_step else min(left, every - record.steps % every) if self.validate else left
            counted = train.state.counts[train._prefix]
            found = await train._run_chunk(data, record.steps, most)
            self._note(found)
            record.steps += len(found)
            await train._maybe_snapshot()
            train._check_finite(found, data)
            if self.on_step:
                await self._call(StepResult(float(found[0]), skipped=counted == train.state.counts[train._prefix]))
            if record.steps % every == 0:
                await self.validated()
            await self._after_step()

    async def _step(self, batch: Any) -> None:
        train, record = self.train, self.record
        try:
            if self.on_step is None:
                await train.submit(batch)
                self._queued += 1
                result = None
            else:
                result = await train.step(batch)
                self._note(np.array([result.loss], np.float32))
        except InputError as error:
            raise InputError(f"batch {record.steps + 1} of fit: {error.message}{_smaller(train, batch)}") from None
        record.steps += 1
        if result is not None:
            await self._call(result)
        if self._queued >= self._most_queued or (self._queued and self.progress.due):
            await self.read()
        if self.every is not None and record.steps % self.every == 0:
            await self.validated()
        await self._after_step()

    async def _call(self, result: StepResult) -> None:
        assert self.on_step is not None
        answer = self.on_step(self.record.steps, result)
        if inspect.isawaitable(answer):
            answer = await answer
        if answer is False:
            self.record.stopped = "on_step"

    def _note(self, losses: np.ndarray) -> None:
        self.record.add(losses)
        if self.on_step is None:  # which sees every loss itself, and may draw it
            self.progress.tell(losses)

    async def read(self) -> None:
        """Reads the losses of the steps that were queued; the more were not skipped, the more may be queued next."""
        if self._queued:
            train = self.train
            counted = train.state.counts[train._prefix]
            losses, given = await train._read_losses()
            skipped = train.state.counts[train._prefix] < counted
            found, self._queued = losses[-self._queued :], 0
            self._most_queued = 1 if skipped else min(2 * self._most_queued, LOSS_RING)
            self._note(found)
            train._check_finite(found, given)

    async def validated(self) -> None:
        """Validates, if that is wanted and was not done at this step."""
        record = self.record
        if self.validate is None or (record.validation and record.validation[-1].step == record.steps):
            return
        value = self.validate(self.train)
        if inspect.isawaitable(value):
            value = await value
        record.validation.append(Validation(record.steps, metrics(value)))

    async def _after_step(self) -> None:
        if self.progress.due:
            self.progress.draw(self.record.steps, self.record.last)
        if self.saving and self.saving.due:
            await self.saving.save()

    def close(self) -> None:
        """Ends the line of progress, and the record."""
        record, counts = self.record, self.train.state.counts
        record.seconds = self.progress.seconds
        record.skipped = max(0, record.steps - (counts[self.train._prefix] - self._counted))
        self.progress.draw(record.steps, record.last, last=True)


class _Autosave:
    """Checkpoints that the browser keeps, while it can."""

    def __init__(self, train: Fitting, name: str, every: float, loader: DataLoader | None) -> None:
        self._train, self._name, self._every, self._loader = train, name, every, loader
        self._saved: float | None = time.perf_counter()

    @property
    def due(self) -> bool:
        return self._saved is not None and time.perf_counter() - self._saved >= self._every

    async def save(self) -> None:
        if self._saved is not None:
            await self.try_(self._train.autosave(self._name, loader=self._loader))

    async def try_(self, work: Awaitable[Any]) -> None:
        """Ends it with a warning where the browser cannot do its part."""
        try:
            await work
            self._saved = time.perf_counter()
        except CheckpointError as error:
            self._saved = None
            warn(f"autosave is off: {error.message}")


async def _stream(batches: Any) -> AsyncGenerator[Any, None]:
    """One epoch."""
    if callable(batches) and not isinstance(batches, Iterable | AsyncIterable):
        batches = batches()
    if isinstance(batches, AsyncIterable):
        async for batch in batches:
            yield batch
    else:
        if isinstance(batches, DataLoader):
            batches.resume()
        for batch in batches:
            yield batch


class _Extent(NamedTuple):
    """How long a run is.

    Attributes:
        steps: at most; None: as many as the epochs have.
        epochs: at most; None: as many as it takes.
        shown: the steps that there will be, as far as that is known.
    """

    steps: int | None
    epochs: int | None
    shown: int | None


def _extent(batches: Any, steps: int | None, epochs: int | None) -> _Extent:
    if steps is not None and epochs is not None:
        raise InputError("give fit a number of steps or of epochs, not both", call_site())
    for what, number in (
        ("steps", steps),
        ("epochs", epochs),
    ):
        _check_whole(f"the number of {what}", number)
    if steps is not None:
        return _Extent(steps, None, steps)
    epochs = epochs or 1
    if isinstance(batches, Batches):
        return _Extent(epochs * batches.count, None, epochs * batches.count)
    try:
        done = batches.state_dict()["batch"] if isinstance(batches, DataLoader) else 0
        return _Extent(None, epochs, epochs * len(batches) - done)
    except TypeError:  # it has no length
        return _Extent(None, epochs, None)


def _check_whole(what: str, number: Any) -> None:
    if number is not None and (type(number) is not int or number < 1):
        raise InputError(f"{what} is a whole number, 1 or more, got {number!r}", call_site())


def _check(batches: Any, on_step: Any, validate: Any, every: Any) -> None:
    """Raises InputError for arguments of the wrong kind."""
    if isinstance(batches, Mapping | str | bytes | np.ndarray) or not (
        isinstance(batches, Iterable | AsyncIterable | Batches) or callable(batches)
    ):
        takes = "an iterable of batches, such as tg.data.DataLoader(arrays, batch_size=64), or what train.upload gave"
        raise InputError(f"fit takes {takes}, not {type(batches).__name__}", call_site())
    for what, fn in (("on_step", on_step), ("validate", validate)):
        if fn is not None and not callable(fn):
            raise InputError(f"{what} is a function, got {fn!r}", call_site())
    _check_whole("validate_every", every)
    if every is not None and validate is None:
        raise InputError("validate_every says when to validate, but there is no validate", call_site())


def _check_last_batch(batches: Any, extent: _Extent) -> None:
    """Raises InputError where a loader will come to a smaller batch, before it does."""
    if not isinstance(batches, DataLoader) or len(batches) == batches.whole:
        return
    before = batches.whole - batches.state_dict()["batch"]
    if extent.steps is None or extent.steps > before:
        size, total = batches.batch_size, len(batches.dataset)
        raise InputError(
            f"{total:,} examples in batches of {size} leave {total % size} for the last one of an epoch, and a step is "
            "compiled for one size; DataLoader(..., drop_last=True) leaves them out",
            call_site(),
        )


def _smaller(train: Fitting, batch: Any) -> str:
    """What to do, if a batch is smaller than the step takes."""
    with suppress(Exception):
        given = train.inputs.flatten((batch,), {})
        for name, spec in train.inputs.leaves.items():
            shape, wanted = np.shape(given[name]), spec.static_shape
            if shape[1:] == wanted[1:] and shape[0] < wanted[0]:
                return (
                    "; a training step is compiled for one batch size: leave out a smaller last batch "
                    "(tg.data.DataLoader does with drop_last=True)"
                )
    return ""


def _nothing(batches: Any, epoch: int) -> str:
    if epoch:
        return (
            f"the batches came to their end in epoch {epoch}: a {type(batches).__name__} can be read once; "
            "give a tg.data.DataLoader, a list, or the function that makes the generator"
        )
    return f"there are no batches in this {type(batches).__name__}"
