"""A transformer that invents names, letter by letter, from 90,000 names of the US census.

It is a small GPT: every letter looks at those before it, and tells the chances of the next one. What it has to beat are
bigrams, the chances of a letter after another one, as counted in the same names; 1 is added to every count, so that no
pair is impossible (Laplace's rule). Both are measured on names that neither has seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

import tensorgrad as tg
from example import OnStep, Result, command_line, fitted, quiet
from tensorgrad import nn, optim

DATA = "names.npz"
STEPS = 1000
BATCH = 32
CONTEXT = 14
"""Positions: the sign before a name, and 13 letters."""

LETTERS = ".abcdefghijklmnopqrstuvwxyz"
"""What the tokens stand for; the first one is the sign before a name and after it."""

IGNORED = -100
"""The target after a name's end, which `cross_entropy` leaves out."""

inputs = {"tokens": tg.i32[BATCH, CONTEXT], "targets": tg.i32[BATCH, CONTEXT]}


class Attention(nn.Module):
    """Every letter looks at itself and at those before it."""

    def __init__(self, width: int, heads: int) -> None:
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        q, k, v = (tg.split_heads(part, self.heads) for part in tg.chunk(self.qkv(x), 3, -1))
        return self.out(tg.merge_heads(tg.scaled_dot_product_attention(q, k, v, is_causal=True)))


class Block(nn.Module):
    """Attention, then two linear layers; each is added to what was there."""

    def __init__(self, width: int, heads: int) -> None:
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    """The logits of the letter after each position: of tokens `[n, CONTEXT]`, `[n, CONTEXT, 27]`."""

    def __init__(self, width: int = 64, heads: int = 4, layers: int = 2) -> None:
        self.letters = nn.Embedding(len(LETTERS), width)
        self.places = nn.Embedding(CONTEXT, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, len(LETTERS))

    def forward(self, tokens: tg.Tensor) -> tg.Tensor:
        x = self.letters(tokens) + self.places.weight
        return self.head(self.norm(self.blocks(x)))


def loss_fn(model: Model, tokens: tg.Tensor, targets: tg.Tensor) -> tg.Tensor:
    """Nats a letter, the sign after a name among them."""
    return tg.cross_entropy(model(tokens).reshape(-1, len(LETTERS)), targets.reshape(-1), ignore_index=IGNORED)


def optimizer(steps: int) -> optim.Optimizer:
    return optim.AdamW(optim.OneCycleLR(5e-3, steps), weight_decay=0.1)


def batches(data: Mapping[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
    """Names in another order each time, in batches, without end."""
    loader = tg.data.DataLoader(encoded(data["train"]), BATCH, shuffle=True, drop_last=True, seed=0)
    while True:
        yield from loader


def encoded(names: np.ndarray) -> dict[str, np.ndarray]:
    """Names, as bytes `S13` [n], as tokens and as the letter after each of them, [n, CONTEXT] both."""
    letters = names.view(np.uint8).reshape(len(names), -1).astype(np.int32)
    letters[letters > 0] -= ord("a") - 1
    targets = np.pad(letters, ((0, 0), (0, 1)))
    lengths = (letters > 0).sum(1, keepdims=True)
    targets[np.arange(CONTEXT) > lengths] = IGNORED
    return {"tokens": np.pad(letters, ((0, 0), (1, 0))), "targets": targets}


def bigram_loss(data: Mapping[str, np.ndarray]) -> float:
    """What bigrams have as loss on the names held out."""
    counts = np.ones((len(LETTERS), len(LETTERS)))
    np.add.at(counts, pairs(data["train"]), 1)
    chances = counts / counts.sum(1, keepdims=True)
    return float(-np.log(chances[pairs(data["validation"])]).mean())


def pairs(names: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All tokens of names, and the letter after each."""
    tokens, targets = encoded(names).values()
    return tokens[targets != IGNORED], targets[targets != IGNORED]


async def main(
    data: Mapping[str, np.ndarray], *, steps: int = STEPS, on_step: OnStep = quiet, device: str | None = None
) -> Result:
    """Train on the names of `data`, measure the loss on those held out, and invent ten.

    Args:
        data: `train` and `validation`, names of lower-case letters as bytes `S13`.
        steps, on_step, device: as for `mnist.main`.
    """
    nn.init.manual_seed(0)
    train = await tg.compile(Model(), loss_fn, optimizer(steps), inputs, device=device, seed=0)
    losses = await fitted(train, batches(data), steps, on_step)
    measure = await train.attach(loss_fn, {"tokens": tg.i32[None, CONTEXT], "targets": tg.i32[None, CONTEXT]})
    loss = float(await measure(encoded(data["validation"])))
    names = await invented(train, 10)
    train.destroy()
    figures = {"validation loss": loss, "less than that of bigrams by": bigram_loss(data) - loss}
    return Result(figures, losses, text="\n".join(names) + "\n")


async def invented(train: tg.Train, count: int, temperature: float = 0.8) -> list[str]:
    """New names: all of them grow by a letter at a time, drawn from what the model gives; 0.8 makes it less daring."""
    draw = await train.attach(
        lambda model, tokens, temperature: tg.categorical(model(tokens) / temperature),
        {"tokens": tg.i32[count, CONTEXT], "temperature": tg.f32[()]},
    )
    tokens = np.zeros((count, CONTEXT + 1), np.int32)
    for place in range(CONTEXT):
        # letters that are not there yet make no difference to those before them
        tokens[:, place + 1] = (await draw(tokens=tokens[:, :-1], temperature=temperature))[:, place]
    return ["".join(LETTERS[token] for token in row[1:]).partition(LETTERS[0])[0] for row in tokens]


if __name__ == "__main__":
    command_line(main)
