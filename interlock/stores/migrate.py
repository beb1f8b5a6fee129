"""Bringing a database to the schema of this version: an act of the operator, by Alembic.

One transaction under one lock: two operators at once do it once, and a failure leaves what was there.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from interlock.errors import JournalUnavailable, Misconfigured
from interlock.stores.sql import SCHEMA
from interlock.stores.sqlite import connect


def migrate_sqlite(path: Path) -> bool:
    """See :meth:`interlock.stores.sqlite.SqliteStore.migrate`."""
    from sqlalchemy.exc import SQLAlchemyError  # loaded late: only migrations need it

    _place(path)
    try:
        return upgraded("sqlite://", lambda: connect(path), "BEGIN IMMEDIATE", str(path))
    except (sqlite3.Error, SQLAlchemyError) as error:
        raise JournalUnavailable(f"{path}: {getattr(error, 'orig', None) or error}") from error


def _place(path: Path) -> None:
    """An empty file that is its owner's alone, in a folder where nobody else can swap it."""
    folder = path.parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.name == "posix" and stat.S_IMODE(folder.stat().st_mode) & stat.S_IWOTH:
            raise Misconfigured(f"{folder}: everybody may write there and could swap the file; name another folder")
        # An empty file is an empty database. Made here, since SQLite would make it with the mode of the umask.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), 0o600))
    except OSError as error:
        raise JournalUnavailable(f"{path}: {error.strerror}") from error


def upgraded(url: str, connecting: Callable[[], Any], begin: str, where: str) -> bool:
    """Run what is missing on a connection of the driver's own.

    Args:
        begin: the statement after which nobody else migrates this database.

    Returns:
        Whether anything had to be done.

    Raises:
        Misconfigured: a later version was here.
    """
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import NullPool, create_engine, event, inspect, text

    engine = create_engine(url, creator=connecting, poolclass=NullPool)
    if url.startswith("sqlite"):  # its driver would begin late, and leave changes of the schema outside
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin) and None)
    try:
        with engine.begin() as connection:
            if not url.startswith("sqlite"):
                connection.exec_driver_sql(begin)
            found = ""
            if inspect(connection).has_table("interlock_schema"):
                found = connection.execute(text("SELECT version_num FROM interlock_schema")).scalar() or ""
            if found > SCHEMA:
                raise Misconfigured(f"{where}: schema {found} was made by a later version; nothing was changed")
            if found == SCHEMA:
                return False
            config = Config()
            config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
            config.set_main_option("path_separator", "os")
            config.attributes["connection"] = connection
            command.upgrade(config, SCHEMA)
            return True
    finally:
        engine.dispose()
