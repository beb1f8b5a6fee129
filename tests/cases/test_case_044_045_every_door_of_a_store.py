"""Cases 44 and 45: what one conversation leaves comes back clean in the next, by a way that nobody thought of.

Every producer of context that has a store has a door, and each door is tried with the same stranger's words: memory by
words and by meaning, files, tables and keys, work for later, a message of another agent, a summary, a child, a fork.
The next conversation is armed by each of them, with the page in the explanation. What has no record at all is every
leg. The honest twin opens the same doors after a conversation that read nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interlock import Conversation, Guard, Message
from interlock.errors import MemoryUnavailable, Refused
from interlock.memory import Memory
from interlock.model.windows import WindowLimits
from interlock.stores.memory_facts import MemoryFacts
from interlock.windows import ContextWindow
from tests.cases.desk import did, got
from tests.cases.poisoned import EVIL, PAGE, PLANT, Desk, desks, named, sends

Door = Callable[[Desk, Guard], Conversation]


@pytest.fixture(params=["memory", "sqlite"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    yield from desks(request.param, tmp_path)


def by_words(desk: Desk, first: Guard) -> Conversation:
    desk.memory.remember(first.conversation, f"habits: {PLANT}")
    second = Conversation()
    desk.memory.recall(second, "habits")
    return second


def by_meaning(desk: Desk, first: Guard) -> Conversation:
    memory = Memory(MemoryFacts(), embed=lambda text: (1.0, float(len(text))))
    memory.remember(first.conversation, PLANT)
    second = Conversation()
    assert memory.recall(second, "no word of it").facts
    return second


def by_file(desk: Desk, first: Guard) -> Conversation:
    did(first, "save", {"path": "notes.txt", "text": PLANT})
    second = desk.fresh()
    did(second, "load", {"path": "notes.txt"}, PLANT)
    return second.conversation


def by_table(desk: Desk, first: Guard) -> Conversation:
    did(first, "insert", {"table": "notes", "row": PLANT})
    second = desk.fresh()
    did(second, "select", {"table": "NOTES"}, PLANT)
    return second.conversation


def by_loading_at_the_start(desk: Desk, first: Guard) -> Conversation:
    did(first, "save", {"path": "AGENTS.md", "text": PLANT})
    second = desk.fresh()
    second.admit_artifact(PLANT, "path", "AGENTS.md")
    return second.conversation


def by_work_for_later(desk: Desk, first: Guard) -> Conversation:
    return Conversation.from_parcel(first.conversation.parcel(PLANT))


def by_message(desk: Desk, first: Guard) -> Conversation:
    second = Conversation()
    second.open_parcel(first.conversation.parcel(PLANT))
    return second


def by_summary(desk: Desk, first: Guard) -> Conversation:
    """The summary is handed on to somebody else, who gets what it carries."""
    for number in range(8):
        first.conversation.push(Message.user(f"message {number}"))
    limits = WindowLimits(messages=4, recent=2)
    window = ContextWindow(first.conversation, limits=limits, summarise=lambda _: PLANT, summaries=desk.summaries)
    window.context()
    summary = window.summary()
    assert summary is not None
    desk.memory.remember(first.conversation, summary.text, place=(0, summary.covered))
    second = Conversation()
    desk.memory.recall(second, "always mail")
    return second


def by_child(desk: Desk, first: Guard) -> Conversation:
    second = Conversation()
    with second.child("ask the other agent", tools=[]) as child:
        child.open_parcel(first.conversation.parcel(PLANT))
    return second


def by_fork(desk: Desk, first: Guard) -> Conversation:
    return first.conversation.fork()


DOORS: list[Door] = [
    by_words,
    by_meaning,
    by_file,
    by_table,
    by_loading_at_the_start,
    by_work_for_later,
    by_message,
    by_summary,
    by_child,
    by_fork,
]


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_attack_t12_every_door_arms(desk: Desk, door: Door) -> None:
    second = desk.lock.guard(door(desk, desk.poisoned()))
    assert "untrusted:web" in second.conversation.taint
    assert PAGE in named(sends(second))


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_attack_t12_private_data_comes_along(desk: Desk, door: Door) -> None:
    first = desk.fresh()
    assert did(first, "read_plan").executed
    second = desk.lock.guard(door(desk, first))
    assert "private:files" in second.conversation.taint
    second.admit("a stranger's mail", labels=["untrusted:mail"], source="mail")
    assert got(did(second, "send_email", EVIL)) == ("deny", "trifecta")


def test_attack_a_kind_of_artifact_that_is_none(desk: Desk) -> None:
    with pytest.raises(Refused):
        desk.fresh().admit_artifact("x", "file", "notes.txt")


@pytest.mark.parametrize("given", [(), (float("nan"),), (0.0, 0.0), "text"])
def test_attack_an_embedder_that_answers_nonsense(given: object) -> None:
    memory = Memory(MemoryFacts(), embed=lambda _: given)  # type: ignore[arg-type, return-value]
    with pytest.raises((Refused, MemoryUnavailable)):
        memory.remember(Conversation(), "text")
    assert memory.fact("default", "m-1") is None


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_honest_the_same_doors_after_reading_nothing(desk: Desk, door: Door) -> None:
    second = desk.lock.guard(door(desk, desk.fresh()))
    assert set(second.conversation.taint) <= {"untrusted:memory"}
    assert did(second, "read_plan").executed
