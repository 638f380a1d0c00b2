"""Models that several tests train."""

from __future__ import annotations

import numpy as np

import tensorgrad as tg
from tensorgrad import nn


class Attention(nn.Module):
    """Causal self-attention with several heads."""

    def __init__(self, width: int, heads: int) -> None:
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        batch, length, width = x.shape

        def split(y: tg.Tensor) -> tg.Tensor:
            return y.reshape(batch, length, self.heads, width // self.heads).permute(0, 2, 1, 3)

        query, key, value = split(self.query(x)), split(self.key(x)), split(self.value(x))
        scores = (query @ key.mT) * (width // self.heads) ** -0.5
        mixed = tg.softmax_causal(scores) @ value
        return self.out(mixed.permute(0, 2, 1, 3).reshape(batch, length, width))


class Block(nn.Module):
    """A transformer layer with layer norms before its two parts."""

    def __init__(self, width: int, heads: int) -> None:
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.down(tg.gelu(self.up(self.norm2(x)), approximate="tanh"))


class CharGPT(nn.Module):
    """A character transformer: logits `[batch, context, vocabulary]`."""

    def __init__(
        self, layers: int = 4, width: int = 128, heads: int = 4, context: int = 64, vocabulary: int = 65
    ) -> None:
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: tg.Tensor) -> tg.Tensor:
        x = self.token(tokens) + self.position.weight
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def next_token_loss(model: CharGPT, x: tg.Tensor, y: tg.Tensor) -> tg.Tensor:
    """The cross entropy of each next token."""
    logits = model(x)
    return tg.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))


def characters(batch: int, context: int, vocabulary: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A noisy chain of characters that can be learnt: inputs and next characters, i32 `[batch, context]`."""
    rng = np.random.default_rng(seed)
    stream = np.empty((batch, context + 1), np.int32)
    stream[:, 0] = rng.integers(0, vocabulary, batch)
    for i in range(context):
        chained = (stream[:, i] * 7 + 3) % vocabulary
        stream[:, i + 1] = np.where(rng.random(batch) < 0.85, chained, rng.integers(0, vocabulary, batch))
    return stream[:, :-1].copy(), stream[:, 1:].copy()
