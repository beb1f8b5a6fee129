"""Which calls a conversation has had, by the ids that the agent gave them; read from its journal and nothing else.

This is what makes a repeated request harmless. A decision commits with compare-and-set on the label version, and every
decision bumps it: so if no decision under an id stands up to the version that a round is decided under, and that round
commits, it is the first, in any number of processes.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from interlock.errors import Tampered
from interlock.model.chain import GENESIS, seal
from interlock.model.digests import Digest
from interlock.model.entries import Entry, Failed, Observed, Resumed, Ruling, decode
from interlock.model.state import State
from interlock.ports import Namespace

PAGE: Final = 1000
# Each some 1 kB: at most about 100 MB. What is forgotten is read again.
MAX_CALLS: Final = 100_000


@dataclass(slots=True)
class Calls:
    """The calls of one conversation.

    Attributes:
        version: label version up to which all of them are here.
        decided: the decision under each id.
        landed: what came of each call, by number; None when it is in doubt.
    """

    version: int = 0
    decided: dict[str, Ruling] = field(default_factory=dict)
    landed: dict[int, Observed | Failed | None] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    _sequence: int = 0
    _last: Digest = GENESIS

    def catch_up(self, view: Namespace, conversation: str, state: State) -> None:
        """Read what has come, at least up to this state.

        Raises:
            Tampered: the entries do not follow from each other, or do not end where the head says.
            JournalUnavailable: they could not be read.
        """
        with self.lock:
            if self.version >= state.version:
                return
            while True:
                links = view.entries(conversation, after=self._sequence, limit=PAGE)
                if links and links[0].sequence > self._sequence + 1 and self._begun_behind(view, conversation):
                    continue  # read again, since it may have been shortened between the two
                for link in links:
                    if link.sequence != self._sequence + 1 or (
                        seal(link.sequence, self._last, link.body).digest != link.digest
                    ):
                        raise Tampered(self._sequence + 1, "does not follow from the entry before it")
                    self._note(decode(link.body, link.sequence))
                    self._sequence, self._last = link.sequence, link.digest
                if len(links) < PAGE:
                    break
            held = view.head(conversation)
            if held.sequence < self._sequence or (held.sequence == self._sequence and held.digest != self._last):
                raise Tampered(held.sequence, "is not the entry that the head names")
            self.version = max(self.version, state.version)

    def _begun_behind(self, view: Namespace, conversation: str) -> bool:
        """A journal that was shortened begins behind its base, which whoever read the state has verified. The ids of
        what was dropped are not known any more. Whether it has come further by that."""
        found = view.base(conversation)
        further = found.sequence > self._sequence
        if further:
            self._sequence, self._last = found.sequence, found.digest
        return further

    def written(self, entries: Iterable[Entry], expected: int | None, after: State) -> None:
        """Take note of what was written from here, on top of everything that is here."""
        with self.lock:
            if expected is not None and self.version >= expected:
                for entry in entries:
                    self._note(entry)
                self.version = max(self.version, after.version)

    def _note(self, entry: Entry) -> None:
        match entry:
            case Ruling():
                # The first decision under an id counts: whoever decided it again did so behind our back.
                self.decided.setdefault(entry.call_id, replace(entry, said="", receivers=()))
            case Observed():
                self.landed.setdefault(entry.number, replace(entry, words="", vouched=(), records=()))
            case Failed():
                self.landed.setdefault(entry.number, entry)
            case Resumed():
                for one in self.decided.values():
                    self.landed.setdefault(one.number, None)
            case _:
                pass


class Known:
    """The calls of many conversations, the least recently used ones forgotten first. Safe between threads."""

    def __init__(self, limit: int = MAX_CALLS) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str], Calls] = OrderedDict()

    def of(self, namespace: str, conversation: str) -> Calls:
        """What is known of one conversation, perhaps nothing yet."""
        key = (namespace, conversation)
        with self._lock:
            found = self._known.setdefault(key, Calls())
            self._known.move_to_end(key)
            return found

    def trim(self) -> None:
        """Forget until what is left is bounded. Called now and then: it counts all of them."""
        with self._lock:
            weight = sum(1 + len(one.decided) for one in self._known.values())
            while weight > self._limit and len(self._known) > 1:
                _, gone = self._known.popitem(last=False)
                weight -= 1 + len(gone.decided)
