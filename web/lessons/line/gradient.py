def by_hand(slope, height):
    error = slope * x + height - y
    return np.mean(2 * error * x), np.mean(2 * error)


by_grad = tg.grad(loss_fn, argnums=(0, 1))

for place in [(-0.6, 0.6), (0.5, 0.0), (2.0, -1.0)]:
    hand = by_hand(*place)
    found = await by_grad(*place, x, y)
    print("at", place, f" by hand {hand[0]:.4f}, {hand[1]:.4f}", f" tg.grad {found[0]:.4f}, {found[1]:.4f}")
