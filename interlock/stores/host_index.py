"""Which conversation a session of a host is, and which call of it an id of a host names.

Hosts name their sessions and calls themselves, and a hook is a new process each time. This file beside the store says
what those names mean here. It holds no labels: losing it, or a row of it, makes whoever asks take the strict side.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from interlock.errors import JournalUnavailable

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS sessions (
    host TEXT NOT NULL, session TEXT NOT NULL, conversation TEXT NOT NULL, sure INTEGER NOT NULL,
    PRIMARY KEY (host, session)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS calls (
    place INTEGER PRIMARY KEY, host TEXT NOT NULL, conversation TEXT NOT NULL, call TEXT NOT NULL,
    number INTEGER NOT NULL, content TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS calls_by_id ON calls (host, call);
PRAGMA user_version = 1;
"""
AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class HostCall:
    """One call of a host. ``number`` is its number in the conversation, 0 when it was refused."""

    place: int
    conversation: str
    number: int
    content: str


class HostIndex:
    """One file for all processes of a machine. Safe to share between threads."""

    def __init__(self, path: str | os.PathLike[str], *, timeout: float = 5.0) -> None:
        """
        Args:
            timeout: seconds to wait for another writer.

        Raises:
            JournalUnavailable: it can't be opened, or another version made it.
        """
        self.path = Path(os.path.abspath(path))
        self._timeout = timeout
        self._lock = threading.Lock()
        try:
            # Its owner's only, from the first byte on.
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600))
            self._connection = sqlite3.connect(
                self.path, timeout=timeout, isolation_level=None, check_same_thread=False
            )
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, 1):
                raise JournalUnavailable(f"{self.path}: a later version of Interlock made this file")
            if version == 0:
                self._connection.executescript(f"PRAGMA journal_mode = WAL; BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")
            self._connection.execute("PRAGMA synchronous = FULL")
        except (OSError, sqlite3.Error) as error:
            raise JournalUnavailable(f"{self.path}: {error}") from error

    def conversation(self, host: str, session: str) -> tuple[str, bool]:
        """The conversation of a session, or nothing; and whether it is known where it began.

        Raises:
            JournalUnavailable: it could not be read.
        """
        rows = self._rows("SELECT conversation, sure FROM sessions WHERE host = ? AND session = ?", (host, session))
        return (str(rows[0][0]), bool(rows[0][1])) if rows else ("", False)

    def begin(self, host: str, session: str, conversation: str, *, sure: bool) -> str:
        """Say which conversation a session is; of two who say it at once the first one counts.

        Returns:
            The conversation that it is.

        Raises:
            JournalUnavailable: not on record.
        """
        self._rows("INSERT OR IGNORE INTO sessions VALUES (?, ?, ?, ?)", (host, session, conversation, sure))
        return self.conversation(host, session)[0]

    def move(self, host: str, session: str, conversation: str) -> None:
        """A session goes on in this conversation, which knows as much as it must. Raises JournalUnavailable."""
        self._rows("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, 1)", (host, session, conversation))

    def note(self, host: str, conversation: str, call: str, number: int, content: str) -> None:
        """Remember a call that was decided. Durable when it returns. Raises JournalUnavailable."""
        self._rows(
            "INSERT INTO calls (host, conversation, call, number, content) VALUES (?, ?, ?, ?, ?)",
            (host, conversation, call, number, content),
        )

    def calls(self, host: str, call: str) -> tuple[HostCall, ...]:
        """Calls that a host gave this id, the newest first. Raises JournalUnavailable."""
        rows = self._rows(
            "SELECT place, conversation, number, content FROM calls WHERE host = ? AND call = ? ORDER BY place DESC"
            " LIMIT 64",
            (host, call),
        )
        return tuple(HostCall(*row) for row in rows)

    def known(self, host: str, calls: Iterable[str]) -> dict[str, set[str]]:
        """Of these ids, those that are known, with their conversations. Raises JournalUnavailable."""
        wanted = sorted(set(calls))
        found: dict[str, set[str]] = {}
        for start in range(0, len(wanted), AT_ONCE):
            part = wanted[start : start + AT_ONCE]
            places = ", ".join("?" * len(part))
            for one, conversation in self._rows(
                f"SELECT DISTINCT call, conversation FROM calls WHERE host = ? AND call IN ({places})",  # noqa: S608
                (host, *part),
            ):
                found.setdefault(one, set()).add(conversation)
        return found

    def pending(self, host: str, conversation: str, content: str) -> tuple[HostCall, ...]:
        """Calls with this content, oldest first: for hosts that don't say which call a result is of."""
        rows = self._rows(
            "SELECT place, conversation, number, content FROM calls WHERE host = ? AND conversation = ?"
            " AND content = ? AND call = '' AND number > 0 ORDER BY place LIMIT 64",
            (host, conversation, content),
        )
        return tuple(HostCall(*row) for row in rows)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _rows(self, statement: str, values: tuple[str | int, ...]) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._connection.execute(statement, values).fetchall()
            except sqlite3.Error as error:
                raise JournalUnavailable(f"{self.path}: {error}") from error
