"""Wrong arguments: a library's error with the user's line, wherever they are given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad import nn

X = np.ones((2, 4), np.float32)


def traced(call: Any, *arrays: Any) -> Any:
    """What a function of tensors gives on the host."""
    return tg.sync(tg.jit(call, device="numpy")(*(arrays or (X,))))


NAMES = {"f32": np.float32, "i32": np.int64, "bool": bool, "f16": "float16", "u32": np.dtype("uint32")}


@pytest.mark.parametrize(("ours", "numpys"), NAMES.items())
def test_numpys_dtypes_name_ours_everywhere(ours: str, numpys: Any) -> None:
    made = {
        "zeros": lambda x: tg.zeros(2, dtype=numpys),
        "ones_like": lambda x: tg.ones_like(x, dtype=numpys),
        "full": lambda x: tg.full((2,), 1, dtype=numpys),
        "full_like": lambda x: tg.full_like(x, 1, dtype=numpys),
        "tensor": lambda x: tg.tensor([1, 0, 1], dtype=numpys),
        "constant": lambda x: tg.tensor([1, 1], dtype=numpys),
        "arange": lambda x: tg.arange(2, dtype=numpys),
        "eye": lambda x: tg.eye(2, dtype=numpys),
        "cast": lambda x: x.astype(numpys),
        "input": lambda x: tg.state_input("s", (2,), numpys),
    }
    for name, make in made.items():
        found = []
        tg.trace(lambda make=make, found=found: found.append(make(tg.tensor_input("x", (2, 4)))) or found[0])
        assert found[0].dtype.name == ours, name


LAYERS = [
    lambda d: nn.Linear(3, 4, dtype=d),
    lambda d: nn.Embedding(3, 4, dtype=d),
    lambda d: nn.Conv2d(3, 4, 1, dtype=d),
    lambda d: nn.LayerNorm(4, dtype=d),
    lambda d: nn.BatchNorm1d(4, dtype=d),
    lambda d: nn.PReLU(dtype=d),
    lambda d: nn.MultiheadAttention(4, 2, dtype=d),
    lambda d: nn.LSTM(3, 4, dtype=d),
]


@pytest.mark.parametrize("layer", LAYERS)
def test_dtypes_of_layers(layer: Any) -> None:
    for given in (None, np.float32, "float32", float):
        assert {p.dtype for p in layer(given).parameters()} == {tg.f32}
    for given in ("flaot32", np.complex64, 3):
        with pytest.raises(tg.DtypeError, match=rf"a dtype is tg\.f32, .*, got .*\n  at {__file__}"):
            layer(given)


@pytest.mark.parametrize("given", ["flaot32", np.complex64, 3, object(), X])
def test_what_is_no_dtype(given: Any) -> None:
    for call in (tg.zeros_like, tg.ones_like, lambda x, dtype: tg.zeros(2, dtype=dtype), lambda x, dtype: x.to(dtype)):
        with pytest.raises(tg.DtypeError, match=rf"a dtype is tg\.f32(.|\n)*  at {__file__}"):
            traced(lambda x, call=call: call(x, dtype=given))
