def arrays(n):
    return {"x": numbers(n, 64), "w": numbers(64, 64), "b": numbers(64)}


def work(x, w, b):
    return tg.relu(x @ w + b)
