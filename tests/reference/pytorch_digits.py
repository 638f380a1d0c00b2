"""The examples on digits, in plain PyTorch."""

# pyright: reportMissingImports=false

from __future__ import annotations

import torch
import torch.nn.functional as F
from pytorch_steps import supervised, with_first_weights
from torch import Tensor, nn
from torch.distributions import Bernoulli, Normal, kl_divergence
from torch.optim import SGD, Adam, AdamW
from torch.optim.lr_scheduler import CosineAnnealingLR, OneCycleLR


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


class Convnet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(1568, 10),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


def convnet() -> list[float]:
    model = with_first_weights(Convnet())
    optimizer = AdamW(model.parameters(), weight_decay=0.05)
    schedule = OneCycleLR(optimizer, 5e-3, total_steps=1000, cycle_momentum=False)
    return supervised("convnet", model, cross_entropy, optimizer, schedule)


class Block(nn.Module):
    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.shortcut = nn.Sequential()
        if stride != 1:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        y = F.silu(self.bn1(self.conv1(x)))
        return F.silu(self.bn2(self.conv2(y)) + self.shortcut(x))


class Resnet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 3, 2, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(8)
        self.blocks = nn.Sequential(Block(8, 8, 1), Block(8, 16, 2), Block(16, 32, 2))
        self.out = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.blocks(F.silu(self.bn(self.stem(x)))).mean((2, 3)))


def resnet() -> list[float]:
    model = with_first_weights(Resnet())
    optimizer = SGD(model.parameters(), 0.2, momentum=0.9, nesterov=True, weight_decay=5e-4)
    schedule = OneCycleLR(optimizer, 0.2, total_steps=1000, cycle_momentum=False)
    return supervised("resnet", model, cross_entropy, optimizer, schedule)


class Vae(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(784, 400), nn.ReLU(), nn.Linear(400, 200), nn.ReLU(), nn.Linear(200, 20))
        self.decoder = nn.Sequential(nn.Linear(10, 200), nn.ReLU(), nn.Linear(200, 400), nn.ReLU(), nn.Linear(400, 784))


def negative_elbo(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    mean, log_variance = model.encoder(batch["x"]).chunk(2, 1)
    prior = Normal(torch.zeros(()), torch.ones(()))
    posterior = Normal(mean, torch.exp(log_variance / 2))
    logits = model.decoder(posterior.loc + posterior.scale * batch["noise"])
    likelihood = Bernoulli(logits=logits).log_prob(batch["x"])
    return (kl_divergence(posterior, prior).sum() - likelihood.sum()) / len(logits)


def vae() -> list[float]:
    model = with_first_weights(Vae())
    optimizer = Adam(model.parameters(), 2e-3)
    return supervised("vae", model, negative_elbo, optimizer, CosineAnnealingLR(optimizer, 2500))


EXAMPLES = {"mnist": mnist, "convnet": convnet, "resnet": resnet, "vae": vae}
