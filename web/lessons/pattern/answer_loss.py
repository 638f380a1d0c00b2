def squared_loss(model, x, y):
    answer = tg.sigmoid(model(x)[:, 0])
    return tg.mean((answer - y) ** 2)


train = await tg.compile(model, squared_loss, optim.Adam(0.02), specs, state=train.state)
print("Press Play: it goes on with this loss.")
