"""Every error that the library raises on purpose.

All derive from `TensorgradError`. A message names the operands and shapes, the rule
that they break, the user's own line, and what to do about it.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

from tensorgrad.callsite import CallSite, call_site

if TYPE_CHECKING:
    from tensorgrad.inspect.kernels import KernelView
    from tensorgrad.inspect.reference import Difference


class TensorgradError(Exception):
    """The base of the library's errors.

    Args:
        message: what went wrong and what to do.
        site: the user's line, appended to the message.
    """

    def __init__(self, message: str, site: CallSite | None = None) -> None:
        super().__init__(f"{message}\n  at {site}" if site is not None else message)
        self.message, self.site = message, site


class _CallError(TensorgradError):
    """An error of a call that the user made; the message always ends with the user's line."""

    def __init__(self, message: str, site: CallSite | None = None) -> None:
        super().__init__(message, site or call_site())


class ShapeError(TensorgradError, ValueError):
    """Shapes, axes or indices that do not fit an operation."""


class DtypeError(TensorgradError, TypeError):
    """Element types that do not fit an operation."""


class InputError(_CallError, ValueError):
    """A call got an argument that makes no sense, or a step data of another name, structure, shape or dtype.

    Integers that the dtype cannot store are such data.
    """


class ArgumentError(InputError, TypeError):
    """A call with arguments that the function does not take, or objects of another kind than it holds."""


class NoAttributeError(TensorgradError, AttributeError):
    """A name of PyTorch's that this library has not; says what takes its place. `hasattr` is False, as it should be."""


class NoItemError(InputError, KeyError, IndexError):
    """A place or a name that a container of modules has not."""

    __str__ = Exception.__str__  # a KeyError's is a repr


class TraceError(TensorgradError, RuntimeError):
    """An operation where no trace runs, a tensor of another trace, a value that is not known yet."""


class NoDeviceError(_CallError, RuntimeError):
    """No GPU was found: there is no WebGPU here, or no adapter; the message says which."""


class UnsupportedError(TensorgradError, NotImplementedError):
    """This device lacks a feature, or this class a method, that was asked for; nothing was run."""


class DeviceLostError(TensorgradError, RuntimeError):
    """The GPU device was lost or destroyed; what lived on it is gone."""


class OutOfMemoryError(TensorgradError, MemoryError):
    """A buffer could not be allocated; names the tensor and the plan's total."""


class ShaderError(TensorgradError, RuntimeError):
    """Kernels that the browser's shader compiler refused, all of them, with numbered source."""


class NonFiniteError(TensorgradError, ArithmeticError):
    """A loss that is NaN or infinite, where the caller asked for an error."""


class CheckpointError(_CallError, ValueError):
    """A state dict that does not fit the model, or a damaged file."""


class CheckError(TensorgradError, AssertionError):
    """`train.check()` found a kernel whose output differs from the reference.

    Attributes:
        kernel: the first such kernel, as in `train.kernels`; None where the buffer plan is at fault.
        difference: the value, the element and its two numbers.
    """

    kernel: KernelView | None = None
    difference: Difference | None = None


def no_attribute(owner: Any, name: str) -> AttributeError:
    """The error for a name that an object or a package has not: for one of PyTorch's it says what takes its place."""
    plain = f"module {owner.__name__!r}" if isinstance(owner, ModuleType) else f"{type(owner).__name__!r} object"
    message = f"{plain} has no attribute {name!r}"
    if not name.startswith("_"):  # which copy and its like ask for
        from tensorgrad.habits import hint

        if words := hint(owner, name):
            return NoAttributeError(f"{message}; here: {words}", call_site())
    return AttributeError(message, name=name, obj=owner)
