"""Optimizers and learning-rate schedules, as builders of graphs and functions of the step."""

from tensorgrad.optim.adam import Adam, AdamW
from tensorgrad.optim.clip import clip_grad_norm, clip_grad_value, grad_norm
from tensorgrad.optim.optimizer import Optimizer, Rule
from tensorgrad.optim.schedules import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LinearLR,
    MultiStepLR,
    OneCycleLR,
    Schedule,
    StepLR,
    WarmupCosineLR,
)
from tensorgrad.optim.sgd import SGD

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "ConstantLR",
    "CosineAnnealingLR",
    "ExponentialLR",
    "LinearLR",
    "MultiStepLR",
    "OneCycleLR",
    "Optimizer",
    "Rule",
    "Schedule",
    "StepLR",
    "WarmupCosineLR",
    "clip_grad_norm",
    "clip_grad_value",
    "grad_norm",
]
