"""Batches of arrays: their form, their order, where a loader stands, and what is no dataset."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad.data import DataLoader, TensorDataset, random_split


def rows(loader: Any) -> list[list[int]]:
    return [batch["x"].tolist() for batch in loader]


def test_batches_have_the_form_of_the_dataset() -> None:
    x, y = np.arange(14.0).reshape(7, 2), list(range(7))
    for dataset in ((x, y), TensorDataset(x, y)):
        first, last = DataLoader(dataset, 4)
        assert isinstance(first, tuple)
        np.testing.assert_array_equal(first[0], x[:4])
        assert last[1].tolist() == [4, 5, 6]
    for dataset in ({"x": x, "y": y}, TensorDataset(x=x, y=y)):
        first, last = DataLoader(dataset, 4)
        assert first["y"].tolist() == [0, 1, 2, 3]
        np.testing.assert_array_equal(last["x"], x[4:])
    assert len(TensorDataset(x=x)) == 7
    assert [batch["x"].shape for batch in DataLoader({"x": x})] == [(1, 2)] * 7, "PyTorch's default"
    assert repr(DataLoader({"x": x, "y": y}, 4)) == (
        "DataLoader(2 batches of 4 from TensorDataset(7 of 'x': float64[2], 'y': int64[]))"
    )


def test_a_dataset_of_examples_is_stacked() -> None:
    class Pairs:
        def __len__(self) -> int:
            return 5

        def __getitem__(self, index: int) -> Any:
            return {"image": np.full((2,), index), "of": (index, [float(index)])}

    first, last = DataLoader(Pairs(), 3)
    assert first["image"].tolist() == [[0, 0], [1, 1], [2, 2]]
    assert first["of"][0].tolist() == [0, 1, 2]
    assert last["of"][1][0].tolist() == [3.0, 4.0]
    (both,) = DataLoader([(1, 2.0), (3, 4.0)], 2)
    assert both[0].tolist() == [1, 3]


def test_the_last_batch_is_smaller_or_left_out() -> None:
    data = {"x": np.arange(10)}
    for size, drop, expected in ((4, False, [4, 4, 2]), (4, True, [4, 4]), (5, False, [5, 5]), (11, True, [])):
        loader = DataLoader(data, size, drop_last=drop)
        assert [len(batch) for batch in rows(loader)] == expected
        assert len(loader) == len(expected)
    assert rows(DataLoader({"x": np.zeros(0)}, 2)) == []


def test_the_order_follows_from_the_seed_and_the_epoch() -> None:
    data = {"x": np.arange(10), "y": np.arange(10) * 2}
    one, same, other = (DataLoader(data, 4, shuffle=True, seed=seed) for seed in (1, 1, 2))
    first, second = rows(one), rows(one)
    assert first != second
    assert sorted(chain(*first)) == sorted(chain(*second)) == list(range(10))
    assert [rows(same), rows(same)] == [first, second]
    assert rows(other) != first
    for batch in one:
        np.testing.assert_array_equal(batch["y"], batch["x"] * 2)
    drawn = DataLoader(data, 4, shuffle=True)
    assert rows(DataLoader(data, 4, shuffle=True, seed=drawn.seed)) == rows(drawn)
    assert rows(DataLoader(data, 4)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


@pytest.mark.parametrize("given", range(7))
def test_a_loader_goes_on_where_another_has_stopped(given: int) -> None:
    data = {"x": np.arange(10)}
    whole, part, other = (DataLoader(data, 4, shuffle=True, seed=seed) for seed in (1, 1, 5))
    expected = [batch for _ in range(4) for batch in rows(whole)]
    found: list[list[int]] = []
    while len(found) < given:
        for batch in part:
            found.append(batch["x"].tolist())
            if len(found) == given:
                break
    other.load_state_dict(part.state_dict())
    found += rows(other) + rows(other)
    assert found == expected[: len(found)]
    assert len(found) >= 6


def test_two_loops_at_once_see_the_same_batches() -> None:
    loader = tg.data.DataLoader({"x": np.arange(6)}, batch_size=2, shuffle=True, seed=1)
    pairs = [(a["x"].tolist(), b["x"].tolist()) for a, b in zip(loader, loader, strict=True)]
    assert len(pairs) == 3
    assert all(a == b for a, b in pairs)
    assert loader.state_dict() == {"seed": 1, "epoch": 1, "batch": 0}


def test_a_loop_that_was_left_starts_a_new_epoch_or_resumes() -> None:
    data = {"x": np.arange(6)}
    epochs = [rows(DataLoader(data, 2, shuffle=True, seed=1)) for _ in range(1)]
    loader = DataLoader(data, 2, shuffle=True, seed=1)
    next(iter(loader))
    assert rows(loader) != epochs[0]
    assert loader.epoch == 2
    again = DataLoader(data, 2, shuffle=True, seed=1)
    next(iter(again))
    again.resume()
    assert rows(again) == epochs[0][1:]


def test_an_epoch_stacks_for_upload() -> None:
    async def run() -> None:
        loader = DataLoader({"x": np.arange(10.0), "y": np.arange(10)}, 4, shuffle=True, seed=1)
        expected = rows(DataLoader({"x": np.arange(10.0)}, 4, shuffle=True, seed=1))[:2]
        stacked = loader.stack()
        assert stacked["x"].tolist() == expected
        assert stacked["y"].shape == (2, 4)
        assert loader.epoch == 1
        specs = {"x": tg.f32[4], "y": tg.i32[4]}
        train = await tg.compile(
            tg.nn.Linear(4, 1), lambda m, x, y: tg.mean(m(x) - y), tg.optim.SGD(0.1), specs, device="numpy"
        )
        assert (await train.upload(stacked)).count == 2
        with pytest.raises(tg.InputError, match="10 examples are less than one batch of 11"):
            DataLoader({"x": np.arange(10)}, 11).stack()

    tg.sync(run())


def test_a_split_has_every_example_once() -> None:
    data = TensorDataset(x=np.arange(10), y=-np.arange(10))
    for lengths, sizes in (([7, 3], [7, 3]), ([0.5, 0.25, 0.25], [6, 2, 2]), ([1.0], [10]), ([10, 0], [10, 0])):
        split = random_split(data, lengths, seed=1)
        assert [len(part) for part in split] == sizes
        assert sorted(chain(*(part[:]["x"].tolist() for part in split))) == list(range(10))
        for part in split:
            np.testing.assert_array_equal(part[:]["y"], -part[:]["x"])
    (one,), (other,) = random_split((np.arange(10),), [10], seed=1)[0][:], random_split((np.arange(10),), [10])[0][:]
    assert one.tolist() != other.tolist()


def test_what_is_no_dataset_is_said() -> None:
    x = np.arange(6)
    cases: list[tuple[Any, str]] = [
        (lambda: TensorDataset(), "not of none or both"),
        (lambda: TensorDataset(x, y=x), "not of none or both"),
        (lambda: DataLoader({"x": x, "y": x[:5]}), "same number of examples on its first axis: 'x' has 6, 'y' has 5"),
        (lambda: DataLoader((x, x[:2])), "array 0 has 6, array 1 has 2"),
        (lambda: DataLoader({"x": 3}), "'x' of the dataset is no array of examples, got 3"),
        (lambda: DataLoader({"x": [[1], [1, 2]]}), "'x' of the dataset is not an array"),
        (lambda: DataLoader(x), r"one array alone: give it by its input's name, \{'x': array\}"),
        (lambda: DataLoader(iter([1])), "a dataset is arrays by name, .*, got list_iterator"),
        (lambda: DataLoader({"x": x}, 0), "batch_size is a whole number from 1, got 0"),
        (lambda: DataLoader({"x": x}, 2.0), r"batch_size is a whole number from 1, got 2\.0"),  # type: ignore[arg-type]
        (lambda: DataLoader({"x": x}, True), "from 1, got True"),
        (lambda: DataLoader({"x": x}, seed=-1), "seed is a whole number from 0, got -1"),
        (lambda: list(DataLoader([{"a": 1}, {"b": 1}], 2)), r"no part 'a', which the first of its batch has: \['b'\]"),
        (lambda: list(DataLoader([np.ones(2), np.ones(3)], 2)), "the examples of a batch do not stack"),
        (lambda: random_split((x,), [2, 3]), r"lengths are to add up to 6, or to 1 as fractions, got \[2, 3\]"),
        (lambda: random_split((x,), [0.5, 0.4]), "lengths are to add up to 6"),
        (lambda: random_split((x,), [7, -1]), "lengths are to add up to 6"),
        (lambda: random_split([1, 2], [2]), "takes arrays or a TensorDataset, got list"),
    ]
    for make, message in cases:
        with pytest.raises(tg.InputError, match=message):
            make()
    loader = DataLoader({"x": x}, 2, seed=1)
    for state in (
        {},
        {"seed": 1, "epoch": 0},
        {"seed": 1, "epoch": 0, "batch": 3},
        {"seed": 1, "epoch": 0.5, "batch": 0},
    ):
        with pytest.raises(tg.CheckpointError, match=r"a loader's state|this loader has 3 batches"):
            loader.load_state_dict(state)
    assert loader.state_dict() == {"seed": 1, "epoch": 0, "batch": 0}
