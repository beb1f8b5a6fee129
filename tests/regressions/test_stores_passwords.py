"""A dsn with a password that was not escaped came back in error messages, and a local name hid a remote address.

libpq repeats what it can't read: of `postgresql://u:50%off@db/x` and `password=two words` that is the password. With an
unescaped `@` or `/` the rest of the password became the host or the database, which every message shows. And
`host=localhost hostaddr=203.0.113.5` counted as this machine, though libpq goes to the address: nothing was encrypted.
A service, whose host stands in a file, was connected to before anybody looked, with the password on the way.
Mutations that this file catches: the driver's message is passed on; only the host is looked at; a service is local.
"""

from __future__ import annotations

import pytest

from interlock.errors import Misconfigured
from interlock.model.configuration import PostgresChoice
from tests.ids import stable
from tests.servers import require_psycopg

SECRET = "hunter"
BROKEN = [
    f"postgresql://u:{SECRET}%zz@db/x",
    f"postgresql://u:a%20{SECRET} b@db/x",
    f"postgresql://u:a@{SECRET}@db/x",
    f"postgresql://u:a/{SECRET}@db/x",
    f"postgresql://u:1/{SECRET}@db/x",
    f"postgresql://u:1/a@{SECRET}/x",
    f"host=db password=two {SECRET}",
    f"host=db password='{SECRET}",
]


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    require_psycopg()
    for name in ("PGHOST", "PGHOSTADDR", "PGSERVICE", "PGSSLMODE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("dsn", BROKEN, ids=stable)
def test_a_password_is_not_repeated(dsn: str) -> None:
    from interlock.stores.postgres import PostgresStore

    for act in (PostgresStore, PostgresStore.migrate):
        with pytest.raises(Misconfigured) as told:
            act(dsn)
        assert SECRET not in str(told.value)
        assert told.value.__cause__ is None
        assert "%40" in str(told.value)  # and what to do


@pytest.mark.parametrize(
    "dsn",
    [
        "host=localhost hostaddr=203.0.113.5",
        "host=/run/postgresql,db.example",
        "host=localhost,db.example",
        "hostaddr=203.0.113.5",
        "service=prod",
    ],
)
def test_whatever_leads_to_another_machine_is_encrypted(dsn: str) -> None:
    from interlock.stores.dsn import secured

    assert "sslmode=verify-full" in secured(dsn)
    assert "sslmode" not in secured(dsn, plaintext=True)
    with pytest.raises(Misconfigured, match="in the clear"):
        secured(f"{dsn} sslmode=prefer")


@pytest.mark.parametrize(("name", "value"), [("PGHOSTADDR", "203.0.113.5"), ("PGSERVICE", "prod"), ("PGHOST", "db")])
def test_the_environment_counts(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    from interlock.stores.dsn import secured

    monkeypatch.setenv(name, value)
    assert "sslmode=verify-full" in secured("dbname=x")


@pytest.mark.parametrize(
    "dsn",
    [
        "",
        "host=/run/postgresql",
        "host=@socket dbname=x",
        "host=localhost hostaddr=127.0.0.1",
        "postgresql://u:a%40b@[::1]/x",
    ],
)
def test_this_machine_stays_this_machine(dsn: str) -> None:
    from interlock.stores.dsn import secured

    assert "sslmode" not in secured(dsn)


def test_the_configuration_does_not_show_it() -> None:
    dsn = f"postgresql://u:{SECRET}@db/x"
    assert SECRET not in repr(PostgresChoice(kind="postgres", dsn=dsn))
    with pytest.raises(ValueError, match="environment variable") as told:
        PostgresChoice(kind="postgres", dsn=dsn, dsn_from="X")
    assert SECRET not in str(told.value)
    assert "postgresql://" not in str(told.value)


def test_of_several_servers_the_one_that_can_be_written() -> None:
    """A standby is behind: what it says of labels was true some time ago."""
    from interlock.stores.dsn import secured

    assert "target_session_attrs=read-write" in secured("host=a,b")
    assert "target_session_attrs=any" in secured("host=a,b target_session_attrs=any")
    assert "target_session_attrs" not in secured("host=a")


def test_a_server_that_is_gone_without_a_word_is_given_up() -> None:
    from interlock.stores.dsn import secured

    assert "tcp_user_timeout=60000" in secured("host=a")
    assert "tcp_user_timeout=5" in secured("host=a tcp_user_timeout=5")
