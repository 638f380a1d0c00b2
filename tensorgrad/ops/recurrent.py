"""Recurrent cells, and a layer of one unrolled over time.

A step is one matrix product, of the last state with the recurrent weights, and one map; the products of all inputs
with the input weights are one before the first step. Differentiating this step by step would make the weights'
gradient a sum of one product a step. The rule here walks back through the steps as they came, a product and a map
each, and then multiplies all gates' gradients with all states at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.activations import relu
from tensorgrad.ops.arena import place
from tensorgrad.ops.composite import linear
from tensorgrad.ops.core import TensorLike, tensor
from tensorgrad.ops.custom import custom_grad
from tensorgrad.ops.joining import concat, split, stack
from tensorgrad.ops.reduce import sum as sum_
from tensorgrad.ops.views import reshape
from tensorgrad.shape import fail
from tensorgrad.tensor import Tensor

Kind = Literal["tanh", "relu", "gru", "lstm"]
States = tuple[Tensor, ...]


class Cell(NamedTuple):
    """One kind of recurrence; H is the size of a state, and tensors are `[..., n * H]` of n gates.

    Attributes:
        gates: how many there are.
        states: and of states; the first is the output.
        step: (x, p, *states) gives the next states; x and p are the products of the input and of the first state.
        back: (x, p, states before, gradients of the states after) gives gradients `[N, parts, H]`: of p's gates first.
        parts_of_x: which parts are the gradients of x.
        carries: whether the last part is what flows past the gates, to the last of the states.
    """

    gates: int
    states: int
    step: Callable[..., States]
    back: Callable[[Tensor, Tensor, States, Sequence[Tensor]], Tensor]
    parts_of_x: tuple[int, ...]
    carries: bool

    @property
    def apart(self) -> bool:
        """Whether the products meet otherwise than in a sum."""
        return self.parts_of_x != tuple(range(self.gates))


def _gates(x: Tensor, n: int) -> tuple[Tensor, ...]:
    return split(x, x.shape[-1] // n, -1)


def _tanh_step(x: Tensor, p: Tensor, h: Tensor) -> States:
    return (ew.tanh(x + p),)


def _tanh_back(x: Tensor, p: Tensor, before: States, grads: Sequence[Tensor]) -> Tensor:
    return stack([grads[0] * (1.0 - ew.square(ew.tanh(x + p)))], 1)


def _relu_step(x: Tensor, p: Tensor, h: Tensor) -> States:
    return (relu(x + p),)


def _relu_back(x: Tensor, p: Tensor, before: States, grads: Sequence[Tensor]) -> Tensor:
    return stack([ew.where(ew.less_equal(x + p, 0), 0, grads[0])], 1)


def _gru(x: Tensor, p: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The reset and update gates, the new value, and its part that the reset gate lets through."""
    (xr, xz, xn), (pr, pz, pn) = _gates(x, 3), _gates(p, 3)
    reset = ew.sigmoid(xr + pr)
    return reset, ew.sigmoid(xz + pz), ew.tanh(xn + reset * pn), pn


def _gru_step(x: Tensor, p: Tensor, h: Tensor) -> States:
    _, update, new, _ = _gru(x, p)
    return ((1.0 - update) * new + update * h,)


def _gru_back(x: Tensor, p: Tensor, before: States, grads: Sequence[Tensor]) -> Tensor:
    reset, update, new, pn = _gru(x, p)
    dh = grads[0]
    dn = dh * (1.0 - update) * (1.0 - new * new)
    dz = dh * (before[0] - new) * update * (1.0 - update)
    return stack([dn * pn * reset * (1.0 - reset), dz, dn * reset, dn, dh * update], 1)


def _lstm(x: Tensor, p: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The input and forget gates, the new value and the output gate."""
    i, f, g, o = _gates(x + p, 4)
    return ew.sigmoid(i), ew.sigmoid(f), ew.tanh(g), ew.sigmoid(o)


def _lstm_step(x: Tensor, p: Tensor, h: Tensor, c: Tensor) -> States:
    i, f, g, o = _lstm(x, p)
    c = f * c + i * g
    return o * ew.tanh(c), c


def _lstm_back(x: Tensor, p: Tensor, before: States, grads: Sequence[Tensor]) -> Tensor:
    i, f, g, o = _lstm(x, p)
    c = before[1]
    out = ew.tanh(f * c + i * g)
    dh, dc = grads
    dc = dc + dh * o * (1.0 - out * out)
    parts = [dc * g * i * (1.0 - i), dc * c * f * (1.0 - f), dc * i * (1.0 - g * g), dh * out * o * (1.0 - o), dc * f]
    return stack(parts, 1)


CELLS: dict[Kind, Cell] = {
    "tanh": Cell(1, 1, _tanh_step, _tanh_back, (0,), False),
    "relu": Cell(1, 1, _relu_step, _relu_back, (0,), False),
    "gru": Cell(3, 1, _gru_step, _gru_back, (0, 1, 3), True),
    "lstm": Cell(4, 2, _lstm_step, _lstm_back, (0, 1, 2, 3), True),
}
"""Sources: Elman, Finding structure in time (1990); Cho et al., Learning phrase representations using RNN
encoder-decoder (2014); Hochreiter and Schmidhuber, Long short-term memory (1997), with forget gates."""


def recurrent_cell(
    kind: Kind,
    x: TensorLike,
    states: Sequence[Tensor],
    w_ih: TensorLike,
    w_hh: TensorLike,
    b_ih: TensorLike | None = None,
    b_hh: TensorLike | None = None,
) -> States:
    """One step: the next states, of an input `[..., I]` and states `[..., H]`."""
    return CELLS[kind].step(linear(x, w_ih, b_ih), linear(states[0], w_hh, b_hh), *states)


def recurrent(
    kind: Kind,
    x: TensorLike,
    states: Sequence[Tensor],
    w_ih: TensorLike,
    w_hh: TensorLike,
    b_ih: TensorLike | None = None,
    b_hh: TensorLike | None = None,
    reverse: bool = False,
) -> tuple[Tensor, States]:
    """A cell applied step by step, with PyTorch's weights `[gates * H, I]` and `[gates * H, H]`.

    Args:
        kind: which cell.
        x: `[T, N, I]`, T being 1 or more.
        states: `[N, H]` each, before the first step.
        reverse: go from the last step to the first; results stand where their inputs do.

    Returns:
        The outputs of all steps, `[T, N, H]`, and the states after the last.
    """
    x, w = tensor(x), tensor(w_hh)
    if x.ndim != 3 or x.shape[0] == 0:
        fail(f"recurrent: needs inputs [T, N, I] of one step or more, got {x.type}")
    steps, rows = x.shape[:2]
    b = None if b_hh is None else tensor(b_hh)
    cell = CELLS[kind]
    gates = place(linear(x, w_ih, b_ih))
    order = _order(steps, reverse)
    products, after = [], [tuple(states)]
    for t in order:
        product = linear(after[-1][0], w, b)
        products.append(place(product) if cell.apart else product)
        after.append(cell.step(gates[t], products[-1], *after[-1]))
    # where their inputs stand, with the first state beyond them, so that the states before each step are neighbours
    outputs = [s[0] for s in (reversed(after) if reverse else after)]
    value = concat([*outputs, *after[-1][1:]], 0)
    biases = () if b is None else (b,)
    given = [*states, *products, *(s for state in after[1:-1] for s in state)]
    value = custom_grad(value, _recurrent_grad, gates, w, *biases, *given, args=(kind, b is not None, reverse))
    first, last = _ends(steps, reverse)
    out = value[rows * first : rows * (first + steps)]
    finals = (value[rows * last : rows * (last + 1)], *(value[rows * n : rows * (n + 1)] for n in _others(kind, steps)))
    return reshape(out, steps, rows, out.shape[-1]), finals


def _order(steps: int, reverse: bool) -> range:
    return range(steps - 1, -1, -1) if reverse else range(steps)


def _ends(steps: int, reverse: bool) -> tuple[int, int]:
    """Of the outputs and the first state, one after the other: where the outputs begin, and where the last one is."""
    return (0, 0) if reverse else (1, steps)


def _others(kind: Kind, steps: int) -> range:
    """Where the last states stand that are no outputs."""
    return range(steps + 1, steps + CELLS[kind].states)


def _recurrent_grad(g: Tensor, out: Tensor, gates: Tensor, w: Tensor, *rest: Any) -> tuple[Tensor | None, ...]:
    *operands, kind, has_bias, reverse = rest
    cell = CELLS[kind]
    steps, rows, width = gates.shape
    given: list[Tensor] = operands[has_bias:]
    count = cell.states
    first = given[:count]
    products, flat = given[count : count + steps], [*first, *given[count + steps :]]
    before = [tuple(flat[n : n + count]) for n in range(0, len(flat), count)]

    def rows_of(n: int) -> Tensor:
        return g[rows * n : rows * (n + 1)]

    start, last = _ends(steps, reverse)
    grads = [rows_of(last), *(rows_of(n) for n in _others(kind, steps))]
    parts: list[Tensor] = []
    for n, t in reversed(list(enumerate(_order(steps, reverse)))):
        part = cell.back(gates[t], products[n], before[n], grads)
        parts.append(part)
        # the state before this step: the output of the last one, or the very first
        grads[0] = reshape(part[:, : cell.gates], rows, width) @ w + rows_of(t + start + (1 if reverse else -1))
        if cell.carries:
            grads[-1] = part[:, -1] if count > 1 else grads[-1] + part[:, -1]
    every = concat(parts if reverse else parts[::-1], 0)
    of_products = reshape(every[:, : cell.gates], steps * rows, width)
    of_gates = of_products
    if cell.apart:
        of_gates = concat([every[:, n : n + 1] for n in cell.parts_of_x], 1)
    states = out[rows * (1 - start) : rows * (1 - start + steps)]
    biases = (sum_(of_products, 0),) if has_bias else ()
    unused = (None,) * (len(given) - count)
    return (reshape(of_gates, steps, rows, width), of_products.T @ states, *biases, *grads, *unused)
