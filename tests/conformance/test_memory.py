"""Proves that every store of facts, summaries and artifacts does what `interlock.testing.memory` asks of it (T2, T12).

Mutations that it is shown to catch: the namespace left out of a query, a revision that is not compared, labels of the
last revision only, deletion that takes the labels along, a key that is looked up exactly, and a fact whose labels were
exchanged in the database.
"""

from __future__ import annotations

import multiprocessing
import secrets
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from interlock.errors import Conflict
from interlock.model.carried import LOST, Carried, decode
from interlock.model.facts import fact_of
from interlock.model.labels import EVERY_LEG, Label
from interlock.stores.memory_artifacts import MemoryArtifacts
from interlock.stores.memory_facts import MemoryFacts, MemorySummaries
from interlock.stores.sql_artifacts import SqlArtifacts
from interlock.stores.sql_facts import SqlFacts
from interlock.stores.sql_store import SqlStore
from interlock.stores.sqlite import SqliteStore
from interlock.testing import memory
from tests.servers import Server

KINDS = ["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]
SQL = KINDS[1:]
AT = "2026-11-29T12:00:00.000000Z"


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Any:
    opened: dict[str, SqlStore] = {}

    def store(kind: str, request: pytest.FixtureRequest) -> SqlStore:
        if kind not in opened:
            if kind == "sqlite":
                path = tmp_path_factory.mktemp("memory") / "store.db"
                SqliteStore.migrate(path)
                opened[kind] = SqliteStore(path, durability="process")
            else:
                from interlock.stores.postgres import PostgresStore

                server: Server = request.getfixturevalue("postgres_server")
                opened[kind] = PostgresStore(server.fresh(), connections=8, timeout=60, plaintext=True)
        return opened[kind]

    yield store
    for one in opened.values():
        one.close()


def opening(kind: str, request: pytest.FixtureRequest, what: str) -> Callable[[], Any]:
    """Opens a store anew, over the same data."""
    if kind == "memory":
        kinds: Any = {"facts": MemoryFacts, "summaries": MemorySummaries}
        made = kinds.get(what, partial(MemoryArtifacts, whole=True))()
        return lambda: made
    store = request.getfixturevalue("stores")(kind, request)
    if what == "artifacts":
        return partial(SqlArtifacts.begin, store)
    return partial(SqlFacts, store)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("check", memory.FACTS, ids=lambda one: one.__name__)
def test_facts(check: Any, kind: str, request: pytest.FixtureRequest) -> None:
    check(opening(kind, request, "facts"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("check", memory.ARTIFACTS, ids=lambda one: one.__name__)
def test_artifacts(check: Any, kind: str, request: pytest.FixtureRequest) -> None:
    check(opening(kind, request, "artifacts"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("check", memory.SUMMARIES, ids=lambda one: one.__name__)
def test_summaries(check: Any, kind: str, request: pytest.FixtureRequest) -> None:
    check(opening(kind, request, "summaries"))


def test_one_call_runs_all() -> None:
    memory.check_facts(partial(lambda one: one, MemoryFacts()))
    memory.check_artifacts(partial(lambda one: one, MemoryArtifacts(whole=True)))


WEB = Carried((Label("untrusted:web"),))
MAIL = Carried((Label("private:mail"),))
# Each leaves a fact whose label record is not the one that was stored with this text.
DAMAGE = [
    "DELETE FROM interlock_fact_labels",
    "DELETE FROM interlock_fact_labels WHERE revision = 1",
    "DELETE FROM interlock_fact_labels WHERE revision = 2",
    "UPDATE interlock_fact_labels SET labels = ?",
    "UPDATE interlock_fact_labels SET labels = ? WHERE revision = 1",
    "UPDATE interlock_facts SET body = ?",
    "UPDATE interlock_facts SET seal = ?",
    "UPDATE interlock_facts SET conversation = ?",
    "UPDATE interlock_facts SET revision = 1",
    "UPDATE interlock_facts SET content = ?",
]


@pytest.mark.parametrize("value", [b"", b"x", Carried().encode()], ids=["empty", "text", "clean"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_t12_a_fact_whose_label_record_is_missing_or_another_is_every_leg(
    damage: str, value: bytes, tmp_path: Path
) -> None:
    SqliteStore.migrate(tmp_path / "store.db")
    with_store = SqliteStore(tmp_path / "store.db", durability="process")
    facts = SqlFacts(with_store)
    at = "2026-11-29T12:00:00.000000Z"
    facts.put("n", fact_of("m", 1, at, "word one", "c-1", (0, 1), MAIL), expected=0, limit=9)
    facts.put("n", fact_of("m", 2, at, "word two", "c-1", (0, 1), WEB), expected=1, limit=9, vector=(1.0,))
    values = (value,) if "?" in damage else ()
    with_store.database.transact(lambda cursor: cursor.run(damage, values))
    harmless = False
    for found in (facts.fact("n", "m"), *facts.search("n", ("word",), 9), *facts.near("n", (1.0,), 9)):
        assert found is not None
        # The newest row has the labels of those before it, so a clean one in an older place takes nothing away.
        harmless = damage.endswith("SET labels = ? WHERE revision = 1") and value == Carried().encode()
        wanted = {*MAIL.labels, *WEB.labels} if harmless else set(EVERY_LEG)
        assert wanted <= set(found.carried.labels)
        assert harmless or not found.carried.heard
    if not harmless and damage.startswith(("UPDATE interlock_fact_labels", "UPDATE interlock_facts SET seal")):
        # And it stays so: what nobody knows any more does not become known by a new revision.
        again = facts.put("n", fact_of("m", 3, at, "word", "c-1", (0, 1), WEB), expected=2, limit=9)
        assert LOST.join(again.carried) == again.carried
    with_store.close()


def test_t12_a_clean_fact_whose_label_record_is_missing_is_every_leg(tmp_path: Path) -> None:
    SqliteStore.migrate(tmp_path / "store.db")
    store = SqliteStore(tmp_path / "store.db", durability="process")
    facts = SqlFacts(store)
    at = "2026-11-29T12:00:00.000000Z"
    facts.put("n", fact_of("m", 1, at, "word", "c-1", (0, 1), Carried()), expected=0, limit=9)
    store.database.transact(lambda cursor: cursor.run("DELETE FROM interlock_fact_labels"))
    (found,) = facts.search("n", ("word",), 9)
    assert set(found.carried.labels) == set(EVERY_LEG)
    store.close()


def test_a_deleted_text_is_gone_from_the_file(tmp_path: Path) -> None:
    from interlock.model.facts import Selection

    path = tmp_path / "store.db"
    SqliteStore.migrate(path)
    store = SqliteStore(path)
    facts = SqlFacts(store)
    secret = "zyxwvutsrq"
    at = "2026-11-29T12:00:00.000000Z"
    facts.put("n", fact_of("m", 1, at, f"the {secret} word", "c-1", (0, 1), WEB), expected=0, limit=9)
    assert facts.forget("n", Selection(everything=True)) == 1
    store.database.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    assert secret.encode() not in b"".join(one.read_bytes() for one in tmp_path.glob("store.db*"))


@pytest.mark.postgres
def test_pgvector_is_used_where_the_server_has_it(postgres_server: Server) -> None:
    """CI has Debian's package; without it the same checks pass above by comparing vectors one by one."""
    from interlock.stores.postgres import PostgresStore
    from interlock.stores.sql_facts import HAS_PGVECTOR

    store = PostgresStore(postgres_server.fresh(), plaintext=True)
    offered = store.database.rows("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'")
    assert store.database.rows(HAS_PGVECTOR) == offered
    store.close()


@pytest.mark.postgres
def test_a_role_that_may_not_delete_is_enough(postgres_server: Server) -> None:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    from interlock.stores.postgres import PostgresStore

    dsn = postgres_server.fresh()
    role = f"service_{secrets.token_hex(6)}"
    schema = str(conninfo_to_dict(dsn)["options"]).partition("search_path=")[2].partition(",")[0]
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in (
            f"CREATE ROLE {role} LOGIN",
            f"GRANT USAGE ON SCHEMA {schema} TO {role}",
            f"GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA {schema} TO {role}",
        ):
            connection.execute(statement.encode())
    store = PostgresStore(make_conninfo(dsn, user=role), plaintext=True)
    memory.check_facts(partial(SqlFacts, store))
    memory.check_artifacts(partial(SqlArtifacts.begin, store))
    for check in memory.SUMMARIES:
        check(partial(SqlFacts, store))
    store.close()


# --- processes --------------------------------------------------------------------------------------------------------


def _open(kind: str, where: str) -> SqlStore:
    if kind == "sqlite":
        return SqliteStore(where, durability="process")
    from interlock.stores.postgres import PostgresStore

    return PostgresStore(where, connections=2, timeout=60, plaintext=True)


def _labels(kind: str, where: str, number: int) -> None:
    store = _open(kind, where)
    artifacts = SqlArtifacts(store)
    for time in range(10):
        artifacts.label(["key:shared"], Carried((Label(f"private:p{number}.{time}"),)), namespace="n")
    store.close()


def _corrects(kind: str, where: str, number: int) -> int:
    """How many of ten revisions this process wrote."""
    store, won = _open(kind, where), 0
    facts = SqlFacts(store)
    for revision in range(1, 11):
        mine = Carried((Label(f"private:p{number}.{revision}"),))
        try:
            facts.put("n", fact_of("m", 1, AT, f"word {number}", "c-1", (0, 0), mine), expected=revision, limit=9)
            won += 1
        except Conflict:
            pass
    store.close()
    return won


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    if request.param == "sqlite":
        SqliteStore.migrate(tmp_path / "store.db")
        return "sqlite", str(tmp_path / "store.db")
    server: Server = request.getfixturevalue("postgres_server")
    return "postgres", server.fresh()


@pytest.mark.parametrize("place", SQL, indirect=True)
def test_t2_labels_of_four_processes_all_survive_and_the_chain_holds(place: tuple[str, str]) -> None:
    with ProcessPoolExecutor(4, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(partial(_labels, *place), range(4)))
    store = _open(*place)
    artifacts = SqlArtifacts.begin(store)
    assert artifacts.damage == "artifacts were written before their record was begun"
    rows = store.database.rows("SELECT sequence, labels FROM interlock_artifacts ORDER BY sequence")
    assert [row[0] for row in rows] == list(range(1, 41))
    assert len({label for row in rows for label in decode(bytes(row[1])).labels}) == 40
    store.close()


@pytest.mark.parametrize("place", SQL, indirect=True)
def test_t12_of_four_processes_exactly_one_writes_each_revision(place: tuple[str, str]) -> None:
    store = _open(*place)
    facts = SqlFacts(store)
    facts.put("n", fact_of("m", 1, AT, "word", "c-1", (0, 0), Carried()), expected=0, limit=9)
    with ProcessPoolExecutor(4, multiprocessing.get_context("spawn")) as pool:
        won = list(pool.map(partial(_corrects, *place), range(4)))
    found = facts.fact("n", "m")
    assert found is not None
    assert found.revision - 1 == sum(won) >= 1
    assert len(found.carried.labels) == sum(won)
    store.close()
