"""Train models on the GPU from a web page: tensors and autograd in pure Python, compiled to WebGPU."""

import sys
from typing import TYPE_CHECKING

from tensorgrad import browser, cache, data, nn, ops, optim, safetensors
from tensorgrad.autodiff import append_grad
from tensorgrad.checkpoints import load, save
from tensorgrad.compile import StepResult, Train, compile
from tensorgrad.debug import debug
from tensorgrad.device.batches import Batches
from tensorgrad.dtypes import DType, Spec, bool_, f16, f32, i32, u32
from tensorgrad.errors import (
    ArgumentError,
    CheckError,
    CheckpointError,
    DeviceLostError,
    DtypeError,
    InputError,
    NoAttributeError,
    NoDeviceError,
    NoItemError,
    NonFiniteError,
    OutOfMemoryError,
    ShaderError,
    ShapeError,
    TensorgradError,
    TraceError,
    UnsupportedError,
)
from tensorgrad.ops import *  # noqa: F403
from tensorgrad.predict import Predictor, compile_forward
from tensorgrad.record import Record
from tensorgrad.runtime import Runtime, create_runtime
from tensorgrad.sync import sync
from tensorgrad.tensor import Tensor
from tensorgrad.trace import capture, param_input, state_input, tensor_input, trace, trace_into, update_state
from tensorgrad.transform import grad, jit, value_and_grad

if not TYPE_CHECKING:  # which would take any name for an attribute

    def __getattr__(name):
        from tensorgrad.errors import no_attribute

        raise no_attribute(sys.modules[__name__], name)


__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "Batches",
    "CheckError",
    "CheckpointError",
    "DType",
    "DeviceLostError",
    "DtypeError",
    "InputError",
    "NoAttributeError",
    "NoDeviceError",
    "NoItemError",
    "NonFiniteError",
    "OutOfMemoryError",
    "Predictor",
    "Record",
    "Runtime",
    "ShaderError",
    "ShapeError",
    "Spec",
    "StepResult",
    "Tensor",
    "TensorgradError",
    "TraceError",
    "Train",
    "UnsupportedError",
    "append_grad",
    "bool_",
    "browser",
    "cache",
    "capture",
    "compile",
    "compile_forward",
    "create_runtime",
    "data",
    "debug",
    "f16",
    "f32",
    "grad",
    "i32",
    "jit",
    "load",
    "nn",
    "ops",
    "optim",
    "param_input",
    "safetensors",
    "save",
    "state_input",
    "sync",
    "tensor_input",
    "trace",
    "trace_into",
    "u32",
    "update_state",
    "value_and_grad",
]
__all__ += ops.__all__
