"""Random models, trained as on a GPU and by the reference rules: passes, arenas and lowering together."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from steps import on_gpu
from tensorgrad import nn, ops, optim
from tensorgrad.backend import Interpret, Numpy
from tensorgrad.optim import optimizer as arenas
from tensorgrad.tensor import Tensor
from tensorgrad.wgsl.generate import generate

Block = Callable[[Tensor], Tensor]


class Random(nn.Module):
    """A stack of blocks that a seed chooses; each keeps `[rows, features]`, and all pick from the same parameters."""

    def __init__(self, rng: np.random.Generator, rows: int) -> None:
        self.rng, self.rows = rng, rows
        self.features = int(rng.choice([1, 3, 4, 8, 16, 20]))
        self.own = nn.ParameterDict({})
        self.parts = nn.ModuleList([])
        kinds = [self.linear, self.tied, self.norm, self.embedding, self.conv, self.batch_norm, self.attention]
        kinds += [self.scalar, self.bias_twice, self.sums, self.half, self.empty, self.wide, self.depthwise, self.pool]
        self.blocks = tuple(kinds[i]() for i in rng.integers(len(kinds), size=int(rng.integers(1, 6))))
        self.last = nn.Linear(self.features, 2)

    def param(self, *shape: int, dtype: Any = np.float32) -> str:
        """Sometimes one that is there already, of the same shape."""
        same = [n for n, p in self.own.items() if p.shape == shape and p.dtype.numpy == dtype]
        if same and self.rng.random() < 0.4:
            return str(self.rng.choice(same))
        name = f"{self.rng.choice(['weight', 'bias'])}{len(self.own)}"
        self.own[name] = nn.Parameter((0.5 * self.rng.normal(size=shape)).astype(dtype))
        return name

    def module(self, part: nn.Module) -> int:
        self.parts.append(part)
        return len(self.parts) - 1

    def linear(self) -> Block:
        w, b = self.param(self.features, self.features), self.param(self.features)
        return lambda x: ops.gelu(ops.linear(x, self.own[w], self.own[b]))

    def wide(self) -> Block:
        n = int(self.rng.choice([1, 5, 33, 67]))
        w, b, back = self.param(n, self.features), self.param(n), self.param(self.features, n)
        activation = [ops.relu, ops.gelu, ops.silu, ops.tanh][int(self.rng.integers(4))]
        return lambda x: x + ops.linear(activation(ops.linear(x, self.own[w], self.own[b])), self.own[back])

    def tied(self) -> Block:
        w = self.param(self.features, self.features)
        return lambda x: ops.tanh(x @ self.own[w]) @ self.own[w].T

    def norm(self) -> Block:
        i = self.module(nn.LayerNorm(self.features))
        return lambda x: self.parts[i](x) + x

    def embedding(self) -> Block:
        table = self.param(int(self.rng.choice([1, 7, 30])), self.features)

        def block(x: Tensor) -> Tensor:
            ids = ops.iota((self.rows,), 0) * 7 % self.own[table].shape[0]
            return x + ops.take(self.own[table], ids, 0)

        return block

    def conv(self) -> Block:
        i = self.module(nn.Conv1d(1, 3, 3, padding=1, stride=int(self.rng.choice([1, 2]))))
        return lambda x: x + ops.mean(ops.relu(self.parts[i](ops.expand_dims(x, 1))), (1, 2)).reshape(-1, 1)

    def depthwise(self) -> Block:
        i = self.module(nn.Conv1d(self.features, self.features, 3, padding=1, groups=self.features))
        return lambda x: x + self.parts[i](x.T.reshape(1, self.features, -1))[0].T

    def pool(self) -> Block:
        i = self.module(nn.Conv2d(1, 4, (3, 1), padding=(1, 0)))

        def block(x: Tensor) -> Tensor:
            image = self.parts[i](x.reshape(1, 1, *x.shape))
            pooled = ops.max_pool2d(image, (2, 1))
            return x + ops.mean(ops.cat([pooled, pooled], 2)[0], 0)

        return block

    def batch_norm(self) -> Block:
        i = self.module(nn.BatchNorm1d(self.features))
        return lambda x: self.parts[i](x) + x

    def attention(self) -> Block:
        heads = 2 if self.features % 2 == 0 else 1
        w, b = self.param(3 * self.features, self.features), self.param(3 * self.features)
        causal, length = bool(self.rng.random() < 0.5), int(self.rng.choice([16, 32]))

        def block(x: Tensor) -> Tensor:
            qkv = ops.linear(x, self.own[w], self.own[b]).reshape(-1, length, 3, heads, self.features // heads)
            q, k, v = (ops.permute(qkv[:, :, n], (0, 2, 1, 3)) for n in range(3))
            out = ops.scaled_dot_product_attention(q, k, v, is_causal=causal)
            return x + ops.permute(out, (0, 2, 1, 3)).reshape(x.shape)

        return block

    def scalar(self) -> Block:
        s = self.param()
        return lambda x: x * self.own[s] + self.own[s]

    def bias_twice(self) -> Block:
        w, b = self.param(self.features, self.features), self.param(self.features)

        def block(x: Tensor) -> Tensor:
            first = ops.tanh(ops.linear(x, self.own[w], self.own[b]))
            return x + ops.tanh(ops.linear(first, self.own[w], self.own[b]) + self.own[b])

        return block

    def sums(self) -> Block:
        """Sums along other axes, of what products read as well."""
        w, b = self.param(self.features, self.features), self.param(self.rows, 1)
        return lambda x: ops.tanh(x @ self.own[w] + ops.sum(x, 0) * 0.01 + ops.sum(x, 1, keepdims=True) + self.own[b])

    def half(self) -> Block:
        b = self.param(self.features, dtype=np.float16)
        return lambda x: x + ops.cast(self.own[b], tg.f32)

    def empty(self) -> Block:
        w = self.param(0, self.features)
        return lambda x: x + ops.sum(x @ self.own[w].T, 1, keepdims=True) + ops.sum(self.own[w])

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x) * 0.7
        return self.last(x)


def random_optimizer(rng: np.random.Generator) -> optim.Optimizer:
    options: dict[str, Any] = {}
    if rng.random() < 0.3:
        options["clip_norm"] = 0.1
    if rng.random() < 0.2:
        options["clip_value"] = 0.01
    if rng.random() < 0.4:
        options["groups"] = [("*bias*", {"weight_decay": 0.3}), ("own.*", {"lr": 0.02})]
    if rng.random() < 0.5:
        return optim.SGD(0.01, momentum=0.9, weight_decay=0.1, **options)
    # a large eps: what rounding does to the smallest gradients is not seen
    return optim.AdamW(0.01, eps=1e-2, **options)


def trained(seed: int, backend: Any) -> tuple[Any, list[float], dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The training step of a seed, its losses, the weights after three steps, and what the host captured."""
    rng = np.random.default_rng(seed)
    nn.init.manual_seed(seed)
    rows = int(rng.choice([32, 64, 96, 192]))
    model, optimizer = Random(rng, rows), random_optimizer(rng)
    if not any(name.startswith("own.") and "bias" not in name for name, _ in model.named_parameters()):
        optimizer.groups = optimizer.groups[:1]  # a group that no parameter belongs to is refused
    keep, captured = bool(rng.random() < 0.2), bool(rng.random() < 0.2)
    data = {"x": rng.normal(size=(rows, model.features)).astype(np.float32)}
    data["y"] = rng.normal(size=(rows, 2)).astype(np.float32)

    def loss_fn(model: Random, x: Tensor, y: Tensor) -> Tensor:
        loss = tg.mse_loss(model(x), y)
        if captured:
            weight = model.last.weight
            tg.capture("slope", tg.append_grad(loss, [weight])[0])
            tg.capture("weight", weight)
        return loss

    async def steps() -> Any:
        specs = {"x": tg.f32[rows, model.features], "y": tg.f32[rows, 2]}
        train = await tg.compile(model, loss_fn, optimizer, specs, device=backend, seed=0, keep_grads=keep)
        results = [await train.step(**data) for _ in range(3)]
        found = results[-1].captures | (await train.gradients() if keep else {})
        return train, [r.loss for r in results], (await train.state_dict())["model"], found

    return tg.sync(steps())


@pytest.mark.parametrize("seed", range(20))
def test_random_models_train_the_same_as_on_a_gpu(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # small models are cut, and their parameters sorted, as large ones are
    for name, value in (("DISPATCH", 0), ("SHORTEST_INNER", 4), ("SHORTEST_SUM", 2)):
        monkeypatch.setattr(sys.modules["tensorgrad.passes.split"], name, value)
    monkeypatch.setattr(arenas, "LARGE_MODEL", 1000 * (seed % 2))
    monkeypatch.setattr(arenas, "SMALL", 300)
    _, losses, weights, found = trained(seed, "numpy")
    # a small binding cuts the arenas, and has no room for some parts of gradients
    limits = {"binding_size": 4096} if seed % 3 == 0 else {}
    for backend in (on_gpu(Numpy(), **limits), on_gpu(Interpret(), **limits)):
        other = trained(seed, backend)
        if lowered := other[0].built.lowered:
            assert max(len(k.bindings) for k in generate(lowered, backend.limits)) <= backend.limits.storage_buffers
        np.testing.assert_allclose(other[1], losses, rtol=1e-4)
        for name, wanted in (weights | found).items():
            # the same sums in another order; f16 has 11 bits
            atol = 1e-4 if wanted.dtype != np.float16 else 2e-3
            np.testing.assert_allclose((other[2] | other[3])[name], wanted, rtol=1e-4, atol=atol, err_msg=name)
