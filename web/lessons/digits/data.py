import io

import numpy as np
from pyodide.http import pyfetch

import tensorgrad as tg
from tensorgrad import nn, optim

# 9,000 handwritten digits to learn from and 1,000 others to test with, 28 x 28 pixels each.
file = await pyfetch("../data/mnist.npz")
digits = np.load(io.BytesIO(await file.bytes()))
images = np.float32(digits["train_images"]).reshape(-1, 1, 28, 28) / 255
labels = digits["train_labels"].astype(np.int32)
test_images = np.float32(digits["test_images"]).reshape(-1, 1, 28, 28) / 255
test_labels = digits["test_labels"].astype(np.int32)
print(images.shape, test_images.shape)
