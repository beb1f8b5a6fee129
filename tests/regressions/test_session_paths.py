"""A FIFO in the place of a session file made `load` wait for ever, and a file that lay ready lent its mode.

Opening a FIFO waits for whoever is at its other end, so a neighbour with a right to the folder could stop the host. And
`<name>.new`, through which new files are made, was taken as it was found: one with mode 0666 became the session.
Mutations that this file catches: opening without O_NONBLOCK; taking an existing `.new`.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from interlock import Conversation, Session
from interlock.errors import JournalUnavailable
from interlock.stores.head_file import head_of


@pytest.mark.parametrize("name", ["s", "s.head"])
def test_a_fifo_is_refused_at_once(tmp_path: Path, name: str) -> None:
    path = tmp_path / "s"
    Session.create(path, Conversation.user("hello")).close()
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    code = f"from interlock import Session; Session.load({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=False)
    assert "JournalUnavailable" in done.stderr
    assert stat.S_ISFIFO((tmp_path / name).stat().st_mode)


def test_a_fifo_in_the_way_of_a_new_file_stops_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "s.new")
    path = tmp_path / "s"
    code = f"from interlock import Conversation, Session; Session.create({str(path)!r}, Conversation.user('x')).close()"
    subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=20, check=False)
    if path.exists():
        assert stat.S_ISREG(path.stat().st_mode)


@pytest.mark.parametrize("name", ["s", "s.head"])
def test_a_file_that_lay_ready_lends_nothing_to_the_session(tmp_path: Path, name: str) -> None:
    ready = tmp_path / f"{name}.new"
    ready.write_bytes(b"x" * 1_000_000)
    ready.chmod(0o666)
    with open(ready, "rb") as reader:
        Session.create(tmp_path / "s", Conversation.user("hello")).close()
        for one in (tmp_path / "s", head_of(tmp_path / "s")):
            assert stat.S_IMODE(one.stat().st_mode) == 0o600
        assert b"hello" not in reader.read(), "somebody who had opened the file before could read along"
    session = Session.load(tmp_path / "s")
    assert not session.damage
    session.close()


def test_a_link_that_lay_ready_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / "s.new").symlink_to(tmp_path / "precious")
    try:
        Session.create(tmp_path / "s", Conversation.user("hello")).close()
    except JournalUnavailable:
        pass
    assert (tmp_path / "precious").read_bytes() == b"precious"
