"""The journal entries of a session file, for reading what was recorded. Writes nothing and takes no lock."""

from __future__ import annotations

from pathlib import Path

from interlock.errors import Tampered
from interlock.model.entries import Entry
from interlock.stores.session_file import SessionFile, lines_of


def recorded(path: Path, *, key: bytes = b"") -> list[Entry]:
    """All entries, held against the head.

    Raises:
        JournalUnavailable: there is no such session, or it can't be read.
        Tampered: it is damaged, or was replaced meanwhile.
    """
    held = SessionFile.look(path, key=key)
    found: list[Entry] = []
    last = ""
    for sealed, record in lines_of(path, held.place):
        found += record.entries
        last = sealed.digest
    if last != held.previous:
        raise Tampered(held.place, "the file changed while it was read; try again")
    return found
