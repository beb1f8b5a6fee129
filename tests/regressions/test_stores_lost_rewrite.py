"""A rewrite that lost its race was on record as one that happened, and a crooked change was taken.

The loser's facts join whoever wins. Among them was the entry `rewritten` of the very rewrite that was refused, and with
it the winner's summary stood for nothing any more. A change with a negative `keep` retired every message and left a
conversation of a negative length; one with fewer covers than messages silently lost those without.
Mutations that this file catches: all entries of a loser are written; a change is not looked at.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock import Message
from interlock.errors import Refused, TurnConflict
from interlock.model.digests import content_digest
from interlock.model.entries import Rewritten, RolledBack, Summarised, decode
from interlock.model.records import Change
from interlock.ports import Store
from interlock.stores.memory_store import MemoryStore
from interlock.stores.sqlite import SqliteStore
from interlock.testing.stores import AT, WEB, admitted, begun, change, check_chain


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "memory":
        return MemoryStore()
    SqliteStore.migrate(tmp_path / "store.db")
    return SqliteStore(tmp_path / "store.db", durability="process")


def test_what_was_refused_is_not_on_record(store: Store) -> None:
    view = store.within("ana")
    name = begun(view)
    view.record(name, [change(*map(Message.user, "abcd"))], at=AT, turn=0)
    view.append(name, [Summarised(AT, 3, (), content_digest("s"), 1)])
    before = view.state(name)
    for entry in (Rewritten(AT, 4, 1), RolledBack(AT, 4, 1)):
        with pytest.raises(TurnConflict):
            view.record(name, [change(Message.user("x"))], [admitted(WEB), entry], at=AT, turn=0)
    assert view.state(name).summary == before.summary is not None
    assert set(view.state(name).taint) == {WEB}, "the loser's labels did not join"
    kinds = [type(decode(one.body)) for one in view.entries(name)]
    assert Rewritten not in kinds
    assert RolledBack not in kinds
    check_chain(view, name)
    store.close()


def test_crooked_changes_are_refused(store: Store) -> None:
    view = store.within("ana")
    name = begun(view)
    state = view.record(name, [change(*map(Message.user, "ab"))], at=AT, turn=0)
    one = Message.user("c")
    for crooked in (Change(-1, (one,), ((),)), Change(2, (one,), ()), Change(2, (one,), ((), ())), Change(-3, (), ())):
        with pytest.raises(Refused):
            view.record(name, [crooked], at=AT, turn=1)
    assert view.state(name) == state
    assert len(view.messages(name)) == 2
    store.close()
