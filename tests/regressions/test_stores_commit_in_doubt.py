"""A server that said its last words in a commit was taken for one that had written nothing.

Whether a connection is lost was asked of the connection, and libpq knows that only when the next byte does not come. A
server that is shut down, or a backend that is killed, sends an error first: with that alone, the store said that
nothing was written, without looking, though it may have been.
Mutation that this file catches: only a closed connection leaves a commit in doubt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from interlock.errors import JournalUnavailable
from interlock.stores.sql import CommitUnknown
from interlock.testing.stores import AT, FILES, WEB, admitted, begun, change, check_chain
from tests.servers import Server, require_psycopg

pytestmark = pytest.mark.postgres


@pytest.fixture
def view(postgres_server: Server) -> Iterator[Any]:
    require_psycopg()
    from interlock.stores.postgres import PostgresStore

    store = PostgresStore(postgres_server.fresh(), plaintext=True, connections=1, timeout=2)
    yield store.within("ana")
    store.close()


def last_words(monkeypatch: pytest.MonkeyPatch, *, after: bool, where: bytes, code: str) -> None:
    """One statement fails with a code of the server's, before or after it was done."""
    import psycopg

    plain: Any = psycopg.Connection.execute
    left = [True]

    def execute(self: Any, statement: Any, *args: Any, **more: Any) -> Any:
        text = statement.encode() if isinstance(statement, str) else bytes(statement)
        if left and text.startswith(where):
            left.clear()
            if after:
                plain(self, statement, *args, **more)
            raise psycopg.errors.lookup(code)("terminating connection due to administrator command")
        return plain(self, statement, *args, **more)

    monkeypatch.setattr(psycopg.Connection, "execute", execute)


@pytest.mark.parametrize("code", ["57P01", "57P02", "58030", "08006", "40003"])
@pytest.mark.parametrize("after", [True, False])
def test_t16_it_is_looked_up(view: Any, monkeypatch: pytest.MonkeyPatch, code: str, after: bool) -> None:
    name = begun(view)
    view.record(name, [change()], at=AT, turn=0)
    writes: list[tuple[bytes, Callable[[], Any]]] = [
        (b"COMMIT", lambda: view.record(name, [change()], [admitted(WEB)], at=AT, turn=1)),
        (b"WITH moved", lambda: view.append(name, [admitted(FILES)])),
    ]
    for where, write in writes:
        last_words(monkeypatch, after=after, where=where, code=code)
        if after:
            state = write()
            assert state == view.state(name)
        else:
            with pytest.raises(CommitUnknown):
                write()
            write()
        monkeypatch.undo()
    assert set(view.state(name).taint) == {WEB, FILES}
    check_chain(view, name)


def test_an_error_that_undoes_is_no_doubt(view: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    name = begun(view)
    last_words(monkeypatch, after=False, where=b"WITH moved", code="53100")
    with pytest.raises(JournalUnavailable) as told:
        view.append(name, [admitted(WEB)])
    assert not isinstance(told.value, CommitUnknown)


def test_a_role_that_isolates_more_does_not_refuse_who_waited(postgres_server: Server) -> None:
    """Under `repeatable read` whoever waits for a row that was changed gets an error instead of the row."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    from interlock.stores.postgres import PostgresStore

    dsn = postgres_server.fresh()
    options = f"{conninfo_to_dict(dsn)['options']} -cdefault_transaction_isolation=serializable"
    dsn = make_conninfo(dsn, options=options)
    store = PostgresStore(dsn, plaintext=True, connections=4, timeout=30)
    other = store.within("ana")
    name = begun(other)

    def write(number: int) -> None:
        for _ in range(20):
            other.record(name, [], [admitted(f"untrusted:w{number}")], at=AT, turn=0)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert len(other.entries(name)) == 81
    store.close()
