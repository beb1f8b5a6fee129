"""Files as a record needs them: written through to the disk, never followed through a link, one writer at a time."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final, Protocol

from interlock.errors import JournalUnavailable, SessionBusy


class Disk:
    """The effects of a session file, one by one: a test that fails or stops at the n-th sees every crash."""

    def write(self, descriptor: int, data: bytes, offset: int) -> None:
        """All of ``data`` at ``offset``."""
        view = memoryview(data)
        while view:
            done = os.pwrite(descriptor, view, offset)
            view, offset = view[done:], offset + done

    def sync(self, descriptor: int) -> None:
        """Durable when this returns."""
        os.fsync(descriptor)

    def truncate(self, descriptor: int, size: int) -> None:
        os.ftruncate(descriptor, size)

    def rename(self, old: Path, new: Path) -> None:
        os.replace(old, new)

    def sync_folder(self, folder: Path) -> None:
        """Make names durable: a file that was renamed into place is there after a loss of power, too."""
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


DISK: Final = Disk()


class Claim(Protocol):
    """The right to be the one writer of a file."""

    def release(self) -> None:
        """Give it up."""


def open_regular(path: Path, flags: int) -> int:
    """Open a regular file, never through a link. A FIFO in its place must not make anybody wait.

    Raises:
        OSError: it can't be opened.
        JournalUnavailable: it is something else than a regular file.
    """
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise JournalUnavailable(f"{path}: not a regular file")
    return descriptor


def read_regular(path: Path) -> bytes | None:
    """The content of a regular file, None when there is none.

    Raises:
        JournalUnavailable: it can't be read, or is no regular file.
    """
    try:
        descriptor = open_regular(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise JournalUnavailable(f"{path}: can't be read: {error.strerror}") from error
    with open(descriptor, "rb") as file:
        return file.read()


def place_file(disk: Disk, name: Path, data: bytes) -> None:
    """Put a whole file in place, durably, or nothing. Readable by its owner only.

    Raises:
        OSError: nothing was put in place.
    """
    new = name.with_name(name.name + ".new")
    new.unlink(missing_ok=True)  # one that lies ready would lend its mode, its link, or its readers
    descriptor = open_regular(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        disk.write(descriptor, data, 0)
        disk.sync(descriptor)
    finally:
        os.close(descriptor)
    disk.rename(new, name)
    disk.sync_folder(name.parent)


def same_file(descriptor: int, path: Path) -> bool:
    """Is this still the file of that name? One that was deleted or replaced would take entries that nobody can load."""
    try:
        there = os.lstat(path)
    except OSError:
        return False
    here = os.fstat(descriptor)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def claim(path: Path) -> Claim:
    """Become the one writer of a file, through a lock file beside it. Its folder is made if it is missing, mode 0700.

    Raises:
        SessionBusy: somebody has it.
        JournalUnavailable: the folder is open to everybody, or can't be made.
    """
    from filelock import FileLock, Timeout  # loaded late: most programs that import Interlock open no session

    folder = path.parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.name == "posix" and stat.S_IMODE(folder.stat().st_mode) & stat.S_IWOTH:
            raise JournalUnavailable(
                f"{folder}: everybody may write there and could swap the file; name a folder of its own"
                " (one that does not exist yet is made with mode 0700)"
            )
        # By file description: a second open in this process is kept out like one in another.
        lock = FileLock(path.with_name(path.name + ".lock"), timeout=0, mode=0o600, thread_local=False)
        lock.acquire()
    except Timeout:
        raise busy(path) from None
    except OSError as error:
        raise JournalUnavailable(f"{folder}: {error.strerror or type(error).__name__}") from error
    return lock


def hold(descriptor: int, path: Path) -> None:
    """Hold the file itself, too: the lock file may be removed by whoever tidies up, and the file renamed.

    Raises:
        SessionBusy: somebody has it.
    """
    if os.name != "posix":
        return  # there an open file can be neither removed nor renamed
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise busy(path) from None


def let_go(descriptors: list[int], owner: int) -> None:
    """Close files, and give up what is held of them, unless this is a forked child of the process that opened them.

    Unlocked by name: a child that lives on has the same open file, and closing it here would release nothing.
    """
    while descriptors:
        descriptor = descriptors.pop()
        if os.name == "posix" and owner == os.getpid():
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def busy(path: Path) -> SessionBusy:
    return SessionBusy(f"{path} is open already, in this process or another one; one writer at a time: close it there")
