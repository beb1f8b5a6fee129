"""Proves that a conversation belongs to one journal, and keeps what was said before it had one (T2, T11).

Mutations that this file catches: entries that wait and are lost; a second journal that is accepted; text that is shown
before it is on record.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Conversation, MemoryJournal, Message
from interlock.errors import Conflict, InterlockError, JournalUnavailable, Refused, WrongJournal
from interlock.model.entries import Entry, decode
from interlock.model.labels import EVERY_LEG
from interlock.model.messages import Image
from interlock.model.state import State, apply
from tests.strategies import entries, label_tuples
from tests.worlds import FixedClock


@given(found=st.lists(entries(), max_size=8), cut=st.integers(0, 8), labels=label_tuples())
def test_t11_the_journal_takes_over_without_a_difference(found: list[Entry], cut: int, labels: Any) -> None:
    early, late = (Conversation(labels=labels, clock=FixedClock()) for _ in range(2))
    journal = MemoryJournal()
    for entry in found[:cut]:
        early.record(entry)
    early.bind(journal)
    for entry in found[cut:]:
        early.record(entry)
    for entry in found:
        late.record(entry)
    assert early.state.exposure == late.state.exposure
    assert early.taint == late.taint
    stored = [decode(sealed.body) for sealed in journal.entries(early.id)]
    state = State()
    for entry in stored:
        state = apply(state, entry)
    assert state == early.state
    assert stored[1:] == found


def test_one_journal_for_ever() -> None:
    conversation, journal = Conversation.new(), MemoryJournal()
    conversation.bind(journal)
    conversation.bind(journal)
    with pytest.raises(WrongJournal):
        conversation.bind(MemoryJournal())
    assert conversation.state.conversation == conversation.id


class Broken(MemoryJournal):
    """A journal that fails in one method."""

    def __init__(self, method: str, error: Exception) -> None:
        super().__init__()
        self._method, self._error = method, error

    def open(self, found: Any) -> Any:
        if self._method == "open":
            raise self._error
        return super().open(found)

    def append(self, conversation: str, found: Any, *, expected: int | None = None) -> Any:
        if self._method == "append" and len(self._records[conversation].entries) > 0:
            raise self._error
        return super().append(conversation, found, expected=expected)


def test_a_journal_that_does_not_open_binds_nothing() -> None:
    conversation = Conversation(labels=["private:mail"])
    for error in (JournalUnavailable("x"), Conflict("x")):
        with pytest.raises(InterlockError):
            conversation.bind(Broken("open", error))
    assert "private:mail" in conversation.taint
    conversation.bind(MemoryJournal())
    assert "private:mail" in conversation.taint


@pytest.mark.parametrize("pasted", [True, False])
def test_text_that_is_not_on_record_is_not_shown(pasted: bool) -> None:
    conversation = Conversation.new()
    conversation.bind(Broken("append", JournalUnavailable("x")))
    with pytest.raises(InterlockError):
        conversation.say("text", pasted=pasted)
    with pytest.raises(InterlockError):
        conversation.push(Message.user("look", Image("image/png", b"x")))
    assert conversation.messages == ()


def test_every_conversation_is_another_one() -> None:
    assert len({Conversation.new().id for _ in range(100)}) == 100


def test_how_a_conversation_begins() -> None:
    assert not Conversation.new().taint
    assert not Conversation.user("hello http://evil.example/").taint
    assert Conversation.user("hello").messages == (Message.user("hello"),)
    assert Conversation(namespace="team").namespace == "team"
    assert Conversation(namespace="team").state.namespace == "team"
    shown = [Message.user("bob@corp.example"), Message.assistant("x")]
    assert Conversation.from_messages(shown).messages == tuple(shown)
    assert not Conversation.from_messages(shown).state.typed
    resumed = Conversation.resumed(shown, EVERY_LEG)
    assert resumed.messages == tuple(shown)
    assert not resumed.state.typed
    assert "clean" in repr(Conversation.new())
    assert "private:unknown" in repr(resumed)
    with pytest.raises(Refused):
        Conversation(labels=["no label"])
