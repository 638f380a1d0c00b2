def loss_fn(slope, height, x, y):
    error = slope * x + height - y  # how far the line is above each point
    return tg.mean(error**2)


loss = tg.jit(loss_fn)
print("a flat line:  ", await loss(0.0, 0.0, x, y))
print("a steeper one:", await loss(0.8, 0.0, x, y))
