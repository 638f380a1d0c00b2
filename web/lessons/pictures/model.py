TOLD = 1  # with 0, nobody tells the network which digit it is


class Autoencoder(nn.Module):
    def __init__(self):
        self.encoder = nn.Sequential(nn.Linear(784 + 10, 128), nn.Tanh(), nn.Linear(128, 4))
        self.decoder = nn.Sequential(nn.Linear(2 + 10, 128), nn.Tanh(), nn.Linear(128, 784))

    def encode(self, x, digit):
        """Where in the plane a picture lies: a place, and the logarithm of the variance around it."""
        return tg.split(self.encoder(tg.cat([x.reshape(len(x), 784), TOLD * digit], 1)), 2, 1)

    def decode(self, place, digit):
        """A digit in the hand of a place; sigmoid makes ink, 0 to 1, of these numbers."""
        return self.decoder(tg.cat([place, TOLD * digit], 1))


def loss_fn(model, x, y):
    digit = tg.one_hot(y, 10)
    mean, log_variance = model.encode(x, digit)
    place = mean + tg.exp(log_variance / 2) * tg.randn_like(mean)
    drawn = model.decode(place, digit)
    pixels = tg.binary_cross_entropy_with_logits(drawn, x.reshape(len(x), 784), reduction="sum")
    places = (mean**2 + tg.exp(log_variance) - 1 - log_variance).sum() / 2
    return (pixels + places) / len(x)


BATCH = 64
nn.init.manual_seed(0)
batch = {"x": tg.f32[BATCH, 1, 28, 28], "y": tg.i32[BATCH]}
train = await tg.compile(Autoencoder(), loss_fn, optim.Adam(5e-3), batch, seed=0)
write = await train.attach(
    lambda model, place, digit: tg.sigmoid(model.decode(place, digit)).reshape(-1, 1, 28, 28),
    {"place": tg.f32[None, 2], "digit": tg.f32[None, 10]},
)
encode = await train.attach(
    lambda model, x, y: model.encode(x, tg.one_hot(y, 10)), {"x": tg.f32[None, 1, 28, 28], "y": tg.i32[None]}
)
