"""The examples on digits, in plain PyTorch."""

# pyright: reportMissingImports=false

from __future__ import annotations

import torch.nn.functional as F
from pytorch_steps import supervised, with_first_weights
from torch import Tensor, nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import CosineAnnealingLR


def cross_entropy(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    return F.cross_entropy(model(batch["x"]), batch["y"])


class Mnist(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(784, 128)
        self.out = nn.Linear(128, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(F.relu(self.hidden(x)))


def mnist() -> list[float]:
    model = with_first_weights(Mnist())
    optimizer = AdamW(model.parameters(), 1e-2, weight_decay=0.1)
    return supervised("mnist", model, cross_entropy, optimizer, CosineAnnealingLR(optimizer, 1120))


EXAMPLES = {"mnist": mnist}
