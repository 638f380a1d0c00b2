"""Recurrent layers and cells: PyTorch's arguments, defaults, keys and initial distributions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from tensorgrad import ops
from tensorgrad.callsite import call_site
from tensorgrad.checks import SHARE, require_number, require_sizes, require_whole
from tensorgrad.dtypes import DType, f32
from tensorgrad.errors import InputError
from tensorgrad.nn import init
from tensorgrad.nn.module import Module
from tensorgrad.nn.parameter import Parameter, undrawn
from tensorgrad.ops.core import TensorLike
from tensorgrad.ops.recurrent import CELLS, Kind, States, recurrent, recurrent_cell
from tensorgrad.shape import fail
from tensorgrad.tensor import Tensor


class _Recurrent(Module):
    """The parameters of one or several cells of a kind."""

    _kind: Kind

    def __init__(self, input_size: int, hidden_size: int, bias: bool) -> None:
        require_sizes(type(self).__name__, input_size=input_size, hidden_size=hidden_size)
        self.input_size, self.hidden_size = input_size, hidden_size
        # `bias` as PyTorch has it: an attribute, not a parameter
        self.bias = bias

    def _add_cell(self, input_size: int, suffix: str, dtype: DType) -> None:
        rows = CELLS[self._kind].gates * self.hidden_size
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, input_size), "weight_hh": (rows, self.hidden_size)}
        if self.bias:
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        for name, shape in shapes.items():
            setattr(self, name + suffix, undrawn(shape, dtype))

    def reset_parameters(self) -> None:
        """Draws the initial values anew."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size else 0.0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def _weights(self, suffix: str) -> list[Parameter | None]:
        """In the order of `recurrent`."""
        return [getattr(self, name + suffix, None) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]

    def _states(self, given: Any, shape: Sequence[int], like: Tensor) -> list[Tensor]:
        """The states to begin with, zeros where none are given."""
        count, name = CELLS[self._kind].states, type(self).__name__
        if given is None:
            return [ops.zeros(tuple(shape), like.dtype)] * count
        if count > 1 and not (isinstance(given, list | tuple) and len(given) == count):
            raise InputError(f"{name}: the state is a pair (h, c), got {type(given).__name__}", call_site())
        states = [ops.tensor(state) for state in (given if count > 1 else [given])]
        for state in states:
            if state.shape != tuple(shape):
                fail(f"{name}: a state is {list(shape)} for this input, got {state.type}")
        return states

    def _check_input(self, x: Tensor, ndims: tuple[int, ...]) -> None:
        if x.ndim not in ndims or x.shape[-1] != self.input_size:
            fail(
                f"{type(self).__name__}: needs an input of {' or '.join(map(str, ndims))} axes, the last of size "
                f"{self.input_size}, got {x.type}"
            )


class _Layers(_Recurrent):
    """Layers of cells, one above the other, each in one or both directions."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: DType = f32,
    ) -> None:
        super().__init__(input_size, hidden_size, bias)
        require_whole(type(self).__name__, "num_layers", num_layers, 1)
        require_number(type(self).__name__, "dropout", dropout, SHARE)
        self.num_layers, self.batch_first, self.dropout = num_layers, batch_first, dropout
        self.bidirectional = bidirectional
        for layer in range(num_layers):
            for suffix in self._suffixes(layer):
                self._add_cell(input_size if layer == 0 else hidden_size * self._directions, suffix, dtype)
        self.reset_parameters()

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _suffixes(self, layer: int) -> list[str]:
        return [f"_l{layer}", f"_l{layer}_reverse"][: self._directions]

    def forward(self, input: TensorLike, hx: Any = None) -> tuple[Tensor, Any]:
        x = ops.tensor(input)
        self._check_input(x, (2, 3))
        batched, swapped = x.ndim == 3, x.ndim == 3 and self.batch_first
        x = x if batched else ops.expand_dims(x, 1)
        x = ops.swapaxes(x, 0, 1) if swapped else x
        cells = self.num_layers * self._directions
        rows = (x.shape[1],) if batched else ()
        before = self._states(hx, (cells, *rows, self.hidden_size), x)
        finals: list[States] = []
        for layer in range(self.num_layers):
            if layer:
                x = ops.dropout(x, self.dropout, self.training)
            outputs = []
            for n, suffix in enumerate(self._suffixes(layer)):
                states = [ops.reshape(s[len(finals)], x.shape[1], self.hidden_size) for s in before]
                out, last = recurrent(self._kind, x, states, *self._weights(suffix), reverse=n == 1)
                outputs.append(out)
                finals.append(last)
            x = outputs[0] if len(outputs) == 1 else ops.concat(outputs, -1)
        x = ops.swapaxes(x, 0, 1) if swapped else x
        out = x if batched else x[:, 0]
        states = [ops.reshape(ops.stack(each), cells, *rows, self.hidden_size) for each in zip(*finals, strict=True)]
        return out, states[0] if len(states) == 1 else tuple(states)

    def extra_repr(self) -> str:
        defaults = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0, "bidirectional": False}
        given = [f", {k}={getattr(self, k)}" for k, default in defaults.items() if getattr(self, k) != default]
        return f"{self.input_size} -> {self.hidden_size}{''.join(given)}"


class RNN(_Layers):
    """Layers of `h = tanh(x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh)`; arguments as `LSTM`.

    Args:
        nonlinearity: `tanh` or `relu`, the fourth argument.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: Literal["tanh", "relu"] = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: DType = f32,
    ) -> None:
        self._kind = _nonlinearity(self, nonlinearity)
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, dtype)

    @property
    def nonlinearity(self) -> str:
        """What is applied at each step."""
        return self._kind


class GRU(_Layers):
    """Gated recurrent units; arguments as `LSTM`, and a state `h` alone.

    >>> from tensorgrad import nn
    >>> nn.GRU(3, 4, bidirectional=True).weight_ih_l0_reverse
    Parameter(f32[12, 3])
    """

    _kind = "gru"


class LSTM(_Layers):
    """Long short-term memory, unrolled over time: a step of an input is two kernels, and its gradient three.

    Called with an input `[T, N, I]` (or `[T, I]`) and perhaps the states to begin with, a pair of
    `[layers * directions, N, H]` (zeros otherwise), it returns the last layer's outputs `[T, N, directions * H]` and
    the pair of last states. T is fixed when it is compiled, and 1 or more; sequences packed by length are not taken.

    Args:
        input_size: I.
        hidden_size: H.
        num_layers: layers, each reading the outputs of the one below.
        bias: whether there are biases.
        batch_first: inputs and outputs are `[N, T, ...]`; states are as ever.
        dropout: of the outputs of every layer but the last, in training.
        bidirectional: with a second cell a layer, from the last step to the first.
        proj_size: 0; projections are not offered.

    Parameters start uniform within `1 / sqrt(hidden_size)`.

    >>> from tensorgrad import nn
    >>> nn.LSTM(3, 4, bias=False)
    LSTM(3 -> 4, bias=False): 112 parameters  weight_ih_l0 f32[16, 3], weight_hh_l0 f32[16, 4]
    """

    _kind = "lstm"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        dtype: DType = f32,
    ) -> None:
        if proj_size:
            raise InputError("LSTM: proj_size is not offered; apply an nn.Linear to the outputs", call_site())
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, dtype)


class _Cell(_Recurrent):
    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, dtype: DType = f32) -> None:
        super().__init__(input_size, hidden_size, bias)
        self._add_cell(input_size, "", dtype)
        self.reset_parameters()

    def forward(self, input: TensorLike, hx: Any = None) -> Any:
        x = ops.tensor(input)
        self._check_input(x, (1, 2))
        states = self._states(hx, (*x.shape[:-1], self.hidden_size), x)
        after = recurrent_cell(self._kind, x, states, *self._weights(""))
        return after if len(after) > 1 else next(iter(after))

    def extra_repr(self) -> str:
        return f"{self.input_size} -> {self.hidden_size}{'' if self.bias else ', bias=False'}"


class RNNCell(_Cell):
    """One step of an `RNN`, of an input `[N, I]` or `[I]`: the next state.

    Args:
        nonlinearity: `tanh` or `relu`.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: Literal["tanh", "relu"] = "tanh",
        dtype: DType = f32,
    ) -> None:
        self._kind = _nonlinearity(self, nonlinearity)
        super().__init__(input_size, hidden_size, bias, dtype)


class GRUCell(_Cell):
    """One step of a `GRU`, of an input `[N, I]` or `[I]`: the next state."""

    _kind = "gru"


class LSTMCell(_Cell):
    """One step of an `LSTM`, of an input `[N, I]` or `[I]`: the next states h and c."""

    _kind = "lstm"


def _nonlinearity(module: Module, given: str) -> Literal["tanh", "relu"]:
    if given not in ("tanh", "relu"):
        raise InputError(f"{type(module).__name__}: nonlinearity is 'tanh' or 'relu', got {given!r}", call_site())
    return given
