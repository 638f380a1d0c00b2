# Points on a curve. Write the loss of y = a x² + b x + c, and let tg.grad do the rest.
curve_x = np.linspace(-1, 1, 21, dtype=np.float32)
curve_y = 1.5 * curve_x**2 - 0.5 * curve_x + 0.25


def parabola_loss(a, b, c, x, y):
    return tg.mean((b * x + c - y) ** 2)


a, b, c = 0.0, 0.0, 0.0
parabola_grad = tg.grad(parabola_loss, argnums=(0, 1, 2))
for _ in range(150):
    to_a, to_b, to_c = await parabola_grad(a, b, c, curve_x, curve_y)
    a, b, c = a - 0.6 * float(to_a), b - 0.6 * float(to_b), c - 0.6 * float(to_c)
print(f"a {a:.3f}, b {b:.3f}, c {c:.3f}")
