"""Initial values are drawn when somebody looks, and are the same whoever looks first."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad import nn, optim
from tensorgrad.nn.parameter import Draw, Parameter


def net() -> nn.Sequential:
    nn.init.manual_seed(3)
    return nn.Sequential(nn.Linear(5, 4), nn.Embedding(7, 5), nn.Linear(4, 2))


def test_the_order_of_looking_changes_nothing() -> None:
    forward, backward = list(net().parameters()), list(net().parameters())
    found = [p.numpy() for p in reversed(backward)][::-1]
    for wanted, got in zip(forward, found, strict=True):
        np.testing.assert_array_equal(got, wanted.data)
    assert len({float(p.data.flat[0]) for p in forward}) == len(forward)


def test_what_a_state_dict_replaces_is_never_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("drawn")

    wanted = net()[2].weight.data.copy()
    ours = net()
    monkeypatch.setattr(Draw, "__array__", never)
    ours.load_state_dict({n: np.ones(p.shape, np.float32) for n, p in ours.named_parameters() if n[0] != "2"}, False)
    assert str(ours)  # shapes and counts need no numbers
    assert ours[0].weight.data.sum() == 20
    monkeypatch.undo()
    np.testing.assert_array_equal(ours[2].weight.data, wanted)  # what comes after has the numbers that it always had


def test_numbers_are_drawn_while_the_program_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    model = nn.Linear(3, 2)
    spec: dict[str, Any] = {"x": tg.f32[1, 3]}

    async def compiled() -> Any:
        train = await tg.compile(model, lambda m, x: m(x).sum(), optim.SGD(0.0), spec, device="numpy")
        assert isinstance(model.weight.initial(), Draw)  # the module's own are not drawn even now
        start = model.weight.numpy()
        model.weight.data[...] = 7
        return start, (await train.state_dict())["model"]["weight"]

    start, held = tg.sync(compiled())
    np.testing.assert_array_equal(held, start)
    assert np.ptp(start) > 0


def test_writing_and_copying() -> None:
    weight = net()[0].weight
    other = copy.deepcopy(net()[0].weight)
    weight.data[0] = 9
    assert (weight.data[0] == 9).all()
    np.testing.assert_array_equal(weight.data[1:], other.data[1:])
    half = nn.init.normal_(Parameter(np.zeros(9, np.float16)), 3.0, 0.5)
    assert half.data.dtype == np.float16
    assert half.data.mean() == pytest.approx(3, abs=1)


def test_they_are_spread_as_they_should_be() -> None:
    nn.init.manual_seed(0)
    uniform = nn.init.uniform_(Parameter(np.zeros(40_000)), -2.0, 6.0).data
    assert -2 <= uniform.min() < -1.99
    assert 5.99 < uniform.max() <= 6
    normal = nn.init.normal_(Parameter(np.zeros(40_000)), 1.0, 3.0).data
    # four standard errors: of a mean std / 200, of a deviation std / 283
    np.testing.assert_allclose([uniform.mean(), normal.mean(), normal.std()], [2, 1, 3], atol=0.06)
