"""Wrong arguments: a library's error with the user's line, wherever they are given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad import nn

X = np.ones((2, 4), np.float32)
WRONGLY: Any = tg  # calls that a type checker would refuse


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
LINEAR: Any = nn.Linear(4, 3)
ATTENTION, LSTM = nn.MultiheadAttention(4, 2), nn.LSTM(4, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda x: WRONGLY.hstack(5),
            r"hstack does not work with tensors = 5: .*It takes \(tensors: Sequence\[Tens",
        ),
        (
            lambda x: WRONGLY.dropout(x, None),
            r"dropout does not work with x = f32\[2, 4\], p = None: .*p: float = 0\.5",
        ),
        (
            lambda x: WRONGLY.cross_entropy(x, [0, 1], dim=1),
            r"cross_entropy does not work with .*dim = 1: .*reduction: Red",
        ),
        (
            lambda x: WRONGLY.cross_entropy(x, [0, 1], label_smoothing=None),
            r"cross_entropy .* label_smoothing = None: ",
        ),
        (lambda x: tg.checkpoint(x), r"checkpoint does not work with function = f32\[2, 4\]"),
        (lambda x: x.diff(1.5), r"diff does not work with .*n = 1\.5"),
        (lambda x: WRONGLY.group_norm(x, None), r"group_norm does not work with x = f32\[2, 4\], num_groups = None"),
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
        return WRONGLY.iota(3)

    def misspelt(x: Any) -> Any:
        return x.summ() + LINEAR.wieght

    for call, kind in ((own, KeyError), (called_back, KeyError), (pythons, TypeError), (misspelt, AttributeError)):
        with pytest.raises(kind) as caught:
            traced(call)
        assert not isinstance(caught.value, tg.TensorgradError)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: WRONGLY.topk(x, 1.5), "topk: k must be a whole number, 0 or more, got 1.5"),
        (lambda x: x.narrow(0, 1.0, 1), "narrow: start must be a whole number, got 1.0"),
        (lambda x: WRONGLY.rot90(x, 1.5), "rot90: k must be a whole number, got 1.5"),
        (lambda x: WRONGLY.full(2.0, (3,)), r"full: fill_value must be a number, got \(3,\)"),
        (lambda x: WRONGLY.normal(0, 1, (2,)), r"the shape comes first, tg\.normal\(\(2,\), 0, 1\)"),
        (lambda x: WRONGLY.uniform(0, 1, (2,)), r"the shape comes first, tg\.uniform\(\(2,\), 0, 1\)"),
        (lambda x: x + None, "None makes no tensor: no device dtype holds"),
        (lambda x: x == None, "None makes no tensor: no device dtype holds"),  # noqa: E711
        (
            lambda x: nn.functional.linear(LSTM(x), LINEAR.weight),
            r"one tensor .* not a tuple.*output, state = lstm\(x\)",
        ),
        (lambda x: tg.relu(LSTM(x)), r"one tensor belongs here, not a tuple of tensors"),
        (lambda x: tg.tensor([x.sum(), 1.0]), r"not a list of tensors\. tg\.stack or tg\.concat"),
        (lambda x: x.size(0), r"x\.size\(0\) is x\.shape\[0\]"),
        (lambda x: x.type(tg.i32), r"x\.astype\(tg\.i32\)"),
        (lambda x: WRONGLY.Tensor([1.0]), r"tg\.tensor\(\[1\.0, 2\.0\]\)"),
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


WEIGHT = nn.Parameter(np.ones((2, 2)))
LAYERS_OF: Any = nn.Sequential(nn.Linear(2, 2), nn.ReLU())


async def a_state_dict() -> dict[str, Any]:
    return {}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: WRONGLY.nn.init.xavier_uniform_(LAYERS_OF),
            "fills a parameter or an array, such as layer.weight, got Seq",
        ),
        (lambda: WRONGLY.nn.init.zeros_(None), "fills a parameter or an array, such as layer.weight, got None"),
        (
            lambda: WRONGLY.nn.init.kaiming_uniform_(WEIGHT, nonlinearity="swish"),
            "no gain for 'swish'; known are .*leaky_relu",
        ),
        (lambda: WRONGLY.nn.init.kaiming_normal_(WEIGHT, mode="fan"), "mode is 'fan_in' or 'fan_out', got 'fan'"),
        (lambda: WRONGLY.nn.init.manual_seed("a"), "manual_seed: seed must be a whole number"),
        (
            lambda: WRONGLY.nn.ModuleList(nn.Linear(2, 2)),
            "ModuleList: its argument must be a list or another iterable, got",
        ),
        (
            lambda: WRONGLY.nn.ModuleDict([nn.Linear(2, 2)]),
            "ModuleDict: its argument must be a mapping of names to items",
        ),
        (lambda: WRONGLY.nn.ModuleDict({1: nn.Linear(2, 2)}), "1 cannot name an entry of ModuleDict: a name is a text"),
        (lambda: WRONGLY.nn.ModuleDict({"keys": nn.Linear(2, 2)}), "'keys' cannot name an entry .* a method's name"),
        (lambda: WRONGLY.nn.ModuleDict({"a": nn.Linear(2, 2)})["b"], "ModuleDict has no 'b'; it has a"),
        (lambda: LAYERS_OF[7], "Sequential has 2 items, and none at 7"),
        (lambda: setattr(LAYERS_OF, "training", False), r"Sequential\.eval\(\) freezes a module"),
        (lambda: LAYERS_OF.load_state_dict(a_state_dict()), r"load_state_dict\(await train\.state_dict\(\)\)"),
        (lambda: LAYERS_OF.load_state_dict({}), "does not fit:(.|\n)*missing: 0.weight"),
        (
            lambda: WRONGLY.nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2), "a"),
            "num_layers must be a whole number",
        ),
        (lambda: WRONGLY.nn.TransformerEncoderLayer(4, 2, activation=None), "'relu', 'gelu' or a function, got None"),
        (
            lambda: WRONGLY.nn.TransformerEncoderLayer(4, 2, activation=nn.ReLU),
            "'relu', 'gelu' or a function, got <class",
        ),
        (lambda: WRONGLY.nn.LSTM(3, 4, 1.0), r"LSTM: num_layers must be a whole number, 1 or more, got 1\.0"),
        (lambda: WRONGLY.nn.LSTM(3, 4, dropout=None), r"LSTM: dropout must be a number, got None"),
        (
            lambda: WRONGLY.nn.Unflatten(1, -1),
            "Unflatten: dim and unflattened_size must be an axis and a list of sizes",
        ),
        (lambda: WRONGLY.nn.PReLU(-1), "PReLU: num_parameters must be a whole number, 0 or more, got -1"),
        (lambda: WRONGLY.nn.Linear(2, 2, device="cpu"), "Linear takes no device"),
        (lambda: WRONGLY.nn.Conv2d(3, 8, 3, groups=2), "Conv2d: 2 groups do not divide 3 channels"),
        (lambda: WRONGLY.f32[-1, 4], "a spec's sizes are whole numbers"),
        (lambda: WRONGLY.nn.Embedding(3, 4, 1.5), r"Embedding: padding_idx must be a whole number, got 1\.5"),
        (lambda: WRONGLY.nn.Embedding(3, 4, 7), "Embedding: padding_idx 7 is outside the 3 rows"),
        (lambda: tg.load(b"xx"), "no valid safetensors file"),
        (lambda: WRONGLY.device("cuda"), r"tg\.compile\(\.\.\., device='webgpu'\)"),
        (lambda: WRONGLY.f32[8.0], "a spec's sizes are whole numbers"),
    ],
)
def test_what_layers_and_their_like_refuse(call: Any, message: str) -> None:
    with pytest.raises(tg.TensorgradError, match=message + rf"(.|\n)*{LINE}<lambda>"):
        call()


def test_what_pytorch_programs_say_of_devices_has_no_effect() -> None:
    assert LAYERS_OF.cuda(0) is LAYERS_OF.to(device="cuda", non_blocking=True) is LAYERS_OF
    with pytest.raises(IndexError):
        LAYERS_OF.__getitem__(2)
