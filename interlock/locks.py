"""One lock for the short critical sections of this process, safe across fork.

It guards steps of microseconds (joining an entry to an in-memory journal, binding a conversation). A fork waits for
it, so a child never inherits it locked by a thread that the child does not have.
"""

from __future__ import annotations

import os
import threading
from types import TracebackType

LOCK = threading.RLock()

if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)


class OwnLock:
    """A lock of one object, for sections that may wait for a disk. A forked child gets a new one: whoever held it is
    not there."""

    __slots__ = ("_lock", "_pid")

    def __init__(self) -> None:
        self._lock, self._pid = threading.RLock(), os.getpid()

    def __enter__(self) -> None:
        if self._pid != os.getpid():
            self._lock, self._pid = threading.RLock(), os.getpid()
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()
