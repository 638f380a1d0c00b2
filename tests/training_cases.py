"""Training cases that every device runs: a small transformer, tied weights, two steps at once, an exact resume."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np

import tensorgrad as tg
from models import CharGPT, characters, next_token_loss
from tensorgrad import nn, optim

BATCH, CONTEXT, VOCABULARY = 2, 12, 17


async def small_gpt(device: str, steps: int = 3) -> tuple[list[float], dict[str, np.ndarray]]:
    """The losses of AdamW steps of a 2-layer, width 32 transformer, and the logits after them."""
    nn.init.manual_seed(3)
    model = CharGPT(layers=2, width=32, heads=2, context=CONTEXT, vocabulary=VOCABULARY)
    specs = {"x": tg.i32[BATCH, CONTEXT], "y": tg.i32[BATCH, CONTEXT]}
    train = await tg.compile(model, next_token_loss, optim.AdamW(1e-2), specs, device=device, seed=0)
    losses = []
    for step in range(steps):
        x, y = characters(BATCH, CONTEXT, VOCABULARY, seed=step)
        losses.append((await train.step(x=x, y=y)).loss)
    predict = await train.attach(lambda model, x: tg.softmax(model(x)), {"x": tg.i32[None, CONTEXT]})
    x, _ = characters(1, CONTEXT, VOCABULARY, seed=99)
    probabilities = await predict(x=x)
    train.destroy()
    return losses, {"probabilities": probabilities}


async def small_gpt_agrees(device: str) -> None:
    """With the numpy device: losses to 1e-4 (three updates amplify rounding), predictions to 1e-3."""
    losses, found = await small_gpt(device)
    reference, wanted = await small_gpt("numpy")
    assert losses[0] > losses[-1]
    np.testing.assert_allclose(losses, reference, rtol=1e-4)
    np.testing.assert_allclose(found["probabilities"], wanted["probabilities"], rtol=1e-3, atol=1e-5)


class Tied(nn.Module):
    """An embedding whose table is the output layer too."""

    def __init__(self) -> None:
        self.embedding = nn.Embedding(7, 4)
        self.norm = nn.LayerNorm(4)
        self.drop = nn.Dropout(0.25)
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        return self.head(self.drop(self.norm(self.embedding(x))))


def loss_fn(model: nn.Module, x: tg.Tensor, y: tg.Tensor) -> tg.Tensor:
    return tg.cross_entropy(model(x), y)


def batch(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {"x": rng.integers(0, 7, 6).astype(np.int32), "y": rng.integers(0, 7, 6).astype(np.int32)}


async def tied(device: str, **options: Any) -> tg.Train:
    nn.init.manual_seed(5)
    specs = {"x": tg.i32[6], "y": tg.i32[6]}
    return await tg.compile(Tied(), loss_fn, optim.AdamW(1e-2), specs, device=device, seed=11, **options)


async def tied_weights(device: str) -> None:
    """One parameter: one gradient, the sum of both uses; tied still after an upload and three steps."""
    train = await tied(device, keep_grads=True)
    assert set(train.graph.names_by_role("param")) == {"embedding.weight", "norm.weight", "norm.bias"}
    reference = await tied("numpy", keep_grads=True)
    state = await train.state_dict()
    state["model"] = {name: array * 0.5 for name, array in state["model"].items()}
    await train.load_state_dict(state)
    await reference.load_state_dict(state)
    for step in range(3):
        found, wanted = await train.step(**batch(step)), await reference.step(**batch(step))
        np.testing.assert_allclose(found.loss, wanted.loss, rtol=1e-5)
        grads, expected = await train.gradients(), await reference.gradients()
        assert set(grads) == set(train.graph.names_by_role("param"))
        for name, grad in grads.items():
            np.testing.assert_allclose(grad, expected[name], rtol=1e-4, atol=1e-6, err_msg=name)
    weights = (await train.state_dict())["model"]
    np.testing.assert_array_equal(weights["head.weight"], weights["embedding.weight"])
    assert not np.array_equal(weights["head.weight"], state["model"]["head.weight"])
    train.destroy()


async def two_steps_at_once(device: str) -> None:
    """They run one after the other, with the result of the sequence."""
    at_once, in_sequence = await tied(device), await tied(device)
    results = await asyncio.gather(*(at_once.step(**batch(n)) for n in range(3)))
    wanted = [(await in_sequence.step(**batch(n))).loss for n in range(3)]
    assert [r.loss for r in results] == wanted
    a, b = await at_once.state_dict(), await in_sequence.state_dict()
    for name, array in a["model"].items():
        np.testing.assert_array_equal(array, b["model"][name])
    at_once.destroy()
    in_sequence.destroy()


async def state_dict_then_step(device: str) -> None:
    """A loaded state moves, and a resumed run (dropout included) has the losses of the uninterrupted one."""
    whole = await tied(device)
    for n in range(2):
        await whole.step(**batch(n))
    saved = await whole.state_dict()
    losses = [(await whole.step(**batch(n))).loss for n in range(2, 5)]
    resumed = await tied(device)
    await resumed.step(**batch(8))
    await resumed.load_state_dict(saved)
    assert [(await resumed.step(**batch(n))).loss for n in range(2, 5)] == losses
    moved = (await resumed.state_dict())["model"]
    assert any(not np.array_equal(moved[name], array) for name, array in saved["model"].items())
    whole.destroy()
    resumed.destroy()


async def unused_binding(device: str) -> None:
    """An input that folds away, and one that must not."""
    x, y = np.array([1, 2, 3], np.float32), np.array([np.nan, np.inf, 5], np.float32)
    np.testing.assert_array_equal(await tg.jit(lambda x, y: x, device=device)(x, y), x)
    found = await tg.jit(lambda x, y: x + tg.stop_gradient(y) * 0, device=device)(x, y)
    np.testing.assert_array_equal(found, np.array([np.nan, np.nan, 3], np.float32))


CASES: tuple[Callable[[str], Coroutine[Any, Any, None]], ...] = (
    small_gpt_agrees,
    tied_weights,
    two_steps_at_once,
    state_dict_then_step,
    unused_binding,
)
