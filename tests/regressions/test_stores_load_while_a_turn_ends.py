"""Loading a conversation while another process ended a turn paired the messages of one moment with the turn of another.

The state was read first and the messages later. The turn that ended in between was shown, but the loader counted as
being one behind, and its own turn was refused for one that it had seen; with `alone` it was the other way round: it
could end a turn on messages that it had never seen. `earlier` was a negative number.
Mutation that this file catches: the state is not read again after the messages.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interlock import Message
from interlock.conversations import Conversations
from interlock.stores.sql_store import SqlNamespace
from interlock.stores.sqlite import SqliteStore
from interlock.testing.stores import decided


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("newest", [None, 1])
def test_both_are_of_one_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: bool, newest: int | None
) -> None:
    SqliteStore.migrate(tmp_path / "store.db")
    store = SqliteStore(tmp_path / "store.db", durability="process")
    ana = Conversations(store, "ana")
    first = ana.new("one")
    ana.namespace.append(first.id, [decided(1)])
    whole, left = SqlNamespace.messages, [True]

    def another_first(self: SqlNamespace, *args: Any, **more: Any) -> Any:
        if left.pop() if left else False:
            first.conversation.push(Message.user("two"))
            first.record_turn()
        return whole(self, *args, **more)

    monkeypatch.setattr(SqlNamespace, "messages", another_first)
    loaded = ana.load(first.id, newest=newest, alone=alone)
    assert loaded.earlier == (0 if newest is None else 1)
    assert loaded.conversation.messages[-1].text == "two"
    loaded.conversation.push(Message.user("three"))
    assert loaded.record_turn() == 3
    assert [one.text for one in ana.load(first.id).conversation.messages] == ["one", "two", "three"]
    store.close()
