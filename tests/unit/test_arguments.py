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


LINE = rf"\n  at {__file__}:\d+ in "
LINEAR, ATTENTION, LSTM = nn.Linear(4, 3), nn.MultiheadAttention(4, 2), nn.LSTM(4, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda x: tg.hstack(5),
            r"hstack does not work with tensors = 5: .*It takes \(tensors: Sequence\[Tens",
        ),
        (lambda x: tg.dropout(x, None), r"dropout does not work with x = f32\[2, 4\], p = None: .*p: float = 0\.5"),
        (lambda x: tg.cross_entropy(x, [0, 1], dim=1), r"cross_entropy does not work with .*dim = 1: .*reduction: Red"),
        (lambda x: tg.cross_entropy(x, [0, 1], label_smoothing=None), r"cross_entropy .* label_smoothing = None: "),
        (lambda x: tg.checkpoint(x), r"checkpoint does not work with function = f32\[2, 4\]"),
        (lambda x: x.diff(1.5), r"diff does not work with .*n = 1\.5"),
        (lambda x: tg.group_norm(x, None), r"group_norm does not work with x = f32\[2, 4\], num_groups = None"),
        (lambda x: LINEAR(), r"Linear does not work: .*missing.*'x'\. It takes \(x: TensorLike\)"),
        (lambda x: LINEAR(x, x), r"Linear does not work with f32\[2, 4\], f32\[2, 4\]: .*It takes \(x: TensorLike\)"),
        (lambda x: ATTENTION(x), r"MultiheadAttention does not work with f32\[2, 4\]: .*'key'.*It takes \(query: "),
        (lambda x: len(x[0, 0]), r"len\(\) of a 0-d tensor"),
    ],
)
def test_a_raw_error_becomes_one_of_the_call(call: Any, message: str) -> None:
    with pytest.raises(tg.ArgumentError, match=message + rf"(.|\n)*{LINE}<lambda>"):
        traced(call)


def test_what_the_user_raises_stays_as_it_is() -> None:
    def own(x: Any) -> Any:
        return {"a": x}["b"]

    def called_back(x: Any) -> Any:
        return tg.checkpoint(own, x)

    def pythons(x: Any) -> Any:
        return tg.iota(3)

    for call, kind in ((own, KeyError), (called_back, KeyError), (pythons, TypeError)):
        with pytest.raises(kind) as caught:
            traced(call)
        assert not isinstance(caught.value, tg.TensorgradError)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: tg.topk(x, 1.5), "topk: k must be a whole number, 0 or more, got 1.5"),
        (lambda x: x.narrow(0, 1.0, 1), "narrow: start must be a whole number, got 1.0"),
        (lambda x: tg.rot90(x, 1.5), "rot90: k must be a whole number, got 1.5"),
        (lambda x: tg.full(2.0, (3,)), r"full: fill_value must be a number, got \(3,\)"),
        (lambda x: tg.normal(0, 1, (2,)), r"the shape comes first, tg\.normal\(\(2,\), 0, 1\)"),
        (lambda x: tg.uniform(0, 1, (2,)), r"the shape comes first, tg\.uniform\(\(2,\), 0, 1\)"),
        (lambda x: x + None, "a tensor, an array or numbers belong here, got None"),
        (lambda x: x == None, "a tensor, an array or numbers belong here, got None"),  # noqa: E711
        (
            lambda x: nn.functional.linear(LSTM(x), LINEAR.weight),
            r"one tensor .* not a tuple.*output, state = lstm\(x\)",
        ),
        (lambda x: tg.relu(LSTM(x)), r"one tensor belongs here, not a tuple of tensors"),
        (lambda x: tg.tensor([x.sum(), 1.0]), r"not a list of tensors\. tg\.stack or tg\.concat"),
        (lambda x: x.size(0), r"x\.size\(0\) is x\.shape\[0\]"),
        (lambda x: x.type(tg.i32), r"x\.astype\(tg\.i32\)"),
        (lambda x: tg.Tensor([1.0]), r"tg\.tensor\(\[1\.0, 2\.0\]\)"),
        (lambda x: f"{x.sum():.3f}", r"the format '\.3f' needs the numbers"),
        (lambda x: round(x, 2), r"rounding to digits needs the numbers"),
    ],
)
def test_what_an_argument_has_to_be(call: Any, message: str) -> None:
    with pytest.raises(tg.TensorgradError, match=message + rf"(.|\n)*{LINE}<lambda>"):
        traced(call)


@pytest.mark.parametrize("name", ["mean", "std", "max", "argmax", "clip", "stack", "reshape", "transpose"])
def test_numpys_functions_of_tensors_name_the_users_line(name: str) -> None:
    more = {"clip": (0, 1), "reshape": (-1,)}.get(name, ())
    message = rf"np\.{name} computes with arrays.* use tg\.{name}, which records the operation{LINE}"
    with pytest.raises(tg.TraceError, match=message):
        traced(lambda x: getattr(np, name)([x, x] if name == "stack" else x, *more))
    weight = nn.Parameter([[1.0, 2.0]])
    given = [weight, weight] if name == "stack" else weight
    np.testing.assert_array_equal(getattr(np, name)(given, *more), getattr(np, name)(np.asarray(given), *more))


def test_numpys_functions_of_the_shape_work() -> None:
    found = []
    tg.trace(lambda: found.append(tg.tensor_input("x", (2, 3))) or found[0])
    tg.trace(lambda: found.extend((np.shape(found[0]), np.ndim(found[0]), np.size(found[0]))) or tg.zeros(1))
    assert found[1:] == [(2, 3), 2, 6]
