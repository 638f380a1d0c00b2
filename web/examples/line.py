import numpy as np

import tensorgrad as tg

# Points near a line, and its slope and height found again: gradient descent by hand.
rng = np.random.default_rng(0)
x = rng.uniform(-1, 1, 64).astype(np.float32)
y = (3 * x - 1 + rng.normal(0, 0.1, 64)).astype(np.float32)


def loss_fn(line, x, y):
    slope, height = line
    return tg.mean((slope * x + height - y) ** 2)


loss_and_gradient = tg.value_and_grad(loss_fn)
slope, height = 0.0, 0.0
for _ in range(60):
    loss, (to_slope, to_height) = await loss_and_gradient((slope, height), x, y)
    slope -= 0.3 * to_slope
    height -= 0.3 * to_height
    plot(loss)
print(f"y = {slope:.2f} x {height:+.2f}")
