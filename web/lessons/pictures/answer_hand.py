async def in_the_hand_of(i, text):
    """What `text` says, in the hand of test digit `i`: pictures [len(text), 1, 28, 28]."""
    figures = [int(letter) for letter in text]
    mean, _ = await encode(x=test_images[i : i + 1], y=test_labels[i : i + 1])
    return await write(place=mean.repeat(len(figures), 0), digit=each[figures])


display(test_images[7, 0], np.hstack((await in_the_hand_of(7, "2026"))[:, 0]))
