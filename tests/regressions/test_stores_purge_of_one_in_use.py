"""A purge by age erased conversations to which somebody had come back while it ran.

It asked once which conversations are idle, and then erased them one by one, which may take long.
Mutation that this file catches: whether a conversation is idle is not asked again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from interlock.cli import cli
from interlock.conversations import Conversations
from interlock.model.entries import Opened
from interlock.model.messages import Message
from interlock.stores.sql_store import SqlNamespace
from interlock.stores.sqlite import SqliteStore
from interlock.testing.stores import AT, change


def test_whoever_comes_back_keeps_the_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    SqliteStore.migrate(tmp_path / "store.db")
    store = SqliteStore(tmp_path / "store.db")
    ana = Conversations(store, "ana")
    old = AT.replace("2026", "2001")
    for name in ("c-1", "c-2"):
        ana.namespace.open([Opened(old, name, "ana")])
        ana.namespace.record(name, [change(Message.user("old"))], at=old, turn=0)
    erase = SqlNamespace.erase

    def coming_back(self: SqlNamespace, conversation: str, *, at: str) -> Any:
        stored = ana.load("c-2")
        stored.conversation.say("I am back")
        stored.record_turn()
        return erase(self, conversation, at=at)

    monkeypatch.setattr(SqlNamespace, "erase", coming_back)
    arguments = ["store", "purge", "--namespace", "ana", "--older-than", "30d", "--yes"]
    done = CliRunner().invoke(cli, [*arguments, "--store", str(tmp_path / "store.db")])
    assert done.exit_code == 0, done.output
    assert not ana.load("c-1").conversation.messages
    assert "I am back" in ana.load("c-2").conversation.messages[-1].text
    store.close()
