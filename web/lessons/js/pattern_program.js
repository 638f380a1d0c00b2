// The Python that the controls of lesson 2 write. Pure: from settings to text.

/** What each control begins with: settings that learn the spiral. */
export const DEFAULTS = {
  data: 'spiral', noise: 0.1, batch: 32, features: ['x1', 'x2'], depth: 2, width: 8, activation: 'Tanh',
  regularisation: 'none', strength: 0.001, rate: 0.02, seed: 1, side: 40,
};

const SETS = {
  circles: `def circles(count):
    """A disc inside a ring."""
    ring = np.arange(count) % 2
    radius = np.where(ring, rng.uniform(3.2, 5, count), rng.uniform(0, 2.2, count))
    angle = rng.uniform(0, 2 * np.pi, count)
    return radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]), ring`,
  xor: `def xor(count):
    """Four corners: those that lie across from each other are alike."""
    points = rng.uniform(0.4, 5, (count, 2)) * rng.choice([-1, 1], (count, 2))
    return points, (points[:, 0] * points[:, 1] > 0).astype(int)`,
  gaussians: `def gaussians(count):
    """Two clouds."""
    cloud = np.arange(count) % 2
    return rng.normal(0, 1, (count, 2)) + np.where(cloud, 2, -2)[:, None], cloud`,
  spiral: `def spiral(count):
    """Two arms that wind around each other."""
    arm = np.arange(count) % 2
    radius = np.sqrt(rng.uniform(0.02, 1, count))
    angle = 2.8 * np.pi * radius + np.pi * arm
    return 5 * radius[:, None] * np.column_stack([np.sin(angle), np.cos(angle)]), arm`,
};

export const FEATURES = {
  x1: ['x₁', 'x1'], x2: ['x₂', 'x2'], square1: ['x₁²', 'x1**2 / 5'], square2: ['x₂²', 'x2**2 / 5'],
  product: ['x₁x₂', 'x1 * x2 / 5'], sine1: ['sin x₁', 'np.sin(x1)'], sine2: ['sin x₂', 'np.sin(x2)'],
};

/** @returns {string} the program: data, model, loss, training, and what the picture is shown */
export function program(settings) {
  const { data, noise, batch, depth, width, activation, rate, seed, side } = settings;
  const chosen = settings.features.map((name) => FEATURES[name][1]);
  const layers = Array.from({ length: depth }, (_, i) => `    nn.Linear(${i ? width : chosen.length}, ${width}), nn.${activation}(),`);
  return `import numpy as np

import tensorgrad as tg
from tensorgrad import nn, optim

rng = np.random.default_rng(${seed})


${SETS[data]}


def sample(count):
    points, labels = ${data}(count)
    return points + rng.normal(0, ${noise}, points.shape), labels.astype(np.float32)


def features(points):
    x1, x2 = points.T
    return np.column_stack([${chosen.join(', ')}])


points, labels = sample(200)
test_points, test_labels = sample(200)
x, y = features(points), labels

nn.init.manual_seed(${seed})
model = nn.Sequential(
${[...layers, `    nn.Linear(${width}, 1),`].join('\n')}
)


def loss_fn(model, x, y):
    ${lossOf(settings)}


BATCH = ${batch}
specs = {"x": tg.f32[BATCH, ${chosen.length}], "y": tg.f32[BATCH]}
train = await tg.compile(model, loss_fn, optim.Adam(${rate}), specs, seed=${seed})


# What the picture needs: the network's answer all over the square, its neurons', its weights, and two scores.
SIDE = ${side}
line = np.linspace(-6, 6, SIDE)
square = np.column_stack([axis.ravel() for axis in np.meshgrid(line, -line)])


def look(model, square, x, y, test_x, test_y):
    neurons = []
    for layer in model:
        square = layer(square)
        if not isinstance(layer, nn.Linear):
            neurons.append(square.reshape(SIDE, SIDE, -1)[::2, ::2])
    weights = [layer.weight for layer in model if isinstance(layer, nn.Linear)]

    def score(x, y):
        answer = model(x)[:, 0]
        return {
            "loss": tg.binary_cross_entropy_with_logits(answer, y),
            "accuracy": tg.mean(tg.where(answer * (y - 0.5) > 0, 1.0, 0.0)),
        }

    answer = tg.sigmoid(square.reshape(SIDE, SIDE))
    return {"answer": answer, "neurons": neurons, "weights": weights, "train": score(x, y), "test": score(test_x, test_y)}


shape = {"square": tg.f32[None, ${chosen.length}], "x": tg.f32[200, ${chosen.length}], "y": tg.f32[200]}
seen = await train.attach(look, {**shape, "test_x": shape["x"], "test_y": shape["y"]})
shown = dict(square=features(square), x=x, y=y, test_x=features(test_points), test_y=test_labels)
done = 0


async def advance(steps):
    """Train for some steps, each on a batch of points drawn at random; then show what has become of it."""
    global done
    if steps:
        drawn = rng.integers(0, len(x), (steps, BATCH))
        await train.run_steps(steps, {"x": x[drawn], "y": y[drawn]})
        done += steps
    now = await seen(**shown)
    plot(now["train"]["loss"], "training", step=done)
    plot(now["test"]["loss"], "test", step=done)
    show(step=done, **now)


plot.clear()
show(points=points, labels=labels, test_points=test_points, test_labels=test_labels)
await advance(0)
`;
}

function lossOf({ regularisation, strength }) {
  const error = 'tg.binary_cross_entropy_with_logits(model(x)[:, 0], y)';
  if (regularisation === 'none') return `return ${error}`;
  const size = { l1: 'tg.sum(tg.abs(layer.weight))', l2: 'tg.sum(layer.weight**2)' }[regularisation];
  return `error = ${error}
    size = sum(${size} for layer in model if isinstance(layer, nn.Linear))
    return error + ${strength} * size  # large weights cost something too`;
}
