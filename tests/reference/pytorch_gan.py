"""The example of two networks that play against each other, in plain PyTorch."""

# pyright: reportMissingImports=false

from __future__ import annotations

import torch
import torch.nn.functional as F
from pytorch_steps import tensors, with_first_weights
from torch import Tensor, nn
from torch.optim import Adam

import gan as example
from example_steps import STEPS, first_batches


class Gan(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.generator = nn.Sequential(
            nn.Linear(32, 784),
            nn.ReLU(),
            nn.Unflatten(1, (16, 7, 7)),
            nn.ConvTranspose2d(16, 8, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(8, 1, 4, 2, 1),
            nn.Tanh(),
        )
        self.discriminator = nn.Sequential(
            nn.Conv2d(1, 8, 4, 2, 1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(8, 16, 4, 2, 1),
            nn.LeakyReLU(0.2),
            nn.Flatten(),
            nn.Linear(784, 1),
        )


def costs(logits: Tensor, target: float) -> Tensor:
    return F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, target))


def gan() -> list[float]:
    model, losses = with_first_weights(Gan()), []
    draw, judge = model.generator, model.discriminator
    of_draw, of_judge = (Adam(part.parameters(), 2e-3, (0.5, 0.999)) for part in (draw, judge))
    for batch in map(tensors, first_batches(example)[: STEPS // 2]):
        loss = costs(judge(batch["digits"]), 0.9) + costs(judge(draw(batch["noise"]).detach()), 0)
        of_judge.zero_grad()
        loss.backward()
        of_judge.step()
        losses.append(loss.item())
        loss = costs(judge(draw(batch["noise"])), 1)
        of_draw.zero_grad()
        loss.backward()
        of_draw.step()
        losses.append(loss.item())
    return losses


EXAMPLES = {"gan": gan}
