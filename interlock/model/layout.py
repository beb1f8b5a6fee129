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


def changed(layout: Layout, drop: int, first: int, count: int) -> Layout:
    """The newest ``drop`` messages go, and ``count`` new ones come, from place ``first`` on."""
    end = len(layout)
    last: Layout = ()
    while end and drop > 0:
        end -= 1
        start, length = layout[end]
        if length > drop:
            last = ((start, length - drop),)
        drop -= length
    if not last and end:
        end, last = end - 1, (layout[end - 1],)
    if count > 0:
        start, length = last[0] if last else (UNKNOWN, 0)
        joins = start != UNKNOWN and start + length == first
        last = ((start, length + count),) if joins else (*last, (first, count))
    kept = (*layout[:end], *last)
    if len(kept) > MAX_RUNS:
        half = len(kept) // 2
        kept = ((UNKNOWN, sum(length for _, length in kept[:half])), *kept[half:])
    return kept


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
