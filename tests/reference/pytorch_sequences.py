"""The examples on names and on rows of digits, in plain PyTorch."""

# pyright: reportMissingImports=false

from __future__ import annotations

from itertools import islice

import torch
import torch.nn.functional as F
from pytorch_digits import cross_entropy
from pytorch_steps import supervised, tensors, with_first_weights
from torch import Tensor, nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import OneCycleLR

import names as example
from example import load
from example_steps import ROOT
from tensorgrad.nn import init


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(64, 192)
        self.out = nn.Linear(64, 64)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part.unflatten(-1, (4, 16)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(64), nn.LayerNorm(64)
        self.attention = Attention()
        self.mlp = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Names(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.letters = nn.Embedding(27, 64)
        self.places = nn.Embedding(14, 64)
        self.blocks = nn.Sequential(Block(), Block())
        self.norm = nn.LayerNorm(64)
        self.head = nn.Linear(64, 27)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.norm(self.blocks(self.letters(tokens) + self.places.weight)))


def next_letter(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    return F.cross_entropy(model(batch["tokens"]).flatten(0, 1), batch["targets"].flatten())


def adamw(model: nn.Module) -> tuple[AdamW, OneCycleLR]:
    optimizer = AdamW(model.parameters(), weight_decay=0.1)
    return optimizer, OneCycleLR(optimizer, 5e-3, total_steps=1000, cycle_momentum=False)


def names() -> list[float]:
    model = with_first_weights(Names())
    return supervised("names", model, next_letter, *adamw(model))


def names_in_full() -> list[float]:
    """The loss on the names held out, after all steps, from the weights that the example begins with."""
    init.manual_seed(0)
    model = Names()
    model.load_state_dict({name: torch.tensor(p.numpy()) for name, p in example.Model().named_parameters()})
    optimizer, schedule = adamw(model)
    data = load(ROOT / "build" / "data" / example.DATA)
    for batch in islice(example.batches(data), example.STEPS):
        optimizer.zero_grad()
        next_letter(model, tensors(batch)).backward()
        optimizer.step()
        schedule.step()
    with torch.no_grad():
        return [next_letter(model, tensors(example.encoded(data["validation"]))).item()]


class Gru(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(28, 64, batch_first=True)
        self.out = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.gru(x)[1][-1])


def gru() -> list[float]:
    model = with_first_weights(Gru())
    optimizer = AdamW(model.parameters(), weight_decay=0.01)
    schedule = OneCycleLR(optimizer, 1e-2, total_steps=700, cycle_momentum=False)
    return supervised("gru", model, cross_entropy, optimizer, schedule)


EXAMPLES = {"names": names, "names in full": names_in_full, "gru": gru}
