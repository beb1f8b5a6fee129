"""A store whose file was replaced went on writing to the old one.

Whoever put a backup in the place of an open SQLite file, without stopping the processes that had it open, got labels
that were acknowledged and then were nowhere: they went into a file without a name, or through the log that both files
share by its name into the wrong one.
Mutation that this file catches: connections of a file that does not stand there any more are used.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from interlock.errors import JournalUnavailable, Tampered
from interlock.stores.sqlite import SqliteStore
from interlock.testing.stores import FILES, WEB, admitted, begun, check_chain


def test_t16_a_backup_in_the_place_of_an_open_file(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    SqliteStore.migrate(path)
    store = SqliteStore(path)
    view = store.within("ana")
    name, other = begun(view), begun(view)
    store.database.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(path, tmp_path / "backup.db")
    for _ in range(50):
        view.append(name, [admitted(WEB)] * 20)
    store.database.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    os.replace(tmp_path / "backup.db", path)
    with pytest.raises(Tampered, match="went back"):
        view.append(name, [admitted(FILES)])
    # What was not written since the backup goes on, in the file that stands there, and others see it.
    view.append(other, [admitted(FILES)])
    again = SqliteStore(path)
    assert set(again.within("ana").state(other).taint) == {FILES}
    check_chain(again.within("ana"), other)
    again.close()
    store.close()


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    SqliteStore.migrate(path)
    store = SqliteStore(path)
    name = begun(store.within("ana"))
    path.rename(tmp_path / "elsewhere.db")
    with pytest.raises(JournalUnavailable):
        store.within("ana").append(name, [admitted(WEB)])
    with pytest.raises(JournalUnavailable):
        store.within("ana").state(name)
    store.close()


def test_t8_a_file_that_is_replaced_during_a_write_is_not_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    SqliteStore.migrate(path)
    shutil.copy(path, tmp_path / "new.db")
    store = SqliteStore(path)

    def work(cursor: object) -> None:
        os.replace(tmp_path / "new.db", path)

    with pytest.raises(JournalUnavailable, match="replaced"):
        store.database.transact(work)
    store.close()
