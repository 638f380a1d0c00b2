"""Optimizers and learning-rate schedules, as builders of graphs and functions of the step."""

from tensorgrad.optim.adam import Adam, Adamax, AdamW, NAdam
from tensorgrad.optim.adaptive import Adadelta, Adagrad, RMSprop
from tensorgrad.optim.clip import clip_grad_norm, clip_grad_value, grad_norm, normalize_grad
from tensorgrad.optim.lion import Lion
from tensorgrad.optim.muon import Muon
from tensorgrad.optim.optimizer import Optimizer, Rule
from tensorgrad.optim.schedules import (
    ConstantLR,
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiStepLR,
    OneCycleLR,
    PolynomialLR,
    Schedule,
    SequentialLR,
    StepLR,
    WarmupCosineLR,
)
from tensorgrad.optim.sgd import SGD

__all__ = [
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "ExponentialLR",
    "LambdaLR",
    "LinearLR",
    "Lion",
    "MultiStepLR",
    "Muon",
    "NAdam",
    "OneCycleLR",
    "Optimizer",
    "PolynomialLR",
    "RMSprop",
    "Rule",
    "Schedule",
    "SequentialLR",
    "StepLR",
    "WarmupCosineLR",
    "clip_grad_norm",
    "clip_grad_value",
    "grad_norm",
    "normalize_grad",
]
