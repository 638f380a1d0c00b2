slope, height = -0.6, 0.6  # where the walk starts
rate = 0.4
loss_and_gradient = tg.value_and_grad(loss_fn, argnums=(0, 1))


async def look():
    """What the picture shows: the line, its loss, and the gradient by both ways."""
    loss, gradient = await loss_and_gradient(slope, height, x, y)
    show(slope=slope, height=height, loss=loss, gradient=gradient, by_hand=by_hand(slope, height))
    return gradient


async def descend(steps=1):
    """Walk down: each step goes against the gradient, rate times as far as it is long."""
    global slope, height
    for _ in range(steps):
        to_slope, to_height = await look()
        slope -= rate * float(to_slope)
        height -= rate * float(to_height)
    await look()


to_slope, to_height = await look()
