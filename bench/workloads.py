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
        scores = (split(self.q(n)) @ split(self.k(n)).mT) * (width // self.heads) ** -0.5
        mixed = tg.softmax_causal(scores) @ split(self.v(n))
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
    model.load_state_dict(state)


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
    if kind == "gpt":
        g = options["gpt"]
        specs = {"x": tg.i32[g["B"], g["T"]], "y": tg.i32[g["B"] * g["T"]]}
        return GPT(g["L"], g["D"], g["H"], g["T"], g["V"]), lambda m, x, y: tg.cross_entropy(m(x), y), specs, None
    raise ValueError(f"no model for the workload {kind!r}")


class Session:
    """A workload ready to step, called from JavaScript."""

    def __init__(
        self, step: Callable[..., Any], note: dict[str, Any], profile: Callable[[], Any] | None = None
    ) -> None:
        self._step, self.profile = step, profile
        self.note = json.dumps(note)

    def step(self, i: int, read: bool) -> Any:
        """Starts a step at once; what it still waits for is a task, which JavaScript can await."""
        task = asyncio.Task(self._step(i, read), loop=asyncio.get_running_loop(), eager_start=True)
        return task.result() if task.done() else task


async def session(work: Any, options: Any) -> Session:
    """Compiles the workload and gives what JavaScript calls."""
    options = options.to_py()
    if str(work.kind) == "matmul":
        return await _chain(work, options["device"])
    model, loss_fn, specs, _ = problem(work, options)
    arrays = {name: _array(work.params, name) for name in _keys(work.params)}
    load(model, arrays)
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
    start = time.perf_counter()
    train = await tg.compile(model, loss_fn, optimizer, specs, device=options["device"])
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

    async def profile() -> str:
        inputs = train.inputs.flatten((batches[0],), {})
        await train._prepare(inputs)
        times = await train.built.executor.profile(inputs)
        return json.dumps([(t.name, round(t.nanoseconds / 1e3, 1)) for t in times])

    return Session(step, note, profile)


async def _chain(work: Any, device: str) -> Session:
    size, count = int(work.N), int(work.iters)
    a, b = (np.asarray(x.to_py()).reshape(size, size) for x in (work.a, work.b))

    def chain(a: tg.Tensor, b: tg.Tensor) -> tg.Tensor:
        for _ in range(count):
            a = a @ b
        return tg.mean(a * a)

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
