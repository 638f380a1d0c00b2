import numpy as np

import tensorgrad as tg
from tensorgrad import nn, optim

# One training step, and what becomes of it: a graph, then few kernels, timed.


def loss_fn(model, x, y):
    return tg.mse_loss(model(x), y)


model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 1))
batch = {"x": tg.f32[64, 8], "y": tg.f32[64, 1]}
train = await tg.compile(model, loss_fn, optim.Adam(1e-2), batch)

x = np.random.default_rng(0).normal(size=(64, 8))
y = np.sin(x.sum(axis=1, keepdims=True))
for _ in range(100):
    plot((await train.step(x=x, y=y)).loss)

display(train.graph)
display(train.kernels)
if train.state.backend.name == "webgpu":
    display(await train.profile())
