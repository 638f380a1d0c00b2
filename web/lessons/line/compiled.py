from tensorgrad import nn, optim


def model_loss(model, x, y):
    return tg.mse_loss(model(x), y)


model = nn.Linear(1, 1)  # one number in, one out: a line
column = {"x": tg.f32[len(x), 1], "y": tg.f32[len(x), 1]}
train = await tg.compile(model, model_loss, optim.SGD(0.4), column)

for step in range(80):
    result = await train.step(x=x[:, None], y=y[:, None])
    if step % 20 == 0:
        print(f"step {step:3}  loss {result.loss:.5f}")

weights = (await train.state_dict())["model"]
found = weights["weight"].item(), weights["bias"].item()
best = np.polyfit(x, y, 1)
print(f"slope {found[0]:.4f}, height {found[1]:.4f}; least squares says {best[0]:.4f}, {best[1]:.4f}")
show(slope=found[0], height=found[1], loss=result.loss)
