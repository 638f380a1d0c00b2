import numpy as np

import tensorgrad as tg
from tensorgrad import nn, optim

# Two spirals, 128 points each: which arm does a point lie on?
turn = np.tile(np.linspace(0.5, 3.5, 128), 2) * np.pi
arm = np.repeat([0, 1], 128)
angle = turn + arm * np.pi
points = np.column_stack([np.cos(angle), np.sin(angle)])
points *= turn[:, None] / 8


class MLP(nn.Module):
    def __init__(self):
        self.first = nn.Linear(2, 32)
        self.second = nn.Linear(32, 32)
        self.out = nn.Linear(32, 2)

    def forward(self, x):
        x = tg.relu(self.first(x))
        x = tg.relu(self.second(x))
        return self.out(x)


def loss_fn(model, x, y):
    return tg.cross_entropy(model(x), y)


batch = {"x": tg.f32[256, 2], "y": tg.i32[256]}
train = await tg.compile(MLP(), loss_fn, optim.AdamW(1e-2), batch)

for _ in range(300):
    result = await train.step(x=points, y=arm)
    plot(result.loss)

query = {"x": tg.f32[None, 2]}
predict = await train.attach(lambda model, x: model(x), query)
guess = (await predict(x=points)).argmax(axis=1)
accuracy = (guess == arm).mean()
print(f"loss {result.loss:.4f}, accuracy {accuracy:.3f}")
