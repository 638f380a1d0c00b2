"""Structures of inputs: names of leaves, matching what a call gives, open sizes, and what is refused."""

from __future__ import annotations

import re
from collections import OrderedDict
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad import nn
from tensorgrad.errors import DtypeError, InputError
from tensorgrad.structure import Structure, is_nest, parts, rebuild


class Pair(NamedTuple):
    left: Any
    right: Any


A, B, C = tg.f32[2], tg.i32[3], tg.bool_[()]

NESTS: list[tuple[Any, list[str]]] = [
    ({"x": A, "y": B}, ["x", "y"]),
    ((A, B), ["0", "1"]),
    ([A, B], ["0", "1"]),
    (Pair(A, B), ["0", "1"]),
    ({"x": {"y": {"z": A}}, "w": B}, ["x.y.z", "w"]),
    ({"x": (A, [B, {"c": C}])}, ["x.0", "x.1.0", "x.1.1.c"]),
    ({"p": Pair(A, (B,))}, ["p.0", "p.1.0"]),
    ({"x": {}, "y": (), "z": A}, ["z"]),
    ({}, []),
    ((), []),
    ({"x": {1: A, 2: B}}, ["x.1", "x.2"]),
]


@pytest.mark.parametrize(("specs", "names"), NESTS, ids=str)
def test_leaves_are_named_by_their_path_and_arguments_have_the_form(specs: Any, names: list[str]) -> None:
    structure = Structure(specs)
    assert list(structure.leaves) == names
    assert structure.is_concrete
    args, kwargs = structure.arguments(structure.leaves)
    built = kwargs if isinstance(specs, dict) else type(specs)(*args) if hasattr(specs, "_fields") else tuple(args)
    assert built == (tuple(specs) if isinstance(specs, list) else specs)


@pytest.mark.parametrize(("specs", "names"), NESTS, ids=str)
def test_what_is_given_in_the_structures_form_is_matched(specs: Any, names: list[str]) -> None:
    structure = Structure(specs)
    values = {name: object() for name in names}
    args, kwargs = structure.arguments(values)
    assert structure.flatten(tuple(args), kwargs) == values
    if names:
        assert structure.flatten((kwargs or tuple(args),), {}) == values


def test_the_form_is_kept_inside() -> None:
    structure = Structure({"p": Pair(A, [B]), "m": OrderedDict(a=A)})
    _, kwargs = structure.arguments({"p.0": 1, "p.1.0": 2, "m.a": 3})
    assert kwargs == {"p": Pair(1, [2]), "m": {"a": 3}}
    assert type(kwargs["p"]) is Pair
    assert type(kwargs["p"].right) is list


def test_other_containers_of_the_same_parts_match() -> None:
    structure = Structure({"p": Pair(A, B), "m": {"a": C}})
    for p in (Pair(1, 2), (1, 2), [1, 2]):
        for m in ({"a": 3}, OrderedDict(a=3), MappingProxyType({"a": 3})):
            assert structure.flatten((), {"m": m, "p": p}) == {"p.0": 1, "p.1": 2, "m.a": 3}
    numbered = Structure({"x": {1: A}})
    assert numbered.flatten((), {"x": {1: 5}}) == numbered.flatten((), {"x": {"1": 5}}) == {"x.1": 5}


def test_the_only_part_of_a_tuple_may_stand_alone() -> None:
    assert Structure((A,)).flatten((7,), {}) == {"0": 7}
    assert Structure((A,)).flatten(((7,),), {}) == {"0": 7}
    array = np.ones(2)
    assert Structure((A,)).flatten((array,), {})["0"] is array
    nested = Structure(((A, B),))
    assert nested.flatten(((7, 8),), {}) == nested.flatten((((7, 8),),), {}) == {"0.0": 7, "0.1": 8}
    mapping = Structure(({"a": A},))
    assert mapping.flatten(({"a": 7},), {}) == {"0.a": 7}


class Loss(nn.Module):
    def forward(self, input: Any, target: Any) -> None: ...


@pytest.mark.parametrize(
    ("specs", "fn", "message"),
    [
        ({"x": A}, lambda model, a: a, r"unexpected keyword|missing a required argument: 'a'"),
        (
            {"x": A},
            lambda model, a: a,
            r"called as fn\(model, x=x\).*by their names; it is .*\(model, a\) at .*\.py:\d+\.",
        ),
        ({"x": A, "y": B}, lambda x, y: x, r"multiple values for argument 'x'.*the model comes first"),
        ({"x": A}, lambda model: model, "got an unexpected keyword argument 'x'"),
        ((A, B), lambda model, a: a, r"too many positional.*fn\(model, input0, input1\).*in their order"),
        ({"input": A}, Loss(), r"it is Loss\.forward\(input: 'Any', target: 'Any'\)"),
        ({"x": A}, "mse", r"must be a function that is called as fn\(model, x=x\), got 'mse'"),
        ({"x": A}, None, "must be a function"),
    ],
)
def test_a_function_that_does_not_take_the_inputs(specs: Any, fn: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        Structure(specs).check_call("the loss function", fn)
    assert caught.value.site is not None


@pytest.mark.parametrize(
    ("specs", "fn"),
    [
        ({"x": A, "y": B}, lambda model, y, x, z=1: x),
        ({"x": A}, lambda *args, **kwargs: args),
        ((A, B), lambda model, *both: both),
        ({"x": {"a": A}}, lambda model, x: x),
        ({}, lambda model: model),
        ({"x": A}, max),
    ],
)
def test_a_function_that_does(specs: Any, fn: Any) -> None:
    Structure(specs).check_call("the loss function", fn)


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        (A, "a mapping or a tuple of specs, such as {'x': tg.f32[64, 784]}, got f32[2]"),
        (None, "a mapping or a tuple of specs"),
        ("x", "a mapping or a tuple of specs"),
        ({"x": tg.f32}, "input 'x' must be a spec such as tg.f32[64, 784], got f32; write tg.f32[()] for one"),
        (
            {"x": (A, {"y": (2, 3)})},
            "input 'x.1.y' must be a spec such as tg.f32[64, 784], got (2, 3); write tg.f32[",
        ),
        ({"x": [None, 3]}, "got [None, 3]; write tg.f32[None, 3]"),
        ({"x": ()} | {"y": 3}, "input 'y' must be a spec such as tg.f32[64, 784], got 3"),
        ({"x": np.ones((16, 4))}, "got an array of shape [16, 4] and dtype float64; write tg.f32[16, 4]"),
        ({"x": np.zeros(16, np.int64)}, "got an array of shape [16] and dtype int64; write tg.i32[16]"),
        ({"x": np.ones(2, bool)}, "write tg.bool_[2]"),
        (np.ones((2, 3)), "such as {'x': tg.f32[64, 784]}, got an array of shape [2, 3] and dtype float64"),
        ({"a.b": A, "a": {"b": B}}, "two inputs are named 'a.b'"),
        ({"a": {1: A, "1": B}}, "two inputs are named 'a.1'"),
        ({1: A}, "an input's name becomes a keyword, so it must be a string, got 1"),
    ],
    ids=str,
)
def test_specs_that_are_none(specs: Any, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        Structure(specs)
    assert caught.value.site is not None
    assert caught.value.site.file == __file__


@pytest.mark.parametrize(
    ("specs", "args", "kwargs", "message"),
    [
        ({"x": A, "y": B}, (), {}, "the inputs: missing ['x', 'y']; expected ['x', 'y']"),
        ({"x": A, "y": B}, (), {"x": 1, "z": 2}, "the inputs: missing ['y'] and unknown ['z']; expected ['x', 'y']"),
        ({"x": A}, (1,), {}, "the inputs: expected a mapping with ['x'], got int"),
        ({"x": A}, (1, 2), {}, "the inputs: expected a mapping with ['x'], got tuple"),
        ({"x": A}, ({"x": 1},), {"x": 1}, "one structure, or its parts as keywords, not both"),
        ((A, B), (1,), {}, "the inputs: missing ['1']; expected ['0', '1']"),
        ((A, B), (1, 2, 3), {}, "the inputs: unknown ['2']; expected ['0', '1']"),
        ((A, B), (), {"x": 1, "y": 2}, "the inputs: expected 2 parts, got dict"),
        ((A, B), ({"0": 1, "1": 2},), {}, "the inputs: missing ['1']"),
        ({"x": (A, B)}, (), {"x": np.ones(2)}, "input 'x': expected 2 parts, got ndarray"),
        ({"x": (A, B)}, (), {"x": {0: 1, 1: 2}}, "input 'x': expected 2 parts, got dict"),
        ({"x": {"y": A}}, (), {"x": [1]}, "input 'x': expected a mapping with ['y'], got list"),
        ({"x": {"y": (A,)}}, (), {"x": {"y": [1, 2]}}, "input 'x.y': unknown ['1']; expected ['0']"),
        ({}, (), {"x": 1}, "the inputs: unknown ['x']; expected []"),
        ((), (1,), {}, "the inputs: unknown ['0']; expected []"),
    ],
    ids=str,
)
def test_what_does_not_match_is_named(specs: Any, args: Any, kwargs: Any, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        Structure(specs).flatten(args, kwargs)


# Open sizes -----------------------------------------------------------------------------------------


def test_open_sizes_are_filled_in() -> None:
    structure = Structure({"x": tg.f32[None, 3], "pair": (tg.i32[None, None], C)})
    assert not structure.is_concrete
    values = {"x": np.ones((5, 3)), "pair.0": [[1, 2]], "pair.1": True}
    shapes = structure.shapes(values)
    assert shapes == ((5, 3), (1, 2), ())
    filled = structure.concrete(shapes)
    assert filled.is_concrete
    assert filled.specs == {"x": tg.f32[5, 3], "pair": (tg.i32[1, 2], C)}
    assert structure.shapes({**values, "x": np.ones((0, 3))})[0] == (0, 3)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ones(3), "input 'x' has shape [3], expected f32[None, 3]"),
        (np.ones((2, 4)), "input 'x' has shape [2, 4], expected f32[None, 3]"),
        (1.0, "input 'x' has shape [], expected f32[None, 3]"),
        (None, "input 'x' has shape [], expected f32[None, 3]"),
        ([[1.0], [1.0, 2.0]], "input 'x' is not an array"),
    ],
    ids=str,
)
def test_sizes_that_do_not_fit(value: Any, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        Structure({"x": tg.f32[None, 3]}).shapes({"x": value})


@pytest.mark.parametrize("shape", [-1, (2, -3), 1.5, ("n",)], ids=str)
def test_a_specs_sizes_are_whole_numbers_or_none(shape: Any) -> None:
    with pytest.raises(DtypeError, match="whole numbers from 0 or None"):
        tg.f32[shape]


# Nests ----------------------------------------------------------------------------------------------


def test_a_nest_is_taken_apart_and_rebuilt() -> None:
    for nest in ({"a": 1, 2: 3}, (1, 2), [1], Pair(1, 2), (), {}):
        assert is_nest(nest)
        again = rebuild(nest, (child for _, child in parts(nest)))
        assert again == nest
        assert type(again) is type(nest)
    assert [key for key, _ in parts({"a": 1, 2: 3})] == ["a", "2"]
    assert [key for key, _ in parts(Pair(1, 2))] == ["0", "1"]
    assert not any(map(is_nest, ("text", 1.0, None, np.ones(2), {1, 2}, A)))
