"""Names that PyTorch has and this library has not, and what takes their place: the words of an AttributeError.

Imported where such a name was asked for. docs/pytorch.md tells the same at length.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from tensorgrad.nn.module import Module
from tensorgrad.nn.parameter import Parameter
from tensorgrad.optim.optimizer import Optimizer
from tensorgrad.tensor import Tensor

STEP = "a step does all of it, gradients and update: await train.step(x=x, y=y), of train = await tg.compile(...)"
DEVICE = "leave it out: all tensors are on the device that tg.compile is given, tg.compile(..., device=...)"
NO_GRAD = "leave it out: only a step that trains computes gradients; tg.stop_gradient(x) lets none through"
HALF = "mixed precision is the compiler's: tg.compile(..., dtype=tg.f16)"
CLIP = "optim.Adam(1e-3, clip_norm=1.0) clips gradients, by clip_value too"
SEED = "nn.init.manual_seed(0) seeds initial weights, tg.compile(..., seed=0) dropout and other random numbers"
SCHEDULE = "schedules are in optim, and stand in place of the learning rate: optim.Adam(optim.StepLR(1e-3, 100))"
PLATEAU = "call train.fit for each epoch, and train.set_lr(lr) between them"
PICKLE = "tg.save(state_dict, path) and tg.load(path) write and read safetensors files"
ARRAY = "tg.tensor(array) is a constant; what changes from step to step is an input, await train.step(x=array)"
LOADER = "tg.data has DataLoader and random_split; a dataset is a mapping of arrays"

TENSOR = {
    "backward": STEP,
    "grad": "gradients are new at each step: tg.compile(..., keep_grads=True), then await train.gradients()",
    "requires_grad": "tg.grad(function) differentiates by its arguments; parameter.requires_grad = False freezes one",
    "requires_grad_": "tg.grad(function) differentiates by its arguments; no tensor has to ask for it",
    "data": "x.detach() has the same numbers, through which no gradient flows",
    "tolist": "results are arrays: return the tensor, or tg.capture it, and take array.tolist()",
    "values": "max, min and median of an axis are the values alone; tg.argmax(x, axis) has their places, "
    "tg.topk(x, 1, axis) both",
    "indices": "max, min and median of an axis are the values alone; tg.argmax(x, axis) has their places, "
    "tg.topk(x, 1, axis) both",
    "double": "a GPU has no numbers of 64 bits: x.float()",
    "bfloat16": HALF,
    "short": "whole numbers are tg.i32: x.int()",
    "byte": "whole numbers are tg.i32: x.int()",
    "nonzero": "how many there are is not known while a function is traced: tg.where(x != 0, a, b), or NumPy outside",
    "unfold": "x[:, i : i + size] has one window; tg.unfold(images, kernel_size) those of images",
    "clone": "leave it out: tensors do not change",
    "copy": "leave it out: tensors do not change",
    "new_zeros": "tg.zeros(shape), tg.zeros_like(x)",
    "new_ones": "tg.ones(shape), tg.ones_like(x)",
    "new_tensor": "tg.tensor(array)",
    "is_cuda": DEVICE,
    "get_device": DEVICE,
    "cuda": DEVICE,
    "cpu": DEVICE,
    "device": DEVICE,
    "retain_grad": "tg.compile(..., keep_grads=True), then await train.gradients()",
    "register_hook": "tg.grad(function) gives gradients as tensors, to be used as any others",
}
MODULE = {
    "half": HALF,
    "bfloat16": HALF,
    "double": "a GPU has no numbers of 64 bits; leave it out",
    "float": "leave it out: parameters are tg.f32",
    "zero_grad": "leave it out: gradients are new at each step",
    "backward": STEP,
    "device": DEVICE,
    "compile": "train = await tg.compile(model, loss_fn, optimizer, inputs)",
    "predict": "predict = await tg.compile_forward(model, lambda model, x: model(x), inputs), then "
    "await predict(x=array)",
    "register_forward_hook": "tg.capture('name', x) within forward brings the numbers of a tensor out",
    "register_full_backward_hook": "tg.compile(..., keep_grads=True), then await train.gradients()",
    "fit": "train = await tg.compile(model, loss_fn, optimizer, inputs), then await train.fit(loader)",
    "save": PICKLE,
    "get": "arrays by name are model.state_dict(), as in tg.save(model.state_dict(), path)",
}
OPTIMIZER = {
    "zero_grad": "leave it out: gradients are new at each step",
    "step": STEP,
    "param_groups": "groups of parameters are optim.Adam(1e-3, groups=[('*.bias', {'lr': 1e-4})]); optimizer.lr = 1e-4 "
    "sets the learning rate",
    "state_dict": "await train.state_dict() has the optimizer's state",
    "load_state_dict": "await train.load_state_dict(state_dict) loads the optimizer's state",
    "add_param_group": "optim.Adam(1e-3, groups=[('*.bias', {'lr': 1e-4})])",
}
PACKAGE = {
    **dict.fromkeys(("float32", "float", "float64", "double"), "tg.f32"),
    **dict.fromkeys(("float16", "half", "bfloat16"), f"tg.f16; {HALF}"),
    **dict.fromkeys(("int32", "int64", "long", "int", "int8", "int16", "short"), "tg.i32"),
    **dict.fromkeys(("uint8", "uint32"), "tg.u32"),
    "bool": "tg.bool_",
    **dict.fromkeys(("no_grad", "inference_mode", "set_grad_enabled", "enable_grad"), NO_GRAD),
    "manual_seed": SEED,
    "seed": SEED,
    **dict.fromkeys(
        ("from_numpy", "as_tensor"), "tg.tensor(array) is a constant; data goes to await train.step(x=array)"
    ),
    **dict.fromkeys(("FloatTensor", "LongTensor", "IntTensor"), "tg.tensor(array, dtype) is a constant"),
    **dict.fromkeys(("cuda", "backends", "mps", "set_default_device"), DEVICE),
    "autograd": "tg.grad(function) and tg.value_and_grad(function) differentiate",
    "autocast": HALF,
    "amp": HALF,
    "utils": LOADER,
    "nonzero": TENSOR["nonzero"],
    "unique": "how many there are is not known while a function is traced: NumPy's, outside",
}
NN = {
    "utils": CLIP,
    "DataParallel": "leave it out: there is one device",
}
OPTIM = {
    "lr_scheduler": SCHEDULE,
    "ReduceLROnPlateau": PLATEAU,
    "swa_utils": "optim.Adam(1e-3, ema_decay=0.999) keeps an average of the parameters",
    "zero_grad": OPTIMIZER["zero_grad"],
    "clip_grad_norm_": CLIP,
}
PACKAGES = {"tensorgrad": PACKAGE, "tensorgrad.nn": NN, "tensorgrad.optim": OPTIM}


def hint(owner: Any, name: str) -> str | None:
    """What takes the place of a name that an object, or a package, has not; None where nothing is known."""
    if isinstance(owner, ModuleType):
        return PACKAGES[owner.__name__].get(name)
    if isinstance(owner, Tensor):
        return TENSOR.get(name) or _in_place(owner, name)
    if isinstance(owner, Module):
        return MODULE.get(name)
    return OPTIMIZER.get(name) if isinstance(owner, Optimizer) else None


def _in_place(tensor: Tensor, name: str) -> str | None:
    if not name.endswith("_") or name.startswith("_"):
        return None
    if isinstance(tensor, Parameter):
        return "a parameter's initial values are an array, parameter.data[...] = array; nn.init has functions that draw"
    new = f"x = x.{name[:-1]}(...)" if hasattr(type(tensor), name[:-1]) else "x = ..."
    return f"tensors do not change; make another one, {new}"
