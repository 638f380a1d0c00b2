"""The user's door: from a module, a loss function and an optimizer to a training step."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from tensorgrad.backend import open_backend
from tensorgrad.callsite import call_site
from tensorgrad.checks import require_whole
from tensorgrad.compiled import Built
from tensorgrad.dtypes import DType, f16, f32
from tensorgrad.errors import InputError
from tensorgrad.fit import Fitting
from tensorgrad.inspect import CheckReport, Inspected, Profile
from tensorgrad.nn.module import Module
from tensorgrad.nn.state import IncompatibleKeys
from tensorgrad.optim.optimizer import LearningRate, Optimizer
from tensorgrad.outside import Held, Positions
from tensorgrad.predict import Averages, Predictor
from tensorgrad.program import CAPTURE, Recipe
from tensorgrad.state import Spans, State, open_state
from tensorgrad.step import FINITE, StepResult, step_recipe
from tensorgrad.structure import Structure
from tensorgrad.tensor import Tensor
from tensorgrad.tuning import seconds_of


async def compile(
    model: Module,
    loss_fn: Callable[..., Tensor],
    optimizer: Optimizer,
    inputs: Any,
    *,
    state: State | None = None,
    device: Any = None,
    seed: int | None = None,
    dtype: DType = f32,
    tune: bool | float = False,
    keep_grads: bool = False,
    snapshot_every: int | None = None,
    nonfinite: Literal["skip", "raise"] = "skip",
) -> Train:
    """Traces a training step, differentiates it, and compiles it for a device.

    Args:
        model: the module; its parameters' values are where training starts.
        loss_fn: `loss_fn(model, **inputs)` (or `*inputs`, for a tuple) returns the loss, a float scalar.
        optimizer: such as `optim.AdamW(1e-3)`.
        inputs: a mapping or tuple of specs, `{"x": tg.f32[64, 784], "y": tg.i32[64]}`, nested at will. Those of a
            mapping are passed to `loss_fn` by their names.
        state: another training's `state` (its device and seed too), to train the same module with a second loss.
        device: `"webgpu"`, `"numpy"`, `"interpret"`, a GPUDevice, or another training's `train.state.backend`, for
            another model on its device; None takes WebGPU where there is an adapter, the same one each time.
        seed: of dropout and other random numbers; None draws one (`train.state.seed` tells it).
        dtype: `tg.f16` is mixed precision: matmuls (convolutions and attention too) multiply numbers of 16 bits and
            add them up in 32; everything else, the weights among it, stays f32. The loss is scaled as by
            torch.amp.GradScaler: by 65536 at first, half as much after a step in which a gradient is not finite
            (which changes nothing), twice as much after 2000 good ones; the state dict has it as `optim.scale`.
            A GPU needs the feature `shader-f16`.
        tune: seconds to measure how the expensive kernels are best written for this GPU (True is 10); what
            `train.tuning` tells is kept in the plan cache. Results differ by rounding. It warns where it cannot.
        keep_grads: let `train.gradients()` read the last step's gradients.
        snapshot_every: keep a copy of everything on the host each so many steps, from which
            `train.restore()` goes on after the device was lost.
        nonfinite: a step whose loss is NaN or infinite changes nothing; "raise" makes `train.step` raise
            NonFiniteError then, "skip" returns the loss.

    Raises:
        InputError: arguments that make no sense, or do not agree with each other; nothing was changed.
        ShapeError, DtypeError, TraceError: from tracing `loss_fn`, with the line that is at fault.
        NoDeviceError, OutOfMemoryError, ShaderError: from the device.
        UnsupportedError: the GPU has no f16, and `dtype` or the model wants it.

    >>> import asyncio
    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> from tensorgrad import nn, optim
    >>> async def fit():
    ...     model = nn.Linear(1, 1)
    ...     loss_fn = lambda model, x, y: tg.mse_loss(model(x), y)
    ...     train = await tg.compile(
    ...         model, loss_fn, optim.SGD(0.1), {"x": tg.f32[8, 1], "y": tg.f32[8, 1]}, device="numpy"
    ...     )
    ...     x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(8, 1)
    ...     for _ in range(200):
    ...         result = await train.step(x=x, y=3 * x + 1)
    ...     return round(result.loss, 4)
    >>> asyncio.run(fit())
    0.0
    """
    structure = Structure(inputs)
    if not structure.is_concrete:
        raise InputError("a training step needs every size; None is for attach and compile_forward", call_site())
    if not isinstance(optimizer, Optimizer):
        raise InputError(f"expected an optimizer such as optim.AdamW(1e-3), got {optimizer!r}", call_site())
    if nonfinite not in ("skip", "raise"):
        raise InputError(f"nonfinite is 'skip' or 'raise', got {nonfinite!r}", call_site())
    if dtype not in (f32, f16):
        raise InputError(f"dtype is tg.f32, or tg.f16 for mixed precision, got {dtype!r}", call_site())
    if snapshot_every is not None:
        require_whole("tg.compile", "snapshot_every (a number of steps, or None)", snapshot_every, 1)
    state = await open_state(model, state, device, seed)
    state.check_inputs(structure.leaves)
    with state.entering(optimizer):
        recipe = step_recipe(
            model, loss_fn, optimizer, structure, state, keep_grads, half=dtype is f16, tune=seconds_of(tune)
        )
        train = Train(state, optimizer, structure, recipe, keep_grads, snapshot_every, nonfinite)
        async with state.turns:
            train.use(await train.build())
    state.enroll(train)
    return train


class Train(Fitting, Inspected):
    """A compiled training step. Made by `tg.compile`.

    Attributes:
        state: parameters, optimizer state and counters; give it to another `tg.compile` to share them.
        optimizer: its hyper-parameters; `set_lr` changes the learning rate.
        inputs: the structure of a step's inputs.
        spans: how its states lie.
        snapshot: the last host copy that `snapshot_every` made.
    """

    def __init__(
        self,
        state: State,
        optimizer: Optimizer,
        inputs: Structure,
        recipe: Callable[[Spans], Recipe],
        keep_grads: bool,
        snapshot_every: int | None,
        nonfinite: str,
    ) -> None:
        self.state, self.optimizer, self.inputs, self._recipe = state, optimizer, inputs, recipe
        self.snapshot: dict[str, Any] | None = None
        self._keep_grads, self._snapshot_every, self._since = keep_grads, snapshot_every, 0
        self._nonfinite = nonfinite
        self._prefix = optimizer.prefix
        self._row = state.row()
        self._floats = self._row.view(np.float32)
        self._last: dict[str, Any] | None = None
        self._queued = 0  # steps since `losses`
        self._built: Built | None = None
        self.spans: Spans | None = None

    async def build(self) -> Built:
        """The step on the state's device, which may have changed since the last time; the caller holds the turn."""
        self.spans = self.state.spans(self._prefix, self.spans)
        recipe = self._recipe(self.spans)
        self._positions = Positions(recipe.forward)
        leaves = self.inputs.leaves.items()
        sizes = {name: math.prod(spec.static_shape) * spec.dtype.itemsize for name, spec in leaves}
        self._held = Held(self._positions, sizes)
        return await self.state.build(recipe, self._prefix)

    def use(self, built: Built) -> None:
        """Steps with this program from now on."""
        old, self._built, self._stepped = self._built, built, False
        self._compiled()
        if old is not None:
            old.executor.destroy()

    @property
    def built(self) -> Built:
        """What was compiled last."""
        assert self._built is not None
        return self._built

    @property
    def _half(self) -> bool:
        return FINITE in self.built.interface.outputs

    @property
    def _captured(self) -> list[str]:
        return [name for name in self.built.interface.outputs if name.startswith(CAPTURE)]

    @property
    def title(self) -> str:
        return f"training step of {type(self.state.module).__name__}"

    def _inspected(self) -> Built:
        return self.built

    # -- steps ---------------------------------------------------------------------------------

    async def step(self, *args: Any, **kwargs: Any) -> StepResult:
        """Runs one training step and reads its loss.

        Args:
            args, kwargs: the inputs in the structure given to `tg.compile`, or as keywords.

        Raises:
            InputError: names, shapes, dtypes or ranges that do not fit; nothing was changed.
            DeviceLostError: the device is gone; `restore` goes on from the last snapshot.
            NonFiniteError: the loss is, and `tg.compile` was told to raise.

        A loss that is not finite leaves parameters, optimizer state and step count as they were, and with
        `dtype=tg.f16` so do gradients that are not: the result is `skipped`. Where a label or an index out of range
        has made it so, a warning (or the error) names the input, the number and the range.
        """
        inputs = self.inputs.flatten(args, kwargs)
        async with self.state.turns:
            await self._prepare(inputs)
            executor, names = self.built.executor, self.built.interface.outputs
            if len(names) == 1:
                with self.state.running():
                    loss = await executor.step(inputs)
                result = StepResult(loss, skipped=not math.isfinite(loss))
            else:
                with self.state.running():
                    found = await executor.run(inputs, names)
                loss, captures = float(found["loss"]), {n.removeprefix(CAPTURE): found[n] for n in self._captured}
                result = StepResult(loss, captures, not found.get(FINITE, math.isfinite(loss)))
            self._made(inputs, not result.skipped)
        await self._maybe_snapshot()
        if result.skipped:
            self._check_finite(np.array([result.loss]), inputs)
        return result

    async def submit(self, *args: Any, **kwargs: Any) -> None:
        """Queues one training step and returns; waits only while 3 are in flight. `losses` reads them.

        Short steps that take a few milliseconds together count as one of the 3.

        A step that is skipped changes nothing here either, but only `losses` can tell the host: until
        then the learning rate's schedule and bias corrections are one step ahead.
        """
        inputs = self.inputs.flatten(args, kwargs)
        async with self.state.turns:
            await self._prepare(inputs)
            with self.state.running():
                await self.built.executor.submit(inputs)
            self._queued += 1
            self._held.add(inputs)
            self._made(inputs, True)
        await self._maybe_snapshot()

    async def _prepare(self, inputs: dict[str, Any]) -> None:
        await self._settle()
        if "step" in self.built.interface.inputs:
            self._fill(self._row, self._floats, self.state.calls, self.state.counts[self._prefix] + 1)
            inputs["step"] = self._row

    def _made(self, inputs: dict[str, Any], finite: bool) -> None:
        """Notes a step that was made."""
        self._positions.look(inputs)
        self._last, self._stepped = inputs, True
        self.state.counts[self._prefix] += finite
        self._since += 1

    async def profile(self, *args: Any, **kwargs: Any) -> Profile:
        """Runs one training step, which counts as any other, with each kernel timed, beside the device's peaks.

        Args:
            args, kwargs: the inputs, as for `step`; by default those of the last `step` or `submit`.

        Raises:
            UnsupportedError: the GPU has no timestamp queries; no step was made.
        """
        inputs = self._step_inputs(args, kwargs)
        async with self.state.turns:
            await self._prepare(inputs)
            with self.state.running():
                times = await self.built.executor.profile(inputs)
            self._made(inputs, True)
            await self.state.recount()
        return self._profile(times, await self.state.backend.peaks())

    async def check(self, *args: Any, **kwargs: Any) -> CheckReport:
        """Replays one step under the oracles; parameters, optimizer state and step count stay as they are.

        Every kernel of the device is compared with the reference rules on the numbers that it read.

        Args:
            args, kwargs: the inputs, as for `step`; by default those of the last `step` or `submit`.

        Raises:
            CheckError: names the first kernel that differs, with its formula, source lines and worst element.
        """
        inputs = self._step_inputs(args, kwargs)
        async with self.state.turns:
            await self._prepare(inputs)
            return await self._check(inputs)

    def _step_inputs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        if args or kwargs or not self.inputs.leaves:
            return self.inputs.flatten(args, kwargs)
        if self._last is None:
            why = "there was no `step` or `submit` yet whose inputs could be used (`run_steps` has its on the device)"
            raise InputError(f"{why}; give the inputs", call_site())
        return dict(self._last)

    # -- learning rate, gradients, snapshots ------------------------------------------------------

    def set_lr(self, lr: LearningRate) -> None:
        """The learning rate (a number or a schedule) from the next step on; nothing is compiled again."""
        self.optimizer.lr = lr

    async def gradients(self) -> dict[str, np.ndarray]:
        """The last step's gradients by parameter name.

        Raises:
            InputError: without `keep_grads=True`, or before the first step on this device.
        """
        if not self._keep_grads:
            raise InputError("compile with keep_grads=True to read gradients", call_site())
        if not self._stepped:
            raise InputError("there are no gradients yet: no step was finished since this was compiled", call_site())
        async with self.state.turns:
            return await self.built.executor.download_param_grads()

    async def state_dict(self) -> dict[str, Any]:
        """All that an exact resume needs; see `State.state_dict`."""
        return await self.state.state_dict()

    async def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> IncompatibleKeys:
        """Loads a state dict, or a model's weights alone; see `State.load_state_dict`."""
        return await self.state.load_state_dict(state_dict, strict)

    async def reset(self) -> None:
        """Back to the start: initial weights, no optimizer state, no steps."""
        await self.state.reset()

    async def _maybe_snapshot(self) -> None:
        if self._snapshot_every and self._since >= self._snapshot_every:
            self.snapshot = await self.state.state_dict()
            self._since = 0

    async def restore(self, device: Any = None) -> None:
        """Goes on after a lost device: moves the state to a new one and loads the last snapshot.

        What shares the state goes on with it: other training steps, and functions of `attach`.

        Args:
            device: as in `tg.compile`; by default the same kind as before.

        Raises:
            InputError: there is no snapshot (`snapshot_every` was not given, or not so many steps were made).
            NoDeviceError: there is no device to go on with.
        """
        if self.snapshot is None:
            raise InputError("there is no snapshot to restore; compile with snapshot_every=N", call_site())
        state = self.state
        backend = await open_backend(state.backend.name if device is None else device)
        async with state.turns:
            await state.move(backend)
            await state.load(self.snapshot, strict=False)  # a training of then may be gone

    # -- other programs on the same state ---------------------------------------------------------

    async def attach(
        self, fn: Callable[..., Any], inputs: Any, *, training: bool = False, averaged: bool = False
    ) -> Predictor:
        """Another function of the model on the same weights: a prediction, an accuracy.

        Args:
            fn: `fn(model, **inputs)`; returns a Tensor or a tuple, list or mapping of them.
            inputs: specs; a None size takes any, at one compilation a size (the last 8 are kept).
            training: what Dropout and its like see.
            averaged: use the running averages of the weights, which an optimizer with `ema_decay` keeps.

        >>> import asyncio
        >>> import numpy as np
        >>> import tensorgrad as tg
        >>> from tensorgrad import nn, optim
        >>> async def predict():
        ...     train = await tg.compile(
        ...         nn.Linear(4, 2), lambda net, x: net(x).sum(), optim.SGD(0.1), {"x": tg.f32[1, 4]}, device="numpy"
        ...     )
        ...     fn = await train.attach(lambda model, x: tg.softmax(model(x)), {"x": tg.f32[None, 4]})
        ...     return (await fn(x=np.ones((3, 4), np.float32))).shape
        >>> asyncio.run(predict())
        (3, 2)
        """
        if averaged and self.optimizer.ema_decay is None:
            raise InputError("the optimizer keeps no averages of the weights; give it an ema_decay", call_site())
        averages = Averages(self._prefix, self.optimizer.accumulate) if averaged else None
        return Predictor(self.state, fn, Structure(inputs), training, averages)

    def destroy(self) -> None:
        """Frees what the step owns on the device; the state's tensors live on. Safe twice."""
        self._destroyed = True
        self.state.dismiss(self)
        self.built.executor.destroy()
