rng = np.random.default_rng(1)
each = np.eye(10, dtype=np.float32)  # the ten digits, as the decoder is told them
asked = np.arange(500) % 10
places = np.float32(rng.standard_normal((50, 2)).repeat(10, 0))  # 50 hands, drawn at random, write ten digits each
line = np.float32(np.arange(7) - 3) * 6 / 7
square = np.stack(np.meshgrid(line, -line), -1).reshape(-1, 2)
hand, digit, ends = (0, 0), 3, [list(test_labels).index(kind) for kind in (3, 8)]
done = 0
plot.clear()


async def at(*place):
    """The ten digits in the hand of one place."""
    global hand
    hand = place
    written = await write(place=np.float32([hand] * 10), digit=each)
    chances = await read(x=written)
    show(hand=hand, written=written[:, 0], chances=chances)


async def choose(which):
    """One digit in hands from all over the plane."""
    global digit
    digit = which
    tiles = await write(place=square, digit=each[[digit] * 49])
    show(digit=digit, tiles=tiles[:, 0, ::2, ::2])


async def between(*two):
    """From one test digit to another in ten pictures, along a straight line."""
    global ends
    ends = list(two)
    t = np.linspace(0, 1, 10, dtype=np.float32)[:, None]
    (first, second), (a, b) = spots[ends], each[test_labels[ends]]
    way = await write(place=(1 - t) * first + t * second, digit=(1 - t) * a + t * b)
    show(ends=test_images[ends, 0], way=way[:, 0])


async def look():
    """Draw 500 digits and have them read; see where 300 test digits lie; draw everything else again."""
    global spots
    drawn = await write(place=places, digit=each[asked])
    chances = await read(x=drawn)
    right = chances.argmax(1) == asked
    sure = right & (chances.max(1) >= 0.9)
    show(step=done, recognised=right.mean(), sure=sure.mean(), samples=drawn[:20, 0], read=chances[:20].argmax(1))
    spots, _ = await encode(x=test_images[:300], y=test_labels[:300])
    show(places=spots, kinds=test_labels[:300])
    await at(*hand)
    await choose(digit)
    await between(*ends)


async def advance(steps):
    """Train for some steps, each on 64 digits drawn at random."""
    global done
    drawn = rng.integers(0, len(images), (steps, BATCH))
    losses = await train.run_steps(steps, {"x": images[drawn], "y": labels[drawn]})
    done += steps
    plot(losses.mean(), "loss", step=done)
    show(loss=losses.mean())
    await look()


await look()
