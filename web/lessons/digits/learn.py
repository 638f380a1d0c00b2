rng = np.random.default_rng(0)
drawing = test_images[:1]
done = 0
plot.clear()


async def guess(image=None):
    """What the network sees in an image of bytes, or in the one before."""
    global drawing
    if image is not None:
        drawing = np.float32(image).reshape(1, 1, 28, 28) / 255
    show(drawing=drawing[0, 0], **await seen(x=drawing))


async def accuracy():
    """The part of the 1,000 test digits that are recognised."""
    return np.mean(await answers(x=test_images) == test_labels)


async def learn(steps):
    """Train for some steps, each on 64 digits drawn at random."""
    global done
    drawn = rng.integers(0, len(images), (steps, BATCH))
    losses = await train.run_steps(steps, {"x": images[drawn], "y": labels[drawn]})
    done += steps
    plot(losses.mean(), "loss", step=done)
    show(step=done, loss=losses.mean())
    await guess()


await guess()
show(step=0, accuracy=await accuracy())
