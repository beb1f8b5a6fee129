"""Proves that a shortened journal is the same conversation, and that who edits its beginning is found (T2, T10, T11).

Mutations that it is shown to catch: a beginning that no entry need name, a state or a kept entry that is not compared,
a process that believes a beginning with fewer labels than it knew, a shortening that folds one entry too few.
"""

from __future__ import annotations

import secrets
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock import Interlock
from interlock.conversations import Conversations
from interlock.errors import Conflict, InterlockError, Refused, Tampered
from interlock.model.chain import GENESIS, head
from interlock.model.checkpoints import read_state, state_body
from interlock.model.digests import NO_DIGEST, Digest
from interlock.model.entries import (
    Checkpointed,
    ChildJoined,
    ChildOpened,
    Entry,
    Failed,
    Observed,
    Opened,
    Transcribed,
    Trimmed,
    Typed,
    decode,
)
from interlock.model.messages import Message
from interlock.model.records import Change
from interlock.model.retention import BARE, Base, begins, trimmed
from interlock.model.state import State, apply, inherited
from interlock.stores import audit
from interlock.stores.memory_store import MemoryStore
from interlock.stores.sql_store import SqlNamespace
from interlock.stores.sqlite import SqliteStore
from interlock.testing.stores import AT, FILES, WEB, admitted, begun, check_chain, decided
from interlock.testing.strategies import entries
from tests.ids import stable
from tests.worlds import MANIFEST

NAMESPACE = "law"
KEY = b"a key of the operator's, not of the attacker's"


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    path = tmp_path_factory.mktemp("retention") / "store.db"
    SqliteStore.migrate(path)
    store = SqliteStore(path, durability="process")
    yield store
    store.close()


# What a caller may append to a conversation that is open.
appended = entries().filter(lambda one: not isinstance(one, Opened | Trimmed | Checkpointed))


@settings(max_examples=max(20, settings().max_examples // 6))
@given(st.lists(appended, min_size=1, max_size=30), st.lists(st.integers(0, 40), min_size=1, max_size=3))
def test_t11_a_shortened_journal_folds_to_the_same_state(
    sqlite: SqliteStore, drawn: list[Entry], cuts: list[int]
) -> None:
    memory, name = MemoryStore().within(NAMESPACE), f"c-{secrets.token_hex(8)}"
    durable = sqlite.within(NAMESPACE)
    opening = Opened(AT, name, NAMESPACE)
    state = apply(State(), opening)
    for view in (memory, durable):
        view.open([opening])
    for number, entry in enumerate(drawn):
        state = apply(state, entry)
        through = cuts[number % len(cuts)]
        for view in (memory, durable):
            view.append(name, [entry])
            if 0 < through <= view.head(name).sequence:
                view.trim(name, through=through, at=AT)
    whole = state_body(state)
    assert state_body(memory.state(name)) == whole
    assert state_body(durable.state(name)) == whole
    durable._folds.forget((NAMESPACE, name))  # as a process that has just begun
    again = durable.state(name)
    assert state_body(again) == whole
    assert (list(again.in_flight), list(again.children)) == (list(state.in_flight), list(state.children))
    assert again.taint.items == state.taint.items, "the first sources are others"
    for view in (memory, durable):
        check_chain(view, name)
        if not any(isinstance(one, Transcribed) for one in drawn):  # a random one names messages that nobody stored
            assert audit.verified(view, name).dropped == view.base(name).sequence
    assert [one.body for one in memory.entries(name)] == [one.body for one in durable.entries(name)]


# --- whoever edits it is found ----------------------------------------------------------------------------------------


def build(path: Path, key: bytes) -> str:
    """A conversation with labels, a call under way and turns, whose older half was dropped."""
    SqliteStore.migrate(path)
    store = SqliteStore(path, key=key, durability="process")
    view = store.within(NAMESPACE)
    name = begun(view)
    view.append(name, [admitted(WEB), decided(1), decided(2)])
    view.record(name, [Change(0, (Message.user("one"), Message.user("two")), ((), (WEB,)))], at=AT, turn=0)
    view.append(name, [Failed(AT, 1, True, "gone", doubt=True)])
    view.append(name, [Typed(AT, NO_DIGEST, 3, (Digest("sha256:" + "1" * 64),)), admitted("private:old")])
    view.erase(name, at=AT)
    view.record(name, [Change(2, (Message.user("three"),), ((),))], at=AT, turn=1)
    view.append(name, [admitted(FILES)])
    view.trim(name, through=9, at=AT)
    view.append(name, [admitted("private:new")])
    view.record(name, [Change(3, (Message.user("four"),), ((),))], at=AT, turn=2)
    other = begun(view)
    view.append(other, [admitted("untrusted:other"), admitted(FILES)])
    view.trim(other, through=2, at=AT)
    store.close()
    return name


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[bytes, tuple[Path, str]]:
    found = {}
    for key in (b"", KEY):
        path = tmp_path_factory.mktemp("template") / "store.db"
        found[key] = (path, build(path, key))
    return found


@pytest.fixture(params=[b"", KEY], ids=["no key", "key"])
def stored(
    request: pytest.FixtureRequest, templates: dict[bytes, tuple[Path, str]], tmp_path: Path
) -> tuple[Path, str, bytes]:
    path, name = templates[request.param]
    return Path(shutil.copy(path, tmp_path)), name, request.param


def loaded(path: Path, name: str, key: bytes) -> State | None:
    """What a fresh process loads; None when it refuses."""
    store = SqliteStore(path, key=key)
    try:
        return store.within(NAMESPACE).state(name)
    except InterlockError:
        return None
    finally:
        store.close()


def verified(path: Path, name: str, key: bytes) -> audit.Verified:
    store = SqliteStore(path, key=key)
    try:
        return audit.verified(store.within(NAMESPACE), name, key)
    finally:
        store.close()


def edit(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for one in statements:
        connection.execute(one)
    connection.close()


def test_whole_before(stored: tuple[Path, str, bytes]) -> None:
    path, name, key = stored
    checked = verified(path, name, key)
    assert (checked.dropped, checked.messages) == (9, 4)
    state = loaded(path, name, key)
    assert state is not None
    assert set(state.exposure) == {"private:mail", "private:new", "private:old", FILES, WEB}
    assert len(state.doubts) == len(state.in_flight) == len(state.typed) == 1


MINE = "conversation = (SELECT conversation FROM interlock_heads ORDER BY length(labels) DESC LIMIT 1)"
THEIRS = MINE.replace("DESC", "ASC")
EDITS = [
    "UPDATE interlock_bases SET sequence = sequence - 1",
    "UPDATE interlock_bases SET sequence = sequence + 1",
    "UPDATE interlock_bases SET sequence = 0",
    "UPDATE interlock_bases SET sequence = 'x'",
    "UPDATE interlock_bases SET digest = CAST('sha256:0' AS BLOB)",
    "UPDATE interlock_bases SET digest = X'FF'",
    "UPDATE interlock_bases SET digest = X'EDA080'",
    "UPDATE interlock_bases SET digest = 7",
    "UPDATE interlock_bases SET state = X'00'",
    "UPDATE interlock_bases SET state = 'x'",
    "UPDATE interlock_bases SET state = CAST(replace(state, 'private:old', 'private:abc') AS BLOB)",
    f"UPDATE interlock_bases SET state = (SELECT state FROM interlock_bases WHERE {THEIRS})",
    "UPDATE interlock_bases SET state = CAST('" + state_body(State()).decode() + "' AS BLOB)",
    "UPDATE interlock_bases SET kept = kept - 1",
    "UPDATE interlock_bases SET kept = 0",
    "UPDATE interlock_bases SET keeping = CAST('" + GENESIS + "' AS BLOB)",
    "UPDATE interlock_bases SET keeping = X'EDA080'",
    "DELETE FROM interlock_bases",
    "UPDATE interlock_entries SET body = CAST(replace(body, '\"through\":9', '\"through\":8') AS BLOB)",
    "UPDATE interlock_entries SET body = CAST(replace(body, '\"kept\":', '\"kept\":1') AS BLOB)",
    "DELETE FROM interlock_entries WHERE CAST(body AS TEXT) LIKE '%trimmed%'",
    "DELETE FROM interlock_entries WHERE sequence = 10",
    "DELETE FROM interlock_entries WHERE sequence = 11",
    "UPDATE interlock_kept SET body = CAST(replace(body, 'sha256:', 'sha256:0') AS BLOB)",
    "UPDATE interlock_kept SET body = X'00'",
    "UPDATE interlock_kept SET digest = X'00'",
    "UPDATE interlock_kept SET sequence = sequence + 1",
    "DELETE FROM interlock_kept",
    "DELETE FROM interlock_kept WHERE sequence = (SELECT MAX(sequence) FROM interlock_kept)",
    "DELETE FROM interlock_kept WHERE sequence = (SELECT MIN(sequence) FROM interlock_kept)",
    "INSERT INTO interlock_kept SELECT namespace, conversation, 99, body, digest FROM interlock_kept LIMIT 1",
    "INSERT INTO interlock_entries SELECT namespace, conversation, 3, body, digest FROM interlock_entries LIMIT 1",
]


@pytest.mark.parametrize("statement", EDITS, ids=stable)
def test_t10_the_beginning_is_changed(stored: tuple[Path, str, bytes], statement: str) -> None:
    path, name, key = stored
    whole = loaded(path, name, key)
    assert whole is not None
    edit(
        path,
        statement if "INSERT" in statement else statement + (" AND " if "WHERE" in statement else " WHERE ") + MINE,
    )
    held = loaded(path, name, key)
    assert held is None or held == whole, "an edit of the beginning made another conversation of it"
    if "interlock_bases" in statement and "kept" not in statement and "keeping" not in statement:
        assert held is None
    with pytest.raises(Tampered):
        verified(path, name, key)


def test_t10_every_byte_of_a_beginning(templates: dict[bytes, tuple[Path, str]]) -> None:
    path, name = templates[KEY]
    store = SqliteStore(path, key=KEY)
    view = store.within(NAMESPACE)
    base = view.base(name)
    newest = next(one for one in (decode(link.body) for link in view.entries(name)) if isinstance(one, Trimmed))
    begins(base, newest)
    store.close()
    for place in range(len(base.state)):
        flipped = base.state[:place] + bytes([base.state[place] ^ 1]) + base.state[place + 1 :]
        with pytest.raises(Tampered):
            begins(replace(base, state=flipped), newest)
    for field, text in (("digest", base.digest), ("keeping", base.keeping)):
        for place in range(len(text)):
            other = text[:place] + ("0" if text[place] != "0" else "1") + text[place + 1 :]
            with pytest.raises(Tampered):
                begins(replace(base, **{field: Digest(other)}), newest)
    for changed in (replace(base, sequence=base.sequence + 1), replace(base, kept=base.kept + 1), BARE):
        with pytest.raises(Tampered):
            begins(changed, newest)
    with pytest.raises(Tampered):
        begins(base, None)


def test_t10_a_kept_entry_that_no_message_needs(tmp_path: Path) -> None:
    """A turn that only retired messages: nothing else would miss it."""
    path = tmp_path / "store.db"
    SqliteStore.migrate(path)
    store = SqliteStore(path, durability="process")
    view = store.within(NAMESPACE)
    name = begun(view)
    view.record(name, [Change(0, (Message.user("one"), Message.user("two")), ((), ()))], at=AT, turn=0)
    view.record(name, [Change(1, (), ())], at=AT, turn=1)
    view.trim(name, through=3, at=AT)
    store.close()
    assert verified(path, name, b"").dropped == 3
    edit(path, "DELETE FROM interlock_kept WHERE sequence = 3")
    with pytest.raises(Tampered, match="kept for their messages"):
        verified(path, name, b"")


def test_t10_an_old_beginning_is_put_back(stored: tuple[Path, str, bytes]) -> None:
    """The base and the entries of before a second shortening are an insertion, though they fold to the same."""
    path, name, key = stored
    before = Path(shutil.copy(path, path.with_name("before.db")))
    store = SqliteStore(path, key=key)
    store.within(NAMESPACE).trim(name, through=11, at=AT)
    store.close()
    edit(
        path,
        f"ATTACH '{before}' AS old",
        "DELETE FROM interlock_bases",
        "INSERT INTO interlock_bases SELECT * FROM old.interlock_bases",
        "INSERT OR IGNORE INTO interlock_entries SELECT * FROM old.interlock_entries",
    )
    assert loaded(path, name, key) is None
    with pytest.raises(Tampered):
        verified(path, name, key)


def test_t2_a_forged_beginning_under_a_running_process(stored: tuple[Path, str, bytes]) -> None:
    """Without a key the whole chain can be forged. A process that knew better is not told so: its labels are there."""
    path, name, key = stored
    store = SqliteStore(path, key=key)
    view = store.within(NAMESPACE)
    known = view.state(name)
    length = view.head(name).sequence
    clean = replace(State(), conversation=name, namespace=NAMESPACE, version=known.version, turn=known.turn)
    forged = MemoryStore()
    theirs = forged.within(NAMESPACE)
    theirs.open([Opened(AT, name, NAMESPACE)])
    record = forged.records[NAMESPACE, name]
    record.base, record.state, record.entries = Base(length + 5, Digest("sha256:f"), state_body(clean)), clean, []
    from interlock.stores.turns import Plan

    theirs._write(record, Plan((trimmed(AT, record.base),)))
    (link,) = theirs.entries(name)
    held = head(link.sequence, link.digest, ())
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"DELETE FROM interlock_entries WHERE {MINE}")
    connection.execute(f"DELETE FROM interlock_kept WHERE {MINE}")
    connection.execute(
        f"UPDATE interlock_bases SET sequence = ?, digest = ?, state = ?, kept = 0, keeping = ? WHERE {MINE}",
        (record.base.sequence, b"sha256:f", record.base.state, GENESIS.encode()),
    )
    row = (NAMESPACE.encode(), name.encode(), link.sequence, link.body, link.digest.encode())
    connection.execute("INSERT INTO interlock_entries VALUES (?, ?, ?, ?, ?)", row)
    connection.execute(
        "UPDATE interlock_heads SET sequence = ?, digest = ?, labels = CAST('[]' AS BLOB) WHERE conversation = ?",
        (held.sequence, held.digest.encode(), name.encode()),
    )
    connection.close()
    with pytest.raises(Tampered):
        view.state(name)
    fresh = loaded(path, name, key)
    assert (fresh is None) == bool(key), "with a key nobody else makes a head; without one heads that were kept tell"
    with pytest.raises(InterlockError):
        audit.reaches(view, audit.signed_head(head(length, Digest("sha256:1"), ()), NAMESPACE, name, key), key)
    store.close()


# --- others go on -----------------------------------------------------------------------------------------------------


def test_t2_relatives_of_a_shortened_conversation(sqlite: SqliteStore) -> None:
    """Forks and children that began before, and results of calls from before, find everything where it was."""
    store = sqlite
    conversations = Conversations(store, "relatives")
    lock = Interlock(manifest=MANIFEST, journal=store)
    stored = conversations.new("hello")
    guard = lock.guard(stored.conversation)
    guard.admit("x", labels=["untrusted:web", "private:mail"], source="https://a.example/")
    child = stored.conversation.child("look it up")
    lock.guard(child).admit("y", labels=["private:child"], source="notes")
    fork = stored.conversation.fork()
    stored.record_turn()
    view = store.within("relatives")
    view.trim(stored.id, through=view.head(stored.id).sequence, at=AT)
    stored.conversation.join(child)
    lock.guard(fork).admit("z", labels=["private:fork"], source="notes")
    assert {"private:child", "private:mail", "untrusted:web"} <= set(view.state(stored.id).taint)
    assert not view.state(stored.id).children
    again = conversations.load(stored.id)
    assert not again.damage
    assert set(again.conversation.fork().taint) >= {"private:child", "untrusted:web"}
    assert set(view.state(fork.id).taint) >= {"private:fork", "private:mail", "untrusted:web"}
    assert audit.verified(view, stored.id).dropped > 0
    begun_anew = inherited(view.state(stored.id), AT, "c-restart", restart=True)
    assert begun_anew.labels == ()


def test_t2_a_call_from_before_lands(sqlite: SqliteStore) -> None:
    view = sqlite.within(NAMESPACE)
    name = begun(view)
    view.append(name, [decided(1), ChildOpened(AT, "c-child", (FILES,))])
    view.trim(name, through=3, at=AT)
    assert set(view.state(name).exposure) == {"private:mail", FILES}
    view.append(name, [Observed(AT, 1, True, NO_DIGEST, 0, (WEB,)), ChildJoined(AT, "c-child", (FILES,))])
    assert set(view.state(name).taint) == {"private:mail", WEB, FILES}
    assert not view.state(name).in_flight
    check_chain(view, name)


def test_several_shorten_while_others_append(sqlite: SqliteStore) -> None:
    name = begun(sqlite.within(NAMESPACE))
    stores = [SqliteStore(sqlite.path, durability="process") for _ in range(4)]
    problems: list[BaseException] = []
    lost: list[str] = []

    def append(view: SqlNamespace, number: int) -> None:
        try:
            for place in range(25):
                view.append(name, [admitted(f"private:w{number}-{place}")])
                lost.append(f"private:w{number}-{place}")
                view.state(name)
        except BaseException as error:
            problems.append(error)

    def shorten(view: SqlNamespace) -> None:
        try:
            for _ in range(12):
                try:
                    view.trim(name, through=view.head(name).sequence - 2, at=AT)
                except Conflict:
                    pass  # another one was first
                audit.verified(view, name)
        except BaseException as error:
            problems.append(error)

    views = [one.within(NAMESPACE) for one in stores]
    threads = [threading.Thread(target=append, args=(view, number)) for number, view in enumerate(views[:2])]
    threads += [threading.Thread(target=shorten, args=(view,)) for view in views[2:]]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not problems, problems
    view = sqlite.within(NAMESPACE)
    view._folds.forget((NAMESPACE, name))
    assert set(lost) <= set(view.state(name).taint)
    assert len(lost) == 50
    check_chain(view, name)
    for one in stores:
        one.close()


def test_a_shortened_journal_has_checkpoints_again(sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlock.stores.sql_store.CHECKPOINT_EVERY", 8)
    view = sqlite.within(NAMESPACE)
    name = begun(view)
    for number in range(30):
        view.append(name, [admitted(f"private:p{number % 3}")])
        if number % 7 == 6:
            # Also exactly behind and exactly at a checkpoint.
            view.trim(name, through=view.head(name).sequence - number % 3, at=AT)
        state = view.state(name)
        view._folds.forget((NAMESPACE, name))
        assert view.state(name) == state
        audit.verified(view, name)


def test_what_was_never_there(sqlite: SqliteStore) -> None:
    view = sqlite.within(NAMESPACE)
    name = begun(view)
    with pytest.raises(Refused):
        view.trim(name, through=2, at=AT)
    with pytest.raises(Refused, match="trim"):
        view.append(name, [trimmed(AT, BARE)])
    assert view.base(name) == BARE
    assert view.trim(name, through=0, at=AT) == view.state(name)
    assert read_state(BARE.state) == State()
    assert isinstance(decode(view.entries(name)[0].body), Opened)
