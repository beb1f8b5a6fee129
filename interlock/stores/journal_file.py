"""A conversation's journal as a file: for explaining, keeping and verifying what an in-memory journal recorded.

One JSON object per line, an entry each, with its place, the digest before it, its canonical body as text and its own
digest; beside it ``<name>.head``, the head that the chain is held against. An export, no store: nothing appends to it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from interlock.errors import JournalUnavailable, NotCanonical, Tampered
from interlock.model.canonical import Json, pack, parse
from interlock.model.chain import Head, Sealed, verify
from interlock.model.digests import Digest
from interlock.model.entries import Entry, decode
from interlock.stores.head_file import head_bytes, head_of, read_head

VERSION = 1


def write_journal(path: str | os.PathLike[str], entries: tuple[Sealed, ...], head: Head) -> None:
    """Write a journal and its head. The files are readable by their owner only.

    Raises:
        JournalUnavailable: they could not be written.
    """
    file = Path(path)
    lines = [pack({"version": VERSION})]
    lines += [
        pack({"sequence": one.sequence, "previous": one.previous, "body": one.body.decode(), "digest": one.digest})
        for one in entries
    ]
    try:
        for name, data in ((file, b"\n".join(lines) + b"\n"), (head_of(file), head_bytes(head))):
            name.touch(mode=0o600)
            name.write_bytes(data)
    except OSError as error:
        raise JournalUnavailable(f"{file}: can't be written: {error.strerror}") from error


def read_journal(path: str | os.PathLike[str], key: bytes = b"") -> list[Entry]:
    """Read a journal and hold it against its head.

    Raises:
        JournalUnavailable: a file is missing or can't be read.
        Tampered: the first place at which the journal is not what the head says.
    """
    return [decode(one.body, one.sequence) for one in read_sealed(path, key)[0]]


def read_sealed(path: str | os.PathLike[str], key: bytes = b"") -> tuple[list[Sealed], Head]:
    """The same as links, each of which is an entry of this version, with the head that they fit.

    Raises:
        JournalUnavailable, Tampered: see :func:`read_journal`.
    """
    file = Path(path)
    try:
        lines = file.read_bytes().splitlines()
        held = read_head(head_of(file).read_bytes())
    except OSError as error:
        raise JournalUnavailable(f"{error.filename}: can't be read: {error.strerror}") from error
    if not lines or _object(lines[0], 0) != {"version": VERSION}:
        raise Tampered(0, f"not a journal of version {VERSION}")
    sealed = [_sealed(line, place) for place, line in enumerate(lines[1:], 1)]
    verify(sealed, held, key)
    for one in sealed:
        decode(one.body, one.sequence)
    return sealed, held


def _object(line: bytes, place: int) -> dict[str, Json]:
    try:
        value = parse(line)
    except NotCanonical as error:
        raise Tampered(place, f"not an entry: {error}") from None
    if not isinstance(value, dict):
        raise Tampered(place, "not an entry")
    return value


def _sealed(line: bytes, place: int) -> Sealed:
    value: Any = _object(line, place)
    if set(value) != {"sequence", "previous", "body", "digest"} or type(value["sequence"]) is not int:
        raise Tampered(place, "not an entry of this version")
    if not all(isinstance(value[name], str) for name in ("previous", "body", "digest")):
        raise Tampered(place, "not an entry of this version")
    return Sealed(value["sequence"], Digest(value["previous"]), value["body"].encode(), Digest(value["digest"]))
