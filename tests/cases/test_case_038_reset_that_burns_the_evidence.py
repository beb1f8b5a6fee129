"""Case 38: a reset clears the taint and deletes what showed that there had been one.

Here nothing resets. Who wants to begin anew begins a new conversation, from the typed words of the old one if they
like, and the old one keeps its labels and its whole record, which still verifies against the head and says what began
from it. Nothing of it can be reached from a tool. The honest twin works in the new conversation at once.
"""

from __future__ import annotations

import pytest

from interlock import Conversation, Interlock, MemoryJournal
from interlock.cli import cli
from interlock.errors import Tampered
from interlock.model.chain import verify
from interlock.model.entries import Forked
from tests.cases.desk import EVIL, MANIFEST, armed, did, entries, fresh, got, locked


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


def test_attack_a_new_start_from_typed_words_leaves_the_old_record() -> None:
    journal = MemoryJournal(key=b"key")
    lock = Interlock(manifest=MANIFEST, journal=journal)
    old = fresh(lock, "Read a.pdf and show it on my port.")
    assert did(old, "expose_port", {"port": 1}).executed
    assert did(old, "read_attachment", {"name": "a.pdf"}).executed
    held = old.conversation.state
    new = old.conversation.restart_from_trusted()
    assert old.conversation.state == held
    assert [entry.conversation for entry in entries(old, journal) if isinstance(entry, Forked)] == [new.id]
    assert new.state.parent == old.conversation.id
    assert set(new.taint) == {"egress:channel"}  # the port is open still
    begun = lock.guard(new)
    did(begun, "page_text", {"page": "guide"})
    assert got(did(begun, "read_file", {"path": "plan.txt"})) == ("deny", "open_channel")
    verify(journal.entries(old.conversation.id), journal.head(old.conversation.id), b"key")


@pytest.mark.parametrize(
    "command",
    [
        "interlock reset c-1",
        "interlock session load --fresh s.jsonl",
        "rm s.jsonl s.jsonl.head",
        "restart_from_trusted()",
    ],
)
def test_attack_the_agent_begins_anew_by_itself(command: str) -> None:
    guard = armed()
    outcome = did(guard, "bash", {"command": command})
    assert outcome.verdict.value == "deny"
    assert set(guard.conversation.taint) == {"private:files", "untrusted:attachment"}


def test_attack_no_command_takes_a_label_away() -> None:
    assert not {name for name in cli.commands if set(name.split("-")) & {"reset", "clear", "unlock", "forget", "purge"}}


def test_honest_the_new_conversation_works_at_once() -> None:
    lock = Interlock(manifest=MANIFEST, journal=MemoryJournal())
    did(lock.guard(Conversation.new()), "read_mail", {"query": "today"})
    new = lock.guard(Conversation.user("Write to kim@corp.example please."))
    assert did(new, "send_email", {**EVIL, "to": "kim@corp.example"}).executed


def test_honest_a_new_start_from_typed_words_works_at_once() -> None:
    lock = locked()
    old = armed(lock, "Write to kim@corp.example please.")
    new = lock.guard(old.conversation.restart_from_trusted())
    assert did(new, "send_email", EVIL).executed
    assert did(new, "read_file", {"path": "plan.txt"}).executed
    did(new, "page_text", {"page": "guide"})
    assert did(new, "send_email", {**EVIL, "to": "kim@corp.example"}).executed
