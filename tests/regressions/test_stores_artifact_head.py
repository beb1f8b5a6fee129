"""The record of artifacts was never held against what its head says.

Its rows are a chain, but the digest in the head was written and not compared: whoever changed a row and made the chain
anew behind it had a whole record. The key of the store did not protect it, so `whole` could be written by anybody. Rows
that were taken out after a process had verified the record were not missed by it.
Mutations that this file catches: the digest of the head is not compared; the mark of the key is not; rows are counted
once only.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from interlock.errors import MemoryUnavailable
from interlock.model.carried import Carried
from interlock.model.labels import EVERY_LEG, Label
from interlock.stores.sql_artifacts import _GENESIS, SqlArtifacts, _link
from interlock.stores.sqlite import SqliteStore

WEB = Carried((Label("untrusted:web"),))
KEY = b"k" * 32


@pytest.fixture
def path(tmp_path: Path) -> Path:
    SqliteStore.migrate(tmp_path / "store.db")
    return tmp_path / "store.db"


def record(path: Path, key: bytes = b"") -> SqliteStore:
    store = SqliteStore(path, key=key)
    artifacts = SqlArtifacts.begin(store)
    for name in ("path:/a", "path:/b", "path:/c"):
        artifacts.label((name,), WEB, namespace="ana")
    assert not SqlArtifacts(store).damage
    assert artifacts.carried(("path:/d",), namespace="ana").labels == ()
    return store


def forged(path: Path, rows: int, head: bool) -> None:
    """The last row made clean, and the chain behind it, by somebody who knows how."""
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM interlock_artifacts WHERE sequence > ?", (rows,))
    last = _GENESIS
    for sequence, name, space, body in connection.execute(
        "SELECT sequence, artifact, namespace, labels FROM interlock_artifacts ORDER BY sequence"
    ).fetchall():
        body = Carried().encode() if sequence == rows else body
        last = _link(sequence, last, name, space, body)
        values = (body, last, sequence)
        connection.execute("UPDATE interlock_artifacts SET labels = ?, digest = ? WHERE sequence = ?", values)
    if head:
        connection.execute("UPDATE interlock_artifact_head SET sequence = ?, digest = ?", (rows, last))
    connection.commit()
    connection.close()


def test_t12_a_chain_that_was_made_anew(path: Path) -> None:
    store = record(path)
    forged(path, 3, head=False)
    artifacts = SqlArtifacts(store)
    assert "not the one that its head names" in artifacts.damage
    assert set(artifacts.carried(("path:/c",), namespace="ana").labels) == set(EVERY_LEG)
    store.close()


@pytest.mark.parametrize("rows", [2, 3])
def test_t12_a_head_that_was_made_anew_lacks_the_key(path: Path, rows: int) -> None:
    store = record(path, KEY)
    forged(path, rows, head=True)
    artifacts = SqlArtifacts(store)
    assert "not made with this key" in artifacts.damage
    with pytest.raises(MemoryUnavailable):
        artifacts.label(("path:/e",), WEB, namespace="ana")
    store.close()


@pytest.mark.parametrize("key", [b"", b"o" * 32])
def test_another_key_is_none(path: Path, key: bytes) -> None:
    record(path, KEY).close()
    store = SqliteStore(path, key=key)
    assert SqlArtifacts(store).damage
    store.close()


def test_a_record_that_was_never_begun_can_not_be_called_whole(path: Path) -> None:
    store = SqliteStore(path, key=KEY)
    SqlArtifacts(store).label(("path:/a",), WEB, namespace="ana")
    connection = sqlite3.connect(path)
    connection.execute("UPDATE interlock_artifact_head SET whole = CAST('whole' AS BLOB)")
    connection.commit()
    connection.close()
    assert SqlArtifacts(store).damage
    store.close()


@pytest.mark.parametrize("row", [1, 2, 3])
def test_t12_rows_that_go_after_it_was_verified(path: Path, row: int) -> None:
    store = record(path)
    artifacts = SqlArtifacts(store)
    assert not artifacts.damage
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM interlock_artifacts WHERE sequence = ?", (row,))
    connection.commit()
    connection.close()
    assert set(artifacts.carried(("path:/a",), namespace="ana").labels) == set(EVERY_LEG)
    store.close()


@pytest.mark.parametrize("key", [b"", KEY], ids=["plain", "keyed"])
def test_what_the_operator_said_is_lost_stays_so(path: Path, key: bytes) -> None:
    """That word is marked like all others: it is read as what it is, writing goes on, `whole` does not come back."""
    store = record(path, key)
    artifacts = SqlArtifacts.lost(store)
    for again in (artifacts, SqlArtifacts(store)):
        assert "the operator said" in again.damage
        again.label(("path:/d",), WEB, namespace="ana")
    assert "the operator said" in SqlArtifacts.begin(store).damage
    store.close()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE interlock_artifact_head SET whole = ?", (b"whole",))
    connection.commit()
    connection.close()
    if key:
        store = SqliteStore(path, key=key)
        assert "not made with this key" in SqlArtifacts(store).damage
        assert set(SqlArtifacts(store).carried(("path:/a",), namespace="ana").labels) >= set(EVERY_LEG)
        assert "the operator said" not in SqlArtifacts.lost(store).damage, "a forged head was signed"
        assert SqlArtifacts(store).damage
        store.close()
