"""Modules: PyTorch's keys, defaults and numbers; registration, modes, state dicts and printing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from reference.agree import module_cases, modules_agree
from reference.modules import Tied, call, traced
from reference.stored import f, pytorch, run
from tensorgrad import nn, ops
from tensorgrad.device.numpy import evaluate
from tensorgrad.errors import ShapeError
from tensorgrad.tensor import Tensor
from tensorgrad.trace import update_state

# PyTorch ---------------------------------------------------------------------------------


@pytest.mark.parametrize("case", pytorch()["keys"], ids=lambda case: case["name"])
def test_keys_and_shapes_as_pytorch(case: dict[str, Any]) -> None:
    state = eval(case["module"], {"nn": nn}).state_dict()
    assert {name: list(a.shape) for name, a in state.items()} == case["keys"]
    assert list(state) == list(case["keys"])


@pytest.mark.parametrize("case", module_cases(), ids=lambda case: case["name"])
def test_numbers_as_pytorch(case: dict[str, Any]) -> None:
    assert not tg.sync(modules_agree([case], "numpy", 3e-6, 1e-6))


def test_kernels_of_modules_as_pytorch() -> None:
    assert not tg.sync(modules_agree(module_cases(), "interpret", 1e-5, 1e-6))


def test_order_of_names_as_pytorch() -> None:
    module, expected = Tied(), pytorch()["tied"]
    assert list(module.state_dict()) == expected["state"]
    assert [name for name, _ in module.named_parameters()] == expected["parameters"]
    assert [name for name, _ in module.named_buffers()] == expected["buffers"]
    assert [name for name, _ in module.named_modules()] == expected["modules"]


def test_initial_values_as_pytorch() -> None:
    nn.init.manual_seed(1)
    linear = nn.Linear(400, 300)
    for values in (linear.weight.numpy(), linear.bias.numpy()):  # type: ignore[union-attr]
        assert abs(values).max() <= 1 / 20
        assert abs(values).max() > 0.95 / 20
        assert values.std() == pytest.approx(1 / 20 / math.sqrt(3), rel=0.08)
    table = nn.Embedding(300, 100, padding_idx=-2).weight.numpy()
    assert table.std() == pytest.approx(1, abs=0.02)
    assert not table[298].any()
    norm = nn.LayerNorm(5)
    assert (norm.weight.numpy() == 1).all()  # type: ignore[union-attr]
    assert (norm.bias.numpy() == 0).all()  # type: ignore[union-attr]
    assert norm.eps == 1e-5


def test_gains_as_pytorch() -> None:
    gains = pytorch()["gains"]
    assert {name: nn.init.calculate_gain(name) for name in gains} == gains
    with pytest.raises(ValueError, match="no gain for 'swish'"):
        nn.init.calculate_gain("swish")


@pytest.mark.parametrize(
    ("fill", "bound", "std"),
    [
        (lambda w: nn.init.uniform_(w, -2, 2), 2, 2 / math.sqrt(3)),
        (lambda w: nn.init.normal_(w, 0, 0.5), math.inf, 0.5),
        (lambda w: nn.init.trunc_normal_(w, 0, 1, -1, 1), 1, 0.5396),
        (lambda w: nn.init.xavier_uniform_(w, 2), 2 * math.sqrt(6 / 500), 2 * math.sqrt(2 / 500)),
        (lambda w: nn.init.xavier_normal_(w), math.inf, math.sqrt(2 / 500)),
        (lambda w: nn.init.kaiming_uniform_(w, nonlinearity="relu"), math.sqrt(6 / 200), math.sqrt(2 / 200)),
        (lambda w: nn.init.kaiming_uniform_(w, math.sqrt(5)), 1 / math.sqrt(200), 1 / math.sqrt(600)),
        (lambda w: nn.init.kaiming_normal_(w, mode="fan_out", nonlinearity="relu"), math.inf, math.sqrt(2 / 300)),
    ],
)
def test_distributions(fill: Any, bound: float, std: float) -> None:
    nn.init.manual_seed(2)
    weight = fill(nn.Parameter(np.zeros((300, 200)))).numpy()
    assert abs(weight).max() <= bound * (1 + 1e-6)
    assert weight.std() == pytest.approx(std, rel=0.01)
    assert weight.mean() == pytest.approx(0, abs=0.02 * std)


def test_other_initial_values() -> None:
    w = nn.Parameter(np.zeros((3, 5)))
    assert (nn.init.constant_(w, 2.5).numpy() == 2.5).all()
    assert (nn.init.eye_(w).numpy() == np.eye(3, 5)).all()
    rows = nn.init.orthogonal_(w, 2.0).numpy()
    np.testing.assert_allclose(rows @ rows.T, 4 * np.eye(3), atol=1e-5)
    columns = nn.init.orthogonal_(np.zeros((5, 3)))
    np.testing.assert_allclose(columns.T @ columns, np.eye(3), atol=1e-5)
    dirac = nn.init.dirac_(np.ones((6, 2, 3, 4)), groups=2)
    assert dirac.sum() == 4
    assert [dirac[row, row % 3, 1, 2] for row in (0, 1, 3, 4)] == [1, 1, 1, 1]
    sparse = nn.init.sparse_(np.ones((10, 300)), 0.25, std=2.0)
    assert ((sparse == 0).sum(0) == 3).all()
    assert sparse[sparse != 0].std() == pytest.approx(2, rel=0.05)
    own = nn.init.normal_(np.zeros(4), generator=np.random.default_rng(5))
    np.testing.assert_array_equal(own, np.random.default_rng(5).normal(size=4))
    with pytest.raises(ShapeError, match=r"two axes or more, got shape \[3\]"):
        nn.init.xavier_uniform_(np.zeros(3))
    with pytest.raises(ShapeError, match=r"4 equal groups; got shape \[6, 2, 3\]"):
        nn.init.dirac_(np.zeros((6, 2, 3)), 4)


def test_a_seed_repeats_the_initial_values() -> None:
    nn.init.manual_seed(7)
    first = nn.Linear(3, 3).weight.numpy()
    second = nn.Linear(3, 3).weight.numpy()
    nn.init.manual_seed(nn.init.initial_seed())
    np.testing.assert_array_equal(nn.Linear(3, 3).weight.numpy(), first)
    assert not np.array_equal(first, second)


# Modes -------------------------------------------------------------------------------------


def test_the_trace_decides_about_training_unless_eval_froze_the_module() -> None:
    module = nn.Sequential(nn.Dropout(0.5), nn.Sequential(nn.Dropout(0.5)))
    x = np.ones((100,), np.float32)
    assert (call(module, x, training=True)[0] == 0).mean() > 0.5
    assert (call(module, x, training=False)[0] == 1).all()
    assert module.training
    module[1].eval()
    assert not module[1][0].training
    assert set(np.unique(call(module, x, training=True)[0])) == {0, 2}
    module.eval()
    assert (call(module, x, training=True)[0] == 1).all()
    module.train()
    assert (call(module, x, training=True)[0] == 0).any()


def test_buffers_are_states_that_a_trace_may_update() -> None:
    class Counts(nn.Module):
        def __init__(self) -> None:
            self.total = nn.Buffer([0.0])

        def forward(self, x: Tensor) -> Tensor:
            update_state(self.total, self.total + ops.sum(x))
            return x * 1.0

    module = Counts()
    graph = traced(module, np.ones(3, np.float32))
    assert list(graph.names_by_role("state")) == ["total"]
    (new,) = graph.updates.values()
    assert evaluate(graph, {"x0": np.ones(3, np.float32), "total": f([4])})[new] == [7]


def test_the_padding_row_gets_no_gradient() -> None:
    module = nn.Embedding(3, 2, padding_idx=1)
    _, grad = call(module, np.array([1, 0, 1], np.int32))
    assert not grad[1].any()
    assert grad[0].all()
    with pytest.raises(ShapeError, match="outside the 3 rows"):
        nn.Embedding(3, 2, padding_idx=3)


LOSSES = [
    ("CrossEntropyLoss()", "cross_entropy", "x, t", ""),
    ("CrossEntropyLoss([1, 2, 3], 1, 'sum', 0.5)", "cross_entropy", "x, t", ", [1, 2, 3], 1, 'sum', 0.5"),
    ("NLLLoss([1, 2, 3])", "nll_loss", "x, t", ", [1, 2, 3]"),
    ("NLLLoss(None, 1, 'none')", "nll_loss", "x, t", ", None, 1, 'none'"),
    ("MSELoss('sum')", "mse_loss", "x, p", ", 'sum'"),
    ("L1Loss('none')", "l1_loss", "x, p", ", 'none'"),
    ("SmoothL1Loss('sum', 0.25)", "smooth_l1_loss", "x, p", ", 'sum', 0.25"),
    ("HuberLoss('none', 0.25)", "huber_loss", "x, p", ", 'none', 0.25"),
    ("BCELoss([1, 2, 3], 'sum')", "binary_cross_entropy", "p, p", ", [1, 2, 3], 'sum'"),
    ("BCEWithLogitsLoss([1, 2, 3], 'sum', 2)", "binary_cross_entropy_with_logits", "x, p", ", [1, 2, 3], 'sum', 2"),
    ("KLDivLoss('batchmean', True)", "kl_div", "x, p", ", 'batchmean', True"),
    ("CosineSimilarity(0, 10.0)", "cosine_similarity", "x, p", ", 0, 10.0"),
    ("CosineEmbeddingLoss(0.5, 'sum')", "cosine_embedding_loss", "x, p, s", ", 0.5, 'sum'"),
]


@pytest.mark.parametrize(("made", "function", "given", "options"), LOSSES)
def test_losses_are_their_functions(made: str, function: str, given: str, options: str) -> None:
    x, p = f([[1, 2, 0], [0, 0, 3]]), f([[0.2, 0.5, 0.3], [0.1, 0, 0.9]])
    t, s = np.array([1, 2], np.int32), np.array([1, -1], np.int32)
    module = eval(made, dict(vars(nn)))

    def fn(**arrays: Tensor) -> list[Tensor]:
        called = eval(f"module({given})", {"module": module, **arrays})
        return [called, eval(f"{function}({given}{options})", {**vars(nn.functional), **arrays})]

    found, wanted = run(fn, x=x, p=p, t=t, s=s)
    assert np.isfinite(wanted).all()
    assert wanted.any()
    np.testing.assert_array_equal(found, wanted)


def test_the_weight_of_a_loss_is_a_buffer() -> None:
    model = nn.ModuleDict({"loss": nn.BCEWithLogitsLoss(pos_weight=[1.0, 3.0]), "plain": nn.CrossEntropyLoss()})
    assert {name: value.tolist() for name, value in model.state_dict().items()} == {"loss.pos_weight": [1.0, 3.0]}
    assert not list(model.parameters())
