"""Which of the places where messages were ever stored make up the transcript now, as runs of places (T10).

A place is a number that is given once. A transcript is a list of places: rewrites and rollbacks cut it and go on behind
everything that was ever stored. Kept as runs ``(first, count)``, of which there is one more for each such cut.
"""

from __future__ import annotations

from typing import Final, TypeAlias

# Of a transcript with more cuts, the oldest messages are known by their number only: ``(0, count)``.
MAX_RUNS: Final = 4096
UNKNOWN: Final = 0

Layout: TypeAlias = tuple[tuple[int, int], ...]


def changed(layout: Layout, keep: int, first: int, count: int) -> Layout:
    """The transcript is now its first ``keep`` messages and ``count`` new ones, from place ``first`` on."""
    kept, left = [], keep
    for start, length in layout:
        if left <= 0:
            break
        kept.append((start, min(length, left)))
        left -= length
    if count > 0:
        if kept and kept[-1][0] != UNKNOWN and kept[-1][0] + kept[-1][1] == first:
            kept[-1] = (kept[-1][0], kept[-1][1] + count)
        else:
            kept.append((first, count))
    if len(kept) > MAX_RUNS:
        half = len(kept) // 2
        kept = [(UNKNOWN, sum(length for _, length in kept[:half])), *kept[half:]]
    return tuple(kept)


def newest(layout: Layout, limit: int) -> list[int]:
    """The places of the newest messages, oldest first; 0 for one of which only the number is known."""
    found: list[int] = []
    for start, length in reversed(layout):
        room = min(length, limit - len(found))
        if room <= 0:
            break
        if start == UNKNOWN:
            found += [UNKNOWN] * room
        else:
            found += range(start + length - 1, start + length - 1 - room, -1)
    found.reverse()
    return found
