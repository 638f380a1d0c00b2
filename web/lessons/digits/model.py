class Classifier(nn.Module):
    def __init__(self):
        self.first = nn.Conv2d(1, 8, 5, stride=2, padding=2)
        self.second = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.out = nn.Linear(16 * 7 * 7, 10)

    def maps(self, x):
        """What the filters of both layers answer, 14 x 14 and 7 x 7 places."""
        first = tg.relu(self.first(x))
        return first, tg.relu(self.second(first))

    def forward(self, x):
        return self.out(self.maps(x)[1].reshape(len(x), -1))


def loss_fn(model, x, y):
    return tg.cross_entropy(model(x), y)


def look(model, x):
    first, second = model.maps(x)
    return {
        "guess": tg.softmax(model(x))[0],
        "first": first[0],
        "second": second[0],
        "filters": model.first.weight[:, 0],
    }


BATCH = 64
nn.init.manual_seed(0)
model = Classifier()
batch = {"x": tg.f32[BATCH, 1, 28, 28], "y": tg.i32[BATCH]}
train = await tg.compile(model, loss_fn, optim.Adam(3e-3), batch, seed=0)
answers = await train.attach(lambda model, x: tg.argmax(model(x), 1), {"x": tg.f32[None, 1, 28, 28]})
seen = await train.attach(look, {"x": tg.f32[1, 1, 28, 28]})
