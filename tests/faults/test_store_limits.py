"""Proves that a server that says no, or has no room, is a refusal in time, and that the store then goes on (T4, T8).

A pool without a free connection, a role that may only read, a role whose statements are cut off.
Mutations that it is shown to catch: waiting for a connection without an end, an error of the server passed on as it is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from interlock import Interlock
from interlock.conversations import Conversations
from interlock.errors import JournalUnavailable
from interlock.testing.stores import WEB, admitted, begun, check_chain
from tests.faults.turns_that_die import MANIFEST
from tests.servers import Server, require_psycopg

pytestmark = pytest.mark.postgres


@pytest.fixture
def dsn(postgres_server: Server) -> str:
    require_psycopg()
    return postgres_server.fresh()


def with_option(dsn: str, option: str) -> str:
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    return make_conninfo(dsn, options=f"{conninfo_to_dict(dsn)['options']} -c{option}")


def test_a_pool_without_a_free_connection(dsn: str) -> None:
    from interlock.stores.postgres import PostgresStore

    store = PostgresStore(dsn, plaintext=True, connections=1, timeout=0.3)
    guard = Interlock(manifest=MANIFEST, journal=store).guard(Conversations(store, "ana").new("go").conversation)
    taken, done = threading.Event(), threading.Event()

    def hold(_: object) -> None:
        taken.set()
        done.wait(20)

    holder = threading.Thread(target=store.database.transact, args=(hold,))
    holder.start()
    taken.wait(20)
    begins = time.monotonic()
    outcome = guard.call("read", {}, run=lambda: pytest.fail("it ran without a decision on record"))
    assert time.monotonic() - begins < 10
    assert (outcome.verdict, outcome.decision.code) == ("deny", "journal_error")
    done.set()
    holder.join()
    assert guard.call("read", {}, run=lambda: "a file").result == "a file"
    store.close()


def test_a_role_that_may_only_read(dsn: str) -> None:
    from interlock.stores.postgres import PostgresStore

    writer = PostgresStore(dsn, plaintext=True)
    name = begun(writer.within("ana"))
    reader = PostgresStore(with_option(dsn, "default_transaction_read_only=on"), plaintext=True)
    assert reader.within("ana").state(name) == writer.within("ana").state(name)
    with pytest.raises(JournalUnavailable, match="read-only"):
        reader.within("ana").append(name, [admitted(WEB)])
    assert not writer.within("ana").state(name).taint
    reader.close()
    writer.close()


def test_a_role_whose_statements_are_cut_off(dsn: str) -> None:
    from interlock.stores.postgres import PostgresStore

    other = PostgresStore(dsn, plaintext=True)
    name = begun(other.within("ana"))
    store = PostgresStore(with_option(dsn, "statement_timeout=200"), plaintext=True)
    view = store.within("ana")
    state = view.state(name)
    blocked, done = threading.Event(), threading.Event()

    def hold(cursor: object) -> None:
        other.database.rows("SELECT 1")
        cursor.rows("SELECT 1 FROM interlock_heads FOR UPDATE")  # type: ignore[attr-defined]
        blocked.set()
        done.wait(20)

    holder = threading.Thread(target=other.database.transact, args=(hold,))
    holder.start()
    blocked.wait(20)
    writes: list[Callable[[], object]] = [
        lambda: view.append(name, [admitted(WEB)]),
        lambda: view.erase(name, at="x"),
    ]
    for write in writes:
        with pytest.raises(JournalUnavailable):
            write()
    done.set()
    holder.join()
    assert view.state(name) == state, "a write that was refused was written"
    view.append(name, [admitted(WEB)], expected=state.version)
    check_chain(view, name)
    store.close()
    other.close()
