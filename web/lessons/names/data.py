import io

import numpy as np
from pyodide.http import pyfetch

import tensorgrad as tg
from tensorgrad import nn, optim

# 89,910 names of the US census of 1990 to learn from, and 1,000 others to test with.
file = await pyfetch("../data/names.npz")
names = np.load(io.BytesIO(await file.bytes()))

LETTERS = ".abcdefghijklmnopqrstuvwxyz"  # a token is a place in here; the point stands before and after each name
CONTEXT = 14  # the point, and at most 13 letters


def encoded(names):
    """Names as tokens, and for each token the one that follows, [n, CONTEXT] both; -100 where there is none."""
    letters = names.view(np.uint8).reshape(len(names), -1).astype(np.int32)
    letters[letters > 0] -= ord("a") - 1
    targets = np.pad(letters, ((0, 0), (0, 1)))
    targets[np.arange(CONTEXT) > (letters > 0).sum(1, keepdims=True)] = -100
    return np.pad(letters, ((0, 0), (1, 0))), targets


tokens, targets = encoded(names["train"])
test_tokens, test_targets = encoded(names["validation"][:1000])
print(b", ".join(names["train"][:8]).decode())
