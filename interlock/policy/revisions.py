"""Which revision of the policies must have answered.

OPA reports the revision of each bundle that it has loaded. It is a text that whoever built the bundle chose, so two of
them can be compared for equality; for order only when they are written alike but for their numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_NUMBER: Final = re.compile(r"([0-9]+)")
MAX_REVISION: Final = 256


@dataclass(frozen=True, slots=True)
class Demand:
    """What a gate demands. Neither ``exact`` nor ``at_least``: any revision will do, also none.

    Attributes:
        exact: this revision.
        at_least: this one or a later one: see :func:`reaches`.
    """

    exact: str = ""
    at_least: str = ""

    def met_by(self, revision: str) -> bool:
        """``revision`` is empty when none was reported; no demand is met by that."""
        if self.exact and revision != self.exact:
            return False
        return not self.at_least or reaches(revision, self.at_least)

    def __str__(self) -> str:
        if self.exact:
            return f"revision {self.exact!r}"
        return f"revision {self.at_least!r} or later" if self.at_least else "any revision"


def reaches(revision: str, least: str) -> bool:
    """Is it this one or a later one? Both must be the same text but for their numbers, which are compared from the
    left as numbers: ``2026-11-30.2`` reaches ``2026-11-29.10``; ``r10`` reaches ``r9``; ``v10`` does not reach ``r9``,
    since nobody can say which of them is later."""
    ours, theirs = _NUMBER.split(revision), _NUMBER.split(least)
    if not orderable(least) or ours[::2] != theirs[::2]:
        return False
    # Python refuses to read thousands of digits; nobody numbers revisions so.
    if any(len(one) > 32 for one in (*ours[1::2], *theirs[1::2])):
        return False
    return [int(one) for one in ours[1::2]] >= [int(one) for one in theirs[1::2]]


def orderable(least: str) -> bool:
    """Can anything be later than it?"""
    return _NUMBER.search(least) is not None


def well_formed(revision: object) -> bool:
    """A short printable text: it goes into the journal and before people's eyes."""
    return isinstance(revision, str) and 0 < len(revision) <= MAX_REVISION and revision.isprintable()
