"""Case 50: many threads decide on one conversation at the same moment, each on what it saw before the others.

Readers of a stranger's page, readers of files and senders run at once. Whatever the order, there is one in which every
decision is right: nothing is sent once both other legs are on record, no call is lost, and none is decided twice. The
honest twin sends at once, to whom the person named, and all of it arrives.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from interlock import Conversation, Guard, Interlock, MemoryJournal
from interlock.model.chain import verify
from interlock.model.entries import Decided
from interlock.model.state import State, apply
from tests.cases.desk import EVIL, MANIFEST, entries

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("send_email", EVIL),
    ("page_text", {"page": "guide"}),
    ("send_email", EVIL),
    ("read_file", {"path": "plan.txt"}),
]
NUMBER = 200


def opened(typed: str = "hello") -> tuple[Guard, MemoryJournal]:
    journal = MemoryJournal()
    return Interlock(manifest=MANIFEST, journal=journal, settings={"preset": "trifecta-only"}).guard(
        Conversation.user(typed)
    ), journal


def in_threads(guard: Guard, one: Callable[[int], Any], number: int = NUMBER) -> list[Any]:
    start = threading.Barrier(8)

    def begin(place: int) -> Any:
        if place < 8:
            start.wait(30)
        return one(place)

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(begin, range(number)))


def assert_in_order(guard: Guard, journal: MemoryJournal) -> None:
    """Fold the entries one by one: at each decision the labels before it must explain it."""
    state = State()
    sent = 0
    for entry in entries(guard, journal):
        if isinstance(entry, Decided):
            legs = {one.partition(":")[0] for one in state.exposure}
            assert entry.number == state.calls + 1
            if entry.tool == "send_email":
                assert entry.verdict == ("deny" if {"untrusted", "private"} <= legs else "allow"), entry.number
                sent += entry.verdict == "allow"
            else:
                assert entry.verdict == "allow"
        state = apply(state, entry)
    assert state.calls == NUMBER
    assert not state.in_flight
    assert {one.partition(":")[0] for one in state.taint} == {"untrusted", "private"}
    verify(journal.entries(guard.conversation.id), journal.head(guard.conversation.id))


@pytest.mark.parametrize("shift", [0, 1, 3])
def test_attack_threads(shift: int) -> None:
    guard, journal = opened()
    executed: list[str] = []

    def one(place: int) -> Any:
        name, arguments = CALLS[(place + shift) % len(CALLS)]
        return guard.call(name, arguments, run=lambda **_: executed.append(name))

    outcomes = in_threads(guard, one)
    assert len(executed) == sum(outcome.executed for outcome in outcomes)
    assert_in_order(guard, journal)


def test_attack_tasks() -> None:
    guard, journal = opened()

    async def one(place: int) -> None:
        async def run(**_: Any) -> str:
            await asyncio.sleep(0)
            return "ok"

        name, arguments = CALLS[place % len(CALLS)]
        await guard.acall(name, arguments, run=run)

    async def story() -> None:
        await asyncio.gather(*(one(place) for place in range(NUMBER)))

    asyncio.run(story())
    assert_in_order(guard, journal)


def test_honest_everything_to_whom_the_person_named() -> None:
    guard, _ = opened("Write to kim@corp.example please.")
    to_kim = {**EVIL, "to": "kim@corp.example"}
    calls = [("send_email", to_kim), ("page_text", {"page": "guide"}), ("read_file", {"path": "plan.txt"})]
    outcomes = in_threads(guard, lambda place: guard.call(*calls[place % 3], run=lambda **_: "ok"), 60)
    assert all(outcome.executed for outcome in outcomes)
