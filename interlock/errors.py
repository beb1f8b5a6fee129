"""Every exception that Interlock raises, in one tree, split by who must act.

* InterlockError
  + Refused               the caller asked for something Interlock never does: change the call
    - NotCanonical        a value cannot be frozen without changing it
    - NotPermitted        a wrapped tool was entered without a permit for exactly this call
    - WrongJournal        a conversation already writes to another journal
    - SummaryRequired     too much of a conversation is in no summary: summarise it before a model is called
  + Misconfigured         the operator's files are wrong: nothing was loaded
    - ManifestError
    - PolicyError
    - SettingsError
  + Unavailable           the outside world did not answer as promised
    - EngineUnavailable
    - JournalUnavailable
      . UnknownConversation   a store has no such conversation, or not for whoever asks
    - SessionBusy         another thread or process has the session file open
    - ApproverUnavailable a person could not be asked, or not heard
    - OutboxUnavailable   a call could not be drafted, or drafts not be read
    - MemoryUnavailable   facts or label records of artifacts could not be read or written
  + Conflict              another writer was first: load the state again and decide anew
    - TurnConflict        another turn of the conversation ended first; carries what was finished here
  + Tampered              a stored record contradicts itself
* Bug                     an invariant of ours is broken: nobody may handle it and carry on

A denial is not an exception: it is a :class:`~interlock.model.decisions.Decision`.
"""

from __future__ import annotations


class InterlockError(Exception):
    """Root of everything that Interlock raises on purpose."""


class Refused(InterlockError):
    """The caller asked for something that Interlock never does."""


class NotCanonical(Refused):
    """A value has no single canonical JSON form; ``path`` names the place, as in ``$.to[0]``."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


class NotPermitted(Refused):
    """A tool function was entered without a permit for exactly this call.

    ``for_model`` is a text that may be shown to a model: it holds no argument values.
    """

    def __init__(self, message: str, for_model: str = "") -> None:
        super().__init__(message)
        self.for_model = for_model or message


class WrongJournal(Refused):
    """A conversation that already writes to one journal was given to another."""


class SummaryRequired(Refused):
    """Messages ``[first, end)`` must be summarised before a model is called; ``first == end`` when that can't help."""

    def __init__(self, first: int, end: int, problem: str) -> None:
        what = f"summarise messages {first} to {end - 1}" if end > first else "finish or shorten the round"
        super().__init__(f"{problem}; {what} before a model is called")
        self.first = first
        self.end = end


class Misconfigured(InterlockError):
    """A file or setting of the operator is wrong. Nothing of it was loaded."""


class ManifestError(Misconfigured):
    """The manifest is wrong; the message names the file, the place and what to do."""


class PolicyError(Misconfigured):
    """A bundle of controls is wrong; the message names file, line and what to do."""


class SettingsError(Misconfigured):
    """A setting is unknown or has a value outside its domain."""


class Unavailable(InterlockError):
    """Something outside did not answer as promised. Every decision that needed it is a denial."""


class EngineUnavailable(Unavailable):
    """The policy engine failed, was silent, or answered something that is not an answer.

    ``kind`` tells the ways apart, for logs and counters; every one of them denies.
    """

    def __init__(self, message: str, kind: str = "engine") -> None:
        super().__init__(message)
        self.kind = kind


class JournalUnavailable(Unavailable):
    """The journal could not be read or written."""


class UnknownConversation(JournalUnavailable):
    """There is no such conversation in this namespace of the store. One of another namespace is not there either."""


class SessionBusy(Unavailable):
    """A session file is open already, in this process or another one. One writer at a time: close it there first."""


class ApproverUnavailable(Unavailable):
    """A person could not be asked, or their answer not be heard. Then nobody answered."""


class OutboxUnavailable(Unavailable):
    """A call could not be drafted, or a draft could not be read. Then nothing was sent."""


class MemoryUnavailable(Unavailable):
    """Facts, summaries or the label records of artifacts could not be read or written."""


class Conflict(InterlockError):
    """Another writer changed the labels first. Load the state again and decide anew."""


class TurnConflict(Conflict):
    """Another turn of the same conversation ended first. Nothing is run again by itself.

    The messages of this turn are not in the transcript, but its labels have joined and its calls are on record.

    Attributes:
        outcome: what this turn had finished with, as it was given; by default its messages.
        version: label version of the conversation by now.
        turn: number of turns that the conversation has by now.
    """

    def __init__(self, message: str, *, version: int, turn: int, outcome: object = None) -> None:
        super().__init__(message)
        self.version = version
        self.turn = turn
        self.outcome = outcome


class Tampered(InterlockError):
    """A stored record contradicts itself; ``sequence`` is the first broken place (from 1)."""

    def __init__(self, sequence: int, problem: str) -> None:
        super().__init__(f"entry {sequence}: {problem}")
        self.sequence = sequence
        self.problem = problem


class Bug(Exception):
    """An invariant of Interlock is broken. Outside the tree, so no handler swallows it."""
