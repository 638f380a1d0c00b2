"""Layers beyond PyTorch's numbers: what is drawn, refused, printed, copied, frozen; and the kernels of recurrences."""

from __future__ import annotations

import copy
import math
import pickle
from collections import Counter
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from reference.modules import call, traced
from reference.stored import run
from steps import compiled
from tensorgrad import nn, ops, optim
from tensorgrad.autodiff import append_grad
from tensorgrad.device.base import Limits
from tensorgrad.errors import InputError, ShapeError
from tensorgrad.tensor import Tensor

MADE = [
    *["nn.RNN(3, 4, 2, bias=False)", "nn.GRU(3, 4, bidirectional=True)", "nn.LSTM(3, 4)", "nn.GRUCell(3, 4)"],
    *["nn.MultiheadAttention(8, 2, kdim=3)", "nn.TransformerEncoderLayer(8, 2, 16)", "nn.Transformer(8, 2, 1, 1, 16)"],
    *["nn.GroupNorm(2, 4)", "nn.RMSNorm(4)", "nn.InstanceNorm2d(4, affine=True)", "nn.Bilinear(2, 3, 4)"],
    *["nn.Conv2d(2, 4, 3, padding_mode='circular')", "nn.PReLU(3)", "nn.LeakyReLU(0.2)", "nn.ZeroPad2d(1)"],
]


@pytest.mark.parametrize("text", MADE)
def test_a_module_prints_its_parameters_and_survives_copying(text: str) -> None:
    module: nn.Module = eval(text)
    lines = str(module).splitlines()
    count = sum(p.numpy().size for p in module.parameters())
    assert f": {count:,} parameters" in lines[0]
    for name, p in module.named_parameters():
        assert any(f"{name.split('.')[-1]} {p.type}" in line for line in lines), name
    for twin in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert str(twin) == str(module)
        for name, values in module.state_dict().items():
            np.testing.assert_array_equal(twin.state_dict()[name], values)
            assert twin.get_parameter(name) is not module.get_parameter(name)


def test_recurrent_and_attention_layers_start_as_pytorchs() -> None:
    nn.init.manual_seed(4)
    for parameter in nn.LSTM(5, 100, bidirectional=True).parameters():
        assert abs(parameter.numpy()).max() <= 0.1
        assert parameter.numpy().std() == pytest.approx(0.1 / math.sqrt(3), rel=0.1)
    attention = nn.MultiheadAttention(64, 4)
    assert attention.in_proj_weight is not None
    assert attention.in_proj_weight.numpy().std() == pytest.approx(math.sqrt(2 / (4 * 64)), rel=0.03)
    assert attention.out_proj.weight.numpy().std() == pytest.approx(1 / math.sqrt(3 * 64), rel=0.03)
    for name in ("in_proj_bias", "out_proj.bias"):
        assert not attention.get_parameter(name).numpy().any()
    weight = nn.Transformer(64, 4, 1, 1, 64).get_parameter("encoder.layers.0.linear1.weight").numpy()
    assert weight.std() == pytest.approx(math.sqrt(2 / 128), rel=0.03)
    first, second = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2).layers
    np.testing.assert_array_equal(first.linear1.weight.numpy(), second.linear1.weight.numpy())
    assert first.linear1.weight is not second.linear1.weight


REFUSED: list[tuple[Any, str]] = [
    (lambda: nn.LSTM(2, 3, proj_size=1), "proj_size is not offered"),
    (lambda: nn.RNN(2, 3, nonlinearity="gelu"), "'tanh' or 'relu', got 'gelu'"),  # type: ignore[arg-type]
    (lambda: nn.GRU(2, 3, 0), "GRU: num_layers must be a whole number, 1 or more, got 0"),
    (lambda: nn.MultiheadAttention(6, 4), "4 heads do not divide embed_dim 6"),
    (lambda: nn.MultiheadAttention(6, 2, add_bias_kv=True), "add_bias_kv is not offered"),
    (lambda: nn.TransformerEncoderLayer(4, 2, activation="tanh"), "'relu', 'gelu' or a function, got 'tanh'"),
    (lambda: nn.GroupNorm(3, 4), "3 groups do not divide 4 channels"),
    (lambda: nn.Embedding(4, 2, max_norm=1.0), "max_norm is not offered"),
    (lambda: nn.AdaptiveMaxPool2d(2, return_indices=True), "return_indices is not offered"),
    (lambda: nn.Conv1d(1, 1, 3, padding_mode="mirror"), "padding_mode is one of 'zeros'"),  # type: ignore[arg-type]
    (lambda: nn.Linear(2, 2).to(tg.f16), r"tg\.compile\(\.\.\., dtype=tg\.f16\)"),  # type: ignore[arg-type]
    (lambda: optim.AdamW(nn.Linear(2, 2).parameters(), lr=1e-3), r"AdamW is given no parameters.*groups= gives"),  # type: ignore[call-arg]
    (lambda: optim.SGD(nn.Linear(2, 2), 0.1), "SGD is given no parameters"),
    (lambda: optim.SGD(0.1, groups=[{"params": [], "lr": 1.0}]), r"groups must be pairs such as"),  # type: ignore[list-item]
    (lambda: optim.SGD(0.1, groups=[(nn.Linear(2, 2), {"lr": 1.0})]), r"groups must be pairs such as"),
]


@pytest.mark.parametrize(("make", "text"), REFUSED)
def test_what_is_not_offered_is_refused_with_the_users_line(make: Any, text: str) -> None:
    with pytest.raises((InputError, ShapeError), match=text) as caught:
        make()
    assert "test_layers.py" in str(caught.value)


def test_a_wrong_call_names_shapes() -> None:
    x = np.zeros((4, 2, 3), np.float32)
    wrong = [
        (nn.GRU(5, 2), (x,), "last of size 5, got f32\\[4, 2, 3\\]"),
        (nn.LSTM(3, 2), (x[:0],), r"one step or more, got f32\[0, 2, 3\]"),
        (nn.GRU(3, 2), (x, np.zeros((1, 3, 2), np.float32)), r"a state is \[1, 2, 2\] .*got f32\[1, 3, 2\]"),
        (nn.LSTM(3, 2), (x, np.zeros((1, 2, 2), np.float32)), "a pair \\(h, c\\), got Tensor"),
        (nn.MultiheadAttention(6, 2), (x, x, x), "query needs 2 or 3 axes, the last of size 6"),
        (nn.MultiheadAttention(3, 1), (x, x, x, np.ones((2, 3), bool)), r"key_padding_mask is \[2, 4\]"),
        (nn.MultiheadAttention(3, 1), (x, x, x, np.ones((2, 4), np.int32)), "bools or floats"),
        (nn.InstanceNorm1d(5), (x,), "with 5 channels"),
    ]
    for module, inputs, text in wrong:
        with pytest.raises((InputError, ShapeError), match=text):
            traced(module, *inputs)


def test_dropouts_drop_channels_and_keep_the_moments() -> None:
    x = np.ones((50, 40, 6, 5), np.float32)
    for module, given in ((nn.Dropout2d(0.25), x), (nn.Dropout1d(0.25), x[..., 0])):
        found = call(module, given, training=True)[0]
        by_channel = found.reshape(50, 40, -1)
        assert (by_channel == by_channel[..., :1]).all()
        assert set(np.unique(found)) == {0, np.float32(1 / 0.75)}
        # 2,000 channels
        assert (by_channel[..., 0] == 0).mean() == pytest.approx(0.25, abs=0.04)
        assert (call(module, given)[0] == given).all()
    normal = np.random.default_rng(0).normal(size=100_000).astype(np.float32)
    found = call(nn.AlphaDropout(0.3), normal, training=True)[0]
    assert found.mean() == pytest.approx(0, abs=0.02)
    assert found.std() == pytest.approx(1, abs=0.02)
    assert Counter(found.tolist()).most_common(1)[0][1] == pytest.approx(30_000, rel=0.03)


def test_dropout_lies_between_the_layers_of_a_recurrence_only() -> None:
    x = np.ones((3, 2, 4), np.float32)
    nn.init.manual_seed(1)
    for layers, same in ((1, True), (2, False)):
        module = nn.GRU(4, 5, layers, dropout=0.5)
        seen, wanted = (run(lambda x, m=module: m(x)[0], {"x": x}, training=training) for training in (True, False))
        assert (seen == wanted).all() == same


def test_moving_a_module_is_nothing_and_frozen_parts_stay() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    assert model.to("cuda").cuda().cpu().to() is model
    model[0].requires_grad_(False)
    model[1].requires_grad_(False).eval()

    def loss_fn(model: nn.Module, x: Tensor) -> Tensor:
        return ops.mean(ops.square(model(x)))

    train = tg.sync(tg.compile(model, loss_fn, optim.AdamW(0.1, weight_decay=0.5), {"x": tg.f32[5, 3]}, device="numpy"))
    before = tg.sync(train.state_dict())["model"]
    tg.sync(train.step(x=np.ones((5, 3), np.float32)))
    after = tg.sync(train.state_dict())["model"]
    assert [name for name in before if not np.array_equal(before[name], after[name])] == ["2.weight", "2.bias"]


def test_weights_of_attention_that_nobody_reads_are_not_computed() -> None:
    module = nn.MultiheadAttention(8, 2)

    def loss_fn(model: nn.Module, x: Tensor) -> Tensor:
        return ops.mean(model(x, x, x)[0])

    def without(model: nn.Module, x: Tensor) -> Tensor:
        return ops.mean(model(x, x, x, need_weights=False)[0])

    sizes = [
        len(compiled(module, f, optim.SGD(0.1), {"x": tg.f32[5, 3, 8]}, Limits()).kernels) for f in (loss_fn, without)
    ]
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_the_gradient_of_a_recurrences_gradient(kind: str) -> None:
    """By finite differences of the gradient: it goes through the rule, and through what the rule reads."""
    nn.init.manual_seed(9)
    module = getattr(nn, kind)(2, 3)
    x, direction = (np.random.default_rng(n).normal(size=(3, 2, 2)).astype(np.float32) for n in (1, 2))

    def slope(x: Tensor) -> Tensor:
        (grad,) = append_grad(ops.sum(ops.square(module(x)[0])), [x])
        return ops.sum(grad * direction)

    def second(x: Tensor) -> Tensor:
        return append_grad(slope(x), [x])[0]

    found = run(second, {"x": x})
    step = 1e-2
    shift = np.random.default_rng(3).normal(size=x.shape).astype(np.float32)
    high, low = (run(slope, {"x": x + shift * h}) for h in (step, -step))
    # a central difference of f32 values
    assert (high - low) / (2 * step) == pytest.approx((found * shift).sum(), rel=3e-3, abs=2e-3)


KERNELS = {"RNN": 2, "GRU": 4, "LSTM": 5}
"""Of a step with its gradient: a product and a map each (fused in the RNN; one more for LSTM's many gates)."""


@pytest.mark.parametrize("kind", KERNELS)
def test_a_step_of_a_recurrence_is_few_kernels(kind: str) -> None:
    def kernels(steps: int) -> int:
        model = nn.ModuleList([getattr(nn, kind)(8, 16), nn.Linear(16, 3)])

        def loss_fn(model: nn.ModuleList, x: Tensor, y: Tensor) -> Tensor:
            return tg.cross_entropy(model[1](model[0](x)[0][-1]), y)

        specs = {"x": tg.f32[steps, 4, 8], "y": tg.i32[4]}
        return len(compiled(model, loss_fn, optim.Adam(1e-3), specs, Limits()).kernels)

    # and those that put the outputs, and the gradients, of six steps side by side
    assert kernels(18) - kernels(6) <= 12 * KERNELS[kind] + 6


def test_shapes_of_layers_are_plain_integers() -> None:
    layer = nn.Linear(np.int64(3), np.int32(2))  # type: ignore[arg-type]
    assert [type(n) for n in layer.weight.shape] == [int, int]
    assert layer.weight.numpy().shape == (2, 3)
