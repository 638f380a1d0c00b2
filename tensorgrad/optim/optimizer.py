"""The base of optimizers: builders that append a training step's updates to the graph.

An optimizer holds hyper-parameters, no arrays. Its state (momenta, averages) are leaves of
the graph, which live on the device beside the parameters; numbers that change from step to
step (learning rate, bias corrections) are computed here, on the host in float64, and read
in the graph with `step_scalar`. All parameters of a group get the same expression, so that
the compiler can compute them in one kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorgrad import ops
from tensorgrad.callsite import call_site
from tensorgrad.checks import require
from tensorgrad.dtypes import DType, f32, i32
from tensorgrad.errors import UnsupportedError, no_attribute
from tensorgrad.ops.arena import ALIGNMENT, pack, place
from tensorgrad.optim.arguments import (
    Groups,
    LearningRate,
    Which,
    check_hyper,
    check_option,
    check_used,
    checked_groups,
    fits,
    rate_at,
    refuse_parameters,
)
from tensorgrad.optim.clip import clip_grad_norm, clip_grad_value, normalize_packed
from tensorgrad.optim.scaling import LossScale, all_finite
from tensorgrad.tensor import Tensor
from tensorgrad.trace import state_input, update_state

LARGE_MODEL = 16 << 20
"""Bytes of parameters from which on small ones have arenas of their own."""

SMALL = 128 << 10
"""Bytes of a small parameter."""

_OPTIONS = {
    "maximize": False,
    "groups": (),
    "params": None,
    "normalize": False,
    "clip_norm": None,
    "clip_value": None,
    "accumulate": 1,
    "ema_decay": None,
}
"""What all optimizers have, with the defaults. Groups may change `maximize` alone."""


class Rule(NamedTuple):
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


@dataclass(eq=False, repr=False)
class Optimizer:
    """The base of the optimizers, and of those of your own.

    A subclass defines `rule`, and where it needs them `state` and `host`. Hyper-parameters of its own
    are fields of a dataclass.

    Args:
        lr: the learning rate, a number or a schedule such as `optim.CosineAnnealingLR(1e-2, 1000)`.
            It may be assigned between steps: `optimizer.lr = 1e-4`.
        maximize: ascend.
        groups: pairs of (which parameters, hyper-parameters that differ for them), the first that
            fits counts: `[("*.bias", {"weight_decay": 0.0})]`. Names are the module's,
            `out.weight`; patterns are those of `fnmatch`.
        params: which parameters it trains, a pattern or a function as in `groups`; None is all that
            the loss depends on. Two networks that are trained against each other share a module
            and have an optimizer each: `params="generator.*"`.
        normalize: divide each parameter's gradient by its norm, so that all have length 1; before any clipping.
        clip_norm: scale the gradients down together where their norm is larger.
        clip_value: cut each element of the gradients off at this size.
        accumulate: update at every so many steps, by the average of their gradients (of which clipping is
            done, too). Schedules and bias corrections count updates. A step whose loss is not finite is none.
        ema_decay: keep a running average of the parameters, of which this much stays at each update:
            `train.attach(..., averaged=True)` computes with it, the state dict has it as `optim.ema.NAME`.
            The first update starts it, as in torch.optim.swa_utils.get_ema_multi_avg_fn.

    >>> from dataclasses import dataclass, field, fields
    >>> import tensorgrad as tg
    >>> from tensorgrad import optim
    >>> @dataclass
    ... class SignSGD(optim.Optimizer):
    ...     power: float = 1.0
    ...     def host(self, step, lr, hyper):
    ...         return {"lr": lr / step ** hyper["power"]}
    ...     def rule(self, param, grad, state, at):
    ...         return param - tg.sign(grad) * at.scalars["lr"], {}
    >>> SignSGD(1e-3, power=0.5).scalars(4)
    {'optim.lr': 0.0005}
    """

    lr: LearningRate
    maximize: bool = field(default=False, kw_only=True)
    groups: Groups = field(default=(), kw_only=True)
    params: Which | None = field(default=None, kw_only=True)
    normalize: bool = field(default=False, kw_only=True)
    clip_norm: float | None = field(default=None, kw_only=True)
    clip_value: float | None = field(default=None, kw_only=True)
    accumulate: int = field(default=1, kw_only=True)
    ema_decay: float | None = field(default=None, kw_only=True)

    prefix = "optim"
    """Goes before the names of all states and step scalars; two optimizers on one state need two."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if args:
            refuse_parameters(cls.__name__, args[0])
        return super().__new__(cls)

    def __post_init__(self) -> None:
        self._names = (*(f.name for f in fields(self) if f.name not in _OPTIONS), "maximize")
        for name in dict.fromkeys((*self._names, *_OPTIONS)):
            setattr(self, name, getattr(self, name))

    @property
    def hyper(self) -> dict[str, Any]:
        """The hyper-parameters by name: what groups may change."""
        return {name: getattr(self, name) for name in self._names}

    def __setattr__(self, name: str, value: Any) -> None:
        if "_names" in self.__dict__:
            value = self._checked(name, value)
        super().__setattr__(name, value)

    def _checked(self, name: str, value: Any) -> Any:
        """A hyper-parameter or an option as it is kept, once it makes sense."""
        who = type(self).__name__
        if name in self._names:
            self.check({**self.hyper, name: value})
        elif name == "groups":
            value = checked_groups(who, value, self._names)
            for _, changes in value:
                self.check({**self.hyper, **changes})
        else:
            check_option(who, name, value)
        return value

    def check(self, hyper: Mapping[str, Any]) -> None:
        """Raises InputError for hyper-parameters that make no sense."""
        check_hyper(type(self).__name__, hyper)

    def _require(self, name: str, value: Any, fits: bool, rule: str) -> None:
        require(type(self).__name__, name, value, fits, rule)

    if not TYPE_CHECKING:  # which would take any name for an attribute

        def __getattr__(self, name):
            raise no_attribute(self, name)

    # -- for subclasses -----------------------------------------------------------------

    def elementwise(self, param: Tensor, hyper: Mapping[str, Any]) -> bool:
        """Whether `rule` treats every element of this parameter alike, so that it may lie in one tensor with others."""
        return True

    def state(self, param: Tensor, hyper: Mapping[str, Any]) -> Mapping[str, float]:
        """The names of the arrays that it keeps for a parameter, with the number that each starts as."""
        return {}

    def host(self, step: int, lr: float, hyper: Mapping[str, Any]) -> dict[str, float]:
        """The numbers of a step that the rule reads, the first step being 1."""
        return {"lr": lr}

    def rule(
        self, param: Tensor, grad: Tensor, state: Mapping[str, Tensor], at: Rule
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        """The parameter's next value, and its next state by name."""
        raise UnsupportedError(f"{type(self).__name__} defines no rule", call_site())

    # -- for the compiler -----------------------------------------------------------------

    def scalars(self, step: int) -> dict[str, float]:
        """The host numbers of a step, for `step_scalar`.

        Args:
            step: counted from 1, those that only add to the gradients too.
        """
        numbers: dict[str, float] = {}
        step = (step - 1) // self.accumulate + 1
        for index in range(len(self.groups) + 1):
            hyper = self._hyper(index)
            lr: LearningRate = hyper["lr"]
            for name, value in self.host(step, rate_at(type(self).__name__, lr, step - 1), hyper).items():
                numbers[self._scalar_name(index, name)] = float(value)
        return numbers

    def check_names(self, names: Sequence[str]) -> None:
        """Raises InputError where `params` or a group fits none of the model's parameters."""
        check_used(type(self).__name__, self.groups, self.params, names)

    def trains(self, name: str) -> bool:
        """Whether it trains a parameter of this name."""
        return self.params is None or fits(self.params, name)

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
        if span:
            held = {name: place(grad, name) for name, grad in held.items()}
            params, used, groups = self._packed(params, held, groups, span)
        if scale:
            ok = ok & all_finite(used.values())
            used = used if keep else {name: scale.unscaled(grad, ok) for name, grad in used.items()}
        averages = self.accumulate > 1 or self.ema_decay is not None
        count = self._count(ok) if averages else None
        updates = ok
        if count is not None and self.accumulate > 1:
            due = ops.equal((count + 1) % self.accumulate, 0)
            used, updates = self._accumulated(params, used, ok, due), ok & due
        if self.normalize:
            used = normalize_packed(params, used)
        if self.clip_value is not None:
            used = clip_grad_value(used, self.clip_value)
        if self.clip_norm is not None:
            used = clip_grad_norm(used, self.clip_norm)
        rules = {index: self._rule(index) for index in dict.fromkeys(groups.values())}
        news = {
            name: self._update(name, param, used[name], rules[groups[name]], updates) for name, param in params.items()
        }
        if count is not None and self.ema_decay is not None:
            self._average(params, news, updates, ops.where(count < self.accumulate, 1.0, 1 - self.ema_decay))
        if scale:
            scale.adjust(ok)
        return Updated(held, ok)

    def _count(self, ok: Tensor) -> Tensor:
        """How many steps were made before that count, since there are averages; on the device, where it is known."""
        count = state_input(f"{self.prefix}.counted", (), i32)
        update_state(count, ops.where(ok, count + 1, count))
        return count

    def _accumulated(
        self, params: Mapping[str, Tensor], grads: Mapping[str, Tensor], ok: Tensor, due: Tensor
    ) -> dict[str, Tensor]:
        """The averages of the gradients since the last update; they start again where one is due."""
        found = {}
        for name, grad in grads.items():
            old = self._state("accumulated", name, params[name])
            new = old + ops.cast(grad, f32) * (1 / self.accumulate)
            update_state(old, ops.where(ok, ops.where(due, 0.0, new), old))
            found[name] = ops.cast(new, grad.dtype)
        return found

    def _average(self, params: Mapping[str, Tensor], news: Mapping[str, Tensor], ok: Tensor, rate: Tensor) -> None:
        """Moves the running averages of the parameters towards their new values."""
        for name, param in params.items():
            old = self._state("ema", name, param)
            update_state(old, ops.where(ok, old + (ops.cast(news[name], f32) - old) * rate, old))

    def _packed(
        self, params: Mapping[str, Tensor], grads: Mapping[str, Tensor], groups: Mapping[str, int], span: int
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], dict[str, int]]:
        """Parameters, gradients and groups: what is elementwise by groups, in arenas of at most `span` bytes."""
        members: dict[tuple[int, DType, bool, int], list[str]] = {}
        filled: dict[tuple[int, DType, bool], tuple[int, int]] = {}
        large_model = sum(param.type.nbytes for param in params.values()) > LARGE_MODEL
        shapes = list(dict.fromkeys(param.shape for param in params.values()))
        apart = [name for name, param in params.items() if not self.elementwise(param, self._hyper(groups[name]))]
        # equal shapes side by side, so that they lie at equal distances
        for name, param in sorted(params.items(), key=lambda item: shapes.index(item[1].shape)):
            if name in apart:
                continue
            # biases and their like, whose gradients the update adds up from many parts, have arenas of their own
            arena = groups[name], param.dtype, large_model and param.type.nbytes <= SMALL
            chunk, end = filled.get(arena, (0, 0))
            nbytes = -(-max(param.type.nbytes, 1) // ALIGNMENT) * ALIGNMENT
            if end and end + nbytes > span:
                chunk, end = chunk + 1, 0
            filled[arena] = chunk, end + nbytes
            members.setdefault((*arena, chunk), []).append(name)
        packs = {f"pack{i}": (group, names) for i, ((group, *_), names) in enumerate(members.items())}

        def packed(tensors: Mapping[str, Tensor], what: str) -> dict[str, Tensor]:
            arenas = {
                key: pack([tensors[n] for n in names], f"{self.prefix}.{key}.{what}")
                for key, (_, names) in packs.items()
            }
            return arenas | {name: tensors[name] for name in apart}

        return (
            packed(params, "param"),
            packed(grads, "grad"),
            {key: group for key, (group, _) in packs.items()} | {name: groups[name] for name in apart},
        )

    def _update(self, name: str, param: Tensor, grad: Tensor, at: Rule, ok: Tensor) -> Tensor:
        state = {key: self._state(key, name, param, initial) for key, initial in self.state(param, at.hyper).items()}
        new, new_state = self.rule(param, -grad if at.hyper["maximize"] else grad, state, at)
        for key, old in state.items():
            update_state(old, ops.where(ok, new_state[key], old))
        new = ops.where(ok, ops.cast(new, param.dtype), param)
        update_state(param, new)
        return new

    def _state(self, key: str, name: str, param: Tensor, initial: float = 0.0) -> Tensor:
        """A leaf of the parameter's shape, in f32: the averages of an f16 parameter would not fit f16."""
        leaf = f"{self.prefix}.{key}.{name}"
        if param.graph.node(param.value).op == "pack":
            param.graph.packs[leaf] = param.value
        return state_input(leaf, param.shape, f32, initial)

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
            if fits(which, name):
                return index
        return 0

    def __repr__(self) -> str:
        options = {name: value for name, usual in _OPTIONS.items() if (value := getattr(self, name)) != usual}
        shown = {**self.hyper, **options}
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in shown.items())})"


def keep(lr: float, hyper: Mapping[str, Any]) -> dict[str, float]:
    """The host's part of weight decay that shrinks the parameter itself, for `decayed`."""
    return {"keep": 1 - lr * hyper["weight_decay"]} if hyper["weight_decay"] else {}


def decayed(param: Tensor, grad: Tensor, at: Rule) -> tuple[Tensor, Tensor]:
    """Parameter and gradient with weight decay: in the parameter where `keep` was asked for, else in the gradient."""
    if "keep" in at.scalars:
        return param * at.scalars["keep"], grad
    decay = at.hyper["weight_decay"]
    return param, grad + param * decay if decay else grad
