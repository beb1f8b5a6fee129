"""Proves that PostgreSQL is spoken to as safely as the operator may expect, and is migrated explicitly.

Mutations that it is shown to catch: TLS left to libpq's default, `fsync` not asked for, the schema made on opening.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from interlock.errors import JournalUnavailable, Misconfigured
from interlock.testing.stores import WEB, admitted, begun, fresh, labels
from tests.servers import Server, cluster, require_psycopg

pytestmark = pytest.mark.postgres


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    require_psycopg()
    for name in [one for one in os.environ if one.startswith("PG")]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize("dsn", ["dbname=x", "host=/run/x dbname=x", "host=localhost", "postgresql://127.0.0.1/x"])
def test_this_machine_needs_no_tls(dsn: str) -> None:
    from psycopg.conninfo import conninfo_to_dict

    from interlock.stores.postgres import secured

    assert "sslmode" not in conninfo_to_dict(secured(dsn))


@pytest.mark.parametrize(
    "dsn", ["host=db.example", "postgresql://db.example/x", "hostaddr=192.0.2.1", "host=localhost,db.example"]
)
def test_another_machine_is_looked_at(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    from interlock.stores.postgres import secured

    monkeypatch.setattr(Path, "home", lambda: Path("/nonexistent"))
    known = conninfo_to_dict(secured(dsn))
    assert known["sslmode"] == "verify-full"
    if psycopg.pq.version() >= 160_000:
        assert known["sslrootcert"] == "system"
    assert conninfo_to_dict(secured(f"{dsn} sslmode=require" if "=" in dsn else f"{dsn}?sslmode=require"))
    assert "sslmode" not in conninfo_to_dict(secured(dsn, plaintext=True))


@pytest.mark.parametrize("mode", ["disable", "allow", "prefer"])
def test_less_than_tls_is_an_act(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from interlock.stores.postgres import PostgresStore, secured

    with pytest.raises(Misconfigured, match="in the clear"):
        PostgresStore(f"host=db.example sslmode={mode}")
    assert secured(f"host=db.example sslmode={mode}", plaintext=True)
    monkeypatch.setenv("PGSSLMODE", mode)
    monkeypatch.setenv("PGHOST", "db.example")
    with pytest.raises(Misconfigured, match="in the clear"):
        PostgresStore("dbname=x")


def test_errors_show_no_password() -> None:
    from interlock.stores.postgres import PostgresStore

    with pytest.raises(JournalUnavailable) as caught:
        PostgresStore("host=127.0.0.1 port=1 user=u password=hunter2 dbname=x")
    assert "hunter2" not in str(caught.value)
    with pytest.raises(JournalUnavailable) as caught:
        PostgresStore.migrate("host=127.0.0.1 port=1 user=u password=hunter2 dbname=x")
    assert "hunter2" not in str(caught.value)
    with pytest.raises(Misconfigured, match="libpq"):
        PostgresStore("no dsn at all")


def test_nothing_is_made_by_opening(postgres_server: Server) -> None:
    import psycopg

    from interlock.stores.postgres import PostgresStore

    dsn = postgres_server.empty()
    with pytest.raises(Misconfigured, match="no schema yet"):
        PostgresStore(dsn, plaintext=True)
    together = threading.Barrier(3)

    def migrate(_: int) -> bool:
        together.wait()
        return PostgresStore.migrate(dsn, plaintext=True)

    with ThreadPoolExecutor(3) as pool:
        assert sorted(pool.map(migrate, range(3))) == [False, False, True]
    PostgresStore(dsn, plaintext=True).close()
    with psycopg.connect(dsn) as connection:
        connection.execute("UPDATE interlock_schema SET version_num = '9999'")
    for act in (lambda: PostgresStore(dsn, plaintext=True), lambda: PostgresStore.migrate(dsn, plaintext=True)):
        with pytest.raises(Misconfigured, match="later version"):
            act()


def test_a_server_that_does_not_flush() -> None:
    from interlock.stores.postgres import PostgresStore

    with cluster("fsync=off") as running:
        assert PostgresStore.migrate(running.dsn)
        with pytest.raises(Misconfigured, match="fsync off"):
            PostgresStore(running.dsn)
        store = PostgresStore(running.dsn, durability="process")
        assert store.database.rows("SHOW synchronous_commit") == [("off",)]
        view = store.within(fresh())
        assert labels(view.append(begun(view), [admitted(WEB)])) == {WEB}
        store.close()


def test_a_role_that_may_not_delete_or_alter(postgres_server: Server) -> None:
    """What the guide says a service needs: it may read, insert and update."""
    import secrets

    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    from interlock.stores.postgres import PostgresStore
    from interlock.testing import stores

    dsn = postgres_server.fresh()
    role, schema = f"service_{secrets.token_hex(4)}", str(conninfo_to_dict(dsn)["options"]).split("=")[1].split(",")[0]
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in (
            f"CREATE ROLE {role}",
            f"GRANT USAGE ON SCHEMA {schema} TO {role}",
            f"GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA {schema} TO {role}",
        ):
            connection.execute(statement.encode())
    limited = make_conninfo(dsn, options=f"-csearch_path={schema} -crole={role}")
    for check in (stores.check_transcript, stores.check_conflicts, stores.check_erasing, stores.check_long):
        check(lambda: PostgresStore(limited, plaintext=True))
    store = PostgresStore(limited, plaintext=True)
    with pytest.raises(JournalUnavailable, match="permission denied"):
        store.database.rows("DELETE FROM interlock_entries RETURNING 1")
    store.close()


def test_full_durability_overrules_the_server(postgres_server: Server) -> None:
    from interlock.stores.postgres import PostgresStore

    dsn = postgres_server.fresh().replace("options=", "application_name=x options=")
    store = PostgresStore(f"{dsn}", plaintext=True)
    assert store.database.rows("SHOW synchronous_commit") == [("on",)]
    store.close()


def test_a_writer_that_waits_too_long(postgres_server: Server) -> None:
    import psycopg

    from interlock.stores.postgres import PostgresStore

    dsn = postgres_server.fresh()
    store = PostgresStore(dsn, plaintext=True, timeout=0.3)
    view = store.within(fresh())
    name = begun(view)
    with psycopg.connect(dsn) as other:
        other.execute("SELECT 1 FROM interlock_heads FOR UPDATE")
        with pytest.raises(JournalUnavailable, match="lock timeout"):
            view.append(name, [admitted(WEB)])
        assert view.state(name).version == 1, "readers do not wait"
    assert labels(view.append(name, [admitted(WEB)])) == {WEB}
    store.close()
    with pytest.raises(JournalUnavailable, match="closed"):
        view.state(name)
