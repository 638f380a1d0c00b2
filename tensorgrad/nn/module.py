"""Module: parameters, buffers and other modules under names, and a `forward` that is traced."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tensorgrad.callsite import call_site
from tensorgrad.errors import ArgumentError, CheckpointError, InputError, TraceError, UnsupportedError, no_attribute
from tensorgrad.nn.parameter import Buffer, Parameter
from tensorgrad.nn.state import IncompatibleKeys, Matched, match_state, require_state
from tensorgrad.tensor import Tensor
from tensorgrad.trace import current_trace, is_tracing

Self = TypeVar("Self", bound="Module")
T = TypeVar("T", bound=Parameter)


class Module:
    """The base of models and layers, the package's and custom ones, as PyTorch's.

    Whatever `Parameter`, `Buffer` or `Module` is assigned to an attribute belongs to the
    module under that name (`super().__init__()` is allowed, not needed). Calling the module
    calls `forward`, inside a trace: `tg.compile` and its kin start one.

    A module keeps initial values only. What is trained lives on the device, in `train.state`.

    >>> from tensorgrad import nn
    >>> class Twice(nn.Module):
    ...     def __init__(self):
    ...         self.inner = nn.Linear(2, 3)
    ...     def forward(self, x):
    ...         return self.inner(x) * 2.0
    >>> Twice()
    Twice: 9 parameters
      inner: Linear(2 -> 3)  weight f32[3, 2], bias f32[3]  (9)
    """

    _evaluates = False

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; subclasses define it."""
        name = type(self).__name__
        raise UnsupportedError(f"{name} defines no forward method; write one: def forward(self, x): ...", call_site())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not is_tracing():
            raise TraceError(
                f"{type(self).__name__} was called where no trace runs. Call it inside a function that is given to "
                "tg.compile or tg.compile_forward; on arrays: predict = await tg.compile_forward(model, "
                "lambda model, x: model(x), inputs), then await predict(x=array).",
                call_site(),
            )
        return self.forward(*args, **kwargs)

    if not TYPE_CHECKING:  # which would take any arguments, and any name for an attribute

        def __new__(cls, *args, **kwargs):
            if kwargs.get("device") is not None and "device" not in signature(cls.__init__).parameters:
                raise ArgumentError(
                    f"{cls.__name__} takes no device; it is the compiler's, tg.compile(..., device=...)"
                )
            return super().__new__(cls)

        def __getattr__(self, name):
            raise no_attribute(self, name)

    # -- registration -------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Tensor):
            self._check_tensor(name, value)
        elif isinstance(self.__dict__.get(name), Parameter) and value is not None:
            raise ArgumentError(
                f"{type(self).__name__}.{name} is a {type(self.__dict__[name]).__name__}; assign another one, "
                f"or set its initial values with .{name}.data[...] = array"
            )
        elif isinstance(value, list | tuple | set | dict):
            self._check_container(name, value)
        object.__setattr__(self, name, value)

    def _check_tensor(self, name: str, value: Tensor) -> None:
        if not isinstance(value, Parameter):
            raise TraceError(
                f"{type(self).__name__}.{name} cannot hold a tensor of a trace: it has no numbers, and the trace "
                "ends. Return the tensor, or tg.capture it; what lasts from step to step is an nn.Buffer, "
                "written with tg.update_state.",
                call_site(),
            )
        if is_tracing() and self.__dict__.get(name) is not value:
            raise TraceError(
                f"{type(self).__name__}.{name} is set while a trace runs, which cannot add parameters any more; "
                "create modules and parameters before, as in __init__",
                call_site(),
            )

    def _check_container(self, name: str, value: Any) -> None:
        inside = list(value.values()) if isinstance(value, dict) else list(value)
        for item in inside:
            if isinstance(item, Module | Parameter):
                kind = "ModuleDict" if isinstance(value, dict) else "ModuleList"
                kind = kind.replace("Module", "Parameter") if isinstance(item, Parameter) else kind
                warnings.warn(
                    f"{type(self).__name__}.{name} is a plain {type(value).__name__}, so what it holds is not part "
                    f"of the module and is not trained; use nn.{kind}",
                    stacklevel=4,
                )
                return
            if isinstance(item, Tensor):
                self._check_tensor(name, item)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """The same as assigning it."""
        setattr(self, name, param)

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Keeps an array as a `Buffer` under a name; None keeps None."""
        setattr(self, name, None if tensor is None else Buffer(tensor, persistent))

    def add_module(self, name: str, module: Module | None) -> None:
        """The same as assigning it."""
        if "." in name or not name:
            raise ArgumentError(f"a module's name has no dot and is not empty, got {name!r}")
        setattr(self, name, module)

    register_module = add_module

    # -- what it holds --------------------------------------------------------------------

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Its own modules by name, each once."""
        seen: set[int] = set()
        for name, value in self.__dict__.items():
            if isinstance(value, Module) and id(value) not in seen:
                seen.add(id(value))
                yield name, value

    def children(self) -> Iterator[Module]:
        """Its own modules, each once."""
        return (module for _, module in self.named_children())

    def named_modules(
        self, memo: set[int] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Itself (named `prefix`) and all modules inside, in the order of their assignment."""
        memo = set() if memo is None else memo
        if remove_duplicate and id(self) in memo:
            return
        memo.add(id(self))
        yield prefix, self
        for name, value in self.__dict__.items():
            if isinstance(value, Module):
                yield from value.named_modules(memo, _join(prefix, name), remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """Itself and all modules inside, each once."""
        return (module for _, module in self.named_modules())

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Parameters by PyTorch's keys and in its order: a module's own, then those of its modules.

        Args:
            prefix: goes before every name.
            recurse: whether to look into modules inside.
            remove_duplicate: name a parameter that is held twice (tied weights) once.
        """
        return self._named(Parameter, prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters, each once."""
        return (parameter for _, parameter in self.named_parameters("", recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Buffer]]:
        """Buffers by name, as `named_parameters`."""
        return self._named(Buffer, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Buffer]:
        """All buffers, each once."""
        return (buffer for _, buffer in self.named_buffers("", recurse))

    def _named(self, kind: type[T], prefix: str, recurse: bool, once: bool) -> Iterator[tuple[str, T]]:
        seen: set[int] = set()
        within = self.named_modules(None, prefix, once) if recurse else [(prefix, self)]
        for path, module in within:
            for name, value in module.__dict__.items():
                # a Buffer is a Parameter to Python, not to the user
                if isinstance(value, kind) and isinstance(value, Buffer) == (kind is Buffer):
                    if once and id(value) in seen:
                        continue
                    seen.add(id(value))
                    yield _join(path, name), value

    def get_submodule(self, target: str) -> Module:
        """The module under a dotted name.

        Raises:
            AttributeError: there is none.
        """
        module: Any = self
        for part in target.split(".") if target else ():
            module = module.__dict__.get(part) if isinstance(module, Module) else None
        if not isinstance(module, Module):
            raise AttributeError(f"{type(self).__name__} holds no module {target!r}")
        return module

    def get_parameter(self, target: str) -> Parameter:
        """The parameter under a dotted name.

        Raises:
            AttributeError: there is none.
        """
        path, _, name = target.rpartition(".")
        found = self.get_submodule(path).__dict__.get(name)
        if not isinstance(found, Parameter) or isinstance(found, Buffer):
            raise AttributeError(f"{type(self).__name__} holds no parameter {target!r}")
        return found

    # -- modes ----------------------------------------------------------------------------

    @property
    def training(self) -> bool:
        """Whether dropout drops here: as the running trace says, unless `eval` froze the module."""
        return not self._evaluates and (not is_tracing() or current_trace().training)

    @training.setter
    def training(self, mode: bool) -> None:
        raise ArgumentError(f"training is not set: {type(self).__name__}.eval() freezes a module, train() undoes that")

    def train(self: Self, mode: bool = True) -> Self:
        """Undoes `eval` for this module and all inside; `tg.compile` traces for training by itself."""
        if is_tracing():
            raise TraceError(
                "train() and eval() change a module, and a trace must not: tg.compile traces for training, "
                "attach and tg.compile_forward for evaluation. Call eval() before, to freeze a module for good.",
                call_site(),
            )
        for module in self.modules():
            module._evaluates = not mode
        return self

    def eval(self: Self) -> Self:
        """Keeps this module and all inside in evaluation, in traces for training too."""
        return self.train(False)

    def requires_grad_(self: Self, requires_grad: bool = True) -> Self:
        """Freezes all parameters (False), or trains them again."""
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad
        return self

    def to(self: Self, device: str | None = None, non_blocking: bool = False) -> Self:
        """Nothing: a module keeps initial values, and the device is the one that `tg.compile` is given.

        Raises:
            InputError: for a dtype, which is `tg.compile`'s too: `dtype=tg.f16` is mixed precision.
        """
        if device is not None and not isinstance(device, str):
            raise InputError(
                f"to() takes the name of a device, which has no effect, got {device!r}. What is computed in f16 is "
                "said to the compiler: tg.compile(..., dtype=tg.f16).",
                call_site(),
            )
        return self

    def cuda(self: Self, device: Any = None) -> Self:
        """Nothing, as `to`."""
        return self

    def cpu(self: Self) -> Self:
        """Nothing, as `to`."""
        return self

    def apply(self: Self, fn: Callable[[Module], Any]) -> Self:
        """Calls `fn` with every module inside, then with this one; for initialisation."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # -- state ----------------------------------------------------------------------------

    def state_dict(self) -> dict[str, np.ndarray]:
        """Copies of the initial values by PyTorch's keys; tied weights under each of their names.

        For trained values ask the trainer: `await train.state_dict()`.
        """
        return {name: tensor.data.copy() for name, tensor in self.named_state()}

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> IncompatibleKeys:
        """Overwrites the initial values; nothing changes unless everything fits.

        Args:
            state_dict: arrays by name, or a training's (of `train.state_dict` or `tg.load`), whose `model` has them.
                Tied weights may stand under any of their names.
            strict: whether every name has to be there, and no other.

        Raises:
            CheckpointError: lists missing, unexpected and misshapen entries.
        """
        whole = isinstance(state_dict, Mapping) and isinstance(state_dict.get("model"), Mapping)
        matched = match_module(self, state_dict["model"] if whole else state_dict, strict)
        named = dict(self.named_state())
        for name, array in matched.arrays.items():
            named[name].data = np.array(array, order="C")
        return matched.keys

    def named_state(self) -> Iterator[tuple[str, Parameter]]:
        """Parameters and persistent buffers under all their names, module by module, as PyTorch orders them."""
        for path, module in self.named_modules(remove_duplicate=False):
            own = [(_join(path, n), v) for n, v in module.__dict__.items() if isinstance(v, Parameter)]
            yield from ((name, v) for name, v in own if not isinstance(v, Buffer))
            yield from ((name, v) for name, v in own if isinstance(v, Buffer) and v.persistent)

    # -- printing ---------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """What stands in parentheses after the class name; subclasses may define it."""
        return ""

    def __repr__(self) -> str:
        from tensorgrad.nn.printing import tree

        return tree(self)


def leaf_names(module: Module) -> dict[int, str]:
    """`id -> name` of every parameter and buffer, for `tg.trace`; a tied parameter has its first name."""
    pairs = [*module.named_parameters(), *module.named_buffers()]
    return {id(tensor): name for name, tensor in pairs}


def state_names(module: Module) -> dict[str, str]:
    """State-dict key -> the name of the leaf that holds it: all keys of a tied parameter have one leaf."""
    leaves = leaf_names(module)
    return {name: leaves[id(tensor)] for name, tensor in module.named_state()}


def match_module(module: Module, state_dict: Mapping[str, Any], strict: bool = True) -> Matched:
    """A state dict checked against a module, with its arrays by leaf name; nothing is changed.

    Raises:
        CheckpointError: as `match_state`, and where the names of a tied parameter have several values.
    """
    require_state(state_dict)
    leaves = state_names(module)
    wanted = {name: tensor.type for name, tensor in module.named_state()}
    given = {leaves[name] for name in state_dict if name in leaves}
    tied = [name for name, leaf in leaves.items() if leaf in given]
    matched = match_state(wanted, state_dict, strict, optional=tied)
    values: dict[str, tuple[str, np.ndarray]] = {}
    for name, array in matched.arrays.items():
        first, other = values.setdefault(leaves[name], (name, array))
        if other is not array and not np.array_equal(other, array, equal_nan=array.dtype.kind == "f"):
            raise CheckpointError(
                f"{first!r} and {name!r} are one tied parameter, but their values differ", call_site()
            )
    return Matched({leaf: array for leaf, (_, array) in values.items()}, matched.keys)


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name
