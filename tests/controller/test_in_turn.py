"""Work on the same things, one after the other."""

import asyncio

import pytest
from mpx_controller.keyed_lock import KeyedLock


async def same_and_other() -> None:
    turns, done = KeyedLock(), []
    first_may_end, second_may_end = asyncio.Event(), asyncio.Event()

    async def work(name: str, things: set[str], may_end: asyncio.Event | None = None) -> None:
        async with turns.on(things):
            if may_end is not None:
                await may_end.wait()
            done.append(name)

    first = asyncio.create_task(work("first", {"a", "b"}, first_may_end))
    second = asyncio.create_task(work("second", {"b", "c"}, second_may_end))
    await asyncio.sleep(0)  # both begin
    await work("other", {"d"})
    assert turns.busy == {"a", "b"} and done == ["other"]
    first_may_end.set()
    await first
    third = asyncio.create_task(work("third", {"a"}))
    fourth = asyncio.create_task(work("fourth", {"c"}))
    await third
    second_may_end.set()
    await asyncio.gather(second, fourth)
    assert done == ["other", "first", "third", "second", "fourth"] and not turns.busy


async def failed_and_ended() -> None:
    turns = KeyedLock()
    with pytest.raises(ValueError, match="bad"):
        async with turns.on({"a"}):
            raise ValueError("bad")
    async with turns.on({"a"}):
        waiting = asyncio.create_task(turns.on({"a"}).__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
    async with turns.on({"a"}):
        assert turns.busy == {"a"}


def test_work_on_the_same_waits_and_other_work_does_not() -> None:
    asyncio.run(same_and_other())


def test_work_that_fails_or_is_ended_lets_others_begin() -> None:
    asyncio.run(failed_and_ended())
