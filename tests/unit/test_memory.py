"""Proves what `Memory` promises around its stores and its embedder: bounds, errors, ranges and exact revisions (T12).

Mutations that this file catches: a correction of revision 0; a range of messages that are not there; an embedder's
error that comes out as it is; more text than was asked for.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from interlock import Bug, Conversation, Message
from interlock.errors import Conflict, MemoryUnavailable, Refused
from interlock.gate.drivers import MAX_PAGES, note
from interlock.memory import Memory, Recall
from interlock.model.entries import Remembered
from interlock.model.labels import EVERY_LEG
from interlock.model.summaries import SummaryRequest
from interlock.model.windows import WindowLimits
from interlock.stores.memory_facts import MemoryFacts
from interlock.windows import ContextWindow


@pytest.fixture
def memory() -> Memory:
    return Memory(MemoryFacts(), most=9)


def test_a_fact_is_made_from_messages_that_are_there(memory: Memory) -> None:
    conversation = Conversation()
    conversation.push(Message.system("be careful"))
    conversation.push(Message.user("one"))
    conversation.push(Message.user("two"))
    for wrong in ((-1, 1), (1, 0), (0, 3), (3, 3)):
        with pytest.raises(Refused):
            memory.remember(conversation, "text", place=wrong)
    fact = memory.remember(conversation, "text", place=(0, 1))
    assert (fact.first, fact.end) == (0, 1)
    whole = memory.remember(conversation, "text")
    assert (whole.first, whole.end) == (0, 2)


def test_sources_that_nobody_knows_are_every_leg(memory: Memory) -> None:
    conversation = Conversation()
    conversation.rewrite([Message.user("imported")])
    assert set(EVERY_LEG) <= set(memory.remember(conversation, "text").carried.labels)
    assert set(memory.remember(conversation, "text", place=(0, 0)).carried.labels) == set()


def test_the_writers_journal_has_it_first(memory: Memory) -> None:
    recorded: list[Any] = []

    class Watched(Conversation):
        def record(self, entry: Any) -> None:
            recorded.append((entry, memory.fact("default", "m")))
            super().record(entry)

    memory.remember(Watched(labels=["untrusted:web"]), "text", id="m")
    ((entry, before),) = recorded
    assert isinstance(entry, Remembered)
    assert entry.labels == ("untrusted:web",)
    assert before is None


def test_revisions(memory: Memory) -> None:
    conversation = Conversation()
    memory.remember(conversation, "one", id="m")
    with pytest.raises(Conflict):
        memory.remember(conversation, "two", id="m")
    with pytest.raises(Conflict):
        memory.correct(conversation, "m", 2, "two")
    for wrong in (0, -1):
        with pytest.raises(Refused):
            memory.correct(conversation, "m", wrong, "two")
    assert memory.correct(conversation, "m", 1, "two").revision == 2


def test_bounds_of_a_recall(memory: Memory) -> None:
    conversation = Conversation()
    for number in range(5):
        memory.remember(conversation, f"word {number} {'x' * 40}", id=f"m-{number}")
    assert len(memory.recall(conversation, "word", limit=3).facts) == 3
    assert len(memory.recall(conversation, "word", characters=100).facts) == 2
    assert memory.recall(conversation, "nothing of it") == Recall()
    assert memory.recall(conversation, "nothing of it").messages == ()
    for wrong in ({"limit": 0}, {"characters": 0}):
        with pytest.raises(Refused):
            memory.recall(conversation, "word", **wrong)


def test_a_full_namespace(memory: Memory) -> None:
    conversation = Conversation()
    for number in range(9):
        memory.remember(conversation, f"word {number}")
    with pytest.raises(Refused, match="forget some"):
        memory.remember(conversation, "one more")
    memory.remember(Conversation(namespace="elsewhere"), "one more")


def test_an_embedder_that_fails() -> None:
    def broken(_: str) -> list[float]:
        raise ConnectionError("down")

    def refusing(_: str) -> list[float]:
        raise Refused("not this one")

    with pytest.raises(MemoryUnavailable, match="ConnectionError"):
        Memory(MemoryFacts(), embed=broken).remember(Conversation(), "text")
    with pytest.raises(Refused, match="not this one"):
        Memory(MemoryFacts(), embed=refusing).recall(Conversation(), "text")


def test_by_meaning_and_by_words_each_once() -> None:
    vectors = {"apples": (1.0, 0.0), "pears": (0.9, 0.1), "stones": (0.0, 1.0), "fruit": (1.0, 0.05)}
    memory = Memory(MemoryFacts(), embed=lambda text: vectors[text.split()[0]])
    conversation = Conversation()
    for text in ("apples fall", "pears fall", "stones fall"):
        memory.remember(conversation, text)
    found = memory.recall(conversation, "fruit stones", limit=3).facts
    assert [fact.text for fact in found] == ["apples fall", "pears fall", "stones fall"]


def test_time_comes_from_the_clock() -> None:
    class Noon:
        def now(self) -> datetime:
            return datetime(2026, 11, 29, 12, tzinfo=UTC)

    fact = Memory(MemoryFacts(), clock=Noon()).remember(Conversation(), "text")
    assert fact.at == "2026-11-29T12:00:00.000000Z"


def test_pages_are_bounded_and_the_newest_stay() -> None:
    pages: dict[int, str] = {}
    for number in range(1, 3 * MAX_PAGES):
        note(pages, number, f"page {number}")
        note(pages, number, "")  # nothing to say takes nothing away
        assert len(pages) <= 2 * MAX_PAGES
    assert all(number in pages for number in range(2 * MAX_PAGES, 3 * MAX_PAGES))


def test_a_bug_of_ours_always_comes_out() -> None:
    def broken(_: SummaryRequest) -> str:
        raise Bug("ours")

    conversation = Conversation()
    for number in range(9):
        conversation.push(Message.user(f"{number}"))
    with pytest.raises(Bug):
        ContextWindow(conversation, limits=WindowLimits(messages=4, recent=2), summarise=broken).context()
    assert conversation.state.summary is None
