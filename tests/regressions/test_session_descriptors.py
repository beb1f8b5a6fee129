"""Sessions that were dropped, and folders that were opened as sessions, left descriptors open.

The lock of a session that nobody closed went with its object; its two files stayed open until the process ended. And a
folder where the file should be was opened, found to be no file, and left open: a host that tries again every second
runs out of descriptors within the hour.
Mutations that this file catches: no closing with the object; the kind of a file asked after it was handed over.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from interlock import Conversation, Session
from interlock.errors import InterlockError
from interlock.stores.head_file import head_of


@contextmanager
def none_left_open() -> Iterator[None]:
    gc.collect()
    before = set(os.listdir("/proc/self/fd"))
    yield
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_a_session_that_is_dropped_closes_its_files(tmp_path: Path) -> None:
    with none_left_open():
        for number in range(5):
            Session.create(tmp_path / f"s{number}", Conversation.user("hello"))


def test_a_session_that_could_not_be_loaded_or_created_closes_everything(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    head_of(tmp_path / "folder").write_bytes(b"")
    Session.create(tmp_path / "s", Conversation.user("hello")).close()
    held = Session.create(tmp_path / "held", Conversation.user("hello"))
    with none_left_open():
        for _ in range(3):
            for name in ("folder", "missing", "held"):
                with pytest.raises(InterlockError):
                    Session.load(tmp_path / name)
                with pytest.raises(InterlockError):
                    Session.create(tmp_path / "s", Conversation.new())
    held.close()


def test_a_damaged_session_closes_everything(tmp_path: Path) -> None:
    with none_left_open():
        for _ in range(3):
            (tmp_path / "s").write_bytes(b"damaged")
            Session.load(tmp_path / "s").close()
