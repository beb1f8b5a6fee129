"""When to ask a server again, and when to leave it alone: a budget of retries and a circuit breaker.

Plain values that are told the time and hold no lock: they are used in one thread, which speaks to the server for all
others. Neither of them ever makes an answer: what is not asked is denied.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

BASE_PAUSE: Final = 0.02
MAX_PAUSE: Final = 0.5


class RetryBudget:
    """At most about one retry for ten answers, with a small credit, so that a failing server is not buried in them.

    A bucket of tokens, as gRPC has it: each failure takes one, each answer gives back a tenth, and nothing is asked
    again while less than half is left.
    """

    def __init__(self, size: float = 10.0) -> None:
        self._size = self._tokens = size

    def failed(self) -> bool:
        """Count a failed attempt; may it be made again?"""
        self._tokens = max(0.0, self._tokens - 1)
        return self._tokens > self._size / 2

    def answered(self) -> None:
        self._tokens = min(self._size, self._tokens + 0.1)


def pause(attempt: int, chance: float | None = None) -> float:
    """Seconds to wait before the attempt after ``attempt`` failed ones: anything up to a bound that doubles, so that
    clients that failed together do not come back together."""
    drawn = random.random() if chance is None else chance  # noqa: S311 - spreads load, hides nothing
    return drawn * min(MAX_PAUSE, BASE_PAUSE * 2.0**attempt)


class BreakerState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class BreakerInput(StrEnum):
    ANSWERED = "answered"
    TRIPPED = "tripped"  # as many failures in a row as are borne
    RESTED = "rested"  # somebody asks after the pause: the probe
    FAILED = "failed"
    ABANDONED = "abandoned"  # the probe was cancelled: nobody knows


#   CLOSED --tripped--> OPEN --rested--> HALF_OPEN --answered--> CLOSED
#                        ^------------------'  failed, abandoned
TRANSITIONS: Final[dict[tuple[BreakerState, BreakerInput], BreakerState]] = {
    (BreakerState.CLOSED, BreakerInput.TRIPPED): BreakerState.OPEN,
    (BreakerState.OPEN, BreakerInput.RESTED): BreakerState.HALF_OPEN,
    (BreakerState.HALF_OPEN, BreakerInput.ANSWERED): BreakerState.CLOSED,
    (BreakerState.HALF_OPEN, BreakerInput.FAILED): BreakerState.OPEN,
    (BreakerState.HALF_OPEN, BreakerInput.ABANDONED): BreakerState.OPEN,
}


@dataclass(frozen=True, slots=True)
class Admitted:
    """Leave to ask once. It counts only in the period that it was given in: what was asked before the breaker opened
    says nothing about the server now."""

    period: int
    probe: bool


@dataclass
class Breaker:
    """After ``failures`` in a row nobody asks for ``seconds``; then one asks, and what it learns holds for all.

    Every admitted one must report :meth:`answered`, :meth:`failed` or :meth:`abandoned`.
    """

    failures: int
    seconds: float
    state: BreakerState = BreakerState.CLOSED
    _in_a_row: int = 0
    _period: int = 0
    _until: float = 0.0
    _opened: int = field(default=0)

    def admit(self, now: float) -> Admitted | None:
        """Leave to ask, or None: then the call is denied at once."""
        if self.state is BreakerState.OPEN and now >= self._until:
            self._move(BreakerInput.RESTED)
            return Admitted(self._period, probe=True)
        return Admitted(self._period, probe=False) if self.state is BreakerState.CLOSED else None

    def answered(self, admitted: Admitted) -> None:
        if admitted.period != self._period:
            return
        self._in_a_row = self._opened = 0
        if admitted.probe:
            self._move(BreakerInput.ANSWERED)

    def failed(self, admitted: Admitted, now: float) -> bool:
        """Count a failure; did it open the breaker?"""
        if admitted.period != self._period:
            return False
        self._in_a_row += 1
        if admitted.probe:
            self._open(BreakerInput.FAILED, now)
        elif self._in_a_row >= self.failures:
            self._open(BreakerInput.TRIPPED, now)
        return self.state is BreakerState.OPEN

    def abandoned(self, admitted: Admitted, now: float) -> None:
        if admitted.period == self._period and admitted.probe:
            self._move(BreakerInput.ABANDONED)
            self._until = now  # the next one may try

    def _open(self, event: BreakerInput, now: float) -> None:
        self._move(event)
        rest = self.seconds * 2.0 ** min(self._opened, 4)
        self._until = now + rest * (1 + random.random() / 4)  # noqa: S311 - spreads load, hides nothing
        self._opened += 1

    def _move(self, event: BreakerInput) -> None:
        self.state = TRANSITIONS[self.state, event]
        self._period += 1
