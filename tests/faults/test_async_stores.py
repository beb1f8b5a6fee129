"""Proves that a store that waits does not stop an event loop, and that a cancelled write is not lost (T8, T14, T16).

The databases are real, and really wait: another connection holds the conversation, or the whole file.

Mutations that it is shown to catch: writing in the loop's own thread, writing in the threads of slow tools, a queued
write that goes away with its task.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock import Call, Interlock, Manifest, ToolResult
from interlock.assembly import LocalFiles
from interlock.conversations import Conversations
from interlock.gate import drivers
from interlock.gate.conversation import SystemClock
from interlock.gate.drivers import World
from interlock.gate.effects import Append
from interlock.model.entries import Decided, Observed, decode
from interlock.stores import audit
from interlock.stores.sql_store import SqlStore
from interlock.stores.sqlite import SqliteStore
from interlock.testing.stores import FILES, admitted, begun
from tests.servers import Server

MANIFEST = Manifest.parse({"version": 1, "tools": {"read": {"returns": ["private:files"], "egress": "none"}}})
Holding = Callable[[], contextlib.AbstractContextManager[None]]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def slow(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[SqlStore, Holding]]:
    """A store, and a way to make it wait."""
    if request.param == "sqlite":
        SqliteStore.migrate(tmp_path / "store.db")
        store: SqlStore = SqliteStore(tmp_path / "store.db")

        @contextlib.contextmanager
        def held() -> Iterator[None]:
            other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            try:
                yield
            finally:
                other.execute("ROLLBACK")
                other.close()

    else:
        import psycopg

        from interlock.stores.postgres import PostgresStore

        server: Server = request.getfixturevalue("postgres_server")
        where = server.fresh()
        store = PostgresStore(where, plaintext=True)

        @contextlib.contextmanager
        def held() -> Iterator[None]:
            with psycopg.connect(where) as other:
                other.execute("SELECT 1 FROM interlock_heads FOR UPDATE")
                yield
                other.rollback()

    yield store, held
    store.close()


async def ticking(until: Callable[[], bool]) -> float:
    """The longest time that the loop stood still, in seconds."""
    longest, last = 0.0, time.monotonic()
    while not until():
        await asyncio.sleep(0.005)
        now = time.monotonic()
        longest, last = max(longest, now - last), now
    return longest


def test_the_loop_goes_on_while_a_write_waits(slow: tuple[SqlStore, Holding]) -> None:
    store, held = slow
    stored = Conversations(store, "a").new("hello")
    guard = Interlock(manifest=MANIFEST, journal=store).guard(stored.conversation)

    async def both() -> tuple[float, float]:
        began = time.monotonic()
        with held():
            task = asyncio.create_task(guard.acall("read", {}, run=lambda: "a file"))
            stood = await ticking(lambda: time.monotonic() > began + 0.6)
            assert not task.done(), "it was not waiting"
        outcome = await task
        assert outcome.verdict == "allow"
        return stood, time.monotonic() - began

    stood, took = asyncio.run(both())
    assert took > 0.6
    assert stood < 0.4, f"the event loop stood still for {stood:.2f} s"


def entries(store: SqlStore, name: str, kind: type) -> list[Any]:
    return [
        one for one in (decode(link.body) for link in audit.chain(store.within("a"), name)) if isinstance(one, kind)
    ]


def test_a_decision_that_is_cancelled_is_on_record_and_ran_nothing(slow: tuple[SqlStore, Holding]) -> None:
    store, held = slow
    stored = Conversations(store, "a").new("hello")
    guard = Interlock(manifest=MANIFEST, journal=store).guard(stored.conversation)
    ran: list[str] = []

    async def cancelled() -> None:
        with held():
            task = asyncio.create_task(guard.acall("read", {}, run=lambda: ran.append("read")))
            await asyncio.sleep(0.3)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        for _ in range(400):
            if entries(store, stored.id, Decided):
                break
            await asyncio.sleep(0.02)

    asyncio.run(cancelled())
    assert ran == []
    (one,) = entries(store, stored.id, Decided)
    assert one.verdict == "allow"
    state = store.within("a").state(stored.id)
    assert set(state.exposure) == {"private:files"}, "what nobody heard of is not in flight"
    again = Conversations(store, "a").load(stored.id, alone=True)
    assert set(again.conversation.taint) == {"private:files"}
    assert guard.call("read", {}, run=lambda: "x").verdict == "allow", "the conversation can't go on"
    assert not audit.verified(store.within("a"), stored.id).dropped


def test_an_outcome_that_is_cancelled_is_on_record(slow: tuple[SqlStore, Holding]) -> None:
    store, held = slow
    stored = Conversations(store, "a").new("hello")
    guard = Interlock(manifest=MANIFEST, journal=store).guard(stored.conversation)
    ticket = guard.propose(Call("read", {}, "a"))

    async def cancelled() -> None:
        with held():
            task = asyncio.create_task(guard.aobserve(ticket, "a", ToolResult("a file")))
            await asyncio.sleep(0.3)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        for _ in range(400):
            if entries(store, stored.id, Observed):
                break
            await asyncio.sleep(0.02)

    asyncio.run(cancelled())
    assert len(entries(store, stored.id, Observed)) == 1
    assert set(store.within("a").state(stored.id).taint) == {"private:files"}


def test_a_write_that_waits_for_a_thread_is_not_dropped_with_its_task(slow: tuple[SqlStore, Holding]) -> None:
    store, _ = slow
    view = store.within("a")
    name = begun(view)
    world = World(None, view, SystemClock(), LocalFiles())  # type: ignore[arg-type]  # no engine is asked here
    release = threading.Event()

    async def cancelled() -> None:
        busy = [drivers._writers().submit(release.wait) for _ in range(drivers.MAX_WRITERS)]
        task = asyncio.create_task(drivers._elsewhere(world, Append(name, (admitted(FILES),), None)))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert set(view.state(name).taint) == set(), "it has begun already"
        release.set()
        assert all(one.result() for one in busy)
        for _ in range(400):
            if view.state(name).taint:
                break
            await asyncio.sleep(0.02)

    asyncio.run(cancelled())
    assert set(view.state(name).taint) == {FILES}


def test_slow_tools_hold_up_no_decision(tmp_path: Path) -> None:
    """A tool that is no coroutine runs in the loop's pool, which has six threads on a small machine."""
    SqliteStore.migrate(tmp_path / "store.db")
    store = SqliteStore(tmp_path / "store.db")
    lock = Interlock(manifest=MANIFEST, journal=store)
    guards = [lock.guard(Conversations(store, "a").new("hello").conversation) for _ in range(41)]
    stop, running, loops = threading.Event(), asyncio.Event(), list[asyncio.AbstractEventLoop]()

    def slowly() -> str:
        loops[0].call_soon_threadsafe(running.set)
        stop.wait(20)
        return "x"

    async def quickly() -> str:
        return "y"

    async def all_of_them() -> bool:
        loops.append(asyncio.get_running_loop())
        tasks = [asyncio.create_task(one.acall("read", {}, run=slowly)) for one in guards[1:]]
        await running.wait()
        try:
            await asyncio.wait_for(guards[0].acall("read", {}, run=quickly), 10)
            return not stop.is_set()
        finally:
            stop.set()
            await asyncio.gather(*tasks)

    assert asyncio.run(all_of_them())
    store.close()
