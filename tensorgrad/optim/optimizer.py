"""The base of optimizers: builders that append a training step's updates to the graph.

An optimizer holds hyper-parameters, no arrays. Its state (momenta, averages) are leaves of
the graph, which live on the device beside the parameters; numbers that change from step to
step (learning rate, bias corrections) are computed here, on the host in float64, and read
in the graph with `step_scalar`. All parameters of a group get the same expression, so that
the compiler can compute them in one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np

from tensorgrad import ops
from tensorgrad.dtypes import DType, f32
from tensorgrad.errors import InputError
from tensorgrad.ops.arena import ALIGNMENT, pack, place
from tensorgrad.optim.clip import clip_grad_norm, clip_grad_value
from tensorgrad.optim.scaling import LossScale, all_finite
from tensorgrad.tensor import Tensor
from tensorgrad.trace import state_input, update_state

LearningRate = float | Callable[[int], float]
"""A number, or a function of the number of steps that were made before (0 at the first)."""

Which = str | Callable[[str], bool]
"""The parameters of a group: a pattern such as `*.bias`, or a function of the name."""

LARGE_MODEL = 16 << 20
"""Bytes of parameters from which on small ones have arenas of their own."""

SMALL = 128 << 10
"""Bytes of a small parameter."""

Groups = Sequence[tuple[Which, Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Rule:
    """What the update of one parameter is given besides tensors.

    Attributes:
        hyper: the group's hyper-parameters by name.
        scalars: the group's numbers of this step, as f32 scalars, by the names that `host` gave them.
    """

    hyper: Mapping[str, Any]
    scalars: Mapping[str, Tensor]


class Updated(NamedTuple):
    """What is left of a step's update.

    Attributes:
        grads: the gradients by name, as values that have buffers.
        finite: whether anything was changed, a bool.
    """

    grads: dict[str, Tensor]
    finite: Tensor


class Optimizer:
    """The base of SGD, Adam and AdamW, and of optimizers of your own.

    A subclass defines `rule`, and where it needs them `state` and `host`.

    Args:
        lr: the learning rate, a number or a schedule such as `optim.CosineAnnealingLR(1e-2, 1000)`.
            It may be assigned between steps: `optimizer.lr = 1e-4`.
        groups: pairs of (which parameters, hyper-parameters that differ for them), the first that
            fits counts: `[("*.bias", {"weight_decay": 0.0})]`. Names are the module's,
            `out.weight`; patterns are those of `fnmatch`.
        params: which parameters it trains, a pattern or a function as in `groups`; None is all that
            the loss depends on. Two networks that are trained against each other share a module
            and have an optimizer each: `params="generator.*"`.
        clip_norm: scale the gradients down together where their norm is larger.
        clip_value: cut each element of the gradients off at this size.
        hyper: the subclass's own hyper-parameters.

    >>> import tensorgrad as tg
    >>> from tensorgrad import ops, optim
    >>> class SignSGD(optim.Optimizer):
    ...     def rule(self, param, grad, state, at):
    ...         return param - ops.sign(grad) * at.scalars["lr"], {}
    >>> SignSGD(1e-3).scalars(1)
    {'optim.lr': 0.001}
    """

    elementwise = True
    """Whether `rule` treats every element alike, whatever tensor it belongs to."""

    prefix = "optim"
    """Goes before the names of all states and step scalars; two optimizers on one state need two."""

    def __init__(
        self,
        lr: LearningRate,
        *,
        groups: Groups = (),
        params: Which | None = None,
        clip_norm: float | None = None,
        clip_value: float | None = None,
        **hyper: Any,
    ) -> None:
        self.hyper: dict[str, Any] = {"lr": lr, **hyper}
        self.groups = tuple((which, dict(changes)) for which, changes in groups)
        self.params, self.clip_norm, self.clip_value = params, clip_norm, clip_value
        for what, value in (("clip_norm", clip_norm), ("clip_value", clip_value)):
            if value is not None and not value > 0:
                raise InputError(f"{type(self).__name__}: {what} must be positive, got {value}")
        for _, changes in self.groups:
            if unknown := sorted(changes.keys() - self.hyper.keys()):
                raise InputError(
                    f"{type(self).__name__} has no hyper-parameter {unknown[0]!r}; it has {', '.join(self.hyper)}"
                )
        for index in range(len(self.groups) + 1):
            self.check(self._hyper(index))

    @property
    def lr(self) -> LearningRate:
        """The learning rate: a number or a schedule."""
        return self.hyper["lr"]

    @lr.setter
    def lr(self, lr: LearningRate) -> None:
        self.check({**self.hyper, "lr": lr})
        self.hyper["lr"] = lr

    def check(self, hyper: Mapping[str, Any]) -> None:
        """Raises InputError for hyper-parameters that make no sense."""
        lr = hyper["lr"]
        if not callable(lr):
            fits = isinstance(lr, int | float | np.number) and bool(lr >= 0)
            self._require("lr", lr, fits, "0 or more")

    def _require(self, name: str, value: Any, fits: bool, rule: str) -> None:
        if not fits:
            raise InputError(f"{type(self).__name__}: {name} must be {rule}, got {value}")

    # -- for subclasses -----------------------------------------------------------------

    def state(self, hyper: Mapping[str, Any]) -> Sequence[str]:
        """The names of the arrays that it keeps for each parameter; they start at zero."""
        return ()

    def host(self, step: int, lr: float, hyper: Mapping[str, Any]) -> dict[str, float]:
        """The numbers of a step that the rule reads, the first step being 1."""
        return {"lr": lr}

    def rule(
        self, param: Tensor, grad: Tensor, state: Mapping[str, Tensor], at: Rule
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        """The parameter's next value, and its next state by name."""
        raise NotImplementedError(f"{type(self).__name__} defines no rule")

    # -- for the compiler -----------------------------------------------------------------

    def scalars(self, step: int) -> dict[str, float]:
        """The host numbers of a step, for `step_scalar`.

        Args:
            step: counted from 1.
        """
        numbers: dict[str, float] = {}
        for index in range(len(self.groups) + 1):
            hyper = self._hyper(index)
            lr: LearningRate = hyper["lr"]
            for name, value in self.host(step, float(lr(step - 1) if callable(lr) else lr), hyper).items():
                numbers[self._scalar_name(index, name)] = float(value)
        return numbers

    def trains(self, name: str) -> bool:
        """Whether it trains a parameter of this name."""
        return self.params is None or _fits(self.params, name)

    def update(
        self,
        params: Mapping[str, Tensor],
        grads: Mapping[str, Tensor],
        loss: Tensor,
        span: int = 0,
        scale: LossScale | None = None,
        keep: bool = False,
    ) -> Updated:
        """Appends the updates of all parameters to the running trace.

        Where the loss (with `scale` any gradient too) is NaN or infinite, parameters and states keep their values.

        Args:
            params: leaves by name.
            grads: their gradients, by the same names.
            loss: one element.
            span: bytes that one binding may cover. The parameters of a group then lie side by side
                in arenas of at most that size, and one kernel updates each. 0 updates them one by one.
            scale: what the loss was multiplied by before it was differentiated.
            keep: somebody reads the gradients afterwards, which are then without the scale.
        """
        ok = ops.isfinite(ops.reshape(loss, ()))
        params = {name: param for name, param in params.items() if self.trains(name)}
        # f16 has no room for a scaled gradient
        keep = keep or any(param.dtype is not f32 for param in params.values())
        if scale and keep:
            grads = {name: scale.unscaled(grads[name]) for name in params}
        held = {name: ops.cast(grads[name], param.dtype) for name, param in params.items()}
        groups = {name: self._group(name) for name in params}
        used = held
        if span and self.elementwise:
            held = {name: place(grad, name) for name, grad in held.items()}
            params, used, groups = self._packed(params, held, groups, span)
        if scale:
            ok = ok & all_finite(used.values())
            used = used if keep else {name: scale.unscaled(grad, ok) for name, grad in used.items()}
        if self.clip_value is not None:
            used = clip_grad_value(used, self.clip_value)
        if self.clip_norm is not None:
            used = clip_grad_norm(used, self.clip_norm)
        rules = {index: self._rule(index) for index in dict.fromkeys(groups.values())}
        for name, param in params.items():
            self._update(name, param, used[name], rules[groups[name]], ok)
        if scale:
            scale.adjust(ok)
        return Updated(held, ok)

    def _packed(
        self, params: Mapping[str, Tensor], grads: Mapping[str, Tensor], groups: Mapping[str, int], span: int
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], dict[str, int]]:
        """Parameters, gradients and groups with each group's tensors in arenas of at most `span` bytes."""
        members: dict[tuple[int, DType, bool, int], list[str]] = {}
        filled: dict[tuple[int, DType, bool], tuple[int, int]] = {}
        large_model = sum(param.type.nbytes for param in params.values()) > LARGE_MODEL
        shapes = list(dict.fromkeys(param.shape for param in params.values()))
        # equal shapes side by side, so that they lie at equal distances
        for name, param in sorted(params.items(), key=lambda item: shapes.index(item[1].shape)):
            # biases and their like, whose gradients the update adds up from many parts, have arenas of their own
            arena = groups[name], param.dtype, large_model and param.type.nbytes <= SMALL
            chunk, end = filled.get(arena, (0, 0))
            nbytes = -(-max(param.type.nbytes, 1) // ALIGNMENT) * ALIGNMENT
            if end and end + nbytes > span:
                chunk, end = chunk + 1, 0
            filled[arena] = chunk, end + nbytes
            members.setdefault((*arena, chunk), []).append(name)
        packs = {f"pack{i}": (group, names) for i, ((group, *_), names) in enumerate(members.items())}
        stem = {key: f"{self.prefix}.{key}" for key in packs}
        return (
            {key: pack([params[n] for n in names], f"{stem[key]}.param") for key, (_, names) in packs.items()},
            {key: pack([grads[n] for n in names], f"{stem[key]}.grad") for key, (_, names) in packs.items()},
            {key: group for key, (group, _) in packs.items()},
        )

    def _update(self, name: str, param: Tensor, grad: Tensor, at: Rule, ok: Tensor) -> None:
        state = {
            # the averages of an f16 parameter would not fit f16
            key: state_input(f"{self.prefix}.{key}.{name}", param.shape, f32)
            for key in self.state(at.hyper)
        }
        if param.graph.node(param.value).op == "pack":
            param.graph.packs.update({f"{self.prefix}.{key}.{name}": param.value for key in state})
        new, new_state = self.rule(param, grad, state, at)
        for key, old in state.items():
            update_state(old, ops.where(ok, new_state[key], old))
        update_state(param, ops.where(ok, ops.cast(new, param.dtype), param))

    def _rule(self, index: int) -> Rule:
        hyper = self._hyper(index)
        # which numbers there are does not depend on the step
        names = self.host(1, 0.0, hyper)
        return Rule(hyper, {name: ops.step_scalar(self._scalar_name(index, name)) for name in names})

    def _scalar_name(self, index: int, name: str) -> str:
        return f"{self.prefix}.{name}" + (f".{index}" if index else "")

    def _hyper(self, index: int) -> dict[str, Any]:
        """The hyper-parameters of a group; 0 is that of all parameters without one."""
        return {**self.hyper, **self.groups[index - 1][1]} if index else self.hyper

    def _group(self, name: str) -> int:
        for index, (which, _) in enumerate(self.groups, 1):
            if _fits(which, name):
                return index
        return 0

    def __repr__(self) -> str:
        options = {
            "groups": list(self.groups),
            "params": self.params,
            "clip_norm": self.clip_norm,
            "clip_value": self.clip_value,
        }
        shown = {**self.hyper, **{key: value for key, value in options.items() if value}}
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in shown.items())})"


def _fits(which: Which, name: str) -> bool:
    return fnmatchcase(name, which) if isinstance(which, str) else bool(which(name))
