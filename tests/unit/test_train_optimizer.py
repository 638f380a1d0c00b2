"""What a training does with gradients: reading them, learning rates, frozen parameters, shared optimizers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad import backend, optim
from training import LINE, ONES, SPECS, Net, assert_same, batch, line, loss_fn, losses, squares, start

Arrays = dict[str, np.ndarray]


def tanh_loss(model: Net, x: tg.Tensor, t: tg.Tensor) -> tg.Tensor:
    """Smooth, so that finite differences are gradients."""
    return tg.cross_entropy(model.out(tg.tanh(model.into(x))), t)


async def weights(train: tg.Train) -> Arrays:
    return (await train.state_dict())["model"]


# Gradients ------------------------------------------------------------------------------------------


async def test_gradients_are_those_of_tg_grad_and_finite_differences() -> None:
    model = Net()
    train = await tg.compile(model, tanh_loss, optim.SGD(0.1), SPECS, device="numpy", keep_grads=True)
    x, t = batch(0)["x"], batch(0)["t"]
    start = {n: a for n, a in (await weights(train)).items() if n.startswith(("into", "out"))}
    await train.step(x=x, t=t)
    found = await train.gradients()

    def plain(p: dict[str, tg.Tensor]) -> tg.Tensor:
        hidden = tg.tanh(tg.tensor(x) @ p["into.weight"].T + p["into.bias"])
        return tg.cross_entropy(hidden @ p["out.weight"].T + p["out.bias"], tg.tensor(t))

    same = await tg.grad(plain, device="numpy")(start)
    assert found.keys() == same.keys() == start.keys()
    for name, array in start.items():
        assert found[name].dtype == np.float32
        np.testing.assert_allclose(found[name], same[name], rtol=1e-5, atol=1e-7, err_msg=name)
        at, step = tuple(np.array(array.shape) - 1), 1e-5  # off by the square of the step
        high, low = (exact_loss({**start, name: moved(array, at, d)}, x, t) for d in (step, -step))
        np.testing.assert_allclose(found[name][at], (high - low) / (2 * step), rtol=1e-4, atol=1e-6, err_msg=name)


def moved(array: np.ndarray, at: tuple[int, ...], by: float) -> np.ndarray:
    array = array.astype(np.float64)
    array[at] += by
    return array


def exact_loss(p: Arrays, x: np.ndarray, t: np.ndarray) -> float:
    """`tanh_loss` in float64."""
    hidden = np.tanh(x.astype(np.float64) @ p["into.weight"].T + p["into.bias"])
    logits = hidden @ p["out.weight"].T + p["out.bias"]
    return float(np.mean(np.log(np.exp(logits).sum(1)) - logits[np.arange(len(t)), t]))


async def test_gradients_are_the_last_steps_and_the_users_own() -> None:
    train = await line(keep_grads=True)
    await train.check(x=ONES)
    with pytest.raises(tg.InputError, match="there are no gradients yet: no step was finished"):
        await train.gradients()
    await train.step(x=ONES)
    first = await train.gradients()
    kept = {name: grad.copy() for name, grad in first.items()}
    await train.submit(x=3 * ONES)
    second = await train.gradients()
    for name, grad in first.items():
        np.testing.assert_array_equal(grad, kept[name])
        assert not np.array_equal(grad, second[name])


async def test_every_kind_of_step_leaves_gradients_and_a_load_none() -> None:
    made = await line(keep_grads=True)
    await made.step(x=ONES)
    wanted, saved = await made.gradients(), await (await line()).state_dict()
    calls: list[Any] = [
        lambda train: train.submit(x=ONES),
        lambda train: train.run_steps(1, {"x": ONES[None]}),
        lambda train: train.profile(x=ONES),
        lambda train: train.fit([{"x": ONES}], progress=False),
    ]
    for call in calls:
        train = await line(keep_grads=True)
        await train.load_state_dict(saved)
        with pytest.raises(tg.InputError, match="there are no gradients yet"):
            await train.gradients()
        await call(train)
        for name, grad in (await train.gradients()).items():
            np.testing.assert_array_equal(grad, wanted[name])
    train = await line(keep_grads=True, snapshot_every=1)
    await train.step(x=ONES)
    await train.restore()
    with pytest.raises(tg.InputError, match="there are no gradients yet"):
        await train.gradients()


async def test_gradients_that_were_not_asked_for() -> None:
    train = await line()
    await train.step(x=ONES)
    with pytest.raises(tg.InputError, match="compile with keep_grads=True to read gradients"):
        await train.gradients()


async def test_gradients_are_read_before_clipping() -> None:
    plain, clipped = [await line(optimizer=optim.SGD(0.1, clip_norm=c), keep_grads=True) for c in (None, 1e-3)]
    for train in (plain, clipped):
        await train.step(x=ONES)
    found, wanted = await clipped.gradients(), await plain.gradients()
    for name, grad in wanted.items():
        np.testing.assert_array_equal(found[name], grad)
    assert not np.array_equal((await weights(clipped))["weight"], (await weights(plain))["weight"])


# Learning rates -------------------------------------------------------------------------------------


async def test_a_learning_rate_may_change_and_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    train = await line(keep_grads=True)

    def compiles(*_: Any) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(backend.Numpy, "build", compiles)
    # the schedule is given the steps that were made before
    rates: list[tuple[Any, float]] = [
        (0.5, 0.5),
        (0.0, 0.0),
        (lambda step: 0.1 * step, 0.2),
        (None, 0.3),
        (np.float32(0.25), 0.25),
    ]
    for lr, rate in rates:
        if lr is not None:
            train.set_lr(lr)
        before = await weights(train)
        await train.step(x=ONES)
        after, grads = await weights(train), await train.gradients()
        for name, grad in grads.items():
            np.testing.assert_allclose(after[name], before[name] - rate * grad, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("lr", [-1, float("nan"), "fast", None, [0.1]], ids=str)
async def test_a_learning_rate_that_makes_no_sense(lr: Any) -> None:
    train = await line()
    with pytest.raises(tg.InputError, match=r"SGD: lr must be (0 or more|a number), got"):
        train.set_lr(lr)
    assert train.optimizer.lr == 0.1


# Groups ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": [("*.biass", {})]}, r"the group '\*\.biass' fits no parameter; the model has .*out\.bias"),
        ({"groups": [(lambda name: False, {})]}, "the group of the function '<lambda>' fits no parameter"),
        ({"groups": [("*", {}), ("*.bias", {})]}, r"'\*\.bias' comes too late: into\.bias.* belong to"),
        ({"params": "generator.*"}, r"SGD: params='generator\.\*' fits no parameter; the model has into\.weight"),
    ],
    ids=["pattern", "function", "order", "params"],
)
async def test_a_pattern_that_fits_nothing_changes_nothing(options: dict[str, Any], message: str) -> None:
    train = await start("numpy")
    before = await train.state_dict()
    with pytest.raises(tg.InputError, match=message):
        await tg.compile(train.state.module, loss_fn, optim.SGD(0.1, **options), SPECS, state=train.state)
    assert train.state.counts == {"optim": 0}
    assert_same(await train.state_dict(), before)


async def test_groups_may_name_parameters_that_another_optimizer_trains() -> None:
    groups = [("out.*", {"lr": 0.0})]
    train = await tg.compile(Net(0.0), loss_fn, optim.SGD(0.1, params="into.*", groups=groups), SPECS, device="numpy")
    before = await weights(train)
    await losses(train, 0, 1)
    after = await weights(train)
    assert {n for n, a in before.items() if not np.array_equal(a, after[n])} == {"mean", "into.weight", "into.bias"}


async def test_a_loss_without_a_trained_parameter_says_why() -> None:
    with pytest.raises(tg.TraceError, match=r"depends on no parameter.*it reads bias, each.*params='weight'"):
        await line(lambda model, x: tg.mean(model.bias * 0 + x[0]), optimizer=optim.SGD(0.1, params="weight"))


# Frozen parameters ----------------------------------------------------------------------------------


async def test_a_frozen_parameter_stays_and_has_no_gradient() -> None:
    model = Net(0.0)
    model.into.requires_grad_(False)
    optimizer = optim.AdamW(0.1, weight_decay=0.5)
    train = await tg.compile(model, loss_fn, optimizer, SPECS, device="numpy", keep_grads=True)
    before = await weights(train)
    await losses(train, 0, 3)
    after, grads, saved = await weights(train), await train.gradients(), await train.state_dict()
    assert set(grads) == {"out.weight", "out.bias"}
    assert not any("into" in name for name in saved["optimizer"])
    for name, array in before.items():
        trained = name.startswith("out") or name == "mean"
        assert np.array_equal(after[name], array) != trained, name
    model.out.requires_grad_(False)
    with pytest.raises(tg.TraceError, match="no parameter of the model that may be trained"):
        await tg.compile(model, loss_fn, optim.SGD(0.1), SPECS, device="numpy")


# Optimizers -----------------------------------------------------------------------------------------


async def test_one_optimizer_on_two_losses_is_one_optimizer() -> None:
    """The same momenta and count: two trainings of one loss are as one training of twice the steps."""
    whole = await line(optimizer=optim.Adam(optim.StepLR(0.1, 2)))
    expected = [(await whole.step(x=ONES * i)).loss for i in range(4)]
    first = await line(optimizer=optim.Adam(optim.StepLR(0.1, 2)))
    second = await tg.compile(first.state.module, squares, first.optimizer, LINE, state=first.state)
    found = [(await (first, second)[i % 2].step(x=ONES * i)).loss for i in range(4)]
    assert found == expected
    assert first.state.counts == {"optim": 4}
    assert_same(await second.state_dict(), await whole.state_dict(), counters=False)


async def test_one_optimizer_may_not_train_other_parameters_of_the_same_state() -> None:
    train = await line(optimizer=optim.Adam(0.1))
    only: Any = lambda model, x: tg.sum(model.weight * 2.0)  # noqa: E731
    with pytest.raises(tg.InputError, match=r"trains other parameters.*give it an optimizer of its own"):
        await tg.compile(train.state.module, only, train.optimizer, LINE, state=train.state)
    other = await tg.compile(train.state.module, only, optim.Adam(0.1), LINE, state=train.state)
    bias = (await weights(train))["bias"]
    await other.step(x=ONES)
    np.testing.assert_array_equal((await weights(train))["bias"], bias)
    assert train.state.counts == {"optim": 0, "optim2": 1}


async def test_one_optimizer_on_two_states_keeps_them_apart() -> None:
    """Each has momenta, a count and a place in the schedule of its own, whichever name the optimizer has there."""

    def rate(step: int) -> float:
        return 0.1 / (1 + step)

    alone, pair = await line(optimizer=optim.Adam(rate)), await line(optimizer=optim.SGD(0.5))
    shared = alone.optimizer
    second = await tg.compile(pair.state.module, squares, shared, LINE, state=pair.state)
    for train, times in ((alone, 1), (second, 3), (alone, 2), (second, 1)):
        for i in range(times):
            await train.step(x=ONES * (i + 1))
    assert (alone.state.counts, pair.state.counts) == ({"optim": 3}, {"optim": 0, "optim2": 4})
    for train, factors in ((alone, (1, 1, 2)), (second, (1, 2, 3, 1))):
        twin = await line(optimizer=optim.Adam(rate))
        for factor in factors:
            await twin.step(x=ONES * factor)
        expected = await weights(twin)
        for name, array in (await weights(train)).items():
            np.testing.assert_array_equal(array, expected[name], err_msg=name)


async def test_a_second_loss_sees_the_first_ones_updates_at_once() -> None:
    train = await start("numpy", dropout=0.0)
    other = await tg.compile(train.state.module, loss_fn, optim.SGD(0.0), SPECS, state=train.state)
    predict = await train.attach(lambda model, x, t: loss_fn(model, x, t), SPECS, training=False)
    seen = []
    for i in range(3):
        await train.step(batch(i))
        seen.append(float(await predict(batch(9))))
        assert (await other.step(batch(9))).loss == pytest.approx(seen[-1], rel=1e-6)
    assert len(set(seen)) == 3
