"""From the operator's ``[journal]`` to a store. What a kind needs is imported when it is chosen."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.errors import Misconfigured
from interlock.stores.memory import MemoryJournal

if TYPE_CHECKING:
    from interlock.model.configuration import MemoryChoice, PostgresChoice, SqliteChoice
    from interlock.stores.sql_store import SqlStore


def opened_store(choice: MemoryChoice | SqliteChoice | PostgresChoice, folder: Path) -> MemoryJournal | SqlStore:
    """The journal or store that was chosen.

    Args:
        folder: what its paths are relative to.

    Raises:
        Misconfigured: it was not migrated, others may read it, or a file or variable that it names is not there.
        JournalUnavailable: it can't be reached.
        ImportError: the extra that it needs is not installed.
    """
    if choice.kind == "memory":
        return MemoryJournal()
    key = _key(folder, choice.key_file)
    if choice.kind == "sqlite":
        from interlock.stores.sqlite import SqliteStore

        return SqliteStore(folder / choice.path, key=key, durability=choice.durability)
    from interlock.stores.postgres import PostgresStore

    return PostgresStore(
        dsn_of(choice),
        key=key,
        durability=choice.durability,
        connections=choice.connections,
        plaintext=choice.plaintext,
    )


def migrated(choice: MemoryChoice | SqliteChoice | PostgresChoice, folder: Path) -> bool:
    """Bring the store that was chosen to the schema of this version; whether anything had to be done.

    Raises:
        Misconfigured, JournalUnavailable, ImportError: see the stores' own ``migrate``.
    """
    if choice.kind == "memory":
        return False
    if choice.kind == "sqlite":
        from interlock.stores.sqlite import SqliteStore

        return SqliteStore.migrate(folder / choice.path)
    from interlock.stores.postgres import PostgresStore

    return PostgresStore.migrate(dsn_of(choice), plaintext=choice.plaintext)


def dsn_of(choice: PostgresChoice) -> str:
    """Raises Misconfigured when the environment variable that holds it is not set."""
    if choice.dsn:
        return choice.dsn
    found = os.environ.get(choice.dsn_from, "")
    if not found:
        raise Misconfigured(f"journal.dsn_from: the environment variable {choice.dsn_from} is not set")
    return found


def _key(folder: Path, name: str) -> bytes:
    if not name:
        return b""
    try:
        key = (folder / name).read_bytes()
    except OSError as error:
        raise Misconfigured(f"journal.key_file: {name}: can't be read: {error.strerror}") from None
    if len(key) < 16:
        raise Misconfigured(f"journal.key_file: {name}: {len(key)} bytes are too few for a key; write 32 random ones")
    return key
