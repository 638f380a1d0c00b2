"""Who uses a device's state, one after the other."""

from __future__ import annotations

import asyncio

from tensorgrad.turns import Turns


class Users:
    """Tasks that take their turn and note it."""

    def __init__(self) -> None:
        self.turns, self.log = Turns(), []
        self.gates: dict[str, asyncio.Event] = {}

    def start(self, name: str) -> asyncio.Task[None]:
        self.gates[name] = asyncio.Event()
        return asyncio.create_task(self._use(name))

    async def _use(self, name: str) -> None:
        async with self.turns:
            self.log.append(name)
            await self.gates[name].wait()

    async def free(self) -> bool:
        try:
            await asyncio.wait_for(self._use_now(), 1)
        except TimeoutError:
            return False
        return True

    async def _use_now(self) -> None:
        async with self.turns:
            pass


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_one_at_a_time_in_the_order_of_asking() -> None:
    users = Users()
    tasks = [users.start(name) for name in "abcd"]
    for name in "abcd":
        await settle()
        assert users.log[-1] == name
        users.gates[name].set()
    await asyncio.gather(*tasks)
    assert users.log == list("abcd")


async def test_who_is_cancelled_while_waiting_is_passed_over() -> None:
    users = Users()
    a, b, c = (users.start(name) for name in "abc")
    await settle()
    b.cancel()
    users.gates["a"].set()
    await settle()
    assert users.log == ["a", "c"]
    users.gates["c"].set()
    await asyncio.gather(a, c)
    assert await users.free()


async def test_who_is_cancelled_as_the_turn_comes_passes_it_on() -> None:
    users = Users()
    a, b, c = (users.start(name) for name in "abc")
    await settle()
    users.gates["a"].set()
    a.add_done_callback(lambda _: b.cancel())  # runs before b goes on with its turn
    await settle()
    users.gates["c"].set()
    await asyncio.gather(a, c)
    assert users.log in (["a", "c"], ["a", "b", "c"])
    assert await users.free()


async def test_the_turn_of_a_task_that_was_ended_from_outside_is_taken_from_it() -> None:
    users = Users()

    async def killed() -> None:
        await users.turns.__aenter__()  # an interrupt struck before the matching __aexit__

    await asyncio.create_task(killed())
    waiting = users.start("a")
    await settle()
    assert users.log == ["a"]
    users.gates["a"].set()
    await waiting
    assert await users.free()


def test_the_next_event_loop_finds_it_free() -> None:
    users = Users()

    async def hold() -> None:
        users.start("left")
        users.start("waiting")
        await settle()

    asyncio.run(hold())
    assert asyncio.run(users.free())
