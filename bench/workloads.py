"""The peers' workloads in this library: the same models, data, initial weights and optimizers."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

import tensorgrad as tg
from tensorgrad import nn, optim


class MLP(nn.Module):
    def __init__(self, sizes: list[int]) -> None:
        self.l1, self.l2, self.l3 = (nn.Linear(i, o) for i, o in pairwise(sizes))

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        return self.l3(tg.relu(self.l2(tg.relu(self.l1(x)))))


class Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, h: tg.Tensor) -> tg.Tensor:
        batch, length, width = h.shape
        n = self.ln1(h)
        split = lambda z: z.reshape(batch, length, self.heads, width // self.heads).permute(0, 2, 1, 3)  # noqa: E731
        q, k, v = split(self.q(n)), split(self.k(n)), split(self.v(n))
        mixed = tg.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + self.o(mixed.permute(0, 2, 1, 3).reshape(batch, length, width))
        return h + self.down(tg.gelu(self.up(self.ln2(h)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, layers: int, width: int, heads: int, context: int, vocabulary: int) -> None:
        self.tok, self.pos = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.lnf = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        h = self.tok(x) + self.pos.weight
        for layer in self.layers:
            h = layer(h)
        return self.head(self.lnf(h)).reshape(x.size, -1)


class CNN(nn.Module):
    def __init__(self) -> None:
        self.conv1, self.conv2 = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1)
        self.fc = nn.Linear(1568, 10)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        h = tg.max_pool2d(tg.relu(self.conv1(x)), 2)
        return self.fc(tg.max_pool2d(tg.relu(self.conv2(h)), 2).flatten(1))


class Block(nn.Module):
    def __init__(self, channels: int, out: int, stride: int) -> None:
        self.c1, self.n1 = nn.Conv2d(channels, out, 3, stride, padding=1, bias=False), nn.BatchNorm2d(out)
        self.c2, self.n2 = nn.Conv2d(out, out, 3, padding=1, bias=False), nn.BatchNorm2d(out)
        self.projects = stride != 1 or channels != out
        if self.projects:
            self.cd, self.nd = nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        h = self.n2(self.c2(tg.relu(self.n1(self.c1(x)))))
        return tg.relu(h + (self.nd(self.cd(x)) if self.projects else x))


class ResNet(nn.Module):
    """ResNet-18 for small images; `stages` has (channels, outputs, stride) of each block."""

    def __init__(self, stages: list[tuple[int, int, int]]) -> None:
        first, last = stages[0][0], stages[-1][1]
        self.stem, self.bn = nn.Conv2d(3, first, 3, padding=1, bias=False), nn.BatchNorm2d(first)
        self.blocks = len(stages)
        for i, stage in enumerate(stages):
            setattr(self, f"b{i}", Block(*stage))
        self.fc = nn.Linear(last, 10)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        h = tg.relu(self.bn(self.stem(x)))
        for i in range(self.blocks):
            h = getattr(self, f"b{i}")(h)
        return self.fc(h.mean((2, 3)))


STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


def load(model: nn.Module, given: dict[str, tuple[list[int], np.ndarray]]) -> None:
    """The peers' weights: linear ones are [in, out] there, `.W .b .g` are weight, bias and weight."""
    state = {}
    for name, (shape, data) in given.items():
        array = data.reshape(shape)
        if name in ("tok", "pos"):
            state[f"{name}.weight"] = array
            continue
        stem, _, kind = name.rpartition(".")
        state[f"{stem}.{'bias' if kind == 'b' else 'weight'}"] = array.T if kind == "W" and array.ndim == 2 else array
    keys = model.load_state_dict(state, strict=False)
    # running statistics begin as they are
    left = [k for k in keys.missing_keys if k.rpartition(".")[2] not in STATISTICS]
    assert not [*left, *keys.unexpected_keys], keys


def problem(work: Any, options: dict[str, Any]) -> tuple[nn.Module, Callable[..., tg.Tensor], dict[str, Any], Any]:
    """Model, loss, specs and how a batch's arrays are shaped."""
    kind = str(work.kind)
    if kind in ("sin", "mlp"):
        sizes = [int(n) for n in work.dims]
        rows = int(work.B)
        if kind == "sin":
            specs = {"x": tg.f32[rows, 1], "y": tg.f32[rows, 1]}
            return MLP(sizes), lambda m, x, y: tg.mse_loss(m(x), y), specs, (tg.f32, tg.f32)
        specs = {"x": tg.f32[rows, sizes[0]], "y": tg.i32[rows]}
        return MLP(sizes), lambda m, x, y: tg.cross_entropy(m(x), y), specs, None
    if kind in ("cnn", "resnet"):
        rows, shape = int(work.B), (1, 28, 28) if kind == "cnn" else (3, 32, 32)
        model = CNN() if kind == "cnn" else ResNet([tuple(stage) for stage in options["stages"]])
        specs = {"x": tg.f32[(rows, *shape)], "y": tg.i32[rows]}
        return model, lambda m, x, y: tg.cross_entropy(m(x), y), specs, None
    if kind == "gpt":
        g = options["gpt"]
        specs = {"x": tg.i32[g["B"], g["T"]], "y": tg.i32[g["B"] * g["T"]]}
        return GPT(g["L"], g["D"], g["H"], g["T"], g["V"]), lambda m, x, y: tg.cross_entropy(m(x), y), specs, None
    raise ValueError(f"no model for the workload {kind!r}")


class Session:
    """A workload ready to step, called from JavaScript."""

    def __init__(
        self, step: Callable[..., Any], note: dict[str, Any], profile: Callable[[], Any] | None = None, **held: Any
    ) -> None:
        self._step, self.profile, self.held, self.many = step, profile, held, held.get("many")
        self.note = json.dumps(note)

    def listen(self, resolve: Callable[..., Any], reject: Callable[[str], Any]) -> None:
        """What is called when a step has ended; kept, since a function that crosses the border is costly."""
        self._resolve, self._reject = resolve, reject

    def step(self, i: int, read: bool) -> None:
        """Starts a step at once; the next one begins after its end, told to JavaScript without the event loop."""
        asyncio.Task(self._run(i, read), loop=asyncio.get_running_loop(), eager_start=True)

    async def _run(self, i: int, read: bool) -> None:
        try:
            self._resolve(await self._step(i, read))
        except BaseException as error:
            self._reject(repr(error))


def prepared(work: Any, options: dict[str, Any]) -> tuple[tuple[Any, ...], list[dict[str, np.ndarray]]]:
    """What `tg.compile` takes to train the workload, and its batches."""
    model, loss_fn, specs, _ = problem(work, options)
    load(model, {name: _array(work.params, name) for name in _keys(work.params)})
    a, s = options["adam"], options["sgd"]
    optimizer = (
        optim.SGD(s["lr"], momentum=s["momentum"])
        if str(work.kind) == "resnet"
        else optim.Adam(a["lr"], betas=(a["b1"], a["b2"]), eps=a["eps"])
    )
    batches = [
        {
            "x": np.asarray(b.x.to_py()).astype(specs["x"].dtype.numpy).reshape(specs["x"].shape),
            "y": np.asarray(b.y.to_py()).astype(specs["y"].dtype.numpy).reshape(specs["y"].shape),
        }
        for b in work.batches
    ]
    return (model, loss_fn, optimizer, specs), batches


async def session(work: Any, options: Any) -> Session:
    """Compiles the workload and gives what JavaScript calls."""
    options = options.to_py()
    if str(work.kind) == "matmul":
        return await _chain(work, options["device"], _dtype(options))
    arguments, batches = prepared(work, options)
    start = time.perf_counter()
    train = await tg.compile(*arguments, device=options["device"], dtype=_dtype(options))
    if options.get("group"):
        train.built.executor._program._js.largestGroup = options["group"]
    note = {
        "compile_s": time.perf_counter() - start,
        "kernels": len(train.built.kernels),
        "cached": train.built.compiled.cached,
        "plan_mb": program.plan.nbytes / 1e6 if (program := train.built.compiled.program) else 0,
    }

    async def step(i: int, read: bool) -> float | None:
        batch = batches[int(i) % len(batches)]
        if read:
            return (await train.step(batch)).loss
        await train.submit(batch)
        return None

    async def many(count: int) -> float:
        """Milliseconds a step of `run_steps` on batches that are on the device already."""
        start = time.perf_counter()
        await train.run_steps(count, data)
        return (time.perf_counter() - start) / count * 1e3

    data = await train.upload({name: np.stack([batch[name] for batch in batches]) for name in batches[0]})

    async def profile() -> str:
        inputs = train.inputs.flatten((batches[0],), {})
        await train._prepare(inputs)
        times = await train.built.executor.profile(inputs)
        return json.dumps([(t.name, round(t.nanoseconds / 1e3, 1)) for t in times])

    return Session(step, note, profile, train=train, batches=batches, many=many)


def _dtype(options: dict[str, Any]) -> tg.DType:
    return tg.f16 if options.get("dtype") == "f16" else tg.f32


async def _chain(work: Any, device: str, dtype: tg.DType) -> Session:
    size, count = int(work.N), int(work.iters)
    a, b = (np.asarray(x.to_py()).reshape(size, size).astype(dtype.numpy) for x in (work.a, work.b))

    def chain(a: tg.Tensor, b: tg.Tensor) -> tg.Tensor:
        for _ in range(count):
            a = a @ b
        return tg.mean(a.astype(tg.f32) ** 2)

    fn = await _resident(chain, a, b, device)

    async def step(i: int, read: bool) -> float:
        return float(await fn())

    return Session(step, {})


async def _resident(chain: Callable[..., tg.Tensor], a: np.ndarray, b: np.ndarray, device: str) -> Callable[[], Any]:
    """The chain on operands that stay on the device."""

    class Operands(nn.Module):
        def __init__(self) -> None:
            self.a, self.b = nn.Parameter(a), nn.Parameter(b)

    return await tg.compile_forward(Operands(), lambda m: chain(m.a, m.b), {}, device=device)


def _keys(params: Any) -> list[str]:
    import js  # only in a page

    return [str(key) for key in js.Object.keys(params)]


def _array(params: Any, name: str) -> tuple[list[int], np.ndarray]:
    entry = getattr(params, name)
    return [int(n) for n in entry.shape], np.asarray(entry.data.to_py()).copy()
