"""A second writer got in when the lock file was removed, and a file that was deleted went on being written.

The lock stands in a file of its own. A job that removes old `*.lock` files, or a rename of session and head, let a
second process open what the first still wrote: both were acknowledged, and the next load found damage. And a session
whose file was deleted acknowledged labels into a file that nobody could ever open again.
Mutations that this file catches: no lock on the session file itself; the file's name not looked at before a write.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from interlock import Conversation, Session
from interlock.errors import InterlockError, JournalUnavailable, SessionBusy
from interlock.stores.head_file import head_of
from tests.faults.disks import guarded, missing


def test_t2_without_its_lock_file_there_is_still_one_writer(tmp_path: Path) -> None:
    first = Session.create(tmp_path / "s", Conversation.user("hello"))
    (tmp_path / "s.lock").unlink()
    with pytest.raises(SessionBusy):
        Session.load(tmp_path / "s")
    guarded(first).admit("text", labels=["private:memory"], source="notes")
    first.close()
    after = Session.load(tmp_path / "s")
    assert not after.damage
    assert "private:memory" in after.conversation.taint
    after.close()


def test_t2_under_another_name_there_is_still_one_writer(tmp_path: Path) -> None:
    first = Session.create(tmp_path / "s", Conversation.user("hello"))
    os.rename(tmp_path / "s", tmp_path / "t")
    os.rename(head_of(tmp_path / "s"), head_of(tmp_path / "t"))
    with pytest.raises(SessionBusy):
        Session.load(tmp_path / "t")
    first._file.close()
    after = Session.load(tmp_path / "t")
    assert not after.damage
    after.close()


@pytest.mark.parametrize("gone", ["s", "s.head"])
def test_t16_what_was_deleted_acknowledges_nothing(tmp_path: Path, gone: str) -> None:
    session = Session.create(tmp_path / "s", Conversation.user("hello"))
    told: set[str] = set()
    (tmp_path / gone).unlink()
    try:
        guarded(session).admit("text", labels=["private:memory"], source="notes")
        told.add("private:memory")
        session.close()
    except JournalUnavailable:
        session._file.close()
    after = Session.load(tmp_path / "s")
    assert not missing(after.conversation, told)
    after.close()


def test_t16_both_files_deleted_acknowledge_nothing(tmp_path: Path) -> None:
    session = Session.create(tmp_path / "s", Conversation.user("hello"))
    (tmp_path / "s").unlink()
    head_of(tmp_path / "s").unlink()
    with pytest.raises(InterlockError):
        guarded(session).admit("text", labels=["private:memory"], source="notes")
    session._file.close()


@pytest.mark.parametrize("replaced", ["s", "s.head"])
def test_t16_what_was_replaced_acknowledges_nothing(tmp_path: Path, replaced: str) -> None:
    """A backup that is put back while the session is open: the open file has no name any more."""
    session = Session.create(tmp_path / "s", Conversation.user("hello"))
    backup = tmp_path / "backup"
    backup.write_bytes((tmp_path / replaced).read_bytes())
    os.replace(backup, tmp_path / replaced)
    with pytest.raises(JournalUnavailable, match="deleted or replaced"):
        guarded(session).admit("text", labels=["private:memory"], source="notes")
    session._file.close()
    Session.load(tmp_path / "s").close()
