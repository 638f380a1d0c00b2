"""Batches of NumPy arrays: `TensorDataset`, `DataLoader` and `random_split`, with PyTorch's names.

A loader gives batches in the structure of a step's inputs: keywords of a dataset become keys. The order of an epoch
follows from the seed and the epoch's number alone, so a loader can go on where another has stopped.
"""

from __future__ import annotations

import itertools
import math
import operator
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tensorgrad.callsite import call_site
from tensorgrad.checks import is_whole
from tensorgrad.errors import CheckpointError, InputError
from tensorgrad.structure import is_nest, parts, rebuild

__all__ = ["DataLoader", "TensorDataset", "random_split"]


class TensorDataset:
    """Arrays whose first axes are the examples.

    Args:
        tensors: arrays, whose batches are tuples in their order. NumPy's, or anything that it makes arrays of.
        named: arrays by name instead, whose batches are dicts: `TensorDataset(x=images, y=labels)`.

    Raises:
        InputError: no arrays, both kinds, or arrays of different lengths.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> data = tg.data.TensorDataset(x=np.arange(10.0), y=np.arange(10) % 3)
    >>> len(data), data[2]["y"].item()
    (10, 2)
    """

    def __init__(self, *tensors: Any, **named: Any) -> None:
        if bool(tensors) == bool(named):
            raise InputError("a dataset is made of arrays, or of arrays by name, not of none or both", call_site())
        given = named if named else dict(enumerate(tensors))
        self._arrays = {key: _array(key, value) for key, value in given.items()}
        self._named = bool(named)
        lengths = {key: array.shape[0] for key, array in self._arrays.items()}
        if len(set(lengths.values())) > 1:
            found = ", ".join(f"{_name(key)} has {length:,}" for key, length in lengths.items())
            raise InputError(f"every array needs the same number of examples on its first axis: {found}", call_site())

    @property
    def tensors(self) -> tuple[np.ndarray, ...]:
        """The arrays in their order."""
        return tuple(self._arrays.values())

    def __len__(self) -> int:
        return len(self.tensors[0])

    def __getitem__(self, index: Any) -> Any:
        """The example of a number, or those of a slice or of an array of numbers, as one tuple or dict of arrays."""
        found = {key: array[index] for key, array in self._arrays.items()}
        return found if self._named else tuple(found.values())

    def __repr__(self) -> str:
        arrays = ", ".join(f"{_name(k)}: {a.dtype}{list(a.shape[1:])}" for k, a in self._arrays.items())
        return f"TensorDataset({len(self):,} of {arrays})"


class DataLoader:
    """The examples of a dataset in batches of a size, epoch after epoch: each `for` loop over it is one.

    Args:
        dataset: a `TensorDataset`; arrays by name or a tuple of arrays, of which one is made; or whatever has
            `len()` and gives examples by number, as PyTorch's datasets do, which are stacked.
        batch_size: examples in a batch.
        shuffle: another order in each epoch.
        drop_last: leave out a last batch that would be smaller. A training step is compiled for one size and refuses
            smaller batches, so set it for training where `batch_size` does not divide `len(dataset)`. An
            `attach`ed function with a size of None takes them.
        seed: of the orders; None draws one, which the attribute `seed` tells.

    Attributes:
        epoch: the number of the epoch that runs, or comes next; counted from 0.

    Raises:
        InputError: arrays of different lengths, an odd batch size.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> loader = tg.data.DataLoader({"x": np.arange(10)}, batch_size=4, shuffle=True, seed=0)
    >>> [batch["x"].tolist() for batch in loader]
    [[4, 6, 2, 7], [3, 5, 9, 0], [8, 1]]
    >>> len(loader), loader.epoch
    (3, 1)
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        seed: int | None = None,
    ) -> None:
        self.dataset = _dataset(dataset)
        self.batch_size = _whole("batch_size", batch_size, 1)
        self.shuffle, self.drop_last = shuffle, drop_last
        self.seed = secrets.randbits(32) if seed is None else _whole("seed", seed, 0)
        self.epoch = 0
        self._batch = 0  # the next one of the epoch
        self._resumed = False

    def __len__(self) -> int:
        """Batches of an epoch."""
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + bool(rest and not self.drop_last)

    @property
    def whole(self) -> int:
        """Batches of an epoch that have `batch_size` examples."""
        return len(self.dataset) // self.batch_size

    def __iter__(self) -> Iterator[Any]:
        if self._batch and not self._resumed:  # the last loop was left before its end
            self.epoch, self._batch = self.epoch + 1, 0
        self._resumed = False
        return self._epoch(self.epoch, self._batch)

    def _epoch(self, epoch: int, first: int) -> Iterator[Any]:
        order, size = self._order(epoch), self.batch_size
        for i in range(first, len(self)):
            batch = self._examples(i, size, order)
            # it counts as given before it is used: who saves after a step resumes with the next batch
            self.epoch, self._batch = (epoch, i + 1) if i + 1 < len(self) else (epoch + 1, 0)
            yield batch

    def _order(self, epoch: int) -> np.ndarray | None:
        return np.random.default_rng([self.seed, epoch]).permutation(len(self.dataset)) if self.shuffle else None

    def _examples(self, i: int, size: int, order: np.ndarray | None) -> Any:
        start, stop = i * size, min((i + 1) * size, len(self.dataset))
        if isinstance(self.dataset, TensorDataset):
            return self.dataset[slice(start, stop) if order is None else order[start:stop]]
        which = range(start, stop) if order is None else order[start:stop].tolist()
        return _stack([self.dataset[n] for n in which], "")

    def stack(self) -> Any:
        """The batches of the next epoch on a leading axis, for `train.upload`; a smaller last batch is left out.

        What is uploaded comes round in one order: to shuffle anew, upload another epoch.

        Raises:
            InputError: there is not one whole batch.
        """
        if not self.whole:
            raise InputError(
                f"{len(self.dataset):,} examples are less than one batch of {self.batch_size}", call_site()
            )
        order = self._order(self.epoch)
        batches = [self._examples(i, self.batch_size, order) for i in range(self.whole)]
        self.epoch, self._batch = self.epoch + 1, 0
        return _stack(batches, "")

    def resume(self) -> None:
        """The next loop goes on where the last one was left, in place of starting a new epoch; so does `train.fit`."""
        self._resumed = True

    def state_dict(self) -> dict[str, Any]:
        """Where it stands: seed, epoch, and batches of it that were given."""
        return {"seed": self.seed, "epoch": self.epoch, "batch": self._batch}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """The next loop goes on where the loader of `state_dict` stood, which had the same dataset and batch size.

        Raises:
            CheckpointError: it is no such place.
        """
        try:
            seed, epoch, batch = (operator.index(state_dict[key]) for key in ("seed", "epoch", "batch"))
        except (KeyError, TypeError) as error:
            raise CheckpointError(f"a loader's state has whole numbers seed, epoch and batch: {error!r}") from None
        if seed < 0 or epoch < 0 or not 0 <= batch < max(1, len(self)):
            raise CheckpointError(
                f"the state is at batch {batch} of epoch {epoch}; this loader has {len(self)} batches"
            )
        self.seed, self.epoch, self._batch = seed, epoch, batch
        self.resume()

    def __repr__(self) -> str:
        return f"DataLoader({len(self):,} batches of {self.batch_size} from {self.dataset!r})"


def random_split(dataset: Any, lengths: Sequence[int | float], seed: int = 0) -> list[TensorDataset]:
    """Parts of a dataset, to train and to test with, drawn at random without replacement.

    Args:
        dataset: as for `DataLoader`, of arrays.
        lengths: how many examples each part has, or which fractions of them, which add up to 1; what rounding
            leaves goes to the first parts.
        seed: of the draw.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> train, test = tg.data.random_split({"x": np.arange(10)}, [0.8, 0.2])
    >>> len(train), len(test)
    (8, 2)
    """
    dataset = _dataset(dataset)
    if not isinstance(dataset, TensorDataset):
        raise InputError(f"random_split takes arrays or a TensorDataset, got {type(dataset).__name__}", call_site())
    total, sizes = len(dataset), list(lengths)
    if any(isinstance(n, float) for n in sizes) and math.isclose(sum(sizes), 1) and min(sizes) >= 0:
        whole = [int(total * n) for n in sizes]
        sizes = [n + (i < total - sum(whole)) for i, n in enumerate(whole)]
    if not all(is_whole(n) and n >= 0 for n in sizes) or sum(sizes) != total:
        raise InputError(f"lengths are to add up to {total:,}, or to 1 as fractions, got {list(lengths)}", call_site())
    order = np.random.default_rng(seed).permutation(total)
    ends = np.cumsum([0, *sizes])
    made = [dataset[order[start:stop]] for start, stop in itertools.pairwise(ends)]
    return [TensorDataset(**part) if isinstance(part, dict) else TensorDataset(*part) for part in made]


def _dataset(given: Any) -> Any:
    if isinstance(given, Mapping):
        if odd := [name for name in given if not isinstance(name, str) or name == "self"]:
            raise InputError(f"an array's name is a string other than 'self', got {odd[0]!r}", call_site())
        return TensorDataset(**given)
    if isinstance(given, tuple):
        return TensorDataset(*given)
    if isinstance(given, np.ndarray):
        raise InputError(
            "one array alone: give it by its input's name, {'x': array}, or as a tuple, (array,)", call_site()
        )
    if not hasattr(given, "__len__") or not hasattr(given, "__getitem__"):
        what = "arrays by name, a tuple of arrays, or what has len() and gives examples by number"
        raise InputError(f"a dataset is {what}, got {type(given).__name__}", call_site())
    return given


def _array(key: Any, value: Any) -> np.ndarray:
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InputError(f"{_name(key)} of the dataset is not an array: {error}", call_site()) from None
    if array.ndim == 0 or array.dtype == object:
        raise InputError(f"{_name(key)} of the dataset is no array of examples, got {value!r:.80}", call_site())
    return array


def _stack(examples: Sequence[Any], path: str) -> Any:
    """Nests of one form as a nest of arrays with a leading axis."""
    first = examples[0]
    if not is_nest(first):
        try:
            return np.stack([np.asarray(example) for example in examples])
        except ValueError as error:
            raise InputError(f"{path or 'the examples'} of a batch do not stack: {error}", call_site()) from None
    children = ((_stack([_part(e, key) for e in examples], f"{path}.{key}".lstrip("."))) for key in _keys(first))
    return rebuild(first, children)


def _keys(nest: Any) -> list[Any]:
    return list(nest) if isinstance(nest, Mapping) else list(range(len(nest)))


def _part(nest: Any, key: Any) -> Any:
    try:
        return nest[key]
    except (KeyError, IndexError, TypeError):
        have = [k for k, _ in parts(nest)] if is_nest(nest) else type(nest).__name__
        raise InputError(
            f"an example has no part {key!r}, which the first of its batch has: {have}", call_site()
        ) from None


def _name(key: Any) -> str:
    return f"array {key}" if isinstance(key, int) else repr(key)


def _whole(what: str, value: Any, least: int) -> int:
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise InputError(f"{what} is a whole number from {least}, got {value!r}", call_site())
    return number
