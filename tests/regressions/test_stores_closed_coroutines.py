"""An asynchronous call that was closed left no word of its doubt, and waiting tools could stop every guard.

A coroutine that nobody awaits any more is closed, and can't await: the outcome in doubt of its call was to be written
in a worker thread, which must be awaited. The call stayed in flight, and Python complained of a coroutine that ignored
its end. Writes shared the event loop's threads with synchronous tools: as many tools as there are threads, each of them
waiting for a guarded call of its own, waited for ever.
Mutations that this file catches: what is written at the end of a closed coroutine is awaited; stores write in the
loop's own threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from interlock import Interlock
from interlock.conversations import Conversations
from interlock.model.calls import call_digest
from interlock.model.canonical import canonical
from interlock.model.tools import ToolId
from interlock.stores.sqlite import SqliteStore
from tests.faults.turns_that_die import MANIFEST

URL = "https://a0.example/"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    SqliteStore.migrate(tmp_path / "store.db")
    opened = SqliteStore(tmp_path / "store.db", durability="process")
    yield opened
    opened.close()


def test_t16_a_closed_call_is_in_doubt(store: SqliteStore) -> None:
    stored = Conversations(store, "ana").new(f"go {URL}")
    guard = Interlock(manifest=MANIFEST, journal=store).guard(stored.conversation)
    running = []

    class Never:
        def __await__(self) -> Any:
            yield

    async def tool(url: str) -> str:
        running.append(url)
        await Never()
        return "never"

    async def abandoned() -> None:
        call = guard.acall("fetch", {"url": URL}, run=tool)
        step: Any = call.__await__()
        while not running:
            future = next(step)
            if future is not None:
                future._asyncio_future_blocking = False  # this task waits for it in place of the call
                await asyncio.wait([future])
        call.close()

    asyncio.run(abandoned())
    state = stored.conversation.state
    assert not state.in_flight
    assert call_digest(ToolId("", "fetch"), canonical({"url": URL})) in state.doubts
    assert "untrusted:web" in state.taint


def test_tools_that_wait_for_guarded_calls(store: SqliteStore) -> None:
    lock, place = Interlock(manifest=MANIFEST, journal=store), Conversations(store, "ana")
    guards = [lock.guard(place.new("go").conversation) for _ in range(4)]

    async def all_of_them() -> list[Any]:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(2))

        async def inner() -> str:
            async def tool() -> str:
                return "inner"

            return (await guards[3].acall("read", {}, run=tool)).for_model

        def outer() -> str:
            return asyncio.run_coroutine_threadsafe(inner(), loop).result(20)

        return await asyncio.gather(*(guard.acall("read", {}, run=outer) for guard in guards[:3]))

    outcomes = asyncio.run(all_of_them())
    assert [one.for_model for one in outcomes] == ["inner"] * 3
