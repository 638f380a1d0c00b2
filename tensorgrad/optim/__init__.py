"""Optimizers and learning-rate schedules, as builders of graphs and functions of the step."""

import sys
from typing import TYPE_CHECKING

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

if not TYPE_CHECKING:  # which would take any name for an attribute

    def __getattr__(name):
        from tensorgrad.errors import no_attribute

        raise no_attribute(sys.modules[__name__], name)


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
