"""Writes `pytorch.json`: what PyTorch computes, for the unit tests to compare with.

    pip install torch==2.13.0 && python tests/reference/make_pytorch.py

The tests read the file and do not need PyTorch. Numbers are f32, in their shortest form.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from losses import LOSSES
from module_cases import CALLED, Called
from operations import Row, normal
from rows import ROWS
from torch import nn

OUT = Path(__file__).with_name("pytorch.json")


def plain(array: Any) -> Any:
    """An array as JSON: nested lists of the shortest numbers that give the same f32."""
    if isinstance(array, torch.Tensor):
        array = array.detach().numpy()
    array = np.asarray(array)
    flat = [float(str(x)) if array.dtype.kind == "f" else int(x) for x in array.reshape(-1)]
    return {"shape": list(array.shape), "dtype": str(array.dtype), "data": flat}


# Operations ----------------------------------------------------------------------------


def operation(row: Row) -> dict[str, Any]:
    tensors = {}
    for name, array in row.inputs.items():
        tensor = torch.tensor(array.copy())
        tensors[name] = tensor.long() if array.dtype.kind == "i" and name in "it" else tensor
        tensors[name].requires_grad_(row.grad and array.dtype.kind == "f")
    names = {**vars(torch), **vars(F), "torch": torch, "F": F, **tensors}
    y = eval(row.torch or row.expr, names)
    case = {"name": row.name, "expr": row.expr, "inputs": {n: plain(a) for n, a in row.inputs.items()}}
    if row.grad:
        weights = torch.cos(torch.arange(y.numel(), dtype=torch.float32)).reshape(y.shape)
        (y * weights).sum().backward()
        zero = {n: torch.zeros_like(t) for n, t in tensors.items()}
        case["grads"] = {
            n: plain(t.grad if t.grad is not None else zero[n]) for n, t in tensors.items() if t.requires_grad
        }
    return {**case, "y": plain(y)}


# Optimizers ----------------------------------------------------------------------------

OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.5, "weight_decay": 0.1, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.01, "betas": (0.5, 0.9), "eps": 0.01, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.01, "amsgrad": True}),
    ("AdamW", {}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.3, "amsgrad": True}),
    ("AdamW", {"lr": 0.01, "betas": (0.0, 0.9), "maximize": True}),
]

TEN_STEPS: list[tuple[str, dict[str, Any]]] = [
    ("Adagrad", {}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.3, "weight_decay": 0.1, "initial_accumulator_value": 0.5, "maximize": True}),
    ("Adagrad", {"lr": 0.1, "groups": [("b", {"lr": 0.02, "lr_decay": 0.5})]}),
    ("RMSprop", {}),
    ("RMSprop", {"lr": 0.01, "momentum": 0.9, "weight_decay": 0.1}),
    ("RMSprop", {"lr": 0.01, "alpha": 0.9, "eps": 1e-4, "centered": True, "maximize": True}),
    ("RMSprop", {"centered": True, "momentum": 0.5, "groups": [("b", {"momentum": 0.0, "centered": False})]}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.7, "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    ("Adadelta", {"groups": [("w", {"lr": 0.25, "rho": 0.5})]}),
    ("Adamax", {}),
    ("Adamax", {"lr": 0.01, "betas": (0.5, 0.9), "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    ("Adamax", {"groups": [("b", {"betas": (0.0, 0.5)})]}),
    ("NAdam", {}),
    ("NAdam", {"lr": 0.01, "betas": (0.5, 0.9), "weight_decay": 0.1, "momentum_decay": 0.3, "maximize": True}),
    ("NAdam", {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("NAdam", {"momentum_decay": 0.0, "groups": [("b", {"momentum_decay": 0.1, "eps": 1e-2})]}),
    ("Muon", {}),
    ("Muon", {"lr": 0.1, "weight_decay": 0.3, "momentum": 0.5, "nesterov": False, "adjust_lr_fn": "match_rms_adamw"}),
    ("Muon", {"lr": 0.1, "ns_coefficients": (2.0, -1.5, 0.5), "ns_steps": 3, "groups": [("b", {"lr": 0.01})]}),
]


def made_by_torch(name: str, params: dict[str, nn.Parameter], options: dict[str, Any]) -> list[torch.optim.Optimizer]:
    """PyTorch's optimizers that together do what ours of this name does."""
    options = dict(options)
    changes = dict(options.pop("groups", []))
    groups = [{"params": [p], **changes.get(n, {})} for n, p in params.items()]
    if name != "Muon":
        return [getattr(torch.optim, name)(groups, **options)]
    matrices, others = ([g for g in groups if (g["params"][0].ndim == 2) == two] for two in (True, False))
    adamw = {"lr": options.get("lr", 1e-3), "weight_decay": options.get("weight_decay", 0.1)}
    return [torch.optim.Muon(matrices, **options), torch.optim.AdamW(others, **adamw)]


def optimizer(
    name: str,
    options: dict[str, Any],
    scale: float,
    clip: dict[str, float],
    steps: int = 6,
    rows: int = 2,
) -> dict[str, Any]:
    shapes = {"w": (rows, 3), "b": (3,)}
    params = {n: nn.Parameter(torch.tensor(normal(*s, seed=7))) for n, s in shapes.items()}
    start = {n: plain(p) for n, p in params.items()}
    made = made_by_torch(name, params, options)
    grads, after = [], []
    for step in range(steps):
        given = {n: normal(*s, seed=100 + step) * np.float32(scale * 2.0**-step) for n, s in shapes.items()}
        for n, p in params.items():
            p.grad = torch.tensor(given[n])
        if "clip_norm" in clip:
            nn.utils.clip_grad_norm_(params.values(), clip["clip_norm"])
        if "clip_value" in clip:
            nn.utils.clip_grad_value_(params.values(), clip["clip_value"])
        for part in made:
            part.step()
        grads.append({n: plain(g) for n, g in given.items()})
        after.append({n: plain(p) for n, p in params.items()})
    return {
        "name": name,
        "options": {**options, **clip},
        "size": scale,
        "start": start,
        "grads": grads,
        "params": after,
    }


def optimizers() -> list[dict[str, Any]]:
    cases = [optimizer(name, options, scale, {}) for name, options in OPTIMIZERS for scale in (1.0, 1e-8)]
    cases += [
        optimizer("SGD", {"lr": 0.1}, 3.0, {"clip_norm": 1.0}),
        optimizer("SGD", {"lr": 0.1}, 3.0, {"clip_value": 0.5}),
    ]
    # Muon's iterations in f32, as ours are, on a copy (PyTorch's bf16 is one)
    torch.Tensor.bfloat16 = torch.Tensor.clone
    cases += [optimizer(*row, scale, {}, 10) for row in TEN_STEPS for scale in (1.0, 1e-8, 0.0)]
    return [*cases, optimizer("Muon", {"lr": 0.1}, 1.0, {}, 10, rows=5)]


# Schedules -----------------------------------------------------------------------------

SCHEDULES: list[tuple[str, dict[str, Any]]] = [
    ("ConstantLR", {"factor": 0.25, "total_iters": 3}),
    ("LinearLR", {"start_factor": 0.1, "end_factor": 0.8, "total_iters": 7}),
    ("StepLR", {"step_size": 3, "gamma": 0.3}),
    ("MultiStepLR", {"milestones": [2, 5], "gamma": 0.3}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("CosineAnnealingLR", {"T_max": 12, "eta_min": 0.01}),
    ("OneCycleLR", {"total_steps": 12}),
    ("OneCycleLR", {"total_steps": 12, "pct_start": 0.5, "anneal_strategy": "linear", "div_factor": 10.0}),
]

LONG_SCHEDULES: list[tuple[str, dict[str, Any]]] = [
    ("ConstantLR", {}),
    ("LinearLR", {}),
    ("LinearLR", {"start_factor": 1.0, "end_factor": 0.0, "total_iters": 80}),
    ("StepLR", {"step_size": 30}),
    ("MultiStepLR", {"milestones": [20, 50, 80], "gamma": 0.5}),
    ("ExponentialLR", {"gamma": 0.97}),
    ("CosineAnnealingLR", {"T_max": 100}),
    ("OneCycleLR", {"total_steps": 100}),
    ("PolynomialLR", {}),
    ("PolynomialLR", {"total_iters": 70, "power": 2.0}),
    ("PolynomialLR", {"total_iters": 90, "power": 0.5}),
    ("CosineAnnealingWarmRestarts", {"T_0": 30}),
    ("CosineAnnealingWarmRestarts", {"T_0": 7, "T_mult": 2, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 1, "T_mult": 3}),
]
SEQUENCES: list[tuple[list[tuple[str, dict[str, Any]]], list[int]]] = [
    ([("LinearLR", {"total_iters": 10}), ("CosineAnnealingLR", {"T_max": 91})], [10]),
    ([("ConstantLR", {"factor": 0.1, "total_iters": 99}), ("ExponentialLR", {"gamma": 0.9})], [20]),
    ([("PolynomialLR", {"total_iters": 30}), ("StepLR", {"step_size": 5}), ("LinearLR", {})], [25, 60]),
]


def sequence(parts: list[tuple[str, dict[str, Any]]], milestones: list[int], steps: int = 100) -> dict[str, Any]:
    lr = 0.5
    made = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=lr)
    schedulers = [getattr(torch.optim.lr_scheduler, name)(made, **options) for name, options in parts]
    scheduler = torch.optim.lr_scheduler.SequentialLR(made, schedulers, milestones)
    ours = [(name, {"lr": lr, **options}) for name, options in parts]
    return {"schedulers": ours, "milestones": milestones, "values": rates(made, scheduler, steps)}


def schedule(name: str, options: dict[str, Any], steps: int = 12) -> dict[str, Any]:
    lr = 0.5
    made = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=lr)
    rate = {"max_lr": lr} if name == "OneCycleLR" else {}
    ours = rate or {"lr": lr}
    scheduler = getattr(torch.optim.lr_scheduler, name)(made, **rate, **options)
    return {"name": name, "options": {**ours, **options}, "values": rates(made, scheduler, steps)}


def rates(made: Any, scheduler: Any, steps: int) -> list[float]:
    values = []
    for step in range(steps):
        values.append(made.param_groups[0]["lr"])
        made.step()
        if step + 1 < steps:
            scheduler.step()
    return values


# Modules -------------------------------------------------------------------------------

MODULES = {
    "mlp": "nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3, bias=False))",
    "norms": "nn.ModuleList([nn.LayerNorm(4), nn.LayerNorm((2, 3), bias=False), nn.LayerNorm(4, 1e-5, False)])",
    "nested": "nn.ModuleDict({'b': nn.Sequential(nn.Embedding(5, 2), nn.Dropout(0.1)), 'a': nn.Linear(2, 2)})",
    "images": "nn.Sequential(nn.Conv2d(3, 4, (3, 2), groups=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), "
    "nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten())",
    "lines": "nn.ModuleList([nn.Conv1d(4, 6, 3, groups=2, bias=False), nn.BatchNorm1d(6, affine=False), "
    "nn.BatchNorm1d(6, track_running_stats=False)])",
    "parameters": "nn.ParameterList([nn.Parameter(nn.Linear(2, 3).weight), nn.Linear(2, 3).bias])",
}

FORWARDS = {
    "linear": ("nn.Linear(4, 3)", normal(2, 5, 4)),
    "mlp": (MODULES["mlp"], normal(6, 4)),
    "gelu": (
        "nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.LayerNorm(4), nn.SiLU(), nn.Flatten())",
        normal(3, 2, 4),
    ),
    "activations": (
        "nn.Sequential(nn.Tanh(), nn.Linear(4, 4), nn.Sigmoid(), nn.Softmax(dim=-1))",
        normal(3, 4),
    ),
    "embedding": ("nn.Embedding(5, 3)", np.array([[0, 4, 4], [1, 0, 2]], np.int32)),
    "images": (
        "nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.MaxPool2d(2), nn.Conv2d(4, 4, 3, stride=2, groups=2), "
        "nn.AdaptiveAvgPool2d(1), nn.Flatten())",
        normal(3, 2, 9, 8),
    ),
    "padding": ("nn.Embedding(5, 3, padding_idx=-1)", np.array([4, 4, 1, 1, 0], np.int32)),
}


def forward(name: str, text: str, x: np.ndarray) -> dict[str, Any]:
    module = eval(text)
    with torch.no_grad():
        for at, p in enumerate(module.parameters()):
            p.copy_(torch.tensor(normal(*p.shape, seed=40 + at)))
    y = module(torch.tensor(x))
    (y * torch.cos(torch.arange(y.numel(), dtype=torch.float32)).reshape(y.shape)).sum().backward()
    state = {n: plain(p) for n, p in module.state_dict().items()}
    grads = {n: plain(p.grad) for n, p in module.named_parameters()}
    return {"name": name, "module": text, "x": plain(x), "state": state, "y": plain(y), "grads": grads}


def called(name: str, case: Called) -> dict[str, Any]:
    """The results of a call, and the gradients of parameters and inputs."""
    module = eval(case.module).train(case.training)
    with torch.no_grad():
        for at, p in enumerate(module.parameters()):
            p.copy_(torch.tensor(normal(*p.shape, seed=40 + at)) * 0.5)
    state = {n: plain(t) for n, t in module.state_dict().items()}
    tensors = {n: torch.tensor(a).requires_grad_(a.dtype.kind == "f") for n, a in case.inputs.items()}
    given = {n: t.long() if t.dtype == torch.int32 else t for n, t in tensors.items()}
    results = leaves(eval(case.call, {"m": module, "nn": nn, **given}))
    weights = [torch.cos(torch.arange(y.numel(), dtype=torch.float32)).reshape(y.shape) for y in results]
    torch.stack([(y * w).sum() for y, w in zip(results, weights, strict=True)]).sum().backward()
    wanted = {n: t for n, t in [*module.named_parameters(), *tensors.items()] if t.requires_grad}
    return {
        "name": name,
        **case._asdict(),
        "inputs": {n: plain(a) for n, a in case.inputs.items()},
        "state": state,
        "results": [plain(y) for y in results],
        "grads": {n: plain(torch.zeros_like(t) if t.grad is None else t.grad) for n, t in wanted.items()},
    }


def leaves(nest: Any) -> list[Any]:
    """The tensors of nested tuples."""
    return [t for part in nest for t in leaves(part)] if isinstance(nest, tuple) else [nest]


STATISTICS = {
    "images": ("nn.BatchNorm2d(3)", (4, 3, 5, 4)),
    "rows": ("nn.BatchNorm1d(4, momentum=0.3, eps=1e-3)", (6, 4)),
    "average": ("nn.BatchNorm1d(4, momentum=None, affine=False)", (3, 4, 5)),
    "volumes": ("nn.BatchNorm3d(2)", (2, 2, 2, 3, 2)),
    "instances": ("nn.InstanceNorm2d(3, momentum=0.2, affine=True, track_running_stats=True)", (2, 3, 4, 3)),
    "lines": ("nn.InstanceNorm1d(4, 1e-3, track_running_stats=True)", (3, 4, 5)),
}


def statistics(name: str, text: str, shape: tuple[int, ...]) -> dict[str, Any]:
    """Three batches in training, and what evaluation makes of the first of them then."""
    module = eval(text)
    xs = [normal(*shape, seed=60 + n) * (n + 1) + n for n in range(3)]
    ys, states = [], []
    for x in xs:
        ys.append(plain(module(torch.tensor(x))))
        states.append({n: plain(t) for n, t in module.state_dict().items()})
    evaluated = plain(module.eval()(torch.tensor(xs[0])))
    return {
        "name": name,
        "module": text,
        "xs": [plain(x) for x in xs],
        "ys": ys,
        "states": states,
        "evaluated": evaluated,
    }


def keys(name: str, text: str) -> dict[str, Any]:
    return {
        "name": name,
        "module": text,
        "keys": {n: list(t.shape) for n, t in eval(text).state_dict().items()},
    }


class Tied(nn.Module):
    """A parameter under two names, a buffer of each kind, a child before the own parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(4, 3)
        self.head = nn.Linear(3, 4, bias=False)
        self.head.weight = self.embed.weight
        self.scale = nn.Parameter(torch.ones(2))
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("hidden", torch.zeros(1), persistent=False)


def tied() -> dict[str, Any]:
    module = Tied()
    return {
        "state": list(module.state_dict()),
        "parameters": [name for name, _ in module.named_parameters()],
        "buffers": [name for name, _ in module.named_buffers()],
        "modules": [name for name, _ in module.named_modules()],
    }


def main() -> None:
    torch.set_num_threads(1)
    data = {
        "torch": torch.__version__,
        "operations": [operation(row) for row in (*ROWS, *LOSSES)],
        "optimizers": optimizers(),
        "schedules": [
            schedule(*row, steps) for rows, steps in ((SCHEDULES, 12), (LONG_SCHEDULES, 100)) for row in rows
        ],
        "sequences": [sequence(*row) for row in SEQUENCES],
        "keys": [keys(*row) for row in MODULES.items()],
        "forwards": [forward(name, *row) for name, row in FORWARDS.items()],
        "called": [called(*row) for row in CALLED.items()],
        "statistics": [statistics(name, *row) for name, row in STATISTICS.items()],
        "tied": tied(),
        "gains": {
            n: nn.init.calculate_gain(n) for n in ("linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu")
        },
    }
    parts = []
    for key, value in data.items():
        rows = value if isinstance(value, list) else None
        text = "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]" if rows else json.dumps(value)
        parts.append(f"{json.dumps(key)}: {text}")
    OUT.write_text("{\n" + ",\n".join(parts) + "\n}\n")


if __name__ == "__main__":
    main()
