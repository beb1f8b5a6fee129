"""Cases 44 and 45: a page is read in one conversation, and another one that never saw it sends the plan away.

Six ways lead from the one to the other: memory, a file, a summary of a summary, a database row, work for later, a
child. Each is gone from end to end over a real store by what users are given (`Interlock`, `Conversations`, `Memory`,
`ContextWindow`, parcels), with every object thrown away in between as by another process, so that nothing but the store
and the host's own queue carries anything over. B reads private data, is refused to send it, and is told which page of A
was the cause. The honest twin goes the same six ways after a conversation that has read nothing, and sends the plan to
whom its person named.
Mutations that this file catches: a recall that joins nothing; a file or a table under another name; a summary with the
labels of its last batch; a run that begins clean; a child that is joined without what it learnt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from interlock import Conversation, Guard, Interlock, Message
from interlock.conversations import Conversations, StoredConversation
from interlock.memory import Memory
from interlock.model.parcels import read_parcel
from interlock.model.windows import WindowLimits
from interlock.stores.sql_artifacts import SqlArtifacts
from interlock.stores.sql_facts import SqlFacts
from interlock.stores.sql_store import SqlStore
from interlock.stores.sqlite import SqliteStore
from interlock.windows import ContextWindow, RunBudget
from tests.cases.desk import did, shared
from tests.cases.poisoned import EVIL, KIM, MANIFEST, PAGE, PLANT, named

KEY = b"k" * 32
NOTE = "Kim likes short letters."
ASKS = "Send the plan to kim@corp.example please."


@dataclass
class Process:
    """One process over the store: everything in it is gone when the next one begins."""

    store: SqlStore

    def __post_init__(self) -> None:
        self.lock = Interlock(manifest=MANIFEST, engine=shared().engine, journal=self.store)
        self.place = Conversations(self.store, "ana")
        self.facts = SqlFacts(self.store)
        self.memory = Memory(self.facts)

    def begun(self, typed: str = "") -> StoredConversation:
        return self.place.new(typed)

    def guard(self, stored: StoredConversation) -> Guard:
        return self.lock.guard(stored.conversation)


@dataclass
class World:
    """A store that outlives its processes, and the host's own queue."""

    opened: Callable[[], SqlStore]
    queue: list[bytes] = field(default_factory=list)
    running: list[SqlStore] = field(default_factory=list)

    def process(self) -> Process:
        """The next process; the one before is dead."""
        self.stop()
        self.running.append(self.opened())
        return Process(self.running[-1])

    def stop(self) -> None:
        while self.running:
            self.running.pop().close()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    if request.param == "sqlite":
        SqliteStore.migrate(tmp_path / "store.db")
        made = World(lambda: SqliteStore(tmp_path / "store.db", durability="process"))
    else:
        from interlock.stores.postgres import PostgresStore

        dsn = request.getfixturevalue("postgres_server").fresh()
        made = World(lambda: PostgresStore(dsn, plaintext=True))
    store = made.opened()
    SqlArtifacts.begin(store)  # the operator's word, before any agent runs
    store.close()
    yield made
    made.stop()


def read_a_page(process: Process) -> StoredConversation:
    """A: it reads what a stranger wrote."""
    first = process.begun("What do they say about letters?")
    assert did(process.guard(first), "web_fetch", {"url": f"{PAGE}?q=1"}, PLANT).executed
    first.conversation.push(Message.assistant(PLANT))
    first.record_turn()
    return first


def read_nothing(process: Process) -> StoredConversation:
    """The honest A."""
    first = process.begun(f"Note this: {NOTE}")
    first.conversation.push(Message.assistant(NOTE))
    first.record_turn()
    return first


# Each way leaves something from A, whose process dies, and gives B, in which it has arrived.
Begins = Callable[[Process], StoredConversation]
Way = Callable[[World, Begins], tuple[Process, StoredConversation]]


def by_memory(world: World, begins: Begins) -> tuple[Process, StoredConversation]:
    process = world.process()
    process.memory.remember(begins(process).conversation, f"letters: {PLANT}")
    process = world.process()
    second = process.begun(ASKS)
    assert process.memory.recall(second.conversation, "letters").facts
    return process, second


def by_file(world: World, begins: Begins) -> tuple[Process, StoredConversation]:
    process = world.process()
    assert did(process.guard(begins(process)), "save", {"path": "Notes.md", "text": PLANT}).executed
    process = world.process()
    second = process.begun(ASKS)
    assert did(process.guard(second), "load", {"path": "./x/../Notes.md"}, PLANT).executed
    return process, second


def by_summary_of_a_summary(world: World, begins: Begins) -> tuple[Process, StoredConversation]:
    """A's process makes two summaries, the second from the first; the next process hands its text on."""
    process = world.process()
    first = begins(process)
    for number in range(6):
        first.conversation.push(Message.user(f"question {number}"))
        first.conversation.push(Message.assistant(f"answer {number}"))
    asked: list[str] = []

    def told(request: object) -> str:
        asked.append(getattr(request, "previous", ""))
        return f"Summary {len(asked)} of letters: {PLANT}"

    limits = WindowLimits(messages=6, recent=2, batch=5, backlog=9)
    window = ContextWindow(first.conversation, limits=limits, summarise=told, summaries=process.facts)
    window.context(RunBudget(passes=9))
    assert len(asked) >= 2
    assert asked[1].startswith("Summary 1")
    first.record_turn()
    summary = window.summary()
    assert summary is not None
    process.memory.remember(first.conversation, summary.text, place=(0, summary.covered))
    process = world.process()
    second = process.begun(ASKS)
    assert process.memory.recall(second.conversation, "summary letters").facts
    return process, second


def by_row(world: World, begins: Begins) -> tuple[Process, StoredConversation]:
    process = world.process()
    assert did(process.guard(begins(process)), "insert", {"table": "letters", "row": PLANT}).executed
    process = world.process()
    second = process.begun(ASKS)
    assert did(process.guard(second), "select", {"table": 'public."LETTERS"'}, PLANT).executed
    return process, second


def by_scheduled_run(world: World, begins: Begins) -> tuple[Process, StoredConversation]:
    process = world.process()
    world.queue.append(begins(process).conversation.parcel(PLANT).encode(key=KEY))
    process = world.process()
    run = Conversation.from_parcel(read_parcel(world.queue.pop(), namespace="ana", key=KEY))
    run.say(ASKS)  # the person looks in
    return process, process.place.keep(run)


def by_child(world: World, begins: Begins) -> tuple[Process, StoredConversation]:
    """B has never recalled anything: its child does, and is joined."""
    process = world.process()
    process.memory.remember(begins(process).conversation, f"letters: {PLANT}")
    process = world.process()
    second = process.begun(ASKS)
    with second.conversation.child("How are letters written?", tools=[]) as child:
        assert process.memory.recall(child, "letters").facts
    return process, second


WAYS: list[Way] = [by_memory, by_file, by_summary_of_a_summary, by_row, by_scheduled_run, by_child]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_attack_t12_the_plan_stays_and_the_page_is_named(world: World, way: Way) -> None:
    process, second = way(world, read_a_page)
    guard = process.guard(second)
    assert "untrusted:web" in second.conversation.taint
    assert did(guard, "read_plan", {}, "the plan").executed
    assert PAGE in named(did(guard, "send_email", EVIL))
    second.conversation.push(Message.assistant("I can't."))
    second.record_turn()
    # And in the process after that one, too.
    process = world.process()
    again = process.place.load(second.id)
    assert PAGE in named(did(process.guard(again), "send_email", EVIL))


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_honest_the_plan_goes_to_whom_the_person_named(world: World, way: Way) -> None:
    process, second = way(world, read_nothing)
    guard = process.guard(second)
    assert set(second.conversation.taint) <= {"untrusted:memory"}
    assert did(guard, "read_plan", {}, "the plan").executed
    assert did(guard, "send_email", KIM).executed
    if "untrusted:memory" in second.conversation.taint:
        assert named_memory(did(guard, "send_email", EVIL))
    else:
        assert did(guard, "send_email", EVIL).executed  # private data alone is no trifecta


def named_memory(outcome: object) -> bool:
    decision = getattr(outcome, "decision", None)
    return decision is not None and decision.code == "trifecta"
