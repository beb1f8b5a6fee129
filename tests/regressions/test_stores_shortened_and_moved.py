"""Two changes met: messages got their own places, and journals could be shortened.

Each was right alone. Together, a shortened journal has no first entry that would keep its name from being taken when
its head is gone; what is left of it stands in two more tables, which nobody asked; the verifier, which follows where
entries put messages, has to follow the dropped ones that are kept beside; and the operator's word that the record of
artifacts is lost was written without the key (see `test_stores_artifact_head.py`). The service counts conversations
that were active lately, for which a shortened one is as old as it was.
Mutations that this file catches: the kept entries are not followed; they are not held against the state that the
journal begins with; an erased message that is there again is verified; the name is free; the new tables are not asked.
"""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from interlock import Message
from interlock.conversations import Conversations
from interlock.errors import Conflict, Tampered
from interlock.model.chain import seal
from interlock.model.checkpoints import read_state, state_body
from interlock.model.entries import Opened, encode
from interlock.model.labels import EVERY_LEG
from interlock.model.retention import trimmed
from interlock.stores import audit
from interlock.stores.memory_store import MemoryNamespace, MemoryStore
from interlock.stores.sqlite import SqliteStore
from interlock.testing.stores import AT, WEB, admitted, change
from tests.ids import stable
from tests.regressions.test_stores_moved_messages import CHANGES, NAME, RETIRED, SPACE, TEXTS, damaged


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same transcript as there, in a journal whose first three entries were dropped."""
    path = tmp_path_factory.mktemp("store") / "store.db"
    SqliteStore.migrate(path)
    store = SqliteStore(path)
    view = store.within(SPACE)
    view.open([Opened(AT, NAME, SPACE)])
    view.record(NAME, [change(*map(Message.user, "abcd"))], at=AT, turn=0)
    view.record(NAME, [change(*map(Message.user, "ef"), keep=2)], at=AT, turn=1)
    before = view.state(NAME)
    assert view.trim(NAME, through=3, at=AT) == before
    assert audit.verified(view, NAME).messages == 6
    store.close()
    return path


def test_nothing_is_wrong_with_the_original(original: Path, tmp_path: Path) -> None:
    store = damaged(original, tmp_path, "UPDATE interlock_messages SET slot = slot")
    view = store.within(SPACE)
    assert view.state(NAME).layout == ((1, 2), (5, 2))
    loaded = Conversations(store, SPACE).load(NAME)
    assert [one.text for one in loaded.conversation.messages] == TEXTS
    # It goes on behind the places that were stored, and what is cut from the dropped part is cut on record.
    view.record(NAME, [change(Message.user("g"), keep=1)], at=AT, turn=2)
    view.erase(NAME, at=AT)
    view.record(NAME, [change(Message.user("h"), keep=2)], at=AT, turn=3)
    assert view.trim(NAME, through=view.head(NAME).sequence, at=AT).erased == 7
    assert audit.verified(view, NAME).messages == 8
    assert [one.place for one in view.messages(NAME)] == [1, 7, 8]
    store.close()


@pytest.mark.parametrize("statement", [*CHANGES, *RETIRED], ids=stable)
def test_t10_verifying_finds_it(original: Path, tmp_path: Path, statement: str) -> None:
    store = damaged(original, tmp_path, statement)
    with pytest.raises(Tampered):
        audit.verified(store.within(SPACE), NAME)
    store.close()


def test_a_kept_entry_that_was_exchanged(original: Path, tmp_path: Path) -> None:
    store = damaged(original, tmp_path, "UPDATE interlock_kept SET body = (SELECT body FROM interlock_kept LIMIT 1)")
    for ask in (store.within(SPACE).messages, lambda name: audit.verified(store.within(SPACE), name)):
        with pytest.raises(Tampered):
            ask(NAME)  # type: ignore[operator]
    store.close()


@pytest.mark.parametrize("left", ["bases", "kept", "bases kept", "bases kept entries messages"])
def test_a_shortened_journal_without_its_head_is_damage(original: Path, tmp_path: Path, left: str) -> None:
    tables = {"heads", "entries", "messages", "checkpoints", "bases", "kept"} - set(left.split())
    shutil.copy(original, tmp_path / "store.db")
    connection = sqlite3.connect(tmp_path / "store.db")
    for table in tables:
        connection.execute(f"DELETE FROM interlock_{table}")
    connection.commit()
    connection.close()
    store = SqliteStore(tmp_path / "store.db")
    assert store.headless() == ((SPACE, NAME),)
    with pytest.raises(Tampered):
        store.within(SPACE).state(NAME)
    with pytest.raises(Conflict):
        store.within(SPACE).open([Opened(AT, NAME, SPACE)])
    assert store.headless() == ((SPACE, NAME),), "the refused one has left a head"
    assert set(Conversations(store, SPACE).load(NAME).conversation.taint) == set(EVERY_LEG)
    store.within("bob").open([Opened(AT, NAME, "bob")])  # the name is another one's elsewhere
    store.close()


def stored() -> MemoryNamespace:
    view = MemoryStore().within(SPACE)
    view.open([Opened(AT, NAME, SPACE), admitted(WEB)])
    view.record(NAME, [change(*map(Message.user, "abcd"))], at=AT, turn=0)
    return view


@pytest.mark.parametrize(
    "said",
    [{"layout": ((2, 4),)}, {"layout": ()}, {"erased": 4}, {"places": 5}, {"length": 3}],
    ids=["other places", "no places", "erased", "more places", "shorter"],
)
def test_a_beginning_that_says_something_else_than_the_entries_did(said: dict[str, object]) -> None:
    """Whoever could write the entry that says where a journal begins could still not move a message by it."""
    view = stored()
    view.trim(NAME, through=3, at=AT)
    audit.verified(view, NAME)
    record = view._record(NAME)
    state = replace(read_state(record.base.state), **said)  # type: ignore[arg-type]
    record.base, record.state = replace(record.base, state=state_body(state)), state
    record.entries[:] = [seal(4, record.base.digest, encode(trimmed(AT, record.base)))]
    with pytest.raises(Tampered, match="another transcript"):
        audit.verified(view, NAME)


@pytest.mark.parametrize("shortened", [False, True])
def test_what_is_erased_is_gone_and_what_is_gone_was_erased(shortened: bool) -> None:
    """In a store that does not look for itself."""
    view = stored()
    message = view._record(NAME).messages[1]
    body, message.body = message.body, b""
    with pytest.raises(Tampered, match="was erased, and no entry says so"):
        audit.verified(view, NAME)
    view.erase(NAME, at=AT)
    if shortened:
        view.trim(NAME, through=view.head(NAME).sequence, at=AT)
    audit.verified(view, NAME)
    message.body = body
    with pytest.raises(Tampered, match="is there again"):
        audit.verified(view, NAME)


@pytest.mark.parametrize("durable", [False, True])
def test_a_shortened_conversation_is_as_old_as_it_was(tmp_path: Path, durable: bool) -> None:
    later = "2026-11-30T12:00:00.000000Z"
    SqliteStore.migrate(tmp_path / "store.db")
    store = SqliteStore(tmp_path / "store.db") if durable else MemoryStore()
    view = store.within(SPACE)
    view.open([Opened(AT, NAME, SPACE), admitted(WEB)])
    view.trim(NAME, through=2, at=later)
    assert (view.active_since(AT), view.active_since(later)) == (1, 0)
    view.append(NAME, [replace(admitted(WEB), at=later)])
    assert view.active_since(later) == 1
    store.close()
