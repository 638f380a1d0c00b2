def arrays(n):
    return {"x": numbers(n, 64)}


def work(x):
    powers = tg.exp(x - tg.max(x, axis=1, keepdims=True))
    return powers / tg.sum(powers, axis=1, keepdims=True)
