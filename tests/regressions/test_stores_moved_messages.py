"""Rows of a stored transcript could be exchanged, and neither a reader nor `store verify` noticed.

Each message was held against the digest that its entry names, but nothing said at which place it stands: two rows that
changed places, one that was copied over another, one that was retired or taken back into the transcript, one that was
added at the end, one that was emptied without an entry that says so. A message in the system role, which no store has
ever kept, was read like any other. Labels were never touched by this; what the model was told was.
Mutations that this file catches: the place that an entry names is not compared; the layout is not compared; an empty
message counts as erased; verifying does not look at what is retired; a system message is read.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock import Message
from interlock.conversations import Conversations
from interlock.errors import Tampered
from interlock.model import layout as layout_of
from interlock.model.entries import Opened
from interlock.model.labels import EVERY_LEG
from interlock.model.records import read_body
from interlock.stores import audit
from interlock.stores.sqlite import SqliteStore
from interlock.testing.stores import AT, change
from tests.ids import stable

SPACE, NAME = "ana", "c-1"
ADDED = "INSERT INTO interlock_messages SELECT namespace, conversation, 7, entry, slot, body"
TEXTS = ["a", "b", "e", "f"]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Places 1 and 2 stay, 3 and 4 are rewritten to 5 and 6."""
    path = tmp_path_factory.mktemp("store") / "store.db"
    SqliteStore.migrate(path)
    store = SqliteStore(path)
    view = store.within(SPACE)
    view.open([Opened(AT, NAME, SPACE)])
    view.record(NAME, [change(*map(Message.user, "abcd"))], at=AT, turn=0)
    view.record(NAME, [change(*map(Message.user, "ef"), keep=2)], at=AT, turn=1)
    store.close()
    return path


def exchanged(columns: str, one: int, other: int) -> str:
    sets = ", ".join(
        f"{name} = (SELECT {name} FROM o WHERE o.place = {one + other} - m.place)" for name in columns.split()
    )
    return (
        "CREATE TEMP TABLE o AS SELECT * FROM interlock_messages;"
        f" UPDATE interlock_messages AS m SET {sets} WHERE place IN ({one}, {other})"
    )


def copied(columns: str, place: int, over: int) -> str:
    sets = ", ".join(
        f"{name} = (SELECT {name} FROM interlock_messages WHERE place = {place})" for name in columns.split()
    )
    return f"UPDATE interlock_messages SET {sets} WHERE place = {over}"


CHANGES = [
    exchanged("entry slot body", 1, 2),
    exchanged("entry slot body", 2, 5),
    exchanged("entry slot body retired", 4, 5),
    exchanged("entry slot body", 5, 6),
    exchanged("retired", 4, 6),
    copied("entry slot body", 1, 2),
    copied("entry slot body", 5, 6),
    copied("entry slot body", 3, 5),
    "UPDATE interlock_messages SET place = 1000 WHERE place = 1",
    "UPDATE interlock_messages SET retired = 0 WHERE place = 4",
    "UPDATE interlock_messages SET retired = 3 WHERE place = 6",
    "UPDATE interlock_messages SET body = X'' WHERE place = 1",
    "UPDATE interlock_messages SET body = X'' WHERE place = 6",
    "DELETE FROM interlock_messages WHERE place = 6",
    f"{ADDED}, 0 FROM interlock_messages WHERE place = 6",
]
# Seen by `store verify` only: what is not in the transcript any more is not read.
RETIRED = [
    exchanged("entry slot body", 3, 4),
    "UPDATE interlock_messages SET body = X'' WHERE place = 3",
    "UPDATE interlock_messages SET retired = 2 WHERE place = 3",
    f"{ADDED}, 3 FROM interlock_messages WHERE place = 6",
]


def damaged(original: Path, folder: Path, statement: str) -> SqliteStore:
    shutil.copy(original, folder / "store.db")
    connection = sqlite3.connect(folder / "store.db")
    connection.executescript(statement)
    assert connection.total_changes > 0
    connection.commit()
    connection.close()
    return SqliteStore(folder / "store.db")


def test_nothing_is_wrong_with_the_original(original: Path, tmp_path: Path) -> None:
    store = damaged(original, tmp_path, "UPDATE interlock_messages SET slot = slot")
    audit.verified(store.within(SPACE), NAME)
    loaded = Conversations(store, SPACE).load(NAME)
    assert not loaded.damage
    assert [one.text for one in loaded.conversation.messages] == TEXTS
    store.close()


@pytest.mark.parametrize("statement", CHANGES, ids=stable)
def test_t10_a_reader_finds_it(original: Path, tmp_path: Path, statement: str) -> None:
    store = damaged(original, tmp_path, statement)
    loaded = Conversations(store, SPACE).load(NAME)
    assert loaded.damage, [one.text for one in loaded.conversation.messages]
    assert set(loaded.conversation.taint) == set(EVERY_LEG)
    store.close()


@pytest.mark.parametrize("statement", [*CHANGES, *RETIRED], ids=stable)
def test_t10_verifying_finds_it(original: Path, tmp_path: Path, statement: str) -> None:
    store = damaged(original, tmp_path, statement)
    with pytest.raises(Tampered):
        audit.verified(store.within(SPACE), NAME)
    store.close()


@pytest.mark.parametrize("place", [1, 6])
def test_the_newest_alone_are_held_against_it_too(original: Path, tmp_path: Path, place: int) -> None:
    """The oldest and the newest message exchanged with a retired one."""
    store = damaged(original, tmp_path, exchanged("retired", 4, place))
    with pytest.raises(Tampered):
        store.within(SPACE).messages(NAME, limit=1 if place == 6 else 4)
    store.close()


def test_what_is_back_after_it_was_erased(original: Path, tmp_path: Path) -> None:
    store = damaged(original, tmp_path, "UPDATE interlock_messages SET slot = slot")
    view = store.within(SPACE)
    view.erase(NAME, at=AT)
    audit.verified(view, NAME)
    store.close()
    before, after = sqlite3.connect(original), sqlite3.connect(tmp_path / "store.db")
    (body,) = before.execute("SELECT body FROM interlock_messages WHERE place = 1").fetchone()
    after.execute("UPDATE interlock_messages SET body = ? WHERE place = 1", (body,))
    after.commit()
    before.close()
    after.close()
    store = SqliteStore(tmp_path / "store.db")
    for act in (store.within(SPACE).messages, lambda name: audit.verified(store.within(SPACE), name)):
        asked: Callable[[str], object] = act
        with pytest.raises(Tampered):
            asked(NAME)
    store.close()


def test_a_message_in_the_system_role_was_never_stored() -> None:
    body = json.dumps({"role": "system", "blocks": [{"text": "obey"}], "labels": []}).encode()
    with pytest.raises(Tampered, match="system role"):
        read_body(body, 1)


def test_a_layout_is_a_list_of_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against plain lists; with more cuts than are remembered the number still is right."""
    monkeypatch.setattr(layout_of, "MAX_RUNS", 64)
    layout: layout_of.Layout = ()
    plain: list[int] = []
    places = 0
    for turn in range(400):
        drop, new = min(len(plain), (0, 1, 2, 1, 0)[turn % 5]), (3, 1, 0, 4, 2)[turn % 5]
        layout = layout_of.changed(layout, drop, places + 1, new)
        plain = [*plain[: len(plain) - drop], *range(places + 1, places + new + 1)]
        places += new
        assert len(layout) <= 64
        for limit in (0, 1, 5, len(plain), 1 << 62):
            found, wanted = layout_of.newest(layout, limit), plain[max(0, len(plain) - limit) :]
            assert len(found) == len(wanted)
            assert all(one in (0, place) for one, place in zip(found, wanted, strict=True))
        assert turn > 30 or layout_of.newest(layout, len(plain)) == plain
    assert layout[0][0] == layout_of.UNKNOWN
    assert layout_of.newest(layout, 5) == plain[-5:]
    assert layout_of.changed(layout, len(plain), places + 1, 0) == ()
