"""`tg.checkpoint`: the same numbers from less memory, whatever the function does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from models import Block
from tensorgrad import nn, optim
from training import assert_same

Wrap = Callable[..., Any]


class Layer(nn.Module):
    """Dropout, running statistics, and weights that are used twice."""

    def __init__(self, width: int, shared: nn.Linear) -> None:
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm, self.drop, self.shared = nn.BatchNorm1d(width), nn.Dropout(0.2), shared

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        return self.shared(x) + self.down(self.drop(tg.gelu(self.up(self.norm(x)))))


class Net(nn.Module):
    """Blocks that may be checkpointed."""

    def __init__(self, blocks: list[nn.Module], wrap: Wrap) -> None:
        self.blocks, self.wrap = nn.ModuleList(blocks), wrap

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        for block in self.blocks:
            x = self.wrap(block, x)
        return x


def plain(function: Wrap, *args: Any) -> Any:
    return function(*args)


async def trained(
    blocks: Callable[[], list[nn.Module]],
    wrap: Wrap,
    shape: tuple[int, ...],
    device: str,
    steps: int = 3,
    **options: Any,
) -> Any:
    """A training after some steps, their losses, and the bytes of its temporaries, arenas left out."""
    nn.init.manual_seed(0)
    net = Net(blocks(), wrap)
    specs = {"x": tg.f32[shape]}
    train = await tg.compile(
        net, lambda m, x: tg.mean(m(x) ** 2), optim.Adam(0.01), specs, device=device, seed=1, **options
    )
    x = np.random.default_rng(0).normal(size=shape)
    losses = [(await train.step(x=x)).loss for _ in range(steps)]
    if device == "numpy":
        return train, losses, 0
    lowered = train.built.lowered
    assert lowered is not None
    buffers = lowered.memory.plan.buffers
    return train, losses, sum(b.nbytes for b in buffers if b.kind == "temp" and b.arena is None)


@pytest.mark.parametrize("device", ["numpy", "interpret"])
def test_a_block_with_everything_trains_the_same(device: str) -> None:
    def blocks() -> list[nn.Module]:
        shared = nn.Linear(6, 6)
        return [Layer(6, shared) for _ in range(3)]

    async def run() -> None:
        one, expected, _ = await trained(blocks, plain, (5, 6), device)
        for wrap in (tg.checkpoint, lambda block, x: tg.checkpoint(lambda x: tg.checkpoint(block, x) * 1.0, x)):
            other, losses, _ = await trained(blocks, wrap, (5, 6), device)
            np.testing.assert_allclose(losses, expected, rtol=1e-6)  # sums of gradients in another order
            found, wanted = await other.state_dict(), await one.state_dict()
            for name, array in wanted["model"].items():
                np.testing.assert_allclose(found["model"][name], array, rtol=1e-4, atol=1e-5, err_msg=name)

    tg.sync(run())


def test_the_memory_of_eight_blocks_falls() -> None:
    """Inside of a block, 4 times as much as between blocks is not kept any more."""

    def mlps() -> list[nn.Module]:
        return [nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.Dropout(0.1), nn.Linear(128, 32)) for _ in range(8)]

    def transformers() -> list[nn.Module]:
        return [Block(16, 2) for _ in range(8)]

    async def run() -> None:
        for blocks, shape, most in ((mlps, (64, 32), 0.25), (transformers, (1, 8, 16), 0.3)):
            one, expected, before = await trained(blocks, plain, shape, "interpret", 1)
            other, losses, after = await trained(blocks, tg.checkpoint, shape, "interpret", 1)
            assert losses == expected
            assert_same(await other.state_dict(), await one.state_dict())
            assert after < before * most, (after, before)

    tg.sync(run())


def test_mixed_precision_waits_too() -> None:
    """What is rounded to f16 below a view that waits still waits."""

    def blocks() -> list[nn.Module]:
        return [nn.Sequential(nn.Linear(8, 8), nn.GELU()) for _ in range(2)]

    async def run() -> None:
        one, expected, _ = await trained(blocks, plain, (4, 8), "numpy", dtype=tg.f16)
        other, losses, _ = await trained(blocks, tg.checkpoint, (4, 8), "numpy", dtype=tg.f16)
        assert losses == expected
        assert_same(await other.state_dict(), await one.state_dict())
        waiting = [node for node in other.graph.nodes if node.op == "after"]
        assert any(other.graph.node(node.inputs[0]).op == "cast" for node in waiting)
        assert all(len(node.inputs) == 3 for node in waiting), "for the gradient and for the result"

    tg.sync(run())


def test_functions_of_arrays_and_second_derivatives() -> None:
    def f(x: tg.Tensor, n: tg.Tensor) -> tg.Tensor:
        kept, also = tg.checkpoint(lambda x, n: {"a": tg.sin(x) * n, "b": (x, n)}, x, n=n).values()
        return tg.sum(kept * also[0] + also[1])

    async def run() -> None:
        x, n = np.linspace(-1, 1, 5, dtype=np.float32), np.arange(5)
        for device in ("numpy", "interpret"):
            slope = tg.grad(f, device=device)
            np.testing.assert_allclose(await slope(x, n), n * (np.sin(x) + x * np.cos(x)), rtol=1e-5, atol=1e-6)
            curve = tg.grad(lambda x, n, slope=slope: tg.sum(slope(x, n)), device=device)
            np.testing.assert_allclose(await curve(x, n), n * (2 * np.cos(x) - x * np.sin(x)), rtol=1e-5, atol=1e-6)
        both = tg.jit(lambda x: tg.checkpoint(lambda x: x, x), device="numpy")
        np.testing.assert_array_equal(await both(x), x)
        unused = tg.grad(lambda x: tg.checkpoint(lambda y: tg.sum(y * 0 + 3.0), x) + tg.sum(x), device="numpy")
        np.testing.assert_array_equal(await unused(x), np.ones(5))
        assert await tg.jit(lambda x: [tg.checkpoint(lambda: None), x][1:], device="numpy")(x)

    tg.sync(run())


def test_what_is_no_tensor_is_refused() -> None:
    with pytest.raises(tg.TraceError, match="no trace is running"):
        tg.checkpoint(lambda: 1)
    with pytest.raises(tg.TraceError, match=r"a checkpointed function returns tensors .*, got int"):
        tg.sync(tg.jit(lambda x: tg.checkpoint(lambda x: (x, 1), x), device="numpy")(1.0))
