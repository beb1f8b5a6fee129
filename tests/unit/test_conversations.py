"""Proves that a conversation in a store is the same one in every process: messages, labels and turns (T2, T17).

Mutations that it is shown to catch: system messages are stored, a window begins with a result, a load that resumes by
itself, an asynchronous guard that writes in the event loop's own thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock import Conversation, Interlock, Message, ToolUse
from interlock.conversations import Conversations, StoredConversation
from interlock.errors import Conflict, JournalUnavailable, Refused, TurnConflict, WrongJournal
from interlock.gate.guard import Guard
from interlock.model.transcript import unpaired
from interlock.ports import Namespace, Store
from interlock.stores.memory import MemoryJournal
from interlock.stores.memory_store import MemoryStore
from interlock.stores.sqlite import SqliteStore
from interlock.testing.stores import check_chain
from tests.worlds import MANIFEST


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "memory":
        yield MemoryStore()
        return
    SqliteStore.migrate(tmp_path / "store.db")
    opened = SqliteStore(tmp_path / "store.db", durability="process")
    yield opened
    opened.close()


@pytest.fixture
def ana(store: Store) -> Conversations:
    return Conversations(store, "ana")


def guard(store: Store, stored: StoredConversation | Conversation) -> Guard:
    conversation = stored if isinstance(stored, Conversation) else stored.conversation
    return Interlock(manifest=MANIFEST, journal=store).guard(conversation)


def test_the_ports_are_what_they_say(store: Store) -> None:
    assert isinstance(store, Store)
    assert isinstance(store.within("a"), Namespace)


def test_a_conversation_goes_on_elsewhere(store: Store, ana: Conversations) -> None:
    first = ana.new("Read my mail, then send it to eve@evil.example")
    assert guard(store, first).call("read_mail", {}, run=lambda: "mail").result == "mail"
    first.conversation.push(Message.assistant("It says hello."))
    assert first.record_turn() == 2
    assert first.record_turn() == 2, "nothing new, and a turn ended"
    again = ana.load(first.id)
    assert (again.damage, again.turn, again.earlier) == ("", 2, 0)
    assert again.conversation.messages == first.conversation.messages
    assert again.conversation.state == first.conversation.state
    assert again.conversation.transcript.covers == ((), ("private:mail", "untrusted:mail"))
    # What was typed is still known as typed, and the labels still count.
    second = guard(store, again)
    assert second.call("send", {"to": "bob@evil.example", "body": "x"}, run=print).verdict.value == "deny"
    assert second.call("send", {"to": "eve@evil.example", "body": "x"}, run=lambda to, body: "sent").result == "sent"
    check_chain(ana.namespace, first.id)


def test_calls_under_way_elsewhere_stay_under_way(store: Store, ana: Conversations) -> None:
    from interlock import Call

    first = ana.new("go")
    working = guard(store, first)
    ticket = working.propose(Call("read_note", {}, id="c1"))
    other = ana.load(first.id)
    assert "private:notes" in other.conversation.exposure
    assert "private:notes" not in other.conversation.taint
    assert working.observe(ticket, "c1", "a note").result == "a note"
    ticket = working.propose(Call("read_note", {}, id="c2"))
    alone = ana.load(first.id, alone=True)
    assert not alone.conversation.state.in_flight
    assert alone.conversation.state.doubts
    assert "private:notes" in alone.conversation.taint


def test_the_loser_keeps_what_it_has_and_its_labels_join(store: Store, ana: Conversations) -> None:
    first = ana.new("go")
    one, two = ana.load(first.id), ana.load(first.id)
    guard(store, two).call("read_mail", {}, run=lambda: "mail")
    for stored, text in ((one, "one"), (two, "two")):
        stored.conversation.push(Message.assistant(text))
    assert one.record_turn() == 2
    with pytest.raises(TurnConflict) as caught:
        two.record_turn({"answer": 42})
    assert caught.value.outcome == {"answer": 42}
    assert (caught.value.turn, caught.value.version) == (2, ana.load(first.id).conversation.state.version)
    with pytest.raises(TurnConflict) as caught:
        two.record_turn()
    assert [message.text for message, _ in caught.value.outcome] == ["two"]  # type: ignore[attr-defined]
    now = ana.load(first.id)
    assert [one.text for one in now.conversation.messages] == ["go", "one"]
    assert set(now.conversation.taint) == {"private:mail", "untrusted:mail"}
    with pytest.raises(Conflict):
        two.conversation.rewrite([Message.user("summary")])
    assert [one.text for one in two.conversation.messages] == ["go", "two"], "a rewrite that was not stored is shown"


def test_instructions_are_not_kept(store: Store, ana: Conversations) -> None:
    stored = ana.new()
    stored.conversation.push(Message.system("You are careful."))
    stored.conversation.say("hello")
    stored.conversation.push(Message.system("Be brief."))
    stored.conversation.push(Message.assistant("hi"))
    stored.record_turn()
    stored.conversation.rewrite([Message.system("You are careful."), Message.user("summary")])
    again = ana.load(stored.id)
    assert [one.text for one in again.conversation.messages] == ["summary"]
    assert [one.text for one in again.messages_ever()] == ["hello", "hi", "summary"]


def test_a_window_never_begins_with_a_result(store: Store, ana: Conversations) -> None:
    stored = ana.new("go")
    for number in range(5):
        outcome = guard(store, stored).call("now", {}, run=lambda: "noon", id=f"call_{number}")
        stored.conversation.push(Message.assistant("", ToolUse(f"call_{number}", "now", {})))
        stored.conversation.push(Message.results(outcome))
    stored.conversation.push(Message.assistant("done"))
    stored.record_turn()
    for newest in range(13):
        shown = ana.load(stored.id, newest=newest)
        assert not unpaired(shown.conversation.messages)
        assert shown.earlier + len(shown.conversation) == 12
        assert len(shown.conversation) in (min(newest, 12), min(newest, 12) - 1)
        assert shown.conversation.messages == stored.conversation.messages[shown.earlier :]
    shown = ana.load(stored.id, newest=3)
    shown.conversation.say("and now?")
    shown.record_turn()
    assert len(ana.load(stored.id).conversation) == 13
    shown.conversation.rewrite([Message.user("all of it")])
    whole = ana.load(stored.id)
    assert whole.conversation.messages[: shown.earlier] == stored.conversation.messages[: shown.earlier]
    assert whole.conversation.messages[-1].text == "all of it"


def test_an_open_round_is_answered_on_loading(ana: Conversations) -> None:
    stored = ana.new("go")
    stored.conversation.push(Message.assistant("", ToolUse("call_1", "now", {})))
    stored.record_turn()
    again = ana.load(stored.id)
    assert not unpaired(again.conversation.messages)
    again.record_turn()
    assert len(ana.load(stored.id).conversation) == 3


def test_keeping_what_exists_already(store: Store, ana: Conversations) -> None:
    old = Conversation(namespace="ana", labels=["untrusted:web"])
    Interlock(manifest=MANIFEST, journal=MemoryJournal()).guard(old).call("read_note", {}, run=lambda: "x")
    old.push(Message.user("hello"))
    kept = ana.keep(old)
    assert ana.load(kept.id).conversation.state.taint == old.taint
    assert set(old.taint) == {"private:notes", "untrusted:web"}
    with pytest.raises(WrongJournal):
        ana.keep(old)
    bound = Conversation(namespace="ana")
    guard(store, bound)
    assert ana.keep(bound).id == bound.id, "a guard had opened it here"
    with pytest.raises(Refused):
        ana.keep(Conversation(namespace="bob"))


def test_namespaces_never_meet(store: Store, ana: Conversations) -> None:
    stored = ana.new("secret")
    for name in (stored.id, "c-none"):
        with pytest.raises(JournalUnavailable, match="no conversation"):
            Conversations(store, "bob").load(name)
    assert list(Conversations(store, "bob")) == []
    assert list(ana) == [stored.id]
    with pytest.raises(Refused):
        Conversations(store, "")
    plain = Conversation.user("hello")
    guard(store, plain)  # its own namespace is `default`, and so is where it is kept
    assert list(Conversations(store, "default")) == [plain.id]


def test_forks_and_children_live_beside(store: Store, ana: Conversations) -> None:
    stored = ana.new("go")
    lock = Interlock(manifest=MANIFEST, journal=store)
    with stored.conversation.child("look", tools=MANIFEST) as child:
        lock.guard(child).call("read_note", {}, run=lambda: "x")
    fork = stored.conversation.fork()
    lock.guard(fork)
    assert {stored.id, child.id, fork.id} == set(ana)
    for name in ana:
        assert "private:notes" in ana.load(name).conversation.taint


def test_an_asynchronous_guard_does_not_stop_the_loop(store: Store, ana: Conversations, monkeypatch: Any) -> None:
    stored = ana.new("go")
    view: Any = type(ana.namespace)
    threads: set[int] = set()
    plain = view.append

    def noting(self: Any, *given: Any, **options: Any) -> Any:
        threads.add(threading.get_ident())
        return plain(self, *given, **options)

    monkeypatch.setattr(view, "append", noting)
    working = guard(store, stored)
    outcome = asyncio.run(working.acall("read_note", {}, run=lambda: "a note"))
    assert outcome.result == "a note"
    assert "private:notes" in ana.load(stored.id).conversation.taint
    assert (threading.get_ident() in threads) is not view.blocks


def test_a_task_that_is_cancelled_in_a_write(store: Store, ana: Conversations) -> None:
    """T8, T16: whatever was written by then stands, and nothing ran that was not."""
    ran: list[int] = []

    async def go(delay: float) -> StoredConversation:
        stored = ana.new("go")
        task = asyncio.ensure_future(guard(store, stored).acall("read_note", {}, run=lambda: ran.append(1) or "x"))
        await asyncio.sleep(delay)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return stored

    for step in range(12):
        ran.clear()
        stored = asyncio.run(go(step * 0.0004))
        state = ana.load(stored.id).conversation.state
        assert state.calls >= len(ran)
        if ran:
            assert "private:notes" in state.exposure
        check_chain(ana.namespace, stored.id)


def test_many_pages(ana: Conversations) -> None:
    from interlock import conversations

    stored = ana.new("0")
    for number in range(1, 7):
        stored.conversation.push(Message.assistant(str(number)))
    stored.record_turn()
    others = {ana.new().id for _ in range(4)}
    before = conversations.PAGE
    try:
        conversations.PAGE = 2
        assert [one.text for one in stored.messages_ever()] == [str(number) for number in range(7)]
        assert set(ana) == {stored.id, *others}
    finally:
        conversations.PAGE = before
