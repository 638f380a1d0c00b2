"""Whole numbers as arguments: of NumPy's types, out of range, under two names; and as powers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from programs import on_numpy, program
from tensorgrad import nn
from tensorgrad.data import DataLoader, random_split

X = np.arange(12, dtype=np.float32).reshape(4, 3)

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    **{name: lambda x, n, name=name: getattr(tg, name)(x, n) for name in (
        "sum", "mean", "max", "argmax", "argmin", "any", "var", "std", "logsumexp", "softmax", "log_softmax", "flip",
        "cumsum", "sort", "argsort", "expand_dims", "median", "cummax",
    )},
    "norm": lambda x, n: tg.norm(x, 2, n),
    "squeeze": lambda x, n: tg.squeeze(x[:, :1], n),
    "roll": lambda x, n: tg.roll(x, n, n),
    "split": lambda x, n: tg.split(x, n, n)[2],
    "split in sizes": lambda x, n: tg.split(x, [n, n + n], n)[1],
    "tensor_split": lambda x, n: tg.tensor_split(x, n + n, n)[1],
    "chunk": lambda x, n: tg.chunk(x, 2, n)[0],
    "movedim": lambda x, n: tg.movedim(x, n, 0),
    "gather": lambda x, n: tg.gather(x, n, np.zeros((4, 1), np.int32)),
    "layer_norm": lambda x, n: tg.layer_norm(x, n + n + n),
    "tensordot": lambda x, n: tg.tensordot(x, x.T, n),
    "tensordot of axes": lambda x, n: tg.tensordot(x, x, (n, n)),
    "glu": lambda x, n: tg.glu(x[:, :2], n),
    "topk": lambda x, n: tg.topk(x, n, n),
    "pow": lambda x, n: x.astype(tg.i32) ** (n * 9),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_numpys_whole_numbers_are_taken(name: str) -> None:
    def both(x: tg.Tensor) -> list[tg.Tensor]:
        found = [CALLS[name](x, one) for one in (1, np.int64(1), np.uint8(1))]
        return [t for out in found for t in (out if isinstance(out, tuple) else (out,))]

    outs = on_numpy(program(both, [X]))
    third = len(outs) // 3
    for plain, *others in zip(outs[:third], outs[third : 2 * third], outs[2 * third :], strict=True):
        for other in others:
            assert other.dtype == plain.dtype
            np.testing.assert_array_equal(other, plain)


def any_(value: Any) -> Any:
    """What the type checker would refuse as an argument, too."""
    return value


ERRORS: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda x: x.sum(1.0), tg.ShapeError, "sum: an axis must be a whole number, got 1.0"),
    (lambda x: x.sum("a"), tg.ShapeError, "sum: an axis must be a whole number, got 'a'"),
    (lambda x: tg.var(x, correction=any_("a")), tg.ShapeError, "var: correction must be a whole number, got 'a'"),
    (lambda x: tg.norm(x, any_(x)), tg.InputError, "norm: p must be a number or 'fro'"),
    (lambda x: x.sum((0, -2)), tg.ShapeError, r"sum: an axis is named twice in \(0, -2\)"),
    (lambda x: tg.split(x, any_(1.5)), tg.ShapeError, "split: a size must be a whole number, got 1.5"),
    (lambda x: tg.roll(x, any_(0.5)), tg.ShapeError, "roll: a shift must be a whole number, got 0.5"),
    (lambda x: x[::0], tg.ShapeError, r"getitem: slice\(None, None, 0\) .* slice step cannot be zero"),
    (lambda x: x[0.5:], tg.ShapeError, r"getitem: slice\(0.5, None, None\) is no slice of an axis"),
    (lambda x: x.astype(tg.i32) + 2**40, tg.DtypeError, "1099511627776 does not fit i32"),
    (lambda x: tg.tensor(-1, tg.u32) + x, tg.DtypeError, "-1 does not fit u32, which goes from 0 to 4294967295"),
    (lambda x: tg.full(3, np.inf, tg.i32) + x, tg.DtypeError, "inf does not fit i32"),
    (lambda x: tg.tensor([[1], [1, 2]]) + x, tg.ShapeError, "this makes no array"),
    (lambda x: x.sum(axis=0, dim=1), TypeError, "give axis or dim, not both"),
    (lambda x: tg.softmax(x, 0, dim=1), TypeError, "give axis or dim, not both"),
    (lambda x: tg.concat([x, x], axis=1, dim=0), TypeError, "give axis or dim, not both"),
    (lambda x: tg.softmax(x, rim=1), TypeError, "softmax: unexpected keyword 'rim'"),
    (lambda x: tg.stack([x, x], dims=1), TypeError, "stack: unexpected keyword 'dims'"),
    (lambda x: tg.concat(any_(x)), TypeError, r"concat takes a list or tuple of tensors, got one, f32\[4, 3\]"),
    (lambda x: tg.softmax(x, any_(None)), tg.ShapeError, "softmax: an axis must be a whole number, got None"),
    (lambda x: tg.argmax(x, any_((0, 1))), tg.ShapeError, r"argmax: an axis must be a whole number, got \(0, 1\)"),
    (lambda x: tg.sort(x, any_((0, 1))), tg.ArgumentError, r"sort runs along one axis, got \(0, 1\)"),
    (lambda x: tg.bitcast(x, tg.f16), tg.DtypeError, r"bitcast: the bits of f32\[4, 3\] are no f16"),
    (lambda x: tg.arange(float("nan")), tg.ShapeError, "arange: goes from 0 to nan by 1, which has no end"),
    (lambda x: tg.arange(0, 2**31 + 10, 2**30), tg.DtypeError, "arange: 2147483648 does not fit i32"),
    (lambda x: nn.Sequential(any_(lambda x: x)), tg.ArgumentError, "Sequential holds objects of Module, got function"),
    (lambda x: nn.ModuleDict(any_({"a": 3})), tg.ArgumentError, "ModuleDict holds objects of Module, got int"),
    (lambda x: DataLoader(any_({0: X})), tg.InputError, "an array's name is a string other than 'self', got 0"),
    (lambda x: DataLoader({"self": X}), tg.InputError, "an array's name is a string other than 'self', got 'self'"),
]


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS, ids=[message for _, _, message in ERRORS])
def test_errors_say_what_is_wrong(call: Callable[[Any], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        tg.trace(lambda: call(tg.tensor(X)))
    if issubclass(kind, tg.TensorgradError):
        assert "test_whole_numbers.py" in str(caught.value), "the user's line"


@pytest.mark.parametrize(
    "name", ["exp", "add", "less", "floor", "abs", "tan", "gelu", "softmax", "layer_norm", "where"]
)
def test_a_function_outside_of_a_trace_says_its_name(name: str) -> None:
    arguments = {"add": (X, X), "less": (X, X), "where": (X, X, X), "layer_norm": (X, 3)}.get(name, (X,))
    with pytest.raises(tg.TraceError, match=rf"no trace is running, so {name} has no graph to join.*tg\.{name}"):
        getattr(tg, name)(*arguments)


@pytest.mark.parametrize("exponent", [-1, -8, -9, -31])
@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.bool_])
def test_a_negative_power_of_integers_is_a_float(dtype: Any, exponent: int) -> None:
    x = np.array([1, 3, 2]).astype(dtype)
    (out,) = on_numpy(program(lambda x: [x**exponent], [x]))
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, x.astype(np.float64) ** exponent, rtol=1e-5)


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_a_recurrence_over_no_rows(kind: Any) -> None:
    module = kind(3, 5)
    (out,) = on_numpy(program(lambda x: [module(x)[0]], [np.zeros((4, 0, 3), np.float32)]))
    assert out.shape == (4, 0, 5)


def test_parts_of_a_dataset() -> None:
    lengths: Any = [np.int64(1), np.int64(3)]
    first, second = random_split({"x": X}, lengths)
    assert (len(first), len(second)) == (1, 3)


def test_softmax_in_another_dtype() -> None:
    half = X.astype(np.float16)
    (out,) = on_numpy(program(lambda x: [tg.softmax(x, dim=1, dtype=tg.f32)], [half]))
    assert out.dtype == np.float32
    assert abs(out.sum(1) - 1).max() < 1e-6
