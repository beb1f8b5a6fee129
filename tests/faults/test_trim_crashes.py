"""Proves that a shortening that dies between any two statements leaves a whole journal, with the same state (T2, T16).

A process shortens a stored journal and is killed with SIGKILL, at every place before and after each statement in turn.
What it leaves verifies, loads as the same conversation, and is either as it was or shortened.

Mutation that it is shown to catch: entries that are dropped in a transaction of their own.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.model.checkpoints import state_body
from interlock.model.messages import Message
from interlock.model.records import Change
from interlock.ports import Namespace
from interlock.stores import audit
from interlock.stores.sqlite import SqliteStore
from interlock.testing.stores import AT, WEB, admitted, begun, check_chain, decided
from tests.faults.test_store_crashes import DEEP, KINDS, Nursery, opened
from tests.faults.turns_that_die import NAMESPACE
from tests.servers import Server

DEATHS = 300


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    running = Nursery("tests.faults.trims_that_die")
    yield running
    running.close()


def filled(view: Namespace) -> str:
    name = begun(view)
    view.append(name, [admitted(WEB), decided(1)])
    for turn in range(4):
        view.record(name, [Change(turn, (Message.user(f"{turn}"),), ((WEB,),))], at=AT, turn=turn)
        view.append(name, [admitted(f"private:p{turn}")])
    return name


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no SIGKILL on this system")
@pytest.mark.parametrize("kind", KINDS)
def test_killed_between_any_two_statements(
    kind: str, nursery: Nursery, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if kind == "sqlite":
        where = str(tmp_path / "store.db")
        SqliteStore.migrate(where)
    else:
        server: Server = request.getfixturevalue("postgres_server")
        where = server.fresh()
    store = opened(kind, where)
    view = store.within(NAMESPACE)
    told, status = nursery.run(kind, where, filled(view), 0)
    assert status == 0, told
    places = int(told[-1].split()[1])
    assert places > 15, "the boundaries are not counted"
    step = 1 if DEEP else 6
    seen = set()
    deaths = 0
    while True:
        for place in sorted({*range(1, places + 1, step), places}):
            name = filled(view)
            if place % 2 and place > 1 and place < places:  # it was shortened before
                view.trim(name, through=5, at=AT)
            began, before, length = view.base(name).sequence, state_body(view.state(name)), view.head(name).sequence
            told, status = nursery.run(kind, where, name, place)
            assert os.WIFSIGNALED(status), f"it lived at place {place}: {told}"
            assert os.WTERMSIG(status) == signal.SIGKILL
            deaths += 1
            again = opened(kind, where)
            for one in (view, again.within(NAMESPACE)):
                check_chain(one, name)
                assert audit.verified(one, name).messages == 4
                assert state_body(one.state(name)) == before, "another conversation is loaded"
                assert len(one.messages(name)) == 4
            now = (view.base(name).sequence, view.head(name).sequence)
            assert now in ((began, length), (length - 3, length + 1)), "it is shortened by half"
            assert "shortened" not in told or now[0] == length - 3
            seen.add(now[0] == length - 3)
            view.append(name, [admitted("private:later")])
            again.close()
        if not DEEP or deaths >= DEATHS:
            break

    assert seen == {True, False}, "no death was before the commit, or none behind it"
    store.close()
