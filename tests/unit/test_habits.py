"""PyTorch's names that are not here: an AttributeError that says what takes their place."""

from __future__ import annotations

import copy
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad import habits, nn, optim

X = np.ones((2, 4), np.float32)
HERE: Any = tg  # what a type checker knows to be missing is what is asked for
MODEL: Any = nn.Sequential(nn.Linear(4, 2))
ADAM: Any = optim.Adam(0.1)


def traced(call: Any) -> Any:
    return tg.sync(tg.jit(call, device="numpy")(X))


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda x: x.backward(), r"await train\.step"),
        (lambda x: x.cuda(), r"tg\.compile\(\.\.\., device"),
        (lambda x: x.cpu(), r"tg\.compile\(\.\.\., device"),
        (lambda x: x.double(), r"x\.float\(\)"),
        (lambda x: x.tolist(), r"array\.tolist\(\)"),
        (lambda x: x.data, r"x\.detach\(\)"),
        (lambda x: x.add_(1), r"x = x\.add\(\.\.\.\)"),
        (lambda x: x.max(dim=1).values, r"tg\.argmax"),
        (lambda x: x.unfold(1, 2, 2), r"x\[:, i : i \+ size\]"),
        (lambda x: HERE.float32, r"tg\.f32"),
        (lambda x: HERE.no_grad(), r"tg\.stop_gradient"),
        (lambda x: HERE.manual_seed(0), r"nn\.init\.manual_seed\(0\)"),
        (lambda x: HERE.from_numpy(X), r"tg\.tensor\(array\)"),
        (lambda x: HERE.nn.utils, r"clip_norm"),
        (lambda x: HERE.optim.lr_scheduler, r"optim\.StepLR"),
        (lambda x: HERE.optim.ReduceLROnPlateau, r"train\.set_lr"),
        (lambda x: MODEL.half(), r"dtype=tg\.f16"),
        (lambda x: MODEL.get("model"), r"model\.state_dict\(\)"),
        (lambda x: MODEL[0].weight.copy_(X), r"parameter\.data\[\.\.\.\] = array"),
        (lambda x: ADAM.zero_grad(), r"gradients are new"),
        (lambda x: ADAM.step(), r"await train\.step"),
    ],
)
def test_a_name_of_pytorchs_says_what_to_do(call: Any, advice: str) -> None:
    with pytest.raises(tg.NoAttributeError, match=rf"has no attribute '\w+'; here: .*{advice}(.|\n)*  at {__file__}"):
        traced(call)


def test_no_hint_is_of_a_name_that_exists() -> None:
    owners = {"TENSOR": tg.Tensor, "MODULE": nn.Module, "OPTIMIZER": optim.Optimizer}
    owners |= {"PACKAGE": tg, "NN": nn, "OPTIM": optim}
    for table, owner in owners.items():
        assert [name for name in getattr(habits, table) if hasattr(owner, name)] == [], table


def test_other_names_are_pythons_own() -> None:
    owners: list[Any] = [MODEL, ADAM, tg, nn, optim, MODEL[0].weight]
    for owner in owners:
        with pytest.raises(AttributeError, match="has no attribute 'nonsense'") as caught:
            _ = owner.nonsense
        assert not isinstance(caught.value, tg.TensorgradError)
        assert not hasattr(owner, "nonsense")
        assert not hasattr(owner, "lr_scheduler" if owner is optim else "backward") or owner is ADAM
    assert copy.deepcopy(MODEL)[0].weight.shape == (2, 4)


def test_names_that_mean_the_same_in_both() -> None:
    def shapes(x: Any) -> Any:
        assert (x.numel(), x.dim()) == (8, 2)
        assert type(x.numel()) is int
        return x.long(), round(x * 1.5), x.take(tg.tensor([1]), 1), x.addmm(x[:, :2], x), x.kron(x[:1, :2])

    long, rounded, taken, added, kron = traced(shapes)
    assert long.dtype == np.int32
    np.testing.assert_array_equal(rounded, np.round(X * 1.5))
    np.testing.assert_array_equal(taken, X[:, [1]])
    np.testing.assert_array_equal(added, X + X[:, :2] @ X)
    np.testing.assert_array_equal(kron, np.kron(X, X[:1, :2]))


def test_the_words_are_loaded_when_somebody_asks() -> None:
    code = "import sys, copy, tensorgrad as tg; copy.deepcopy(tg.nn.Linear(2, 2)); hasattr(tg.optim.SGD(1.), '__a__');"
    code += "print([m for m in sys.modules if m in ('tensorgrad.habits', 'tensorgrad.misuse')])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
