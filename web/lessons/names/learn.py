rng = np.random.default_rng(0)
temperature = 0.8
beginning = "mari"
done = 0
plot.clear()


def started(text, count=1):
    """A beginning as tokens, count times."""
    found = np.zeros((count, CONTEXT), np.int32)
    found[:, 1 : len(text) + 1] = [LETTERS.index(letter) for letter in text]
    return found


async def look(text=None):
    """What may follow a beginning, or the one before, and which letters each head looks at."""
    global beginning
    beginning = beginning if text is None else text
    size = len(beginning) + 1
    numbers, attention = await seen(tokens=started(beginning))
    maps = [list(heads[0, :, :size, :size]) for heads in attention]
    show(beginning=beginning, numbers=numbers[0, size - 1], attention=maps)


async def invent(count=8, text=""):
    """Names with this beginning, all of them a letter longer at a time."""
    found = started(text, count)
    for place in range(len(text), CONTEXT - 1):
        letters = await draw(tokens=found, temperature=temperature)
        found[:, place + 1] = letters[:, place]  # what was drawn at other places is not used
    return [text + "".join(LETTERS[i] for i in row[len(text) + 1 :]).partition(".")[0] for row in found]


async def test():
    """The loss on names that it never learns from, and what it invents."""
    loss = await measure(tokens=test_tokens, targets=test_targets)
    plot(loss, "test", step=done)
    plot(bigrams, "bigrams", step=done)
    show(step=done, test=loss, bigrams=bigrams, invented=await invent())


def drawn(steps):
    """Batches of names, drawn at random."""
    rows = rng.integers(0, len(tokens), (steps, BATCH))
    return {"tokens": tokens[rows], "targets": targets[rows]}


async def learn(steps):
    """Train for some steps."""
    global done
    losses = await train.run_steps(steps, drawn(steps))
    done += steps
    plot(losses.mean(), "training", step=done)
    show(step=done, loss=losses.mean())
    await look()


await look()
await test()
