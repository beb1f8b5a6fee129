"""A file cut in its first line was never loaded again, and one of a later version was replaced.

The first line says which version wrote the file. Cut right before its end, it was "written by version 1; this one reads
version 1", for ever. And whether a later version had written it was asked only when its head was there: a later version
that keeps its head elsewhere would have found its file put aside and a new one in its place.
Mutations that this file catches: version 1 refused as another one; the version asked only beside a head.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock import Conversation, Session
from interlock.errors import JournalUnavailable
from interlock.stores.head_file import head_of
from interlock.stores.session_file import HEADER
from tests.faults.disks import every_leg


@pytest.fixture
def path(tmp_path: Path) -> Path:
    Session.create(tmp_path / "s", Conversation.user("hello")).close()
    return tmp_path / "s"


def test_t10_a_file_cut_before_the_end_of_its_first_line_is_every_leg(path: Path) -> None:
    path.write_bytes(HEADER[:-1])
    session = Session.load(path)
    assert session.damage
    assert every_leg(session.conversation)
    session.close()


@pytest.mark.parametrize("head", ["there", "gone"])
@pytest.mark.parametrize("version", [b"2", b"17", b"999999999"])
def test_a_later_version_is_left_alone_with_and_without_its_head(path: Path, version: bytes, head: str) -> None:
    path.write_bytes(path.read_bytes().replace(b'session":1}', b'session":%b}' % version, 1))
    if head == "gone":
        head_of(path).unlink()
    held = {one: one.read_bytes() for one in path.parent.iterdir()}
    with pytest.raises(JournalUnavailable, match=f"version {version.decode()}"):
        Session.load(path)
    assert {one: one.read_bytes() for one in path.parent.iterdir()} == held


@pytest.mark.parametrize("first", [b'{"interlock_session":-1}\n', b'{"interlock_session":"1"}\n', b'{"version":2}\n'])
def test_t10_what_names_no_version_is_damage(path: Path, first: bytes) -> None:
    path.write_bytes(first + path.read_bytes().removeprefix(HEADER))
    session = Session.load(path)
    assert every_leg(session.conversation)
    session.close()
