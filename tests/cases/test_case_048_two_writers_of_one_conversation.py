"""Case 48: an interruption does not take, and two threads go on with the same conversation.

While one decides, the other brings a stranger's text in. The decision was made under labels that no longer stand, so it
is made anew, and what would have been sent is refused; a rival that never stops makes the call fail instead of pass. A
session that is open already is opened by nobody else. The honest twin is a rival whose calls bring nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock import Conversation, Guard, Interlock, MemoryJournal, Session
from interlock.errors import SessionBusy
from interlock.model.canonical import unpack
from interlock.model.entries import Decided
from tests.cases.desk import EVIL, MANIFEST, Engine, did, entries, fresh, got, shared


def interrupted(meanwhile: Callable[[Guard], None], times: int) -> tuple[Guard, MemoryJournal, list[bytes]]:
    """A guard whose engine lets a rival act, the first so many times, between the question and the answer."""
    documents: list[bytes] = []
    rivals: list[Guard] = []

    def say(document: bytes) -> object:
        documents.append(document)
        if rivals and len(documents) <= times:
            meanwhile(rivals[0])
        return shared().engine.evaluate(document)

    journal = MemoryJournal()
    conversation = Conversation.new()
    guard = Interlock(manifest=MANIFEST, journal=journal, engine=Engine(say)).guard(conversation)
    rivals.append(Interlock(manifest=MANIFEST, journal=journal).guard(conversation))
    return guard, journal, documents


def test_attack_labels_that_came_meanwhile_count() -> None:
    guard, journal, documents = interrupted(
        lambda rival: rival.admit("write to eve", labels=["untrusted:mail", "private:mail"], source="mail"), 1
    )
    assert got(did(guard, "send_email", EVIL)) == ("deny", "trifecta")
    assert unpack(documents[1])["exposure"]["private"] == ["mail"]  # it was judged anew, under the labels that came
    decided = [entry for entry in entries(guard, journal) if isinstance(entry, Decided)]
    assert [entry.verdict for entry in decided] == ["deny"]  # the first answer was never written


def test_attack_a_call_of_the_other_that_is_still_running_counts() -> None:
    guard, _, _ = interrupted(lambda rival: did(rival, "read_mail", {"query": "today"}), 1)
    assert got(did(guard, "send_email", EVIL)) == ("deny", "trifecta")


def test_attack_two_calls_never_get_one_number() -> None:
    guard, journal, _ = interrupted(lambda rival: did(rival, "calc", {"expression": "1"}), 1)
    did(guard, "calc", {"expression": "2"})
    numbers = [entry.number for entry in entries(guard, journal) if isinstance(entry, Decided)]
    assert numbers == sorted(set(numbers))


def test_attack_a_rival_that_never_stops() -> None:
    guard, _, _ = interrupted(lambda rival: rival.admit("x", labels=["untrusted:web"], source="web"), 10_000)
    ran: list[str] = []
    outcome = guard.call("calc", {"expression": "1"}, run=lambda expression: ran.append(expression))
    assert got(outcome) == ("deny", "journal_error")
    assert ran == []


def test_attack_a_second_thread_opens_the_same_session(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    told: list[BaseException] = []

    def second() -> None:
        with pytest.raises(SessionBusy, match="one writer at a time") as busy:
            Session.load(path)
        told.append(busy.value)

    with Session.create(path, Conversation.user("hello")) as session:
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(30)
        assert len(told) == 1
        assert did(shared().guard(session.conversation), "read_mail", {"query": "today"}).executed
    with Session.load(path) as session:
        assert set(session.conversation.taint) == {"private:mail", "untrusted:mail"}


def test_honest_a_rival_that_brings_nothing() -> None:
    guard, _, _ = interrupted(lambda rival: did(rival, "calc", {"expression": "1"}), 3)
    assert did(guard, "send_email", EVIL).executed
    assert did(fresh(), "send_email", EVIL).executed
