"""Where requests wait and work: a bounded pool of threads, a bounded queue before it, and a deadline over both."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from interlock.serve.meters import Meters
from interlock.serve.problems import Problem, busy

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is taken on.

    Attributes:
        body: bytes of a request.
        concurrency: requests that are worked on at once.
        queue: requests that wait for that, in all.
        per_caller: requests of one principal that wait or are worked on.
        deadline: seconds from the first byte of a request to its answer.
        conversations: of a namespace, active in the last 24 hours.
    """

    body: int = 1 << 20
    concurrency: int = 8
    queue: int = 64
    per_caller: int = 32
    deadline: float = 10.0
    conversations: int = 10_000


class Work:
    """The pool of one process."""

    def __init__(self, limits: Limits, meters: Meters) -> None:
        self._limits = limits
        self._meters = meters
        self._pool = ThreadPoolExecutor(limits.concurrency, thread_name_prefix="interlock-serve")
        self._lock = threading.Lock()
        self._taken: Counter[str] = Counter()
        self._all = 0

    async def run(self, principal: str, until: float, work: Callable[[], T]) -> T:
        """Do some work in a thread.

        Args:
            until: on the monotonic clock. Work that has not begun by then is not begun; what has begun goes on, and
                what it wrote stands: ask again under the same ids.

        Raises:
            Problem: too much is waiting (503, or 429 for this principal alone), or it took too long (503).
        """
        self._take(principal)

        def timely() -> T:
            try:
                if time.monotonic() >= until:
                    raise late()
                return work()
            finally:
                self._leave(principal)

        try:
            future = self._pool.submit(timely)
        except BaseException:
            self._leave(principal)
            raise
        try:
            # Shielded: an answer that nobody waits for is still written whole.
            waiting = asyncio.wrap_future(future)
            waiting.add_done_callback(_taken)
            return await asyncio.wait_for(asyncio.shield(waiting), until - time.monotonic())
        except TimeoutError:
            if future.cancel():  # it never began
                self._leave(principal)
            self._meters.turned_away.labels("deadline").inc()
            raise late() from None

    def _take(self, principal: str) -> None:
        with self._lock:
            if self._taken[principal] >= self._limits.per_caller:
                self._meters.turned_away.labels("caller_busy").inc()
                raise busy("these credentials have too many requests under way", 429)
            if self._all >= self._limits.concurrency + self._limits.queue:
                self._meters.turned_away.labels("busy").inc()
                raise busy("too many requests are waiting")
            self._taken[principal] += 1
            self._all += 1
        self._meters.working.inc()

    def _leave(self, principal: str) -> None:
        with self._lock:
            self._all -= 1
            self._taken[principal] -= 1
            if not self._taken[principal]:
                del self._taken[principal]
        self._meters.working.dec()

    def close(self) -> None:
        """Wait for what has begun. What waits is not begun."""
        self._pool.shutdown(wait=True, cancel_futures=True)


def late() -> Problem:
    return Problem(
        503,
        "deadline",
        "the request took too long; if it was begun it may be on record: send it again with the same ids",
        retry_after=1,
    )


def _taken(future: asyncio.Future[Any]) -> None:
    """Nobody may wait for it any more: then what it raised is not an error that nobody saw."""
    if not future.cancelled():
        future.exception()
