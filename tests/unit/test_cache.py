"""The plan cache without a browser: keys, texts, and a storage in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from cached import Memory, Net, loss_fn, recipe
from tensorgrad import cache, ops, optim
from tensorgrad.backend import WebGPU
from tensorgrad.cache import indexeddb
from tensorgrad.cache.key import Unkeyed, compiler, digest
from tensorgrad.cache.text import decode, encode
from tensorgrad.compiled import Compiled
from tensorgrad.device.base import Limits
from tensorgrad.nn.parameter import Parameter
from tensorgrad.ops.custom import custom_grad
from tensorgrad.plan import BufferPlan, BufferSpec
from tensorgrad.program import Interface, Program, Recipe

GPU = WebGPU(SimpleNamespace(limits=Limits(), begin=lambda kernel: None))


def key(found: Recipe, device: str = "webgpu", limits: Limits | None = None) -> str:
    return digest(found, device, limits or Limits())


def function(fn: Callable[..., Any], *shapes: tuple[int, ...], name: str = "result") -> Recipe:
    """What compiles to a function of f32 tensors."""
    graph = tg.trace(lambda: fn(*(tg.tensor_input(f"x{i}", shape) for i, shape in enumerate(shapes))))
    return Recipe(lambda limits: graph, (name,), graph, (graph,))


# -- keys -------------------------------------------------------------------------------------


def test_a_key_is_of_what_is_computed_not_of_where_or_with_which_weights() -> None:
    def elsewhere(model: Net, x: tg.Tensor, y: tg.Tensor) -> tg.Tensor:
        found = model(x)

        tg.capture("top", tg.max(found, axis=1))
        return tg.cross_entropy(found, y)

    assert key(recipe()) == key(recipe(loss=elsewhere)) == key(recipe(Net(init=2)))
    # the learning rate and its schedule are the host's
    assert key(recipe()) == key(recipe(optimizer=optim.AdamW(optim.StepLR(0.5, 3))))


def renamed(model: Net, x: tg.Tensor, y: tg.Tensor) -> tg.Tensor:
    logits = model(x)
    tg.capture("best", tg.max(logits, axis=1))
    return tg.cross_entropy(logits, y)


class Signs(optim.Optimizer):
    """A user's optimizer, which is no dataclass."""

    def __init__(self, rule: Callable[..., tg.Tensor]) -> None:
        super().__init__(0.1)
        self.function = rule

    def rule(self, param: tg.Tensor, grad: tg.Tensor, state: Any, at: optim.Rule) -> Any:
        return self.function(param, grad), {}


def frozen() -> Net:
    model = Net()
    assert isinstance(model.out.bias, Parameter)
    model.out.bias.requires_grad = False
    return model


def test_a_key_changes_with_all_that_decides_the_program() -> None:
    found = [
        key(recipe()),
        key(recipe(Net(width=4))),
        key(recipe(Net(scale=3.0))),  # only the bytes of a constant differ
        key(recipe(frozen())),
        key(recipe(loss=renamed)),
        key(recipe(loss=lambda m, x, y: loss_fn(m, x, y) * 0.5)),
        key(recipe(loss=lambda m, x, y: loss_fn(m, x, y) * -0.0)),
        key(recipe(loss=lambda m, x, y: loss_fn(m, x, y) * 0.0)),
        key(recipe(specs={"x": tg.f32[5, 3], "y": tg.i32[5]})),
        key(recipe(optimizer=optim.Adam(1e-2))),
        key(recipe(optimizer=optim.AdamW(1e-2, eps=1e-6))),
        key(recipe(optimizer=optim.AdamW(1e-2, clip_norm=1.0))),
        key(recipe(optimizer=optim.AdamW(1e-2, params="*.bias"))),
        key(recipe(optimizer=optim.AdamW(1e-2, groups=[("*.bias", {"weight_decay": 0.0})]))),
        key(recipe(optimizer=Signs(lambda p, g: p - ops.sign(g)))),
        key(recipe(optimizer=Signs(lambda p, g: p - ops.sign(g) * 0.5))),
        key(recipe(), device="other"),
        key(function(lambda x: x * 2.0, (3,))),
        key(function(lambda x: x * 2.0, (3,), name="y")),
    ]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("name", Limits._fields)
def test_a_key_changes_with_each_limit_but_not_with_the_adapters_name(name: str) -> None:
    limits = Limits()
    changed: dict[str, Any] = {
        "workgroup_size": (1, 1, 1),
        "subgroup_size": 32,
        "features": frozenset({"shader-f16"}),
        "adapter": "another",
        "software": True,
    }
    other = limits._replace(**{name: changed.get(name, 7)})
    assert (key(recipe()) == key(recipe(), limits=other)) == (name == "adapter")


def test_a_key_changes_with_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key(recipe())
    monkeypatch.setattr("tensorgrad.cache.key.compiler", lambda: "another version")
    assert key(recipe()) != before


def test_the_compiler_is_told_by_what_a_wheel_installed_or_by_its_sources(tmp_path: Path) -> None:
    source, record = (
        tmp_path / "tensorgrad" / "cache" / "key.py",
        tmp_path / "tensorgrad_webgpu-1.0.dist-info" / "RECORD",
    )

    def found() -> str:
        compiler.cache_clear()
        return compiler(source.parent.parent)

    source.parent.mkdir(parents=True)
    with pytest.raises(Unkeyed):
        found()
    source.write_text("one")
    record.parent.mkdir()
    record.write_text("_tensorgrad.pth,sha256=a,1\n")  # of an editable installation
    first = found()
    source.write_text("another")
    second = found()
    record.write_text("tensorgrad/cache/key.py,sha256=b,1\n")
    third = found()
    record.write_text("tensorgrad/cache/key.py,sha256=c,1\n")
    assert len({first, second, third, found()}) == 4
    assert found() == found()
    compiler.cache_clear()


def test_the_users_own_gradient_rules_have_no_key() -> None:
    def rule(g: tg.Tensor, out: tg.Tensor, x: tg.Tensor) -> tuple[tg.Tensor]:
        return (g * 2.0,)

    assert key(function(tg.softmax, (3,)))  # the library's own has
    with pytest.raises(Unkeyed, match="not the library's own"):
        key(function(lambda x: custom_grad(x * 1.0, rule, x), (3,)))


# -- texts ------------------------------------------------------------------------------------


def test_a_step_comes_back_from_its_text() -> None:
    program = asyncio.run(GPU.compile(recipe())).program
    assert program is not None
    found = decode(encode(program))
    assert (found.interface, found.kernels) == (program.interface, program.kernels)
    again = found.plan
    for old, new in zip(program.plan.buffers, again.buffers, strict=True):
        assert old._replace(initial=None) == new._replace(initial=None)
        if isinstance(old.initial, np.ndarray):
            assert isinstance(new.initial, np.ndarray)
            np.testing.assert_array_equal(old.initial, new.initial, strict=True)
        else:
            assert old.initial == new.initial
    assert program.plan._replace(buffers=()) == again._replace(buffers=())
    assert program.interface.packs
    assert program.interface.slots
    assert program.interface.outputs == ("loss", "capture top")


@pytest.mark.parametrize("number", [0.0, -0.0, 0.1, 1e-45, float("inf"), float("-inf"), float("nan"), 3, -(2**31)])
def test_every_number_comes_back(number: float) -> None:
    spec = BufferSpec(0, "state", "s", (), tg.f32, 4, initial=number)
    (found,) = decode(encode(Program(Interface((), {}, {}, {}, ()), BufferPlan((spec,)), ()))).plan.buffers
    assert type(found.initial) is type(number)
    assert repr(found.initial) == repr(number)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint32", "bool"])
def test_every_array_comes_back(dtype: str) -> None:
    for array in (
        np.array([[0.0, -0.0, np.nan], [np.inf, -np.inf, 1.0]]).astype("float32").view("uint32").view("float32"),
        np.zeros((0, 3)),
        np.float32(3).reshape(()),
    ):
        with np.errstate(invalid="ignore"):
            data = np.ascontiguousarray(array.astype(dtype))
        spec = BufferSpec(0, "const", "c", data.shape, tg.f32, 4, initial=data)
        (found,) = decode(encode(Program(Interface((), {}, {}, {}, ()), BufferPlan((spec,)), ()))).plan.buffers
        assert isinstance(found.initial, np.ndarray)
        assert (found.initial.dtype, found.initial.shape) == (data.dtype, data.shape)
        assert found.initial.tobytes() == data.tobytes()


def test_compiling_again_gives_the_same_text() -> None:
    made = recipe()
    first, second = (asyncio.run(GPU.compile(made)).program for _ in range(2))
    other = asyncio.run(GPU.compile(recipe())).program
    assert first is not second
    assert first
    assert second
    assert other
    assert encode(first) == encode(second) == encode(other)


# -- the storage ------------------------------------------------------------------------------


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    memory = Memory()

    async def connect() -> Memory:
        return memory

    monkeypatch.setattr(indexeddb, "connect", connect)
    monkeypatch.setattr(cache, "_storage", None)
    monkeypatch.setattr(cache, "_hangs", False)
    before, level = cache.enable(), tg.debug(1)
    yield memory
    cache.enable(before)
    tg.debug(level)


async def compiled(found: Recipe | None = None) -> Compiled:
    """Compiles and saves, as building on a device does."""
    result = await GPU.compile(found or recipe())
    if not result.cached:
        assert result.program is not None
        await cache.save(result.key, result.program)
    return result


async def test_the_second_compilation_hits_and_lowers_nothing(storage: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await compiled()
    assert not first.cached
    with monkeypatch.context() as patch:
        patch.setattr("tensorgrad.backend.lower", None)
        patch.setattr("tensorgrad.backend.generate", None)
        patch.setattr("tensorgrad.step.connected_grads", None)
        second = await compiled()
    assert second.cached
    assert second.interface == first.interface
    assert second.program
    assert first.program
    assert encode(second.program) == encode(first.program)
    # what is left out is made where somebody asks, and belongs to the user's lines
    assert str(second.made.graph) == str(first.made.graph)
    assert str(second.made.lowered) == str(first.made.lowered)


async def test_what_the_compiler_does_not_make_is_not_shown(storage: Memory) -> None:
    await compiled()
    (text,) = storage.texts.values()
    content = json.loads(text.partition("\n")[2])
    content["kernels"][0][4] += 1
    body = json.dumps(content)
    storage.texts = dict.fromkeys(storage.texts, f"{cache._mark(body)}\n{body}")
    found = await compiled()
    assert found.cached
    with pytest.raises(tg.TensorgradError, match=r"tg\.cache\.clear"):
        _ = found.made


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[:-1],
        lambda text: text.replace("f32", "f16", 1),
        lambda text: f"{cache._mark('[]')}\n[]",
        lambda text: f"{cache._mark('{')}\n{{",
        lambda text: text.partition("\n")[2],
    ],
)
async def test_a_corrupt_entry_is_passed_over_and_replaced(
    storage: Memory, damage: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    await compiled()
    ((place, good),) = storage.texts.items()
    storage.texts[place] = damage(good)
    assert not (await compiled()).cached
    assert "is passed over" in capsys.readouterr().err
    assert storage.texts == {place: good}
    assert (await compiled()).cached


async def test_the_longest_unused_go_first(storage: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr(cache.time, "time", lambda: float(next(clock)))
    monkeypatch.setattr(cache, "MOST_PROGRAMS", 3)
    made = [function(lambda x, n=n: x * float(n), (3,)) for n in range(5)]
    for one in made[:3]:
        await compiled(one)
    assert (await compiled(made[0])).cached
    await compiled(made[3])
    assert len(storage.texts) == 3
    assert [(await compiled(made[n])).cached for n in (0, 2, 3)] == [True] * 3
    assert not (await compiled(made[1])).cached
    sizes = [len(text) for text in storage.texts.values()]
    monkeypatch.setattr(cache, "MOST_BYTES", max(sizes) + min(sizes) // 2)
    await compiled(made[4])
    assert len(storage.texts) == 1
    monkeypatch.setattr(cache, "MOST_BYTES", 10)
    await compiled(function(lambda x: x + 1.0, (3,)))
    assert len(storage.texts) == 1  # what is too large alone drives nothing out


async def test_a_storage_that_fails_is_none(
    storage: Memory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def full(*args: Any) -> None:
        raise OSError("QuotaExceededError")

    monkeypatch.setattr(storage, "put", full)
    for _ in range(2):  # a failure takes no time: the next time may be better
        assert not (await compiled()).cached
        assert "cannot write: OSError QuotaExceededError" in capsys.readouterr().err
    monkeypatch.setattr(indexeddb, "connect", full)
    assert (await compiled()).key is None
    assert "cannot open" in capsys.readouterr().err


@pytest.mark.parametrize("again", [cache.clear, lambda: asyncio.to_thread(cache.enable)], ids=["clear", "enable"])
@pytest.mark.parametrize("what", ["open", "read", "write"])
async def test_a_storage_that_hangs_is_waited_for_once(
    storage: Memory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], what: str, again: Any
) -> None:
    waits = []

    async def silent(*args: Any) -> None:
        waits.append(what)
        await asyncio.sleep(60)

    holder, name = {"open": (indexeddb, "connect"), "read": (storage, "get"), "write": (storage, "put")}[what]
    with monkeypatch.context() as patch:
        patch.setattr(cache, "PATIENCE", 0.01)
        patch.setattr(holder, name, silent)
        for _ in range(3):
            assert not (await compiled()).cached
        assert waits == [what]
        assert f"cannot {what}: TimeoutError" in capsys.readouterr().err
    await again()
    assert not (await compiled()).cached
    assert (await compiled()).cached


async def test_no_storage_and_switched_off(storage: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache.enable(False)
    assert (await compiled()).key is None
    assert not cache.enable(True)
    assert not storage.calls
    await compiled()
    await cache.clear()
    assert not storage.texts
    monkeypatch.undo()
    monkeypatch.setattr(cache, "_storage", None)
    await cache.clear()  # there is no IndexedDB here
    assert (await compiled()).key is None


@pytest.mark.parametrize(
    "change",
    [lambda o: setattr(o, "eps", 1.0), lambda o: o.groups[0][1].update(weight_decay=0.5)],
    ids=["all", "group"],
)
async def test_the_same_optimizer_changed_later_is_not_what_was_compiled(storage: Memory, change: Any) -> None:
    optimizer = optim.AdamW(1e-2, groups=[("*.bias", {"weight_decay": 0.0})])
    found = await compiled(recipe(optimizer=optimizer))
    again = await compiled(recipe(optimizer=optimizer))
    assert again.cached
    change(optimizer)
    assert str(again.made.lowered) == str(found.made.lowered)


async def test_a_program_made_later_belongs_to_the_line_that_compiled(storage: Memory) -> None:
    await compiled()
    found = recipe()
    hit = await compiled(found)
    assert hit.cached
    assert found.site is not None
    sites = {node.site for node in hit.made.graph.nodes}
    assert found.site in sites
    assert all(site is None or site.function in ("loss_fn", "forward", "recipe") for site in sites)
