"""`examples/names.py`: names as tokens, the baseline, and how new names are drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest

import names
import tensorgrad as tg
from tensorgrad import nn

FEW = np.array([b"ab", b"b", b"abcdefghijklm"], "S13")


def test_names_as_tokens() -> None:
    found = names.encoded(FEW)
    assert found["tokens"][:2].tolist() == [[0, 1, 2, *[0] * 11], [0, 2, *[0] * 12]]
    assert found["targets"][:2].tolist() == [[1, 2, 0, *[-100] * 11], [2, 0, *[-100] * 12]]
    assert found["tokens"][2].tolist() == list(range(14))
    assert found["targets"][2].tolist() == [*range(1, 14), 0]


def test_the_baseline_counts_pairs() -> None:
    data = {"train": FEW[:2], "validation": FEW[1:2]}
    # of the two names one begins with b, and both end with it
    expected = -(math.log(2 / (2 + 27)) + math.log(3 / (2 + 27))) / 2
    assert names.bigram_loss(data) == pytest.approx(expected)


class Alphabet(nn.Module):
    """After each letter the one that follows in the alphabet, after e the end; the first one is drawn."""

    def __init__(self) -> None:
        self.table = nn.Embedding(27, 27)
        logits = np.full((27, 27), -1e4, np.float32)
        logits[0, 1:6] = 0
        logits[np.arange(1, 27), [*range(2, 6), *[0] * 22]] = 0
        self.table.weight.data[...] = logits

    def forward(self, tokens: tg.Tensor) -> tg.Tensor:
        return self.table(tokens)


async def drawn(seed: int) -> list[str]:
    optimizer = names.optimizer(1)
    train = await tg.compile(Alphabet(), names.loss_fn, optimizer, names.inputs, device="numpy", seed=seed)
    return await names.invented(train, 20)


def test_new_names_are_drawn_letter_by_letter() -> None:
    found = tg.sync(drawn(0))
    assert set(found) <= {"abcde", "bcde", "cde", "de", "e"}
    assert len(set(found)) > 2
    assert found == tg.sync(drawn(0))
    assert found != tg.sync(drawn(1))
