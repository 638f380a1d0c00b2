"""The checks of lesson 5's exercises."""

from __future__ import annotations

import numpy as np

from tensorgrad_page.checking import Work, Wrong, compare


async def hand(work: Work) -> str:
    """Several figures in the hand of one test digit."""
    for i, text in ((7, "2026"), (11, "31")):
        got = np.asarray(await work.in_the_hand_of(i, text))
        if got.shape != (len(text), 1, 28, 28):
            raise Wrong(f"Of {text!r} it makes an array of shape {list(got.shape)}, not [{len(text)}, 1, 28, 28].")
        if np.abs(got - await work.in_the_hand_of(i, text)).max() > 1e-4:
            raise Wrong("Twice the same gives two pictures: the hand is drawn at random, not that of the test digit.")
        mean, _ = await work.encode(x=work.test_images[i : i + 1], y=work.test_labels[i : i + 1])
        for n, figure in enumerate(text):
            right = await work.write(place=mean, digit=work.each[[int(figure)]])
            if np.abs(got[n] - right[0]).max() > 1e-3:
                raise Wrong(f"The {figure} in {text!r} is not what the decoder writes at the place of test digit {i}.")
    if work.done == 0:
        return "Right. Press Play and run it again: untrained, it writes fog."
    return "Right: one hand writes all of them, though it was seen in one digit only."


async def bits(work: Work) -> str:
    """The information in each of the two numbers."""
    got = np.asarray(work.bits, np.float64)
    mean, log_variance = await work.encode(x=work.test_images[:300], y=work.test_labels[:300])
    nats = ((mean**2 + np.exp(log_variance) - 1 - log_variance) / 2).mean(0)
    if got.shape != (2,):
        raise Wrong(f"`bits` should hold two numbers, one for each of the plane's; its shape is {list(got.shape)}.")
    if np.allclose(got, nats, rtol=1e-3, atol=1e-6) and nats.max() > 1e-3:
        raise Wrong("These are nats: a bit is log 2 = 0.693 of them.")
    for n, name in enumerate(("first", "second")):
        compare(f"What the {name} number says", got[n], float(nats[n] / np.log(2)))
    total = got.sum()
    return f"Right: {total:.1f} bits of the hand, so that the decoder can tell some {2**total:.0f} hands apart."
