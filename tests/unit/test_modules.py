"""Modules: registration, containers, state dicts and printing."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from reference.modules import Tied, call, traced
from reference.stored import f, run
from tensorgrad import nn, ops
from tensorgrad.autodiff import append_grad
from tensorgrad.dtypes import f32, i32
from tensorgrad.errors import CheckpointError, DtypeError, InputError, TensorgradError, TraceError
from tensorgrad.tensor import Tensor

# Registration ------------------------------------------------------------------------------


def test_tied_weights_are_one_parameter() -> None:
    module = Tied()
    graph = traced(module, np.array([1, 1, 0], np.int32))
    assert set(graph.names_by_role("param")) == {"scale", "embed.weight"}
    y, scale, weight = call(module, np.array([1, 1, 0], np.int32))
    table, w = module.embed.weight.numpy(), np.cos(np.arange(12, dtype=np.float32)).reshape(3, 4)
    rows = table[[1, 1, 0]]
    expected = w.T @ rows  # as the head
    np.add.at(expected, [1, 1, 0], w @ table)  # and as the table
    np.testing.assert_allclose(y, rows @ table.T, rtol=1e-5)
    np.testing.assert_allclose(weight, expected, rtol=1e-5, atol=1e-6)
    assert not scale.any()


def test_a_module_that_is_held_twice_is_one_module() -> None:
    layer = nn.Linear(3, 3)
    module = nn.Sequential(layer, nn.ReLU(), layer)
    assert [name for name, _ in module.named_parameters()] == ["0.weight", "0.bias"]
    assert list(module.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert [name for name, _ in module.named_modules()] == ["", "0", "1"]
    assert list(traced(module, np.ones((1, 3), np.float32)).names_by_role("param")) == ["0.weight", "0.bias"]


def test_attributes() -> None:
    module = nn.Linear(2, 2)
    with pytest.raises(TypeError, match=r"Linear.weight is a Parameter.*\.weight\.data"):
        module.weight = np.zeros((2, 2))  # type: ignore[assignment]
    module.bias = None
    assert [name for name, _ in module.named_parameters()] == ["weight"]
    with pytest.warns(UserWarning, match=r"plain list.*nn\.ModuleList"):
        module.layers = [nn.ReLU()]
    with pytest.warns(UserWarning, match=r"plain dict.*nn\.ParameterDict"):
        module.extra = {"a": nn.Parameter([1.0])}
    module.sizes = [1, 2]
    assert isinstance(module.get_parameter("weight"), nn.Parameter)
    assert nn.Sequential(module).get_submodule("0") is module
    for wrong in ("nothing", "0.nothing"):
        with pytest.raises(AttributeError, match=wrong):
            nn.Sequential(module).get_parameter(wrong)
    with pytest.raises(InputError, match="no dot"):
        module.add_module("a.b", nn.ReLU())


def test_a_trace_does_not_change_a_module() -> None:
    class Keeps(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            self.last = x
            return x

    class KeepsMany(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            self.seen = [x]
            return x

    class Grows(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            self.layer = nn.Linear(2, 2)
            return x

    class Switches(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            self.eval()
            return x

    x = np.ones((1, 2), np.float32)
    for module, text in (
        (Keeps(), r"Keeps\.last cannot hold a tensor of a trace.*nn\.Buffer"),
        (KeepsMany(), r"KeepsMany\.seen cannot hold"),
        (Grows(), r"Linear\.weight is set while a trace runs"),
        (Switches(), r"tg\.compile traces for training"),
    ):
        with pytest.raises(TraceError, match=text) as caught:
            call(module, x)
        assert "test_modules.py" in str(caught.value)


def test_outside_a_trace_a_call_says_what_to_do() -> None:
    with pytest.raises(TraceError, match=r"Linear was called where no trace runs.*tg\.compile_forward") as caught:
        nn.Linear(2, 2)(np.ones((1, 2)))
    assert "test_modules.py" in str(caught.value)
    with pytest.raises(TraceError, match="no trace is running"):
        _ = nn.Parameter([1.0]) + 1


def test_a_module_without_forward() -> None:
    with pytest.raises(NotImplementedError, match="Module defines no forward"):
        call(nn.Module(), np.ones(1, np.float32))
    with pytest.raises(TensorgradError, match=r"write one: def forward\(self, x\)"):
        call(nn.Module(), np.ones(1, np.float32))


@pytest.mark.parametrize(
    ("module", "shape"),
    [(nn.Linear(3, 2), (4, 3)), (nn.Conv1d(3, 2, 1), (4, 3, 5)), (nn.ConvTranspose1d(3, 2, 1), (4, 3, 5))],
    ids=lambda value: type(value).__name__,
)
def test_integers_by_weights_of_floats_are_refused_as_by_pytorch(module: nn.Module, shape: tuple[int, ...]) -> None:
    with pytest.raises(DtypeError, match=r"needs (a )?floating-point tensors?, got i32\[4, 3.*\.astype\(tg\.f32\)"):
        call(module, np.ones(shape, np.int32))
    with pytest.raises(DtypeError, match="indices must be integers, got f32"):
        call(nn.Embedding(4, 3), np.ones(shape, np.float32))


WRONG: Any = "2"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.Linear(WRONG, 3), "Linear: in_features must be a whole number, 0 or more, got '2'"),
        (lambda: nn.Linear(2.5, 3), r"Linear: in_features must be .*, got 2\.5"),  # pyright: ignore
        (lambda: nn.Linear(3, -1), "Linear: out_features must be a whole number, 0 or more, got -1"),
        (lambda: nn.Bilinear(1, WRONG, 1), "Bilinear: in2_features must be"),
        (lambda: nn.Embedding(5, WRONG), "Embedding: embedding_dim must be"),
        (lambda: nn.LayerNorm(WRONG), "LayerNorm: normalized_shape must be a whole number, 0 or more, got '2'"),
        (lambda: nn.RMSNorm((2, 2.5)), r"RMSNorm: normalized_shape must be .* got 2\.5"),  # pyright: ignore
        (lambda: nn.GroupNorm(1, WRONG), "GroupNorm: num_channels must be"),
        (lambda: nn.BatchNorm1d(WRONG), "BatchNorm1d: num_features must be"),
        (lambda: nn.InstanceNorm1d(WRONG), "InstanceNorm1d: num_features must be"),
        (lambda: nn.Conv2d(WRONG, 3, 3), "Conv2d: in_channels must be"),
        (lambda: nn.LSTM(3, WRONG), "LSTM: hidden_size must be"),
        (lambda: nn.MultiheadAttention(WRONG, 1), "MultiheadAttention: embed_dim must be"),
        (lambda: nn.Dropout(WRONG), "Dropout: p must be a number, got '2'"),
        (lambda: nn.Dropout(1.5), r"Dropout: p must be from 0 to 1, got 1\.5"),
    ],
)
def test_sizes_and_numbers_that_make_no_sense(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        make()
    assert f"at {__file__}" in str(caught.value)


def test_sizes_of_numpy_are_sizes() -> None:
    two: Any = np.int64(2)
    assert nn.Linear(two, two).weight.shape == (2, 2)
    assert [nn.LayerNorm(sizes).normalized_shape for sizes in (two, [two, 3])] == [(2,), (2, 3)]
    assert nn.Linear(0, 3).weight.shape == (3, 0)


def test_parameters_hold_copies_and_survive_copying() -> None:
    source = np.ones(3)
    parameter = nn.Parameter(source)
    source[:] = 5
    assert (parameter.numpy() == 1).all()
    assert parameter.dtype is f32
    module = Tied().requires_grad_(False)
    for twin in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert twin.head.weight is twin.embed.weight
        assert twin.embed.weight is not module.embed.weight
        assert not twin.head.weight.requires_grad
        assert not twin.hidden.persistent
        np.testing.assert_array_equal(twin.embed.weight.numpy(), module.embed.weight.numpy())
    with pytest.raises(DtypeError, match="float, integer or bool"):
        nn.Parameter(["a"])


def test_a_parameter_without_a_name_is_one_constant() -> None:
    outside = nn.Parameter([2.0, 3.0])
    value, grad = run(
        lambda x: [ops.sum(x * outside * outside), *append_grad(ops.sum(outside * outside * x), [outside])],
        x=f([1, 10]),
    )
    assert value == 94
    np.testing.assert_array_equal(grad, [4, 60])


# Containers ----------------------------------------------------------------------------------


def test_lists_behave_as_lists() -> None:
    a, b, c = nn.ReLU(), nn.Tanh(), nn.Identity()
    modules = nn.ModuleList([a])
    modules.append(b).extend([c])
    modules.insert(1, nn.GELU())
    assert [type(m).__name__ for m in modules] == ["ReLU", "GELU", "Tanh", "Identity"]
    assert modules[-1] is c
    assert isinstance(modules[1:3], nn.ModuleList)
    assert len(modules[1:3]) == 2
    assert modules.pop(1).__class__ is nn.GELU
    del modules[0]
    modules[0] = a
    assert list(modules) == [a, c]
    assert [name for name, _ in modules.named_children()] == ["0", "1"]
    twelve = nn.ModuleList(nn.Linear(1, 1, bias=False) for _ in range(12))
    assert list(twelve.state_dict())[-1] == "11.weight"
    with pytest.raises(TypeError, match=r"holds objects of Module, got function.*nn\.ReLU"):
        nn.Sequential(ops.relu)  # type: ignore[arg-type]
    with pytest.raises(IndexError):
        modules[2]


def test_sequences_by_name() -> None:
    module = nn.Sequential({"first": nn.Linear(2, 3), "act": nn.ReLU()})
    module.append(nn.Linear(3, 1))
    assert list(module.state_dict()) == ["first.weight", "first.bias", "2.weight", "2.bias"]
    assert call(module, np.ones((5, 2), np.float32))[0].shape == (5, 1)


def test_dicts_behave_as_dicts() -> None:
    module = nn.ModuleDict({"a": nn.ReLU()})
    module["b"] = nn.Linear(1, 2)
    module.update({"c": nn.Tanh()})
    assert list(module) == list(module.keys()) == ["a", "b", "c"]
    assert "b" in module
    del module["a"]
    assert len(module) == 2
    assert list(module.state_dict()) == ["b.weight", "b.bias"]
    for wrong in ("x.y", "", "items"):
        with pytest.raises(InputError):
            module[wrong] = nn.ReLU()
    with pytest.raises(TypeError, match="holds objects of Module"):
        module["d"] = 3
    parameters = nn.ParameterDict({"w": [1.0]})
    assert isinstance(parameters["w"], nn.Parameter)
    assert list(nn.ParameterList([np.zeros(2), nn.Parameter([1.0])]).state_dict()) == ["0", "1"]


# State -----------------------------------------------------------------------------------------


def test_state_dicts_round_trip_and_are_copies() -> None:
    a, b = Tied(), Tied()
    state = a.state_dict()
    assert b.load_state_dict(state) == ([], [])
    for name, array_ in b.state_dict().items():
        np.testing.assert_array_equal(array_, state[name])
    state["scale"][:] = 9
    assert (a.scale.numpy() == 1).all()
    assert (b.scale.numpy() == 1).all()
    assert b.head.weight is b.embed.weight


def test_a_state_dict_that_does_not_fit_changes_nothing_and_lists_everything() -> None:
    module = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    before = module.state_dict()
    wrong = {
        "0.weight": np.zeros((3, 2)),
        "0.bias": np.zeros(4),
        "1.weight": np.zeros((1, 3), int),
        "more": np.zeros(1),
    }
    with pytest.raises(CheckpointError) as caught:
        module.load_state_dict(wrong)
    lines = str(caught.value).splitlines()
    assert lines[0] == "the state dict does not fit:"
    assert lines[1:3] == ["  missing: 1.bias (f32[1])", "  unexpected: more"]
    assert "0.bias" in lines[3]
    assert "[4]" in lines[3]
    assert "[3]" in lines[3]
    assert "1.weight" in lines[4]
    for name, array_ in module.state_dict().items():
        np.testing.assert_array_equal(array_, before[name])


def test_loading_part_of_a_state_dict() -> None:
    module = nn.Linear(2, 1)
    keys = module.load_state_dict({"bias": [7.0], "other": 1}, strict=False)
    assert keys == (["weight"], ["other"])
    assert module.bias is not None
    assert module.bias.numpy() == 7
    with pytest.raises(CheckpointError, match="bias"):
        module.load_state_dict({"bias": [7.0, 8.0]}, strict=False)


def test_tied_weights_load_from_any_of_their_names() -> None:
    module, state = Tied(), Tied().state_dict()
    for name in ("embed.weight", "head.weight"):
        module.load_state_dict({k: v for k, v in state.items() if k != name})
        np.testing.assert_array_equal(module.embed.weight.numpy(), state["embed.weight"])
    with pytest.raises(CheckpointError, match="one tied parameter"):
        module.load_state_dict({**state, "head.weight": state["head.weight"] + 1})


# Printing --------------------------------------------------------------------------------------


def test_a_module_prints_as_a_tree() -> None:
    module = nn.Sequential(nn.Embedding(10, 4, padding_idx=0), nn.Sequential(nn.LayerNorm(4), nn.Dropout(0.1)))
    module.append(nn.Linear(4, 10, bias=False))
    module[2].weight = module[0].weight
    module[1].requires_grad_(False)
    assert str(module) == "\n".join(
        [
            "Sequential: 48 parameters, 8 frozen",
            "  0: Embedding(10, 4, padding_idx=0)  weight f32[10, 4]  (40)",
            "  1: Sequential  (8)",
            "    0: LayerNorm(4, eps=1e-05)  weight f32[4] (frozen), bias f32[4] (frozen)  (8)",
            "    1: Dropout(p=0.1)",
            "  2: Linear(4 -> 10)  weight f32[10, 4] = 0.weight  (40)",
        ]
    )
    assert repr(nn.Buffer([1])) == f"Buffer({i32}[1])"
    assert repr(nn.Parameter([1.0], requires_grad=False)) == "Parameter(f32[1], frozen)"
