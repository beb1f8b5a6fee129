"""One session on a slow disk stopped every conversation of the process.

A rewrite was written, and flushed, under the lock that all conversations share, which is meant for microseconds. While
one disk took its time (or hung, as network file systems do), nobody in the process could push, say or fork.
Mutation that this file catches: the record of a rewrite, or of a session that begins, written under the shared lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock import Conversation, Message, Session
from interlock.stores.session_file import Disk
from tests.faults.disks import over


class HangingDisk(Disk):
    """Hangs at a flush once it is told to, until it is told to go on."""

    def __init__(self) -> None:
        self.hangs, self.hanging, self.go_on = False, threading.Event(), threading.Event()

    def sync(self, descriptor: int) -> None:
        if self.hangs:
            self.hanging.set()
            assert self.go_on.wait(20)

    def sync_folder(self, folder: Path) -> None:
        pass


def rewrite(session: Session) -> None:
    session.conversation.rewrite([Message.user("short")])


def roll_back(session: Session) -> None:
    session.conversation.roll_back_failed_turn(session.conversation.snapshot())


def record(session: Session) -> None:
    session.conversation.push(Message.assistant("more"))
    session.record_run(session.conversation.snapshot(), session.conversation)


def begin(session: Session) -> None:
    Session.create(session.path.with_name("t"), Conversation.user("another")).close()


@pytest.mark.parametrize("work", [rewrite, roll_back, record, begin])
def test_others_go_on_while_a_disk_hangs(tmp_path: Path, work: Callable[[Session], None]) -> None:
    disk = HangingDisk()
    with over(disk):
        session = Session.create(tmp_path / "s", Conversation.user("long"))
        disk.hangs = True
        busy = threading.Thread(target=work, args=(session,))
        busy.start()
        try:
            assert disk.hanging.wait(10)
            other = Conversation.new()
            waiting = threading.Thread(target=lambda: other.push(Message.user("meanwhile")))
            waiting.start()
            waiting.join(2)
            assert not waiting.is_alive(), "somebody else's disk holds up this conversation"
        finally:
            disk.go_on.set()
            busy.join()
    session.close()
