"""Real servers for tests. Holds no test.

PostgreSQL: the one of `INTERLOCK_TEST_POSTGRES_DSN`, or a throw-away one. OPA: the program of `INTERLOCK_TEST_OPA`, on
PATH, or made before by `scripts/opa.py`. Where there is none, tests that need it are skipped; under `INTERLOCK_CI` that
is a failure.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


def _scripts(name: str = "postgres") -> Any:
    place = Path(__file__).resolve().parents[1] / "scripts" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"interlock_scripts_{name}", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Server:
    """A server by its dsn. Every store gets a schema of its own, which the tables of no other test are in."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn

    def empty(self) -> str:
        """A dsn to a new schema without any table."""
        import psycopg
        from psycopg.conninfo import make_conninfo

        name = f"interlock_{secrets.token_hex(8)}"
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        return make_conninfo(self.dsn, options=f"-csearch_path={name},public")

    def fresh(self) -> str:
        """A dsn to a new schema that was migrated."""
        from interlock.stores.postgres import PostgresStore

        dsn = self.empty()
        PostgresStore.migrate(dsn, plaintext=True)
        return dsn


def _absent(why: str) -> None:
    if os.environ.get("INTERLOCK_CI"):
        pytest.fail(f"{why}; what was not tested against the real server is not tested", pytrace=False)
    pytest.skip(why)


def require_psycopg() -> None:
    if importlib.util.find_spec("psycopg") is None or importlib.util.find_spec("psycopg_pool") is None:
        _absent("the extra `postgres` is not installed")


@contextmanager
def cluster(*settings: str) -> Iterator[Any]:
    """A server of the test's own, which it may kill and start."""
    require_psycopg()
    scripts = _scripts()
    if scripts.programs() is None:
        _absent("PostgreSQL is not installed")
    with scripts.Cluster(*settings) as running:
        yield running


@contextmanager
def server() -> Iterator[Server]:
    require_psycopg()
    given = os.environ.get("INTERLOCK_TEST_POSTGRES_DSN")
    if given:
        yield Server(given)
    else:
        with cluster() as running:
            yield Server(running.dsn)


def opa_program() -> Path:
    """The OPA program. Skips the test where there is none, and fails it under `INTERLOCK_CI`."""
    if importlib.util.find_spec("opa_client") is None:
        _absent("the extra `opa` is not installed")
    try:
        program: Path | None = _scripts("opa").found()
    except RuntimeError as error:
        pytest.fail(str(error), pytrace=False)
    if program is None:
        _absent(NO_OPA)
    assert program is not None
    return program


NO_OPA = "there is no OPA: `python3 scripts/opa.py` builds or fetches it"


@contextmanager
def opa(*arguments: str, environment: Mapping[str, str] | None = None) -> Iterator[Any]:
    """A server of the test's own (`scripts/opa.py`, class `Server`), which it may kill and start.

    `arguments` are options and paths of `opa run`; the address is a free port of loopback.
    """
    with _scripts("opa").Server(opa_program(), *arguments, environment=environment) as running:
        yield running
