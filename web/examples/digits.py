import io

import numpy as np
from pyodide.http import pyfetch

import tensorgrad as tg
from tensorgrad import nn, optim

# Handwritten digits: 28 x 28 pixels each, and which digit it is.
file = await pyfetch("../data/mnist.npz")
digits = np.load(io.BytesIO(await file.bytes()))
images = digits["train_images"] / np.float32(255)
labels = digits["train_labels"].astype(np.int32)
display(images[:20].reshape(-1, 28, 28))


class Classifier(nn.Module):
    def __init__(self):
        self.hidden = nn.Linear(784, 64)
        self.out = nn.Linear(64, 10)

    def forward(self, x):
        return self.out(tg.relu(self.hidden(x)))


def loss_fn(model, x, y):
    return tg.cross_entropy(model(x), y)


batch = {"x": tg.f32[64, 784], "y": tg.i32[64]}
train = await tg.compile(Classifier(), loss_fn, optim.Adam(2e-3), batch)
rng = np.random.default_rng(0)
for _ in range(300):
    some = rng.choice(len(images), 64, replace=False)
    result = await train.step(x=images[some], y=labels[some])
    plot(result.loss)

predict = await train.attach(lambda model, x: model(x), {"x": tg.f32[None, 784]})
test = digits["test_images"] / np.float32(255)
guess = (await predict(x=test)).argmax(axis=1)
wrong = guess != digits["test_labels"]
print(f"{wrong.sum()} of {len(test)} wrong; the first of them, taken for {guess[wrong][:20]}:")
display(test[wrong][:20].reshape(-1, 28, 28))
