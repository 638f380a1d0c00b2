"""State dicts as safetensors files: `tg.save` and `tg.load`, and a training step's `save` and `load`.

A model's arrays have their plain names, so that other programs read them. Those of the optimizer come after
`optimizer/`, and numbers (calls, seed, where a data loader stands) are texts in the header.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from tensorgrad import browser, safetensors
from tensorgrad.callsite import call_site
from tensorgrad.errors import CheckpointError, InputError
from tensorgrad.nn.state import IncompatibleKeys

OPTIMIZER = "optimizer/"
NUMBERS = "tensorgrad"
"""The text of the header that has the numbers, as JSON."""


class Resumable(Protocol):
    """What can be saved along, such as a `tg.data.DataLoader`."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None: ...


def save(
    state_dict: Mapping[str, Any], file: str | Path | BinaryIO | None = None, *, dtype: str | None = None
) -> bytes:
    """A state dict as a safetensors file.

    Args:
        state_dict: what `await train.state_dict()` or `model.state_dict()` gives, or any arrays by name.
        file: a path, or a file that is open for writing bytes; None writes nothing.
        dtype: how arrays of floats are written, such as `"F16"` or `"BF16"`, for weights to give away; a training
            does not go on exactly from those. None: as they are.

    Returns:
        The file's bytes.

    Raises:
        InputError: something in it is neither an array nor, beside `model` and `optimizer`, a number or a nest of such.

    >>> import tensorgrad as tg
    >>> from tensorgrad import nn
    >>> model = nn.Linear(3, 2)
    >>> data = tg.save(model.state_dict())
    >>> nn.Linear(3, 2).load_state_dict(tg.load(data))
    IncompatibleKeys(missing_keys=[], unexpected_keys=[])
    """
    texts = {"format": "pt"}  # programs that read PyTorch's files look for this
    if isinstance(state_dict.get("model"), Mapping):
        model, optimizer = state_dict["model"], state_dict.get("optimizer", {})
        numbers = {key: value for key, value in state_dict.items() if key not in ("model", "optimizer")}
        if odd := [name for name in model if str(name).startswith(OPTIMIZER)]:
            raise InputError(f"the model's {odd[0]!r} has a name that stands for the optimizer's arrays", call_site())
        arrays = {**model, **{OPTIMIZER + name: array for name, array in optimizer.items()}}
        try:
            texts[NUMBERS] = json.dumps(numbers)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{', '.join(numbers)} of a state dict are numbers or texts: {error}", call_site()
            ) from None
    else:
        arrays = state_dict
    data = safetensors.save(arrays, texts, dtype=dtype)
    if isinstance(file, str | Path):
        Path(file).write_bytes(data)
    elif file is not None:
        file.write(data)
    return data


def load(source: safetensors.Source) -> dict[str, Any]:
    """The state dict of a safetensors file: in the form in which `save` was given it, or arrays by name.

    Args:
        source: bytes, a path, or a file that is open for reading bytes.

    Raises:
        CheckpointError: it is no such file, or a damaged one; the message says where.
    """
    arrays, texts = safetensors.read(source)
    if NUMBERS not in texts:
        return arrays
    try:
        numbers = json.loads(texts[NUMBERS])
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"the header's {NUMBERS!r} is not JSON: {error}") from None
    if not isinstance(numbers, dict):
        raise CheckpointError(f"the header's {NUMBERS!r} has no numbers by name: {texts[NUMBERS][:80]}")
    parts: dict[str, dict[str, Any]] = {"model": {}, "optimizer": {}}
    for name, array in arrays.items():
        part = "optimizer" if name.startswith(OPTIMIZER) else "model"
        parts[part][name.removeprefix(OPTIMIZER)] = array
    return {**numbers, **parts}


class Checkpoints(ABC):
    """Gives a training step `save` and `load`; a subclass is what `compile.Train` is."""

    @abstractmethod
    async def state_dict(self) -> dict[str, Any]: ...

    @abstractmethod
    async def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> IncompatibleKeys: ...

    async def save(self, file: str | Path | BinaryIO | None = None, *, loader: Resumable | None = None) -> bytes:
        """Everything that an exact resume needs as one safetensors file; the model's weights have PyTorch's names.

        Args:
            file: a path, or a file that is open for writing bytes; None writes nothing.
            loader: a `tg.data.DataLoader`, whose place in its epoch is saved along.

        Returns:
            The file's bytes.

        >>> import io
        >>> import tensorgrad as tg
        >>> from tensorgrad import nn, optim
        >>> async def resumed():
        ...     loss_fn, specs = lambda model, x: model(x).sum(), {"x": tg.f32[1, 4]}
        ...     train = await tg.compile(nn.Linear(4, 2), loss_fn, optim.Adam(0.1), specs, device="numpy")
        ...     await train.step(x=[[1.0, 2.0, 3.0, 4.0]])
        ...     again = await tg.compile(nn.Linear(4, 2), loss_fn, optim.Adam(0.1), specs, device="numpy")
        ...     await again.load(await train.save())
        ...     return again.state.steps
        >>> tg.sync(resumed())
        1
        """
        return save(await self._with(loader), file)

    async def load(
        self, source: safetensors.Source, strict: bool = True, *, loader: Resumable | None = None
    ) -> IncompatibleKeys:
        """Goes on from what `save` wrote, or loads the weights of any safetensors file, as PyTorch's programs write.

        Args:
            source: bytes, a path, or a file that is open for reading bytes.
            strict: False skips names that are missing or unknown, and returns them.
            loader: gets the place that was saved with its like.

        Raises:
            CheckpointError: a damaged file, or one that does not fit; lists all that is missing, unexpected or
                misshapen. Nothing was loaded.
        """
        return await self._resume(load(source), strict, loader)

    async def autosave(self, name: str, *, loader: Resumable | None = None) -> None:
        """Has the browser keep what `save` writes, under a name; `train.fit(..., autosave=name)` does so now and then.

        Raises:
            CheckpointError: there is no room, or the browser keeps nothing, as in some private windows.
            UnsupportedError: there is no IndexedDB here, as outside of browsers.
        """
        await browser.keep(name, await self.save(loader=loader))

    async def resume(self, name: str, strict: bool = True, *, loader: Resumable | None = None) -> bool:
        """Goes on from what the browser keeps under a name, if it does; arguments and errors as `load`, `autosave`.

        Returns:
            Whether there was something.
        """
        data = await browser.read(name)
        if data is not None:
            await self.load(data, strict, loader=loader)
        return data is not None

    async def _with(self, loader: Resumable | None) -> dict[str, Any]:
        """The state dict, with the loader's."""
        state = await self.state_dict()
        return state if loader is None else {**state, "loader": loader.state_dict()}

    async def _resume(self, state: Mapping[str, Any], strict: bool, loader: Resumable | None) -> IncompatibleKeys:
        if loader is None:
            return await self.load_state_dict(state, strict)
        if not isinstance(state.get("loader"), Mapping):
            raise CheckpointError("no place of a data loader was saved there; load it without loader=")
        before = loader.state_dict()
        loader.load_state_dict(state["loader"])
        try:
            return await self.load_state_dict(state, strict)
        except BaseException:
            loader.load_state_dict(before)
            raise
