"""Programs with f16 on a device, against the numpy device: what a browser without f16 cannot test.

`bench/halves.html` runs all of them in a page: `check(device)` gives what was found, by name. The unit tests run them
on the interpret device, and in WGSL on the second device of the tests.
"""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np

import tensorgrad as tg
from tensorgrad import nn, optim

SIZES = (0, 1, 2, 3, 5, 64, 65, 257)

Arrays = dict[str, np.ndarray]


def close(found: np.ndarray, wanted: np.ndarray, what: str, ulps: float = 4) -> None:
    """Asserts equal shapes and dtypes, and numbers that differ by few roundings."""
    assert found.dtype == wanted.dtype, (what, found.dtype, wanted.dtype)
    eps = 2.0**-10 if wanted.dtype == np.float16 else 2.0**-20
    np.testing.assert_allclose(
        found.astype(np.float64), wanted.astype(np.float64), rtol=ulps * eps, atol=ulps * eps / 8, err_msg=what
    )


# Plain functions of f16 arrays ----------------------------------------------------------------------


def elementwise(x: tg.Tensor, y: tg.Tensor) -> list[tg.Tensor]:
    return [
        x + y,
        x * y - 0.5,
        x / (tg.abs(y) + 1),
        tg.exp(x),
        tg.tanh(x * 3),
        tg.relu(x),
        tg.where(x > y, x, 0),
        tg.maximum(x, y),
        tg.sqrt(tg.abs(x)),
        (x * 10).astype(tg.i32),
        x.astype(tg.f32) * y.astype(tg.f32),
        tg.isfinite(x),
        -x,
        tg.gelu(x),
    ]


def moved(x: tg.Tensor, y: tg.Tensor) -> list[tg.Tensor]:
    return [
        x[::-1],
        x[1:],
        tg.concat([x, y, x[:1]]),
        tg.pad(x, ((1, 2),)),
        tg.stack([x, y]).T,
        (x.reshape(-1, 1) * y)[:2],
    ]


def reduced(x: tg.Tensor, y: tg.Tensor) -> list[tg.Tensor]:
    return [
        tg.sum(x),
        tg.mean(x.astype(tg.f32)),
        tg.max(x),
        tg.argmax(x),
        tg.softmax(x),
        tg.sum(x.reshape(-1, 1) * y, 0),
    ]


def products(x: tg.Tensor, y: tg.Tensor) -> list[tg.Tensor]:
    a, b = tg.stack([x, y, x * y]), tg.stack([y, x])
    wide = a.astype(tg.f32)
    return [a @ b.T, wide @ b.astype(tg.f32).T, a.T @ a, tg.relu(a @ b.T + 1), wide.T @ wide, a[0] @ y]


async def _functions(device: Any, fn: Callable[..., Any], sizes: tuple[int, ...]) -> None:
    for size in sizes:
        rng = np.random.default_rng(size)
        arrays = [rng.normal(size=size).astype(np.float16) for _ in range(2)]
        wanted = await tg.jit(fn, device="numpy")(*arrays)
        found = await tg.jit(fn, device=device)(*arrays)
        for i, (f, w) in enumerate(zip(found, wanted, strict=True)):
            # a sum of so many f16 numbers rounds once more or less at each
            close(np.asarray(f), np.asarray(w), f"{fn.__name__}[{i}] of {size}", 8 + size / 8)


async def elementwise_agrees(device: Any) -> None:
    await _functions(device, elementwise, SIZES)


async def moving_agrees(device: Any) -> None:
    await _functions(device, moved, SIZES[1:])


async def reductions_agree(device: Any) -> None:
    await _functions(device, reduced, SIZES[1:])


async def products_agree(device: Any) -> None:
    await _functions(device, products, SIZES)


async def casts_round_to_even_and_overflow(device: Any) -> None:
    numbers = [
        1e6,
        -1e6,
        65519,
        65520,
        1 + 2**-11,
        1 + 3 * 2**-11,
        2**-24,
        2**-25,
        2**-16,
        np.inf,
        -np.inf,
        np.nan,
        -0.0,
        7,
    ]
    x = np.array(numbers, np.float32)
    found = np.asarray(await tg.jit(lambda x: x.astype(tg.f16), device=device)(x))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found, x.astype(np.float16))
    assert np.signbit(found[12])


# Training -------------------------------------------------------------------------------------------


class Odd(nn.Module):
    """Parameters of f16 with odd sizes, and an empty one."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.a = nn.Parameter(rng.normal(size=(3, 5)).astype(np.float16))
        self.b = nn.Parameter(rng.normal(size=5).astype(np.float16))
        self.c = nn.Parameter(rng.normal(size=3).astype(np.float32))
        self.none = nn.Parameter(np.zeros((0, 3), np.float16))

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        return (x @ self.a + self.b).astype(tg.f32).sum(1) + (self.none.astype(tg.f32) * self.c).sum()


async def _train(
    device: Any, model: nn.Module, loss: Callable[..., tg.Tensor], batches: list[Arrays], optimizer: Any, **options: Any
) -> tuple[list[float], Arrays]:
    specs = {name: _spec(array) for name, array in batches[0].items()}
    train = await tg.compile(model, loss, optimizer, specs, device=device, seed=0, **options)
    losses = [(await train.step(batch)).loss for batch in batches]
    data = {name: np.stack([batch[name] for batch in batches]) for name in specs}
    losses += (await train.run_steps(len(batches), data)).tolist()
    state = await train.state_dict()
    await train.check()
    train.destroy()
    return losses, {**state["model"], **state["optimizer"]}


def _spec(array: np.ndarray) -> tg.Spec:
    dtype = {"float16": tg.f16, "float32": tg.f32, "int32": tg.i32}[array.dtype.name]
    return dtype[array.shape]


async def _trainings_agree(
    device: Any, make: Callable[[], Any], rtol: float, optimizer: Callable[[], Any], **options: Any
) -> tuple[list[float], Arrays]:
    results = []
    for name in ("numpy", device):
        nn.init.manual_seed(1)
        model, loss, batches = make()
        results.append(await _train(name, model, loss, batches, optimizer(), **options))
    (wanted, states), (found, others) = results
    np.testing.assert_allclose(found, wanted, rtol=rtol)
    assert states.keys() == others.keys()
    for name, array in states.items():
        assert others[name].shape == array.shape, name
        assert others[name].dtype == array.dtype, name
    return found, others


async def parameters_and_inputs_of_f16_train(device: Any) -> None:
    def make() -> Any:
        rng = np.random.default_rng(2)
        batches = [{"x": rng.normal(size=(7, 3)).astype(np.float16)} for _ in range(3)]
        # small: the gradients of f16 parameters, times the scale, have to have room
        return Odd(), lambda m, x: tg.mean(m(x) ** 2) * 1e-2, batches

    await _trainings_agree(device, make, 1e-2, lambda: optim.SGD(0.01))
    await _trainings_agree(device, make, 1e-2, lambda: optim.SGD(0.01), dtype=tg.f16)


class Block(nn.Module):
    def __init__(self, width: int, heads: int, kernels: bool) -> None:
        self.heads, self.kernels = heads, kernels
        self.norm = nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.norm(x)).reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = parts[0], parts[1], parts[2]
        if self.kernels:
            mixed = tg.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            mixed = tg.softmax_causal((q @ k.mT) * (width // self.heads) ** -0.5) @ v
        x = x + self.out(mixed.permute(0, 2, 1, 3).reshape(batch, length, width))
        return x + self.down(tg.gelu(self.up(x)))


def _transformer(kernels: bool, batch: int, length: int, width: int, heads: int) -> Any:
    class Model(nn.Module):
        def __init__(self) -> None:
            self.token = nn.Embedding(11, width)
            self.block = Block(width, heads, kernels)
            self.head = nn.Linear(width, 11)

        def forward(self, x: tg.Tensor) -> tg.Tensor:
            return self.head(self.block(self.token(x)))

    def loss(model: Model, x: tg.Tensor, y: tg.Tensor) -> tg.Tensor:
        return tg.cross_entropy(model(x).reshape(-1, 11), y.reshape(-1))

    rng = np.random.default_rng(3)
    batches = []
    for _ in range(3):
        x = rng.integers(0, 11, (batch, length + 1)).astype(np.int32)
        batches.append({"x": x[:, :-1].copy(), "y": (x[:, :-1] * 3 + 1) % 11})
    return Model(), loss, batches


async def transformers_train(device: Any) -> None:
    for kernels in (False, True):
        for shape in ((2, 16, 16, 2), (1, 17, 12, 3)):
            losses, states = await _trainings_agree(
                device, lambda k=kernels, s=shape: _transformer(k, *s), 1e-2, lambda: optim.AdamW(1e-2), dtype=tg.f16
            )
            assert losses[-1] < losses[0]
            assert int(states["optim.steps"]) == 6


class Convolutions(nn.Module):
    def __init__(self) -> None:
        self.c1, self.norm = nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6)
        self.c2, self.out = nn.Conv2d(6, 8, 3, 2, padding=1), nn.Linear(8, 4)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        return self.out(tg.relu(self.c2(tg.relu(self.norm(self.c1(x))))).mean((2, 3)))


async def convolutions_train(device: Any) -> None:
    def make() -> Any:
        rng = np.random.default_rng(4)
        batches = [
            {"x": rng.normal(size=(5, 3, 9, 7)).astype(np.float32), "y": rng.integers(0, 4, 5).astype(np.int32)}
            for _ in range(3)
        ]
        return Convolutions(), lambda m, x, y: tg.cross_entropy(m(x), y), batches

    await _trainings_agree(device, make, 1e-2, lambda: optim.Adam(1e-2, clip_norm=1.0), dtype=tg.f16)


async def a_gradient_without_room_changes_nothing(device: Any) -> None:
    nn.init.manual_seed(1)
    specs = {"x": tg.f32[3, 2]}
    train = await tg.compile(
        nn.Linear(2, 2), lambda m, x: tg.mean(m(x) ** 2), optim.Adam(1e-3), specs, device=device, dtype=tg.f16
    )
    tame, wild = np.ones((3, 2), np.float32), np.full((3, 2), 100, np.float32)
    assert not (await train.step(x=tame)).skipped
    before = await train.state_dict()
    result = await train.step(x=wild)
    after = await train.state_dict()
    assert result.skipped
    assert np.isfinite(result.loss)
    for name, array in before["model"].items():
        np.testing.assert_array_equal(after["model"][name], array)
    changed = {n for n, a in before["optimizer"].items() if (after["optimizer"][n] != a).any()}
    assert changed == {"optim.scale", "optim.good_steps"}
    assert after["optimizer"]["optim.scale"] == 32_768
    assert train.state.steps == 1
    train.destroy()


CASES: tuple[Callable[[str], Awaitable[None]], ...] = (
    casts_round_to_even_and_overflow,
    elementwise_agrees,
    moving_agrees,
    reductions_agree,
    products_agree,
    parameters_and_inputs_of_f16_train,
    transformers_train,
    convolutions_train,
    a_gradient_without_room_changes_nothing,
)


async def check(device: Any) -> dict[str, str]:
    """Runs all cases; gives `ok` or the error of each, by name."""
    found = {}
    for case in CASES:
        try:
            await case(device)
            found[case.__name__] = "ok"
        except Exception as error:
            found[case.__name__] = "".join(traceback.format_exception(error))[-1500:]
    return found
