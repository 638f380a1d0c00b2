"""The checks of lesson 1's exercises."""

from __future__ import annotations

import numpy as np

import tensorgrad as tg
from tensorgrad_page.checking import Work, Wrong, compare, number

START = -0.6, 0.6
STEPS = 15


async def absolute(work: Work) -> str:
    """The gradient of the mean absolute error, by hand."""
    gradient = tg.grad(work.absolute_loss, argnums=(0, 1))
    for slope, height in ((-0.6, 0.6), (0.47, 0.03), (2.0, -1.0)):
        expected = await gradient(slope, height, work.x, work.y)
        got = work.absolute_by_hand(slope, height)
        if not isinstance(got, tuple | list) or len(got) != 2:
            raise Wrong("`absolute_by_hand` should return two numbers: to_slope, to_height.")
        for name, mine, right in zip(("to_slope", "to_height"), got, expected, strict=True):
            compare(f"At slope {slope}, height {height}, {name}", mine, float(right))
    return "Right: tg.grad finds the same numbers at three places. Far from the line or near, the pull is as strong."


def rate(work: Work) -> str:
    """A learning rate that arrives in time."""
    chosen = number("`my_rate`", work.my_rate)
    x, y = np.float64(work.x), np.float64(work.y)
    best = np.polyfit(x, y, 1)
    line = np.array(START)
    for _ in range(STEPS):
        error = line[0] * x + line[1] - y
        line -= chosen * 2 * np.array([np.mean(error * x), np.mean(error)])
        if np.abs(line).max() > 100:
            raise Wrong(f"With {chosen:g} each step lands higher on the other side: the walk leaves the picture.")
    away = np.abs(line - best)
    close = 0.01 * np.maximum(np.abs(best), 0.1)
    at = f"after {STEPS} steps the line is {line[0]:.3f} x {line[1]:+.3f}; it should be {best[0]:.3f} x {best[1]:+.3f}"
    if (away > close).any():
        steep = 2 * np.mean(x**2)
        late = "the slope" if away[0] / close[0] > away[1] / close[1] else "the height"
        too_large = abs(1 - chosen * 2) > abs(1 - chosen * steep)
        why = "too large: it jumps over the valley and back" if too_large else "too small"
        raise Wrong(f"{chosen:g} is {why}. {at[0].upper()}{at[1:]}: {late} is the furthest off.")
    return f"Right: {at}."


async def parabola(work: Work) -> str:
    """A loss with three numbers."""
    loss = tg.jit(work.parabola_loss)
    x, y = np.float32([0, 1, 2]), np.float32([1, 0, 3])
    for name, numbers in (("a", (1.0, 0.0, 0.0)), ("b", (0.0, 1.0, 0.0)), ("c", (0.0, 0.0, 1.0))):
        right = float(np.mean((numbers[0] * x**2 + numbers[1] * x + numbers[2] - y) ** 2))
        found = number("The loss", await loss(*numbers, x, y))
        if abs(found - right) > 1e-3:
            raise Wrong(f"With {name} = 1 and the others 0, the loss is {found:.3f}; it should be {right:.3f}.")
    for name, right in (("a", 1.5), ("b", -0.5), ("c", 0.25)):
        compare(f"`{name}`", getattr(work, name), right, tolerance=0.02)
    return "Right: nothing but the loss had to change. tg.grad found the gradient of the new one."
