"""One thread with an event loop that speaks to servers for all threads and loops of this process.

Why not in the caller's thread: a blocking client can be given a time-out for each read, but not for a server that
sends one byte before each of them ends, nor for a name that is being resolved. Here whoever asks waits for exactly as
long as it wants to, whatever the connection does, and the connection is given up behind its back. And why not in the
caller's loop: connections belong to one loop, and a guard may be used from many, and from none.

The thread is started by the first question, and again in a forked child, which inherits no thread.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, wait
from typing import Any, TypeVar

T = TypeVar("T")


class Courier:
    """Runs coroutines in a thread of its own."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="interlock-courier", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                self.loop.run_forever()
            except (SystemExit, KeyboardInterrupt):
                # Raised by what was called from here, a handler of the log perhaps. asyncio gives it to whoever waits
                # and stops; stopped, every later question to any server would run into its deadline.
                continue
            return

    def carry(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin; the future ends when the work does. Cancelling it cancels the work."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)


_lock = threading.Lock()
_courier: Courier | None = None
_exiting: list[bool] = []


def courier() -> Courier:
    """The courier of this process."""
    global _courier
    found = _courier
    if found is None or found.pid != os.getpid():
        with _lock:
            if _courier is None or _courier.pid != os.getpid():
                _courier = Courier()
            found = _courier
    return found


def finish(work: Coroutine[Any, Any, Any]) -> None:
    """Have something closed whose owner is gone. At the interpreter's exit it is waited for, a moment at most."""
    future = courier().carry(work)
    if _exiting:
        wait([future], 0.5)


def _exit() -> None:
    """Owners that end at the exit end before or after this, so both wait."""
    _exiting.append(True)
    if _courier is not None and _courier.pid == os.getpid():
        wait([_courier.carry(_rest())], 0.5)


async def _rest() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        await asyncio.wait(others, timeout=0.3)


atexit.register(_exit)


def _forget() -> None:
    """In a child: the thread is not here, and whoever held the lock is not either. The parent's loop is kept as it is,
    since closing it would close what the parent still uses."""
    global _lock
    _lock = threading.Lock()
    if _courier is not None:
        _ORPHANS.append(_courier)


_ORPHANS: list[Courier] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
