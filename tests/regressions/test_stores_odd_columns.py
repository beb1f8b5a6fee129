"""One row of memory with a value of another type made every question about its namespace fail, or filled the memory.

SQLite keeps any type in any column. `bytes(10**12)` is a terabyte of zeros, `range(1, 10**12)` as a list is no better,
and a text that is no UTF-8 raised what nobody catches. A record that can't be read is every leg (4.1).
Mutation that this file catches: a column is read without looking at what it holds.
"""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from interlock.model.carried import Carried
from interlock.model.facts import Selection, fact_of
from interlock.model.labels import EVERY_LEG, Label
from interlock.stores.sql_artifacts import SqlArtifacts
from interlock.stores.sql_facts import SqlFacts
from interlock.stores.sqlite import SqliteStore

AT = "2026-11-29T12:00:00.000000Z"
WEB = Carried((Label("untrusted:web"),))
ODD = ["1000000000000", "-1", "1.5", "'text'", "X'FF'"]
COLUMNS = [
    ("facts", one) for one in ("revision", "at", "content", "conversation", "seal", "body", "vector", "first", "last")
] + [("fact_labels", "labels"), ("fact_labels", "revision")]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("store") / "store.db"
    SqliteStore.migrate(found)
    return found


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_t12_a_fact_that_can_not_be_read_is_every_leg(path: Path, table: str, column: str) -> None:
    store = SqliteStore(path, durability="process")
    facts = SqlFacts(store)
    for number, odd in enumerate(ODD):
        space = f"{table}-{column}-{number}"
        fact = fact_of("f", 1, AT, "some words", "c-1", (0, 1), WEB)
        facts.put(space, fact, expected=0, limit=9, vector=(1.0, 0.0))
        connection = sqlite3.connect(path)
        name = space.encode()
        done = connection.execute(f"UPDATE interlock_{table} SET {column} = {odd} WHERE namespace = ?", (name,))
        assert done.rowcount == 1
        connection.commit()
        connection.close()
        found = [facts.fact(space, "f"), *facts.search(space, ("words",), 9), *facts.near(space, (1.0, 0.0), 9)]
        for one in found:
            assert one is not None
            if column not in ("first", "last", "vector"):  # which say nothing about labels
                assert set(one.carried.labels) >= set(EVERY_LEG), (odd, one)
        facts.forget(space, Selection(everything=True))
    store.close()


def test_an_artifact_that_can_not_be_read_is_every_leg(tmp_path: Path) -> None:
    empty = tmp_path / "empty.db"
    SqliteStore.migrate(empty)
    for number, column in enumerate(("labels", "namespace", "digest", "artifact")):
        for odd in ODD:
            path = tmp_path / f"{number}{ODD.index(odd)}.db"
            shutil.copy(empty, path)
            store = SqliteStore(path, durability="process")
            artifacts = SqlArtifacts.begin(store)
            artifacts.label(("path:/a",), WEB, namespace="ana")
            connection = sqlite3.connect(path)
            connection.execute(f"UPDATE interlock_artifacts SET {column} = {odd}")
            connection.commit()
            connection.close()
            found = SqlArtifacts(store).carried(("path:/a",), namespace="ana")
            assert set(found.labels) == set(EVERY_LEG), (column, odd)
            store.close()
