"""Times as the journal has them: UTC in a fixed width, so that the order of texts is the order of times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def stamp(now: datetime) -> str:
    """The text of a time."""
    utc = now if now.tzinfo is UTC else now.astimezone(UTC)
    return f"{utc.isoformat(timespec='microseconds')[:26]}Z"  # a third of strftime's time


def later(at: str, seconds: float) -> str:
    """The text of a time so many seconds after another one."""
    return stamp(datetime.fromisoformat(at) + timedelta(seconds=seconds))
