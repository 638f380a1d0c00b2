def arrays(n):
    data = {"x": numbers(n, 32), "y": np.arange(n, dtype=np.int32) % 10}
    return data | {"w1": numbers(32, 64), "b1": numbers(64), "w2": numbers(64, 10), "b2": numbers(10)}


def work(x, y, w1, b1, w2, b2):
    def loss(w1, b1, w2, b2):
        hidden = tg.relu(x @ w1 + b1)
        return tg.cross_entropy(hidden @ w2 + b2, y)

    weights = w1, b1, w2, b2
    slopes = tg.grad(loss, argnums=(0, 1, 2, 3))(*weights)
    return [weight - 0.1 * slope for weight, slope in zip(weights, slopes, strict=True)]
