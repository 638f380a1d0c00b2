"""What the rows of the table share: tolerances with their reasons, and values at the edges."""

from __future__ import annotations

import math

import numpy as np

from table import LONG, ODD, Tolerance, f32s, normal

INF, NAN = math.inf, math.nan
RNG = np.random.default_rng(0)

EXPONENTIAL = Tolerance(3e-6, 1.2e-38, "WGSL allows exp 3 + 2|x| ULPs, and may flush subnormals")
POLYNOMIAL = Tolerance(1.5e-6, 3e-7, "our own polynomial, a few ULPs; near its zeros relative to 1")
ROOT = Tolerance(6e-7, 1.2e-38, "WGSL allows sqrt what a division and inverseSqrt (2 ULPs) give")
QUOTIENT = Tolerance(4e-7, 1.2e-38, "WGSL allows a division 2.5 ULPs")
POWER = Tolerance(1e-5, 1.2e-38, "the rounding of b * log2(a) grows with it")
SUMS = Tolerance(3e-6, 2e-5, "float32 sums in another order")

EDGES = f32s(-INF, -1e30, -89, -15, -1.5, -0.5, -1e-4, -0.0, 0.0, 1e-4, 0.5, 1, 2.5, 15, 88, 1e30, INF, NAN)
TINY = f32s(-1e-39, 1e-39, 1.2e-38, -1.5e-45, 3e38, -3e38)
INTS = np.array([0, 1, -1, 7, -7, 2**31 - 1, -(2**31), 65_536, -65_537], np.int32)
WORDS = np.array([0, 1, 7, 2**31, 2**32 - 1, 65_537], np.uint32)
ERF = np.vectorize(math.erf, otypes=[np.float64])
ORDER = np.arange(12, dtype=np.float32).reshape(3, 4)
X = normal(RNG, ODD)
SQUARE = normal(RNG, (4, 4))
LINE = normal(RNG, (LONG,))
EMPTY = np.zeros((2, 0, 3), np.float32)
