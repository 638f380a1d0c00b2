# The network of lesson 3, with the weights that it has come to there: it will tell what can be read.
class Classifier(nn.Module):
    def __init__(self):
        self.first = nn.Conv2d(1, 8, 5, stride=2, padding=2)
        self.second = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.out = nn.Linear(16 * 7 * 7, 10)

    def forward(self, x):
        x = tg.relu(self.second(tg.relu(self.first(x))))
        return self.out(x.reshape(len(x), -1))


classifier = Classifier()
file = await pyfetch("../lessons/recorded/reader.safetensors")
classifier.load_state_dict(tg.load(await file.bytes()))
read = await tg.compile_forward(classifier, lambda model, x: tg.softmax(model(x), 1), {"x": tg.f32[None, 1, 28, 28]})

answers = await read(x=test_images[:500])
print(f"Of 500 real digits it reads {np.mean(answers.argmax(1) == test_labels[:500]):.1%}.")
