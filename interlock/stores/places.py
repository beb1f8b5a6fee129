"""Where messages stand, told by the entries alone: for verifying, which believes no column and no remembered state."""

from __future__ import annotations

from interlock.errors import Tampered
from interlock.model.entries import Entry, Erased, Transcribed
from interlock.model.layout import UNKNOWN, newest
from interlock.model.state import State


class Places:
    """Which places the transcript is made of, and which entry took the others out of it.

    It follows every entry that messages are held against, so the dropped ones that stay beside a journal do as well as
    the journal that they were in.

    Attributes:
        present: the places of the transcript, in order.
        retired: the number of the entry that took a place out of it, by place.
        stored: how many messages were ever stored.
        erased: the content of the messages up to this place was erased.
    """

    def __init__(self) -> None:
        self.present: list[int] = []
        self.retired: dict[int, int] = {}
        self.stored = 0
        self.erased = 0

    def follow(self, sequence: int, entry: Entry) -> None:
        """One more entry.

        Raises:
            Tampered: it changes another transcript than the one that the entries before it give.
        """
        if isinstance(entry, Erased):
            self.erased = self.stored
        if not isinstance(entry, Transcribed):
            return
        if not 0 <= entry.keep <= len(self.present) or entry.place != self.stored + 1:
            raise Tampered(sequence, "changes another transcript than the one before it")
        self.retired.update(dict.fromkeys(self.present[entry.keep :], sequence))
        self.present[entry.keep :] = range(entry.place, entry.place + len(entry.contents))
        self.stored += len(entry.contents)

    def fits(self, state: State) -> bool:
        """Does a state say the same?"""
        counts = (len(self.present), self.stored, self.erased) == (state.length, state.places, state.erased)
        said = newest(state.layout, state.length)
        return counts and len(said) == state.length and all(map(_same, said, self.present))


def _same(said: int, place: int) -> bool:
    return said in (UNKNOWN, place)
