"""Disks that stop, fail and forget, for tests of session files. Proves nothing by itself.

A :class:`Disk` of ours counts every effect of a session file and does something bad at the n-th: the process dies
before it, after it, or in the middle of a write; or the call fails, once or for ever. A loss of power also takes back
whatever was not made durable, so that a missing flush shows. Nothing here waits for a real disk.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from interlock import Conversation, Guard, MemoryJournal, Session
from interlock.model.labels import EVERY_LEG
from interlock.stores.session_file import Disk, SessionFile
from tests.worlds import StepsWorld, guard_in


class Died(SystemExit):
    """The process ended here. Nothing of it happens any more."""


def no_space() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def input_output() -> OSError:
    return OSError(errno.EIO, os.strerror(errno.EIO))


@dataclass
class Trouble:
    """What goes wrong at effect number ``at`` (from 1).

    Attributes:
        error: what is raised; :class:`Died` ends everything.
        happens: how much of the effect happens first. 0: nothing; 1: all of it; in between: that part of a write.
        lasting: every later effect fails too.
    """

    at: int
    error: Callable[[], BaseException] = Died
    happens: float = 0
    lasting: bool = False


class QuietDisk(Disk):
    """A disk that does everything but wait."""

    def sync(self, descriptor: int) -> None:
        pass

    def sync_folder(self, folder: Path) -> None:
        pass


@dataclass
class TroubledDisk(Disk):
    """A disk with trouble at one place, that remembers what a loss of power would take back."""

    trouble: Trouble | None = None
    effects: list[str] = field(default_factory=list)
    hit: bool = False
    _dead: bool = False
    # What a loss of power brings back, newest last: contents of files by inode, and names before they were renamed.
    _contents: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    _names: list[tuple[Path, Path, bytes | None]] = field(default_factory=list)

    def _effect(self, name: str, happen: Callable[[float], None]) -> None:
        if self._dead:
            raise Died
        self.effects.append(name)
        trouble, number = self.trouble, len(self.effects)
        if trouble is None or number < trouble.at or (number > trouble.at and not trouble.lasting):
            happen(1)
            return
        self.hit = True
        if trouble.happens:
            happen(trouble.happens)
        error = trouble.error()
        self._dead = isinstance(error, Died)
        raise error

    def write(self, descriptor: int, data: bytes, offset: int) -> None:
        def happen(part: float) -> None:
            self._remember(descriptor)
            # At least one byte short of a whole write, and at least one byte of it.
            length = len(data) if part == 1 else max(1, min(len(data) - 1, int(len(data) * part)))
            Disk.write(self, descriptor, data[:length], offset)

        self._effect("write", happen)

    def truncate(self, descriptor: int, size: int) -> None:
        def happen(part: float) -> None:
            self._remember(descriptor)
            Disk.truncate(self, descriptor, size)

        self._effect("truncate", happen)

    def sync(self, descriptor: int) -> None:
        def happen(part: float) -> None:
            kept = self._contents.pop(os.fstat(descriptor).st_ino, None)
            if kept is not None:
                os.close(kept[0])

        self._effect("sync", happen)

    def rename(self, old: Path, new: Path) -> None:
        def happen(part: float) -> None:
            self._names.append((old, new, new.read_bytes() if new.exists() else None))
            Disk.rename(self, old, new)

        self._effect("rename", happen)

    def sync_folder(self, folder: Path) -> None:
        self._effect("sync_folder", lambda part: self._names.clear())

    def _remember(self, descriptor: int) -> None:
        inode = os.fstat(descriptor).st_ino
        if inode not in self._contents:
            size = os.fstat(descriptor).st_size
            reader = os.open(f"/proc/self/fd/{descriptor}", os.O_RDWR)
            self._contents[inode] = (reader, os.pread(reader, size, 0))

    def lose_power(self) -> None:
        """Take back whatever was not made durable."""
        for descriptor, content in self._contents.values():
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, content, 0)
            os.close(descriptor)
        self._contents.clear()
        for old, new, content in reversed(self._names):
            os.replace(new, old)
            if content is not None:
                new.write_bytes(content)
        self._names.clear()

    def forget(self) -> None:
        """Close what was kept open for a loss of power that never came."""
        for descriptor, _ in self._contents.values():
            os.close(descriptor)
        self._contents.clear()


@contextmanager
def over(disk: Disk) -> Iterator[None]:
    """Sessions that are created and loaded in this block write to this disk."""
    create, load = SessionFile.create.__func__, SessionFile.load.__func__  # type: ignore[attr-defined]
    with mock.patch.dict(create.__kwdefaults__, disk=disk), mock.patch.dict(load.__kwdefaults__, disk=disk):
        yield


def abandon(session: Session) -> None:
    """Let go of a session as the end of its process would: the lock is free, nothing is written."""
    session._file.close()


def guarded(session: Session) -> Guard:
    """A guard on the session's conversation, with the shipped controls in plain Python."""
    return guard_in(StepsWorld(MemoryJournal()), session.conversation)


def missing(conversation: Conversation, labels: set[str]) -> set[str]:
    """Those of the labels that a conversation does not hold; the unknown of a leg holds them all."""
    held = conversation.exposure
    return {one for one in labels if one not in held}


def every_leg(conversation: Conversation) -> bool:
    return set(EVERY_LEG) <= set(conversation.taint)
