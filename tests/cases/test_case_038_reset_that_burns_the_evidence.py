"""Case 38: a reset clears the taint and deletes what showed that there had been one.

Here nothing resets. Who wants to begin anew begins a new conversation, and the old one keeps its labels and its whole
record, which still verifies against the head. The honest twin works in the new conversation at once.
"""

from __future__ import annotations

import pytest

from interlock import Conversation, Interlock, MemoryJournal
from interlock.cli import cli
from interlock.errors import Tampered
from interlock.model.chain import verify
from tests.cases.desk import EVIL, MANIFEST, did, got


def test_attack_beginning_anew_leaves_the_old_record_as_it_was() -> None:
    journal = MemoryJournal(key=b"key")
    lock = Interlock(manifest=MANIFEST, journal=journal)
    old = lock.guard(Conversation.new())
    did(old, "read_mail", {"query": "today"})
    held, length = old.conversation.taint, len(journal.entries(old.conversation.id))
    new = lock.guard(Conversation.new())
    did(new, "calc", {"expression": "1"})
    assert old.conversation.taint == held
    assert len(journal.entries(old.conversation.id)) == length
    assert got(did(old, "send_email", EVIL)) == ("deny", "trifecta")
    verify(journal.entries(old.conversation.id), journal.head(old.conversation.id), b"key")


def test_attack_a_record_that_was_cut_does_not_fit_its_head() -> None:
    journal = MemoryJournal(key=b"key")
    guard = Interlock(manifest=MANIFEST, journal=journal).guard(Conversation.new())
    head_before = journal.head(guard.conversation.id)
    did(guard, "read_mail", {"query": "today"})
    head, whole = journal.head(guard.conversation.id), journal.entries(guard.conversation.id)
    with pytest.raises(Tampered):
        verify(whole[:1], head, b"key")
    with pytest.raises(Tampered):
        verify(whole, head_before, b"key")
    with pytest.raises(Tampered):
        verify((), head, b"key")


def test_attack_no_command_takes_a_label_away() -> None:
    assert not {name for name in cli.commands if set(name.split("-")) & {"reset", "clear", "unlock", "forget", "purge"}}


def test_honest_the_new_conversation_works_at_once() -> None:
    lock = Interlock(manifest=MANIFEST, journal=MemoryJournal())
    did(lock.guard(Conversation.new()), "read_mail", {"query": "today"})
    new = lock.guard(Conversation.user("Write to kim@corp.example please."))
    assert did(new, "send_email", {**EVIL, "to": "kim@corp.example"}).executed
