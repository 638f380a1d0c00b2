"""`tg.jit`: what is compiled when, arguments and results of any form, plain calls in a trace, errors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import tensorgrad as tg
import training
from tensorgrad import backend, nn, optim
from tensorgrad.predict import CACHED
from training import LINE, ONES, line

X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Counted:
    """A function that counts how often it is traced."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn, self.traces = fn, 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.traces += 1
        return self.fn(*args, **kwargs)


def counted(fn: Callable[..., Any], **options: Any) -> tuple[Callable[..., Any], Counted]:
    seen = Counted(fn)
    return tg.jit(lambda *args, **kwargs: seen(*args, **kwargs), device="numpy", **options), seen


class Point(NamedTuple):
    x: Any
    y: Any


# What is compiled when ------------------------------------------------------------------------------


@pytest.mark.parametrize("door", ["jit", "compile"])
async def test_the_fallback_is_told_at_the_users_line(door: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "_default", None)
    with pytest.warns(RuntimeWarning, match="running on the numpy device, without a GPU") as caught:
        await (line(device=None) if door == "compile" else tg.jit(lambda x: x * 2)([1.0, 2.0]))
    assert caught[0].filename == (__file__ if door == "jit" else training.__file__)


async def test_a_program_is_kept_for_each_shape_and_dtype() -> None:
    twice, seen = counted(lambda x: x * 2)
    for given, traces in (
        (X, 1),
        (X + 1, 1),
        (X.astype(np.float64), 1),  # narrows to f32
        (X.tolist(), 1),
        (X.T, 2),
        (X[0], 3),
        (X.astype(np.int32), 4),
        (X.astype(np.int64), 4),
        (X > 2, 5),
        (2.5, 6),
        (3.5, 6),  # a float is an array, so that a new one compiles nothing
        (np.float32(1), 6),
        (np.int32(1), 7),
        (X, 7),
    ):
        found = await twice(given)
        np.testing.assert_array_equal(found, np.asarray(given) * 2)
        assert seen.traces == traces, given


async def test_whole_numbers_strings_and_none_are_static() -> None:
    def fn(n: Any, how: str = "zeros", x: Any = None) -> tg.Tensor:
        start = getattr(tg, how)((n,))
        return start if x is None else start + x

    made, seen = counted(fn)
    for args, kwargs, expected, traces in (
        ((3,), {}, [0, 0, 0], 1),
        ((2,), {}, [0, 0], 2),
        ((3,), {"how": "ones"}, [1, 1, 1], 3),
        ((3, "ones"), {}, [1, 1, 1], 4),
        ((3, "zeros", None), {}, [0, 0, 0], 5),
        ((3, "zeros", 1.5), {}, [1.5, 1.5, 1.5], 6),
        ((3, "zeros", 2.5), {}, [2.5, 2.5, 2.5], 6),
        ((3,), {}, [0, 0, 0], 6),
    ):
        np.testing.assert_array_equal(await made(*args, **kwargs), expected)
        assert seen.traces == traces
    both, seen = counted(lambda flag, x: x if flag else -x)
    assert [float(await both(flag, 1.0)) for flag in (True, False, 1, 0, True)] == [1, -1, 1, -1, 1]
    assert seen.traces == 4, "True is not 1: a program is told by what it was given"


async def test_the_programs_used_last_are_kept() -> None:
    twice, seen = counted(lambda x: x * 2)
    for n in (*range(CACHED), 0, CACHED):
        await twice(np.ones(n))
    assert seen.traces == CACHED + 1
    await twice(np.ones(0))
    assert seen.traces == CACHED + 1, "used since, so kept"
    await twice(np.ones(1))
    assert seen.traces == CACHED + 2, "the one that was unused longest was dropped"


async def test_calls_at_once_do_not_disturb_each_other() -> None:
    twice, seen = counted(lambda x: x * 2)
    sizes = [*range(2 * CACHED), *range(2 * CACHED)]
    found = await asyncio.gather(*(twice(np.full(n, n, np.float32)) for n in sizes))
    for n, array in zip(sizes, found, strict=True):
        np.testing.assert_array_equal(array, np.full(n, 2 * n))
    before = seen.traces
    await asyncio.gather(*(twice(np.ones(3)) for _ in range(4)))
    assert seen.traces - before == 1, "the others wait for the one that compiles"


async def test_random_numbers_are_others_at_each_call_and_the_same_for_a_seed() -> None:
    def draw(x: tg.Tensor) -> tg.Tensor:
        return x + tg.rand(4)

    runs = []
    for seed in (7, 7, 8):
        fn = tg.jit(draw, device="numpy", seed=seed)
        runs.append([(await fn(0.0)).tolist() for _ in range(3)])
    assert runs[0] == runs[1] != runs[2]
    assert len({tuple(numbers) for numbers in runs[0]}) == 3


# Arguments and results ------------------------------------------------------------------------------


async def test_arguments_and_results_nest() -> None:
    def fn(point: Point, more: dict[str, Any], *rest: Any, scale: float = 1.0) -> dict[str, Any]:
        assert type(point) is Point
        return {"point": Point(point.x + 1, (point.y, more["a"][0])), "rest": [r * scale for r in rest]}

    for device in ("numpy", "interpret"):
        found = await tg.jit(fn, device=device)(Point(1.0, X), {"a": [X * 2, "text", 3]}, 4.0, X, scale=2.0)
        assert type(found["point"]) is Point
        assert float(found["point"].x) == 2
        np.testing.assert_array_equal(found["point"].y[0], X)
        np.testing.assert_array_equal(found["point"].y[1], X * 2)
        assert float(found["rest"][0]) == 8
        np.testing.assert_array_equal(found["rest"][1], X * 2)


async def test_results_whose_paths_are_alike_stay_apart() -> None:
    fn = tg.jit(lambda x: {"a.b": x, "a": {"b": x * 2}, "": x * 3, "result": x * 4}, device="numpy")
    found = await fn(1.0)
    assert [float(found["a.b"]), float(found["a"]["b"]), float(found[""]), float(found["result"])] == [1, 2, 3, 4]


async def test_a_result_is_the_users_own() -> None:
    same = tg.jit(lambda x: (x, x, tg.broadcast_to(x, (2, *x.shape))), device="numpy")
    given = np.ones(3, np.float32)
    first, second, both = await same(given)
    first[0] = both[0, 0] = 5
    assert given[0] == second[0] == 1
    assert (await same(given))[0][0] == 1


async def test_modules_and_arrays_that_a_function_holds_are_constants() -> None:
    model, shift = nn.Linear(2, 2), np.array([1.0, 2.0])
    found = await tg.jit(lambda x: model(x) + shift, device="numpy")(ONES)
    np.testing.assert_allclose(found, ONES @ model.weight.data.T + model.bias.data + shift, rtol=1e-5)  # type: ignore[union-attr]


async def test_the_functions_name_and_text_stay() -> None:
    def fn(x: tg.Tensor) -> tg.Tensor:
        """Doubles."""
        return x * 2

    for made in (tg.jit(fn), tg.grad(fn), tg.value_and_grad(fn)):
        assert (made.__name__, made.__doc__) == ("fn", "Doubles.")


# In a trace -----------------------------------------------------------------------------------------


async def test_inside_a_trace_it_is_a_plain_call() -> None:
    inner, seen = counted(lambda x, scale: tg.tanh(x) * scale)
    outer = tg.jit(lambda x: inner(inner(x, 2.0), 3), device="numpy")
    np.testing.assert_allclose(await outer(X), np.tanh(np.tanh(X) * 2) * 3, rtol=1e-6)
    assert seen.traces == 2
    train = await line(lambda model, x: tg.mean(inner(model(x), 1.0)))
    with_it = await train.step(x=ONES)
    without = await (await line(lambda model, x: tg.mean(tg.tanh(model(x))))).step(x=ONES)
    assert with_it.loss == without.loss


# Errors ---------------------------------------------------------------------------------------------


def updates(x: tg.Tensor) -> tg.Tensor:
    count = tg.state_input("count", ())
    tg.update_state(count, count + 1)
    return x


@pytest.mark.parametrize(
    ("fn", "args", "error", "message"),
    [
        (updates, (1.0,), tg.TraceError, "keeps no state, but updates 'count'; use tg.compile"),
        (lambda x: 1.0, (1.0,), tg.TraceError, r"must return tensors .*, got float"),
        (lambda x: {"a": [x, None]}, (1.0,), tg.TraceError, r"must return tensors .*, got NoneType"),
        (lambda x: x, (nn.Linear(1, 1),), tg.InputError, "arrays and static values, got Linear"),
        (lambda x: x, (len,), tg.InputError, "arrays and static values, got builtin_function_or_method"),
        (lambda x: x, (object(),), tg.DtypeError, "no device dtype holds NumPy's object"),
        (lambda x: x, (np.array(["a"]),), tg.DtypeError, "no device dtype holds NumPy's <U1"),
        (lambda x: x, (np.array([2**40]),), tg.DtypeError, "do not fit i32"),
        (lambda x: x, ({"a.b": 1.0, "a": {"b": 2.0}},), tg.InputError, r"two arguments are named 'arg\.0\.a\.b'"),
        (lambda x: x, ({1: 1.0, "1": 2.0},), tg.InputError, r"two arguments are named 'arg\.0\.1'"),
        (lambda x: x + tg.rand(-1), (X,), tg.ShapeError, r"random_bits: a size cannot be negative, got \[-1\]"),
        (lambda x: x + tg.zeros((2, -3)), (X,), tg.ShapeError, r"a size cannot be negative, got \[2, -3\]"),
        (lambda x: x + tg.ones((4,)), (X,), tg.ShapeError, r"\[2, 3\].*\[4\]"),
        (lambda x: x if x[0, 0] > 0 else -x, (X,), tg.TraceError, r"bool\(\) needs the numbers of bool\[\]"),
        (lambda x, y: x, (X,), TypeError, "missing 1 required positional argument: 'y'"),
    ],
)
async def test_what_cannot_be_compiled(fn: Any, args: Any, error: type[Exception], message: str) -> None:
    compiled = tg.jit(fn, device="numpy")
    for _ in range(2):  # a failure is not remembered
        with pytest.raises(error, match=message) as caught:
            await compiled(*args)
        if isinstance(caught.value, tg.TensorgradError):
            assert caught.value.site is not None
    assert tg.trace(lambda: tg.tensor_input("x", ())).nodes, "no trace was left open"


async def test_a_failure_leaves_the_other_programs() -> None:
    fn, seen = counted(lambda x: x @ np.ones((3, 1), np.float32))
    good = await fn(X)
    with pytest.raises(tg.ShapeError):
        await fn(X.T)
    np.testing.assert_array_equal(await fn(X), good)
    assert seen.traces == 2


async def test_a_tensor_does_not_outlive_its_trace() -> None:
    kept: list[tg.Tensor] = []
    await tg.jit(lambda x: kept.append(x * 2) or x, device="numpy")(1.0)
    with pytest.raises(tg.TraceError):
        await tg.jit(lambda x: x + kept[0], device="numpy")(1.0)
    with pytest.raises(tg.TraceError):
        await tg.jit(lambda x: x, device="numpy")(kept[0])
    with pytest.raises(tg.TraceError, match="traces do not nest"):
        tg.trace(lambda: tg.trace(lambda: tg.tensor_input("x", ())).outputs)  # type: ignore[arg-type,return-value]


async def test_a_device_that_is_none() -> None:
    with pytest.raises(tg.InputError, match="the device must be 'webgpu'"):
        await tg.jit(lambda x: x, device="cuda")(1.0)
    with pytest.raises(tg.NoDeviceError):
        await tg.compile(nn.Linear(2, 2), lambda model, x: tg.sum(model(x)), optim.SGD(0.1), LINE, device="webgpu")
