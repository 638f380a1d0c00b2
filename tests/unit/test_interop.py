"""What other libraries make of traced tensors, and what is taken from them: einops, jaxtyping, buffers, `__array__`."""

# pyright: reportMissingImports=false

from __future__ import annotations

import array
import importlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import beartype
import einops
import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad import nn, ops, optim

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 3, 4, 5)).astype(np.float32)


def run(fn: Callable[..., Any], *arrays: Any) -> Any:
    return tg.sync(tg.jit(fn, device="numpy")(*arrays))


def test_einops_gives_what_it_gives_for_numpy() -> None:
    calls: list[Callable[..., Any]] = [
        lambda x: einops.rearrange(x, "a b c d -> (d a) (b c)"),
        lambda x: einops.rearrange(x, "a b (c1 c2) d -> c1 a (b c2 d) 1", c1=2),
        lambda x: einops.rearrange([x, x], "n a b c d -> a (n b) c d"),
        lambda x: einops.rearrange(x, "a ... d -> d ... a"),
        lambda x: einops.repeat(x, "a b c d -> a (b k) d c", k=3),
        lambda x: einops.repeat(x, "a b c d -> e a b c d f", e=2, f=1),
        lambda x: einops.reduce(x, "a (b b2) c d -> b c", "mean", b2=3),
        lambda x: einops.pack([x, x[:, :, 0], x[:, 0, 0]], "a * d")[0],
        lambda x: einops.unpack(x, [[1], [3]], "a b * d")[1],
        *(lambda x, how=how: einops.reduce(x, "a b c d -> a d", how) for how in ("sum", "max", "min")),
    ]
    for number, call in enumerate(calls):
        expected = call(X)
        np.testing.assert_allclose(run(call, X), expected, rtol=1e-5, atol=1e-6, err_msg=str(number))
    product = lambda x: einops.reduce(x, "a b c d -> a", "prod")  # noqa: E731
    np.testing.assert_allclose(run(product, X), product(X), rtol=1e-4)  # 60 factors
    assert run(lambda x: {"sizes": ops.zeros(tuple(einops.parse_shape(x, "a b _ d").values()))}, X)["sizes"].shape == (
        2,
        3,
        5,
    )
    with pytest.raises(einops.EinopsError, match="Error while processing rearrange-reduction pattern"):
        run(lambda x: einops.rearrange(x, "a b -> b a"), X)


def test_gradients_flow_through_einops() -> None:

    def f(x: tg.Tensor) -> tg.Tensor:
        y = einops.repeat(einops.reduce(x, "a b c d -> a d", "sum"), "a d -> d a k", k=2)
        return tg.sum(einops.rearrange(y, "d a k -> (k d a)") ** 2)

    found = tg.sync(tg.grad(f, device="numpy")(X))
    expected = np.broadcast_to(4 * X.sum((1, 2), keepdims=True), X.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)  # sums of 12 numbers


def test_layers_of_einops_are_modules() -> None:
    from tensorgrad.einops import Rearrange, Reduce

    model = nn.Sequential(Rearrange("b (h w) -> b h w", h=2), nn.Linear(3, 4), Reduce("b h w -> b w", "mean"))

    async def go() -> None:
        specs = {"x": tg.f32[5, 6]}
        predict = await tg.compile_forward(model, lambda m, x: m(x), specs, device="numpy")
        x = RNG.normal(size=(5, 6)).astype(np.float32)
        layer = model.get_submodule("1")
        assert isinstance(layer, nn.Linear)
        assert layer.bias is not None
        y = einops.rearrange(x, "b (h w) -> b h w", h=2) @ layer.weight.data.T + layer.bias.data
        np.testing.assert_allclose(await predict(x=x), y.mean(1), rtol=1e-5, atol=1e-6)

    tg.sync(go())
    assert "Rearrange('b (h w) -> b h w', h=2)" in repr(model)


def test_einsum_by_einops() -> None:
    from tensorgrad.einops import EinMix

    call = lambda x: einops.einsum(x, x, "a b c d, a b e d -> a c e")  # noqa: E731
    np.testing.assert_allclose(run(call, X), call(X), rtol=1e-5, atol=1e-5)  # sums of 15 products
    nn.init.manual_seed(0)
    mix = EinMix("b (h w) c -> b w c1 h", weight_shape="h c c1", bias_shape="c1", h=2, c=4, c1=3)

    async def go() -> None:
        x = RNG.normal(size=(2, 6, 4)).astype(np.float32)
        loss = lambda m, x: tg.mean(m(x) ** 2)  # noqa: E731
        train = await tg.compile(mix, loss, optim.SGD(0.1), {"x": tg.f32[2, 6, 4]}, device="numpy")
        assert mix.bias is not None
        expected = np.einsum("bhwc,hcd->bwdh", x.reshape(2, 2, 3, 4), mix.weight.data) + mix.bias.data
        predict = await train.attach(lambda m, x: m(x), {"x": tg.f32[2, 6, 4]})
        np.testing.assert_allclose(await predict(x=x), expected, rtol=1e-5, atol=1e-6)
        assert (await train.fit([{"x": x}], steps=5, progress=False)).losses[-1] < np.mean(expected**2)

    tg.sync(go())


def test_the_library_does_not_import_einops() -> None:
    code = "import sys, tensorgrad as tg; tg.trace(lambda: tg.zeros((2,))); assert 'einops' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_annotations_of_jaxtyping_are_checked_while_a_function_is_traced() -> None:
    # Any: to a type checker its types are annotations, which are not looked into.
    jaxtyping: Any = importlib.import_module("jaxtyping")
    Int, Bool = jaxtyping.Int32, jaxtyping.Bool

    def attend(q: Any, k: Any, n: Any = None) -> Any:
        return q @ k.T if n is None else q

    array_of = jaxtyping.Float[tg.Tensor, "b d"], jaxtyping.Float[tg.Tensor, "n d"], jaxtyping.Float[tg.Tensor, "b n"]
    attend.__annotations__.update(zip(("q", "k", "return"), array_of, strict=True))
    attend = jaxtyping.jaxtyped(attend, typechecker=beartype.beartype)
    assert run(attend, np.ones((2, 3)), np.ones((4, 3))).shape == (2, 4)
    for arguments in (
        (np.ones((2, 3)), np.ones((4, 5))),
        (np.ones((2, 3)), np.ones(3)),
        (np.ones((2, 3)), np.array([[1, 2, 3]])),
    ):
        with pytest.raises(jaxtyping.TypeCheckError, match="Type-check error whilst checking the parameters"):
            run(attend, *arguments)
    with pytest.raises(jaxtyping.TypeCheckError, match="the return value"):
        run(attend, np.ones((2, 3)), np.ones((4, 3)), "q")

    def kinds(x: tg.Tensor) -> tg.Tensor:
        assert isinstance(x, jaxtyping.Float32[tg.Tensor, "2 3"])
        assert not isinstance(x, Int[tg.Tensor, "2 3"])
        assert isinstance(x > 0, Bool[tg.Tensor, "2 3"])
        assert isinstance(ops.arange(3), Int[tg.Tensor, "3"])
        assert isinstance(x.astype(tg.f16), jaxtyping.Float16[tg.Tensor, "..."])
        return x

    run(kinds, np.ones((2, 3)))


class Foreign:
    """An array of another library."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array([1.0, 2.0, 4.0], dtype or np.float64)


def test_buffers_and_foreign_arrays_are_inputs_and_arrays_come_out() -> None:
    given: list[Any] = [
        array.array("d", [1, 2, 4]),
        array.array("f", [1, 2, 4]),
        memoryview(array.array("f", [1, 2, 4])),
        Foreign(),
        [1.0, 2.0, 4.0],
        [np.float64(1), 2, 4.0],
        np.array([[4, 2, 1]], np.float64)[0, ::-1],
    ]

    async def go() -> None:
        model = nn.Linear(3, 1, bias=False)
        loss = lambda m, x: tg.sum(m(x) ** 2)  # noqa: E731
        train = await tg.compile(model, loss, optim.SGD(0.0), {"x": tg.f32[3]}, device="numpy")
        predict = await train.attach(lambda m, x: m(x), {"x": tg.f32[None]})
        double = tg.jit(lambda x: x * 2, device="numpy")
        expected = await predict(x=np.array([1, 2, 4], np.float32))
        for value in given:
            found = await predict(x=value)
            assert type(found) is np.ndarray
            np.testing.assert_array_equal(found, expected)
            assert (await train.step(x=value)).loss == pytest.approx(float(expected[0] ** 2))
            assert (await double(value)).tolist() == [2, 4, 8]
        whole = [array.array("i", [1, 2, 4]), memoryview(array.array("q", [1, 2, 4])), array.array("b", [1, 2, 4])]
        for value in whole:
            assert (await double(value)).dtype == np.int32
            constant = await tg.jit(lambda x, value=value: x + tg.sum(ops.tensor(value)), device="numpy")(1.0)
            assert constant == 8

    tg.sync(go())
