"""Random numbers on a device: their distributions, and that every device draws the same."""

from __future__ import annotations

from typing import Any

import numpy as np

import tensorgrad as tg

COUNT = 4096
SPREAD = 5 / COUNT**0.5
"""Five standard errors of a mean whose deviation is 1."""

LOGITS = np.log(np.array([0.5, 0.3, 0.2], np.float32))
CHANNELS = (64, 32, 2, 1)


def draws() -> dict[str, tg.Tensor]:
    """Each operation that draws, `COUNT` numbers of it."""
    many = tg.tensor(LOGITS).broadcast_to(COUNT, 3)
    ones = tg.ones(COUNT)
    return {
        "rand": tg.rand(64, 64),
        "rand_like": tg.rand_like(ones),
        "uniform": tg.uniform((COUNT,), -3.0, 5.0),
        "randn": tg.randn(COUNT),
        "randn_like": tg.randn_like(ones),
        "normal": tg.normal((COUNT,), 4.0, 0.5),
        "randint": tg.randint(-2, 3, (COUNT,)),
        "bernoulli": tg.bernoulli(0.25, (COUNT,)),
        "dropout": tg.dropout(ones, 0.25, True),
        "dropout1d": tg.dropout1d(tg.ones(CHANNELS[:3]), 0.5, True),
        "dropout2d": tg.dropout2d(tg.ones(CHANNELS), 0.5, True),
        "alpha_dropout": tg.alpha_dropout(tg.randn(COUNT), 0.5, True),
        "categorical": tg.categorical(many),
        "multinomial": tg.multinomial(tg.exp(tg.tensor(LOGITS)), COUNT, replacement=True),
        "gumbel_softmax": tg.gumbel_softmax(many, 0.5, hard=True),
        "randperm": tg.randperm(COUNT),
        "permutation": tg.permutation(tg.arange(COUNT)),
    }


WHOLE = frozenset({"randint", "bernoulli", "categorical", "multinomial", "randperm", "permutation"})


def shares(values: np.ndarray, count: int) -> np.ndarray:
    return np.bincount(values.astype(int), minlength=count) / values.size


def distributed(x: dict[str, np.ndarray]) -> None:
    """Whether the numbers are distributed as the operations say."""

    def close(name: str, found: Any, wanted: Any, deviation: float = 1.0) -> None:
        np.testing.assert_allclose(found, wanted, atol=SPREAD * deviation, err_msg=name)

    assert x["rand"].shape == (64, 64)
    for name, low, high in (("rand", 0, 1), ("rand_like", 0, 1), ("uniform", -3, 5)):
        assert (low <= x[name]).all(), name
        assert (x[name] < high).all(), name
        close(name, x[name].mean(), (low + high) / 2, (high - low) / 12**0.5)
    for name, mean, std in (("randn", 0, 1), ("randn_like", 0, 1), ("normal", 4, 0.5), ("alpha_dropout", 0, 1)):
        close(name, x[name].mean(), mean, std)
        close(name, x[name].std(), std, std)  # its standard error is smaller than a mean's
    close("randint", shares(x["randint"] + 2, 5), [0.2] * 5, 0.4)
    close("bernoulli", x["bernoulli"].mean(), 0.25, 0.44)
    assert set(np.unique(x["dropout"])) == {0, np.float32(4 / 3)}
    close("dropout", (x["dropout"] == 0).mean(), 0.25, 0.44)
    for name in ("dropout1d", "dropout2d"):
        channels = x[name].reshape(64 * 32, 2)
        assert (channels[:, 0] == channels[:, 1]).all(), name
        close(name, channels.mean(), 1, 2**0.5)
    for name in ("categorical", "multinomial"):
        close(name, shares(x[name], 3), [0.5, 0.3, 0.2], 0.5)
    assert (np.sort(x["gumbel_softmax"], 1) == [0, 0, 1]).all()
    close("gumbel_softmax", x["gumbel_softmax"].mean(0), [0.5, 0.3, 0.2], 0.5)
    for name in ("randperm", "permutation"):
        np.testing.assert_array_equal(np.sort(x[name]), np.arange(COUNT), err_msg=name)
        assert (x[name] == np.arange(COUNT)).sum() < 10, name  # one is expected


async def agree(device: str) -> None:
    """Whether a device's numbers are distributed as they should be, and those of the reference."""
    found = await tg.jit(draws, device=device, seed=7)()
    distributed(found)
    wanted = await tg.jit(draws, device="numpy", seed=7)()
    for name, values in wanted.items():
        if name in WHOLE:
            # a draw whose two largest weights are equal but for rounding may fall to the other
            assert (found[name] != values).mean() < 1e-3, name
        else:
            np.testing.assert_allclose(found[name], values, rtol=2e-5, atol=2e-5, err_msg=name)
    again = await tg.jit(draws, device=device, seed=8)()
    assert all((again[name] != values).any() for name, values in found.items())
