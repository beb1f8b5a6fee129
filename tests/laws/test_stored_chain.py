"""Proves T10 and T2 for what stands in a database: whoever edits it is found, and never makes a conversation cleaner.

Every column of every row is changed, every row is removed, repeated or moved, and the tail is cut with its head. What a
fresh process loads then is an error or holds every label; `audit.verified` says where it broke.

Mutations that it is shown to catch: a head's labels not compared, the digest of a message not compared, a checkpoint
that is believed without its entry, a key that is not asked for.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.conversations import Conversations
from interlock.errors import InterlockError, Tampered
from interlock.model.checkpoints import read_state, state_body
from interlock.model.entries import Entry
from interlock.model.labels import EVERY_LEG
from interlock.model.messages import Message
from interlock.model.records import Change
from interlock.model.state import State, apply
from interlock.stores import audit, folds
from interlock.stores.sqlite import SqliteStore
from interlock.testing.stores import AT, FILES, WEB, admitted, begun, decided
from interlock.testing.strategies import entries

NAMESPACE = "law"
KEY = b"a key of the operator's, not of the attacker's"


@given(st.lists(entries(), max_size=30))
def test_t11_a_checkpoint_is_the_state(drawn: list[Entry]) -> None:
    state = State()
    for entry in drawn:
        state = apply(state, entry)
    again = read_state(state_body(state))
    assert again == state
    assert list(again.in_flight) == list(state.in_flight), "which call is the oldest depends on their order"
    assert list(again.children) == list(state.children)
    assert state_body(again) == state_body(state)


@pytest.mark.parametrize("body", [b"", b"null", b"{}", b"[]", b'{"taint": 1}', b"\xff", state_body(State()) + b" "])
def test_what_is_no_state(body: bytes) -> None:
    with pytest.raises(Tampered):
        read_state(body)


@pytest.fixture(params=[b"", KEY], ids=["no key", "key"])
def key(request: pytest.FixtureRequest) -> bytes:
    return bytes(request.param)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bytes], tuple[Path, str]]:
    """A conversation with labels, calls, two turns, a checkpoint in the middle, and a neighbour; made once per key."""

    @cache
    def made(key: bytes) -> tuple[Path, str]:
        path = tmp_path_factory.mktemp("template") / "store.db"
        SqliteStore.migrate(path)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("interlock.stores.sql_store.CHECKPOINT_EVERY", 8)
            store = SqliteStore(path, key=key, durability="process")
            view = store.within(NAMESPACE)
            name = begun(view)
            view.append(name, [admitted(WEB), decided(1)])
            view.record(name, [Change(0, (Message.user("one"), Message.user("two")), ((), (WEB,)))], at=AT, turn=0)
            for number in range(5):
                view.append(name, [admitted(f"private:p{number}")])
            view.record(name, [Change(1, (Message.user("three"),), ((),))], at=AT, turn=1)
            view.append(name, [admitted(FILES)])
            other = begun(view)
            view.append(other, [admitted("untrusted:other")])
            store.close()
        return path, name

    return made


@pytest.fixture
def stored(template: Callable[[bytes], tuple[Path, str]], tmp_path: Path, key: bytes) -> tuple[Path, str]:
    path, name = template(key)
    return Path(shutil.copy(path, tmp_path)), name


def loaded(path: Path, name: str, key: bytes) -> set[str] | None:
    """The exposure that a fresh process loads; None when it refuses."""
    store = SqliteStore(path, key=key)
    try:
        return set(store.within(NAMESPACE).state(name).exposure)
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


def edit(path: Path, *statements: str) -> int:
    connection = sqlite3.connect(path, isolation_level=None)
    changed = sum(connection.execute(one).rowcount for one in statements)
    connection.close()
    return changed


def test_whole_before(stored: tuple[Path, str], key: bytes) -> None:
    path, name = stored
    checked = verified(path, name, key)
    assert checked.messages == 3
    assert edit(path, "UPDATE interlock_checkpoints SET body = body") == 1, "there is no checkpoint to attack"
    assert loaded(path, name, key) == set(checked.head.labels)


ENTRY_EDITS = [
    "UPDATE interlock_entries SET body = replace(CAST(body AS TEXT), 'untrusted:web', 'untrusted:abc')",
    "UPDATE interlock_entries SET body = CAST(replace(body, 'private:p', 'private:q') AS BLOB)",
    "UPDATE interlock_entries SET body = X''",
    "UPDATE interlock_entries SET digest = X'00'",
    "UPDATE interlock_entries SET digest = 7",
    "DELETE FROM interlock_entries WHERE sequence = {place}",
    "UPDATE interlock_entries SET sequence = sequence + 100 WHERE sequence = {place}",
]


@pytest.mark.parametrize("statement", ENTRY_EDITS)
@pytest.mark.parametrize("place", [1, 2, 3, 7, 9, 10, 11, 12])
def test_t10_an_entry_is_changed(stored: tuple[Path, str], key: bytes, statement: str, place: int) -> None:
    path, name = stored
    whole = loaded(path, name, key)
    assert whole
    only = f" WHERE sequence = {place}" if " WHERE " not in statement else ""
    mine = f" AND conversation = CAST('{name}' AS BLOB)"
    changed = edit(path, statement.format(place=place) + only + mine)
    held = loaded(path, name, key)
    assert held is None or held >= whole, "an edit made the conversation cleaner"
    if changed and "replace" not in statement:
        with pytest.raises(Tampered) as caught:
            verified(path, name, key)
        assert caught.value.sequence in (0, place, place + 1), "not the first broken place"


def test_t10_two_entries_change_places(stored: tuple[Path, str], key: bytes) -> None:
    path, name = stored
    edit(
        path,
        "UPDATE interlock_entries SET sequence = 99 WHERE sequence = 5",
        "UPDATE interlock_entries SET sequence = 5 WHERE sequence = 6",
        "UPDATE interlock_entries SET sequence = 6 WHERE sequence = 99",
    )
    with pytest.raises(Tampered, match="entry 5"):
        verified(path, name, key)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE interlock_heads SET labels = CAST('[]' AS BLOB)",
        "UPDATE interlock_heads SET labels = CAST('{}' AS BLOB)",
        "UPDATE interlock_heads SET labels = 'x'",
        "UPDATE interlock_heads SET sequence = sequence - 1",
        "UPDATE interlock_heads SET sequence = sequence + 1",
        "UPDATE interlock_heads SET sequence = 'x'",
        "UPDATE interlock_heads SET digest = (SELECT digest FROM interlock_entries WHERE sequence = 2)",
        "DELETE FROM interlock_heads",
    ],
)
def test_t10_the_head_is_changed(stored: tuple[Path, str], key: bytes, statement: str) -> None:
    path, name = stored
    edit(path, statement)
    assert loaded(path, name, key) is None, "a conversation loads without the head that it had"
    with pytest.raises(InterlockError):
        verified(path, name, key)


def test_t10_the_tail_is_cut_with_its_head(stored: tuple[Path, str], key: bytes) -> None:
    """Whoever can rewrite entries and head together is found by the key, or by a head that was kept somewhere else."""
    path, name = stored
    store = SqliteStore(path, key=key)
    view = store.within(NAMESPACE)
    kept = audit.signed_head(view.head(name), NAMESPACE, name, key)
    audit.reaches(view, kept, key)
    store.close()
    edit(
        path,
        "DELETE FROM interlock_checkpoints",
        "DELETE FROM interlock_messages",
        "DELETE FROM interlock_entries WHERE sequence > 1",
        "UPDATE interlock_heads AS h SET sequence = 1, version = 1, labels = CAST('[]' AS BLOB), digest ="
        " (SELECT digest FROM interlock_entries e WHERE e.sequence = 1 AND e.conversation = h.conversation)",
    )
    held = loaded(path, name, key)
    assert held == (None if key else set()), "with a key nobody else can make a head"
    store = SqliteStore(path, key=key)
    with pytest.raises(Tampered, match="a head that was kept"):
        audit.reaches(store.within(NAMESPACE), kept, key)
    forged = {**kept, "sequence": 1, "digest": "sha256:0"}
    with pytest.raises(Tampered):
        audit.reaches(store.within(NAMESPACE), forged, key)
    store.close()


def test_t10_the_store_goes_back_while_it_is_open(stored: tuple[Path, str], key: bytes) -> None:
    """A backup that is put back under a running process: what was acknowledged here is gone, and that is damage."""
    path, name = stored
    store = SqliteStore(path, key=key)
    view = store.within(NAMESPACE)
    view.state(name)
    edit(
        path,
        "DELETE FROM interlock_entries WHERE sequence > 2",
        "UPDATE interlock_heads AS h SET sequence = 2, digest ="
        " (SELECT digest FROM interlock_entries e WHERE e.sequence = 2 AND e.conversation = h.conversation)",
    )
    with pytest.raises(Tampered, match="went back"):
        view.state(name)
    with pytest.raises(Tampered):
        view.append(name, [admitted(WEB)])
    store.close()


@pytest.mark.parametrize(
    "forge",
    [
        lambda body: state_body(State(conversation="c-1", namespace=NAMESPACE)),
        lambda body: body.replace(b"untrusted:web", b"untrusted:abc"),
        lambda body: b"",
        lambda body: b"{}",
    ],
)
def test_t10_a_checkpoint_is_never_trusted_over_the_entries(
    stored: tuple[Path, str], key: bytes, forge: Callable[[bytes], bytes]
) -> None:
    path, name = stored
    whole = loaded(path, name, key)
    connection = sqlite3.connect(path, isolation_level=None)
    ((body,),) = connection.execute("SELECT body FROM interlock_checkpoints").fetchall()
    connection.execute("UPDATE interlock_checkpoints SET body = ?", (forge(body),))
    connection.close()
    assert loaded(path, name, key) == whole
    edit(path, "UPDATE interlock_checkpoints SET sequence = 2")
    assert loaded(path, name, key) == whole
    edit(path, "UPDATE interlock_checkpoints SET sequence = 'x', body = 'y'")
    assert loaded(path, name, key) == whole


def test_a_checkpoint_is_used(stored: tuple[Path, str], key: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the test above would prove nothing."""
    path, name = stored
    folded: list[int] = []
    plain = folds.decode

    def counting(body: bytes, sequence: int = 0) -> Entry:
        folded.append(sequence)
        return plain(body, sequence)

    monkeypatch.setattr(folds, "decode", counting)
    assert loaded(path, name, key)
    assert min(folded) > 8


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE interlock_messages SET body = CAST(replace(CAST(body AS TEXT), 'two', 'zwei') AS BLOB)",
        "UPDATE interlock_messages SET body = CAST(replace(CAST(body AS TEXT), 'untrusted', 'private') AS BLOB)",
        "UPDATE interlock_messages SET body = X'' WHERE place = 2",
        "UPDATE interlock_messages SET slot = 5 WHERE place = 2",
        "UPDATE interlock_messages SET entry = 2 WHERE place = 2",
        "UPDATE interlock_messages SET place = 9 WHERE place = 2",
        "DELETE FROM interlock_messages WHERE place = 2",
        "DELETE FROM interlock_messages WHERE place = 3",
    ],
)
def test_t10_a_message_is_changed(stored: tuple[Path, str], key: bytes, statement: str) -> None:
    path, name = stored
    edit(path, statement)
    with pytest.raises(Tampered):
        verified(path, name, key)


def test_what_is_damaged_goes_on_under_every_leg(stored: tuple[Path, str], key: bytes) -> None:
    """Absence is never cleanliness: a new conversation with every leg, and the damaged one stays as it is."""
    path, name = stored
    edit(path, "UPDATE interlock_entries SET body = X'7b7d' WHERE sequence = 11")
    store = SqliteStore(path, key=key)
    again = Conversations(store, NAMESPACE).load(name)
    assert "entry 11" in again.damage
    assert again.id in again.damage
    assert again.id != name
    assert tuple(again.conversation.taint) == EVERY_LEG
    assert Conversations(store, NAMESPACE).load(again.id).conversation.state.parent == name
    store.close()
    with pytest.raises(Tampered):
        verified(path, name, key)
