"""Random small graphs: elementwise operations, views, reductions, products, lookups, norms and state updates.

`build(seed)` gives a function and its inputs, the same for the same seed. Values stay
within a few units, and what is compared or looked up is an input, so that devices which
round differently cannot differ by more than rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorgrad import ops
from tensorgrad.autodiff import append_grad
from tensorgrad.dtypes import f32
from tensorgrad.tensor import Tensor
from tensorgrad.trace import state_input, update_state

SIZES = (1, 2, 3, 4, 5, 8)
LARGEST = 4096


class Builder:
    """Grows one graph, a random operation at a time.

    Attributes:
        rng: the only source of choices.
        pool: the f32 tensors so far.
        leaves: inputs of f32, and views of them: values that no device rounds.
    """

    def __init__(self, rng: np.random.Generator, leaves: list[Tensor]) -> None:
        self.rng, self.pool, self.leaves = rng, list(leaves), list(leaves)

    def pick(self, pool: list[Tensor] | None = None, axes: int = 0) -> Tensor:
        pool = [t for t in pool or self.pool if t.ndim >= axes]
        # the later ones more often: long chains
        at = int(len(pool) * self.rng.random() ** 0.6)
        if pool:
            return pool[min(at, len(pool) - 1)]
        x = self.pick()
        return ops.reshape(x, *(1,) * (axes - x.ndim), *x.shape)

    def axis(self, x: Tensor) -> int:
        return int(self.rng.integers(x.ndim))

    def step(self) -> None:
        kinds = (
            self.unary, self.unary, self.binary, self.binary, self.binary, self.view, self.view, self.view,
            self.reduction, self.reduction, self.norm, self.product, self.lookup, self.join, self.choice,
        )  # fmt: skip
        kind = kinds[int(self.rng.integers(len(kinds)))]
        out = kind()
        if out.size <= LARGEST:
            self.pool.append(out)

    # Kinds of operations -----------------------------------------------------------------

    def unary(self) -> Tensor:
        fns: list[Callable[[Tensor], Tensor]] = [
            ops.tanh,
            ops.sin,
            ops.sigmoid,
            ops.neg,
            ops.abs,
            ops.relu,
            ops.gelu,
            lambda x: x * 0.5 + 1.0,
            lambda x: ops.exp(ops.clamp(x, -3.0, 1.0)),
            lambda x: ops.sqrt(ops.square(x) + 0.5),
            lambda x: ops.log(ops.abs(x) + 1.0),
            lambda x: 1.0 / (ops.square(x) + 1.0),
            lambda x: ops.stop_gradient(x) * x,
        ]
        return fns[int(self.rng.integers(len(fns)))](self.pick())

    def mate(self, x: Tensor) -> Tensor:
        """A tensor that broadcasts with another: one of its shape, a reduction of it kept, or one made to fit."""
        same = [t for t in self.pool if t.shape == x.shape]
        choice = self.rng.random()
        if choice < 0.5 and same:
            return same[int(self.rng.integers(len(same)))]
        if choice < 0.75 and x.ndim and x.size:
            return ops.mean(x, self.axis(x), keepdims=True)
        small = self.pick()
        if small.size and x.ndim:
            return ops.reshape(small, -1)[:1] if choice < 0.85 else self.fitted(small, x)
        return ops.mean(x) if x.size else x

    def fitted(self, small: Tensor, x: Tensor) -> Tensor:
        """The tensor's elements, repeated or cut to the last axis of another."""
        n = x.shape[-1]
        flat = ops.reshape(small, -1)
        while flat.shape[0] < n:
            flat = ops.concat([flat, flat])
        return flat[:n]

    def binary(self) -> Tensor:
        x = self.pick()
        y = self.mate(x)
        fns: list[Callable[[Tensor, Tensor], Tensor]] = [
            ops.add,
            ops.sub,
            ops.mul,
            ops.maximum,
            ops.minimum,
            lambda a, b: a / (ops.square(b) + 1.0),
        ]
        out = fns[int(self.rng.integers(len(fns)))](x, y)
        return ops.tanh(out) if self.rng.random() < 0.3 else out * 0.7

    def view(self, x: Tensor | None = None) -> Tensor:
        x = x if x is not None else self.pick(axes=1)
        kind = int(self.rng.integers(8))
        if kind == 0:
            return ops.permute(x, *self.rng.permutation(x.ndim).tolist())
        if kind == 1:
            return self.reshaped(x)
        if kind == 2:
            return x[tuple(self.cut(n) for n in x.shape)]
        if kind == 3:
            return ops.flip(x, self.axis(x))
        if kind == 4:
            return ops.pad(x, [tuple(self.rng.integers(0, 3, 2).tolist()) for _ in x.shape], 0.25)
        if kind == 5:
            return ops.expand_dims(x, int(self.rng.integers(x.ndim + 1)))
        if kind == 6:
            return ops.broadcast_to(x, int(self.rng.integers(1, 4)), *x.shape)
        return ops.swapaxes(x, self.axis(x), self.axis(x))

    def reshaped(self, x: Tensor) -> Tensor:
        divisors = [n for n in range(1, x.size + 1) if x.size % n == 0] if 0 < x.size <= 512 else [1]
        first = divisors[int(self.rng.integers(len(divisors)))]
        return ops.reshape(x, first, -1) if self.rng.random() < 0.7 and x.size else ops.reshape(x, x.size)

    def cut(self, n: int) -> slice:
        step = int(self.rng.choice([1, 1, 2, -1, -2, 3]))
        if n < 2:
            return slice(None, None, 1 if step > 0 else -1)
        start, stop = sorted(self.rng.integers(0, n, 2).tolist())
        return slice(start, stop + 1, step) if step > 0 else slice(stop, start - 1 if start else None, step)

    def reduction(self) -> Tensor:
        x = self.pick(axes=1)
        axes = tuple(sorted(self.rng.choice(x.ndim, int(self.rng.integers(1, x.ndim + 1)), replace=False).tolist()))
        keep = bool(self.rng.random() < 0.5)
        if x.size == 0:
            return ops.sum(x, axes, keep)
        kind = int(self.rng.integers(4))
        fn = (ops.mean, ops.mean, ops.max, ops.min)[kind]
        return fn(x, axes, keep)

    def norm(self) -> Tensor:
        x = self.pick(axes=1)
        if x.size == 0:
            return x * 2.0
        kind = int(self.rng.integers(5))
        if kind == 0:
            return ops.softmax(x, self.axis(x))
        if kind == 1:
            return ops.log_softmax(x, self.axis(x)) * 0.3
        if kind == 2:
            return ops.layer_norm(x, x.shape[-1], eps=0.1)
        if kind == 3:
            return ops.logsumexp(x, self.axis(x)) * 0.5
        return ops.mean(ops.square(x - ops.mean(x, -1, keepdims=True)), -1)

    def product(self) -> Tensor:
        x = self.pick(axes=2)
        y = ops.swapaxes(x, -1, -2)
        candidates = [t for t in self.pool if t.ndim == 2 and t.shape[0] == x.shape[-1]]
        if candidates and self.rng.random() < 0.7:
            y = candidates[int(self.rng.integers(len(candidates)))]
        if x.size // max(x.shape[-1], 1) * y.shape[-1] > LARGEST:
            return x * 0.5
        return ops.tanh(x @ y) if self.rng.random() < 0.5 else (x @ y) * 0.2

    def lookup(self) -> Tensor:
        x = self.pick(axes=1)
        axis = self.axis(x)
        if x.shape[axis] == 0:
            return x * 0.5
        at = self.rng.integers(0, x.shape[axis], (2, 3)[: int(self.rng.integers(1, 3))]).astype(np.int32)
        if self.rng.random() < 0.5:
            return ops.take(x, at, axis)
        source = self.pick(self.leaves, axes=1)
        if source.size == 0:
            return ops.take(x, at, axis)
        return ops.take(x, ops.argmax(source, self.axis(source)) % x.shape[axis], axis)

    def join(self) -> Tensor:
        x = self.pick(axes=1)
        others = [x, *(t for t in self.pool if t.shape == x.shape)]
        parts = [others[int(self.rng.integers(len(others)))] for _ in range(int(self.rng.integers(1, 4)))]
        return ops.concat([x, *parts], self.axis(x))

    def choice(self) -> Tensor:
        x = self.pick()
        exact = [t for t in self.leaves if t.shape == x.shape]
        if exact:
            condition = exact[0] > 0.1
        else:
            condition = ops.iota((max(x.size, 1),), 0)[: x.size].reshape(*x.shape) % 3 > 0
        return ops.where(condition, x, self.mate(x) * 1.0)


def build(seed: int) -> tuple[Callable[..., list[Tensor]], list[np.ndarray]]:
    """A function of f32 arrays, and the arrays."""
    rng = np.random.default_rng([seed, 77])
    shapes = [tuple(rng.choice(SIZES, int(rng.integers(0, 4))).tolist()) for _ in range(int(rng.integers(1, 4)))]
    if seed % 17 == 0:
        shapes[0] = (*shapes[0], 0)
    inputs = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    state_shape = tuple(rng.choice(SIZES, 2).tolist())
    choices = int(rng.integers(2**31))

    def fn(*leaves: Tensor) -> list[Tensor]:
        b = Builder(np.random.default_rng(choices), list(leaves))
        states = [state_input(f"s{n}", state_shape, f32, initial=0.5 + n) for n in range(int(b.rng.integers(0, 3)))]
        b.pool += states
        for _ in range(int(b.rng.integers(4, 16))):
            b.step()
        for state in states:
            update_state(state, _next(b, state, states))
        outputs = [b.pool[-1], *(b.pick() for _ in range(int(b.rng.integers(0, 3))))]
        if b.rng.random() < 0.6:
            total = ops.mean(ops.tanh(outputs[0])) if outputs[0].size else ops.sum(outputs[0])
            outputs += [total, *append_grad(total, leaves)]
        return outputs

    return fn, inputs


def _next(b: Builder, state: Tensor, states: list[Tensor]) -> Tensor:
    """A new value for a state: elementwise, through a transpose, from another state, or from the rest of the graph."""
    kind = int(b.rng.integers(7))
    other: Any = states[int(b.rng.integers(len(states)))]
    if kind == 0:
        return state * 0.9 + 0.1
    if kind == 1:
        return state + ops.mean(b.pick()) if b.pool[-1].size else state - 1.0
    if kind == 2:
        square = state @ state.T if state.shape[0] <= 64 else state
        return ops.tanh(square @ state)
    if kind == 3:
        return state - ops.softmax(state, -1) * 0.5
    if kind == 4:
        return other
    if kind == 5:
        return ops.flip(state, 0) * 0.5 + other
    return ops.reshape(state.T, *state.shape) + other * 0.1
