"""The first steps of an example in PyTorch: what its models have in common."""

# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from example_steps import first_batches, first_weights

Loss = Callable[[nn.Module, dict[str, Tensor]], Tensor]


def with_first_weights(model: nn.Module) -> nn.Module:
    """The same model, with weights by the recipe."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.tensor(first_weights(name, tuple(parameter.shape))))
    return model.train()


def tensors(batch: dict[str, np.ndarray]) -> dict[str, Tensor]:
    """A batch; whole numbers are wide ones, as PyTorch wants labels to be."""
    return {n: torch.tensor(a) if a.dtype.kind == "f" else torch.tensor(a).long() for n, a in batch.items()}


def supervised(
    name: str, model: nn.Module, loss_fn: Loss, optimizer: torch.optim.Optimizer, schedule: Any = None
) -> list[float]:
    """The losses of one model with one loss.

    Args:
        name: of the example.
        model: `with_first_weights`.
        loss_fn: takes the model and a batch.
        optimizer: of the model's parameters.
        schedule: of its learning rate.
    """
    losses = []
    for batch in first_batches(import_module(name)):
        loss = loss_fn(model, tensors(batch))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if schedule is not None:
            schedule.step()
        losses.append(loss.item())
    return losses
