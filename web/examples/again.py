import numpy as np

import tensorgrad as tg
from tensorgrad import nn, optim

# Run this again, or come back tomorrow: it goes on where it stopped.
x = np.linspace(-3, 3, 256)[:, None]
y = np.sin(2 * x)


class MLP(nn.Module):
    def __init__(self):
        self.first = nn.Linear(1, 64)
        self.out = nn.Linear(64, 1)

    def forward(self, x):
        return self.out(tg.tanh(self.first(x)))


def loss_fn(model, x, y):
    return tg.mse_loss(model(x), y)


batch = {"x": tg.f32[256, 1], "y": tg.f32[256, 1]}
train = await tg.compile(MLP(), loss_fn, optim.AdamW(3e-3), batch)

# The weights and the optimizer's state, where this browser has them.
if await train.resume("sine"):
    print("goes on from last time")
else:
    print("starts anew")

for _ in range(200):
    result = await train.step(x=x, y=y)
    plot(result.loss)

await train.autosave("sine")
print(f"loss {result.loss:.4f}")
# To begin from the start: await tg.browser.forget("sine")
