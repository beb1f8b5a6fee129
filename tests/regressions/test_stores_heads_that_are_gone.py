"""A conversation whose head was taken away was not there, and nobody was told that something of it is.

Loading said `no conversation`, and `store verify` passed over it, since it goes by the heads. A head with another label
version than its entries verified, and every guard then lost each race for ever. Numbers and lists in odd columns came
out as `RecursionError` and `OverflowError` instead of as damage.
Mutations that this file catches: what is left without a head is not asked for; the version of the head is not compared;
a column that nobody wrote is read as it is.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner

from interlock.cli import cli
from interlock.conversations import Conversations
from interlock.errors import Conflict, JournalUnavailable, Tampered
from interlock.model.entries import Opened
from interlock.model.labels import EVERY_LEG
from interlock.stores import audit
from interlock.stores.sqlite import SqliteStore
from interlock.testing.stores import AT, WEB, admitted


@pytest.fixture
def path(tmp_path: Path) -> Path:
    SqliteStore.migrate(tmp_path / "store.db")
    store = SqliteStore(tmp_path / "store.db")
    store.within("ana").open([Opened(AT, "c-1", "ana"), admitted(WEB), *[admitted(WEB)] * 1000])
    store.close()
    return tmp_path / "store.db"


def changed(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    assert connection.execute(statement).rowcount > 0
    connection.commit()
    connection.close()


def test_what_is_left_without_its_head_is_damage(path: Path) -> None:
    store = SqliteStore(path)
    assert store.within("ana").state("c-1").taint
    changed(path, "DELETE FROM interlock_heads")
    for opened in (store, SqliteStore(path)):
        view = opened.within("ana")
        for ask in (view.state, view.head, view.messages, view.entries, lambda name, at=view: audit.verified(at, name)):
            if ask != view.entries:
                with pytest.raises(Tampered):
                    ask("c-1")
        with pytest.raises(Conflict):
            view.open([Opened(AT, "c-1", "ana")])
        loaded = Conversations(opened, "ana").load("c-1")
        assert loaded.damage
        assert set(loaded.conversation.taint) == set(EVERY_LEG)
        with pytest.raises(JournalUnavailable):  # in another namespace it is as little there as any other
            opened.within("bob").state("c-1")
        opened.close()


def test_verifying_tells_of_it(path: Path) -> None:
    changed(path, "DELETE FROM interlock_heads")
    done = CliRunner().invoke(cli, ["store", "verify", "--store", str(path)])
    assert done.exit_code == 1
    assert "c-1  its head is gone" in done.output


def test_a_conversation_that_was_here_and_is_gone_altogether(path: Path) -> None:
    store = SqliteStore(path)
    store.within("ana").state("c-1")
    for table in ("heads", "entries", "checkpoints"):
        changed(path, f"DELETE FROM interlock_{table}")
    with pytest.raises(Tampered):
        store.within("ana").state("c-1")
    store.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE interlock_heads SET version = version + 1",
        "UPDATE interlock_heads SET version = 'x'",
        "UPDATE interlock_heads SET sequence = -5",
        "UPDATE interlock_heads SET labels = CAST(replace(hex(zeroblob(60000)), '00', '[') AS BLOB)",
    ],
    ids=["version", "version of another type", "sequence", "labels"],
)
def test_odd_columns_of_a_head_are_damage(path: Path, statement: str) -> None:
    changed(path, statement)
    store = SqliteStore(path)
    with pytest.raises(Tampered):
        audit.verified(store.within("ana"), "c-1")
    loaded = Conversations(store, "ana").load("c-1")
    assert set(loaded.conversation.taint) == set(EVERY_LEG)
    store.close()


@pytest.mark.parametrize("value", ["-9223372036854775808", "9223372036854775807", "'x'", "X'00'"])
def test_odd_columns_of_a_checkpoint_are_not_believed(path: Path, value: str) -> None:
    changed(path, f"UPDATE interlock_checkpoints SET sequence = {value}")
    store = SqliteStore(path)
    assert set(store.within("ana").state("c-1").taint) == {WEB}
    store.close()
