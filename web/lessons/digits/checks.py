"""The checks of lesson 3's exercises."""

from __future__ import annotations

import warnings

import numpy as np

from tensorgrad_page.checking import Work, Wrong, compare


async def each(work: Work) -> str:
    """The accuracy of each digit."""
    mine = np.asarray(work.per_digit, np.float64)
    if mine.shape != (10,):
        raise Wrong(f"`per_digit` should hold ten numbers; its shape is {list(mine.shape)}.")
    found, labels = await work.answers(x=work.test_images), work.test_labels
    if np.allclose(mine, np.mean(found == labels)):
        raise Wrong("All ten are the accuracy of all digits: look at the images of one digit at a time.")
    right = [np.mean(found[labels == digit] == digit) for digit in range(10)]
    for digit in range(10):
        compare(f"The accuracy of the digit {digit}", mine[digit], float(right[digit]))
    return f"Right. The hardest is the {int(np.argmin(right))}: {min(right):.3f} of them are recognised."


def softmax(work: Work) -> str:
    """The softmax, for large numbers too."""
    for numbers in ([1.0, 2.0, 3.0], [-1.0, 0.0, 0.0, 4.0]):
        given = np.float32(numbers)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got = np.asarray(work.softmax(given), np.float64)
        if got.shape != given.shape:
            raise Wrong(f"Of {len(numbers)} numbers it makes {got.size}, of shape {list(got.shape)}.")
        compare(f"The sum of softmax({numbers})", got.sum(), 1.0)
        compare(f"The last of softmax({numbers})", got[-1], float(np.exp(given[-1]) / np.exp(given).sum()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        large = np.asarray(work.softmax(np.float32([1000, 1000])))
    if not np.allclose(large, 0.5):
        raise Wrong(
            f"Right for small numbers, but softmax([1000, 1000]) is {large.tolist()}: exp(1000) is infinite. "
            "What happens to the result if the largest is first taken away from all?"
        )
    return "Right, and it survives large numbers: tg.softmax does the same."
