# Here each figure comes in another hand, drawn at random.
async def in_the_hand_of(i, text):
    """What `text` says, in the hand of test digit `i`: pictures [len(text), 1, 28, 28]."""
    figures = [int(letter) for letter in text]
    place = np.float32(rng.standard_normal((len(figures), 2)))
    return await write(place=place, digit=each[figures])


display(test_images[7, 0], np.hstack((await in_the_hand_of(7, "2026"))[:, 0]))
