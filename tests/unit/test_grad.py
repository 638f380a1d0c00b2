"""`tg.grad` and `tg.value_and_grad`: closed forms, second derivatives, which arguments, and errors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad import nn, optim

X = np.array([0.5, -1.25, 2.0], np.float32)
Y = np.array([1.5, 0.25, -0.75], np.float32)

# every number here is a handful of f32 operations away from its closed form
RTOL, ATOL = 1e-5, 1e-6

DEVICES = pytest.mark.parametrize("device", ["numpy", "interpret"])


class Pair(NamedTuple):
    left: Any
    right: Any


def close(found: Any, expected: Any) -> None:
    found = np.asarray(found)
    assert found.dtype == np.float32
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=RTOL, atol=ATOL)


# Which arguments ------------------------------------------------------------------------------------


def weighed(x: tg.Tensor, y: tg.Tensor, scale: Any = 1.0) -> tg.Tensor:
    """Its gradients are `2 scale x y` and `scale x^2`."""
    return tg.sum(x * x * y) * scale


@DEVICES
async def test_argnums_choose_the_arguments(device: str) -> None:
    by_x, by_y = 2 * X * Y, X * X
    close(await tg.grad(weighed, device=device)(X, Y), by_x)
    close(await tg.grad(weighed, 1, device=device)(X, Y), by_y)
    close(await tg.grad(weighed, argnums=-1, device=device)(X, Y), by_y)
    for argnums, expected in (((0, 1), (by_x, by_y)), ((1, 0), (by_y, by_x)), ((0,), (by_x,)), ((0, -2), (by_x, by_x))):
        found = await tg.grad(weighed, argnums, device=device)(X, Y)
        assert type(found) is tuple
        for mine, wanted in zip(found, expected, strict=True):
            close(mine, wanted)
    # what is not differentiated may be static, or a keyword
    close(await tg.grad(weighed, device=device)(X, Y, 3), 3 * by_x)
    close(await tg.grad(weighed, device=device)(X, Y, scale=3), 3 * by_x)
    close(await tg.grad(weighed, 2, device=device)(X, Y, 3.0), (X * X * Y).sum())


@DEVICES
async def test_the_value_comes_with_the_gradient(device: str) -> None:
    value, gradient = await tg.value_and_grad(weighed, device=device)(X, Y)
    close(value, (X * X * Y).sum())
    close(gradient, 2 * X * Y)
    value, gradients = await tg.value_and_grad(weighed, (0, 1), device=device)(X, Y)
    close(value, (X * X * Y).sum())
    close(gradients[1], X * X)
    one, gradient = await tg.value_and_grad(lambda x: tg.sum(x, keepdims=True), device=device)(X)
    close(one, [X.sum()])
    close(gradient, np.ones(3))


async def test_a_gradient_has_the_form_of_its_argument() -> None:
    def fn(p: dict[str, Any]) -> tg.Tensor:
        return tg.sum(p["w"] * p["pair"].left) + p["pair"].right[0] ** 2 + p["unused"] * 0

    found = await tg.grad(fn, device="numpy")({"w": X, "pair": Pair(Y, [3.0, np.ones(2)]), "unused": 1.0})
    assert (type(found), type(found["pair"]), type(found["pair"].right)) == (dict, Pair, list)
    close(found["w"], Y)
    close(found["pair"].left, X)
    close(found["pair"].right[0], 6.0)
    close(found["pair"].right[1], np.zeros(2))
    close(found["unused"], 0.0)
    close(await tg.grad(lambda x: tg.sum(x**3), device="numpy")([1.0, 2.0]), [3, 12])


async def test_a_gradient_has_the_dtype_of_its_argument() -> None:
    half, single = await tg.grad(lambda x, y: tg.sum(x * y), (0, 1), device="numpy")(X.astype(np.float16), Y)
    assert (half.dtype, single.dtype) == (np.float16, np.float32)
    np.testing.assert_allclose(half, Y, rtol=1e-3)  # f16 has 11 bits


# Higher derivatives -----------------------------------------------------------------------------------


@DEVICES
async def test_second_and_third_derivatives_have_their_closed_forms(device: str) -> None:
    for fn, derivatives in (
        (tg.sin, (np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x))),
        (tg.exp, (np.exp, np.exp, np.exp)),
        (lambda x: x**4, (lambda x: 4 * x**3, lambda x: 12 * x**2, lambda x: 24 * x)),
        (lambda x: 1 / x, (lambda x: -(x**-2), lambda x: 2 * x**-3, lambda x: -6 * x**-4)),
        (tg.tanh, (lambda x: 1 - np.tanh(x) ** 2, lambda x: -2 * np.tanh(x) * (1 - np.tanh(x) ** 2), None)),
    ):
        made: Any = fn
        for derivative in derivatives:
            made = tg.grad(made, device=device)
            if derivative is not None:
                close(await made(0.75), derivative(0.75))


@DEVICES
async def test_mixed_derivatives(device: str) -> None:
    fn = lambda x, y: x**2 * y**3  # noqa: E731
    by_x, by_y = tg.grad(fn, 0), tg.grad(fn, 1)
    close(await tg.grad(by_x, 1, device=device)(2.0, 3.0), 6 * 2 * 9)
    close(await tg.grad(by_y, 0, device=device)(2.0, 3.0), 6 * 2 * 9)
    close(await tg.grad(lambda x, y: by_x(x, y) * by_y(x, y), device=device)(2.0, 3.0), 6 * 3 * 4 * 3**5)


async def test_a_hessian_times_a_vector() -> None:
    a = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, -1.0], [0.0, -1.0, 4.0]], np.float32)
    fn = lambda x: tg.sum(x * (a @ x)) / 2  # noqa: E731
    times = tg.grad(lambda x, v: tg.sum(tg.grad(fn)(x) * v), device="numpy")
    close(await times(X, Y), a @ Y)


async def test_inside_a_trace_numbers_and_arrays_are_arguments_too() -> None:
    cube = tg.grad(lambda y: tg.sum(y**3))
    found = await tg.jit(lambda x: (cube(2.0) * x, cube(X) * x, cube([1.0, 2.0])), device="numpy")(3.0)
    close(found[0], 36.0)
    close(found[1], 9 * X * X)
    close(found[2], [3, 12])


async def test_a_gradient_of_the_input_is_part_of_a_loss() -> None:
    """A penalty on the slope of a line `w x + b` is `w^2`, whose gradient is `2 w`."""

    def loss(model: nn.Linear, x: tg.Tensor) -> tg.Tensor:
        slope = tg.grad(lambda x: tg.sum(model(x)))(x)
        return tg.mean(slope**2) + tg.sum(model.bias) * 0.0

    model = nn.Linear(1, 1)
    train = await tg.compile(model, loss, optim.SGD(0.1), {"x": tg.f32[4, 1]}, device="numpy", keep_grads=True)
    result = await train.step(x=np.ones((4, 1), np.float32))
    weight = model.weight.data
    assert result.loss == pytest.approx((weight**2).item(), rel=RTOL)
    close((await train.gradients())["weight"], 2 * weight)


async def test_a_gradient_by_a_parameter_in_a_trace() -> None:
    model = nn.Linear(3, 1, bias=False)

    def by_weight(model: nn.Linear, x: tg.Tensor) -> tg.Tensor:
        return tg.grad(lambda weight: tg.sum(x @ weight.T))(model.weight)

    slope = await tg.compile_forward(model, by_weight, {"x": tg.f32[None, 3]}, device="numpy")
    close(await slope(x=np.stack([X, Y])), (X + Y)[None])


# Errors ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fn", "args", "error", "message"),
    [
        (lambda x: x, (X,), tg.ShapeError, r"a function that returns one number, this one returned f32\[3\]"),
        (lambda x: None, (X,), tg.ShapeError, "this one returned NoneType"),
        (lambda x: (tg.sum(x), x), (X,), tg.ShapeError, "this one returned tuple"),
        (lambda x: tg.argmax(x), (X,), tg.TraceError, r"gradients are of floats; i32\[\] has none"),
        (tg.sum, (np.arange(3),), tg.InputError, r"gradients are of floats; this argument is i32\[3\]"),
        (tg.sum, ({"a": X, "b": X > 0},), tg.InputError, r"this argument is bool\[3\]"),
        (lambda x: x * 1.0, (3,), tg.InputError, "must be of arrays, got int; 3 is static, write 3.0"),
        (lambda x: x * 1.0, (True,), tg.InputError, "must be of arrays, got bool; True is static, write 1.0"),
        (lambda x: x, ("text",), tg.InputError, "must be of arrays, got str"),
        (lambda x: x, (None,), tg.InputError, "must be of arrays, got NoneType"),
        (lambda x: x, (len,), tg.InputError, "arrays and static values, got builtin_function"),
        (lambda: tg.ones(()), (), tg.InputError, "argnums 0 names an argument beyond the 0 given"),
    ],
)
async def test_what_has_no_gradient(fn: Any, args: Any, error: type[Exception], message: str) -> None:
    for make in (tg.grad, tg.value_and_grad):
        with pytest.raises(error, match=message) as caught:
            await make(fn, device="numpy")(*args)
        assert isinstance(caught.value, tg.TensorgradError)
        assert caught.value.site is not None
        assert caught.value.site.file == __file__


@pytest.mark.parametrize("argnums", ["x", 0.0, None, (0, "y"), [0, 1]], ids=str)
def test_argnums_that_are_no_positions(argnums: Any) -> None:
    with pytest.raises(tg.InputError, match="argnums is a position or a tuple of positions, got"):
        tg.grad(weighed, argnums)


@pytest.mark.parametrize("argnums", [2, -3, (0, 2)], ids=str)
async def test_argnums_beyond_the_arguments(argnums: Any) -> None:
    with pytest.raises(tg.InputError, match="names an argument beyond the 2 given"):
        await tg.grad(weighed, argnums, device="numpy")(X, Y)
    with pytest.raises(tg.InputError, match="names an argument beyond the 1 given"):
        await tg.grad(weighed, 1, device="numpy")(X, y=Y)
