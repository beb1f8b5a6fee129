"""What Interlock asks of the outside, as protocols. Implement one and pass it in; nothing is registered globally.

Every port is synchronous: the embedded engine and the in-memory journal never block, and a worker thread costs more
than the whole call. Only an engine's ``evaluate`` may give an awaitable, and only the asynchronous methods of a guard
accept it; anywhere else a coroutine is a port that did not do its work, and what depended on it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

from interlock.model.answers import ControlText
from interlock.model.entries import Entry
from interlock.model.look import Paths
from interlock.model.state import State


@runtime_checkable
class Engine(Protocol):
    """Answers documents. The same bytes always give the same answer."""

    @property
    def name(self) -> str:
        """Short name for the journal: ``embedded``, ``reference``, ``opa``."""

    @property
    def revision(self) -> str:
        """Digest of the controls and settings that answer."""

    @property
    def controls(self) -> Mapping[str, ControlText]:
        """Every loaded control by code. Each must answer every document."""

    @property
    def looks_at(self) -> Paths | None:
        """Paths of the document that the answers depend on, so that they may be remembered; None when an answer may
        change while the document does not (a server whose policy is replaced)."""

    def evaluate(self, document: bytes) -> str | bytes:
        """The answers, as JSON text of an object by code.

        Raises:
            EngineUnavailable: no answer could be had.
        """


@runtime_checkable
class Journal(Protocol):
    """The append-only record. Durable when ``append`` returns."""

    def open(self, entries: Sequence[Entry]) -> State:
        """Start a conversation with these entries; the first is ``Opened``.

        Raises:
            Conflict: the conversation exists already.
            JournalUnavailable: nothing was written.
        """

    def state(self, conversation: str) -> State:
        """The fold of all entries so far.

        Raises:
            JournalUnavailable: no such conversation, or it could not be read. Absence is never cleanliness.
        """

    def append(self, conversation: str, entries: Sequence[Entry], *, expected: int | None = None) -> State:
        """Write all of these entries, or none.

        Args:
            expected: label version that the entries were made under; None for facts that hold under any.

        Raises:
            Conflict: the label version is another one by now.
            JournalUnavailable: nothing was written.
        """


@runtime_checkable
class Clock(Protocol):
    """Tells the time, once per decision."""

    def now(self) -> datetime:
        """Aware, in UTC."""


@runtime_checkable
class Files(Protocol):
    """Resolves paths as the file system would."""

    def resolve(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Absolute paths after links and dots, in any order; a path that can't be resolved is left out."""
