def arrays(n):
    return {"x": numbers(n, 64), "scale": numbers(64), "shift": numbers(64)}


def work(x, scale, shift):
    centred = x - tg.mean(x, axis=1, keepdims=True)
    variance = tg.mean(centred**2, axis=1, keepdims=True)
    return centred / tg.sqrt(variance + 1e-5) * scale + shift
