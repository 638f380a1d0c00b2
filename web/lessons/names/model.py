class Attention(nn.Module):
    def __init__(self, width, heads, masked):
        self.heads, self.masked = heads, masked
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        """What every place takes from the others, and how much from each: [n, heads, to, from]."""
        q, k, v = (tg.split_heads(part, self.heads) for part in tg.chunk(self.qkv(x), 3, -1))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if self.masked:  # nobody looks ahead
            place = tg.arange(CONTEXT)
            scores = tg.where(place <= place[:, None], scores, -np.inf)
        weights = tg.softmax(scores)
        return self.out(tg.merge_heads(weights @ v)), weights


class Block(nn.Module):
    def __init__(self, width, heads, masked):
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, masked)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        taken, weights = self.attention(self.norm1(x))
        x = x + taken
        return x + self.mlp(self.norm2(x)), weights


class Transformer(nn.Module):
    def __init__(self, width=32, heads=4, layers=2, masked=True):
        self.letters = nn.Embedding(len(LETTERS), width)
        self.places = nn.Embedding(CONTEXT, width)
        self.blocks = nn.ModuleList([Block(width, heads, masked) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, len(LETTERS))

    def look(self, tokens):
        """A number for each letter that may follow, [n, CONTEXT, 27], and the attention of each block."""
        x, attention = self.letters(tokens) + self.places.weight, []
        for block in self.blocks:
            x, weights = block(x)
            attention.append(weights)
        return self.head(self.norm(x)), attention

    def forward(self, tokens):
        return self.look(tokens)[0]


def loss_fn(model, tokens, targets):
    return tg.cross_entropy(model(tokens).reshape(-1, len(LETTERS)), targets.reshape(-1), ignore_index=-100)


BATCH = 64
nn.init.manual_seed(0)
batch = {"tokens": tg.i32[BATCH, CONTEXT], "targets": tg.i32[BATCH, CONTEXT]}
train = await tg.compile(Transformer(), loss_fn, optim.AdamW(5e-3), batch, seed=0)

some = {"tokens": tg.i32[None, CONTEXT]}
measure = await train.attach(loss_fn, {**some, "targets": tg.i32[None, CONTEXT]})
answers = await train.attach(lambda model, tokens: model(tokens), some)
seen = await train.attach(lambda model, tokens: model.look(tokens), some)
draw = await train.attach(
    lambda model, tokens, temperature: tg.categorical(model(tokens) / temperature), {**some, "temperature": tg.f32[()]}
)
