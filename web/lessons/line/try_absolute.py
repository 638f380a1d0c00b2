def absolute_loss(slope, height, x, y):
    return tg.mean(tg.abs(slope * x + height - y))


def absolute_by_hand(slope, height):
    error = slope * x + height - y
    # The derivative of |e| is the sign of e. Mend these two lines:
    to_slope = np.mean(2 * error * x)
    to_height = np.mean(2 * error)
    return to_slope, to_height
