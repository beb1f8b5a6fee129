"""What the steps of the gate ask of the outside. Plain values: a test can fail the n-th of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from interlock.model.carried import Carried
from interlock.model.drafts import Draft
from interlock.model.entries import Entry
from interlock.model.question import Question
from interlock.model.results import Allowed
from interlock.model.state import State


@dataclass(frozen=True, slots=True)
class ReadClock:
    """Answered with an aware datetime in UTC."""


@dataclass(frozen=True, slots=True)
class LoadState:
    """Answered with the :class:`~interlock.model.state.State` of the conversation."""

    conversation: str


@dataclass(frozen=True, slots=True)
class ResolvePaths:
    """Answered with a tuple of absolute paths."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evaluate:
    """Answered with the engine's raw answer, JSON text.

    ``look`` is what the engine can see of the document, when it says so: equal looks have equal answers.
    """

    document: bytes
    look: bytes | None = None


@dataclass(frozen=True, slots=True)
class Append:
    """Answered with the state after these entries, which are then durable.

    ``pages`` is what the calls read that are allowed here, by number, for people; no journal has it.
    """

    conversation: str
    entries: Sequence[Entry]
    expected: int | None
    pages: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ReadArtifacts:
    """Answered with what these artifacts carry together, :class:`~interlock.model.carried.Carried`."""

    keys: tuple[str, ...]
    namespace: str


@dataclass(frozen=True, slots=True)
class LabelArtifacts:
    """Answered with None once it is durable that these artifacts carry everything that the conversation holds, and
    ``more``."""

    keys: tuple[str, ...]
    state: State
    more: Carried


@dataclass(frozen=True, slots=True)
class ReadOperands:
    """Answered with a tuple of :class:`~interlock.model.operands.Operand`, one for each path."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadPages:
    """Answered with a tuple of what these calls read, (number, page), for people."""

    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KeepQuestion:
    """Answered with None once the question can be shown to whoever is to answer it."""

    question: Question


@dataclass(frozen=True, slots=True)
class DropQuestion:
    """Answered with None once the question, which is closed, is no longer kept."""

    namespace: str
    conversation: str
    question: str


@dataclass(frozen=True, slots=True)
class KeepDraft:
    """Answered with None once the draft is stored."""

    draft: Draft


@dataclass(frozen=True, slots=True)
class ReadDraft:
    """Answered with the stored bytes of a draft, or None."""

    namespace: str
    conversation: str
    draft: str


@dataclass(frozen=True, slots=True)
class DropDraft:
    """Answered with None once the draft, which is over, is no longer stored."""

    namespace: str
    conversation: str
    draft: str


@dataclass(frozen=True, slots=True)
class AskPerson:
    """Answered with an :class:`~interlock.model.question.Answer`, or None when nobody answered here within so many
    seconds."""

    question: Question
    seconds: float


@dataclass(frozen=True, slots=True)
class Execute:
    """Answered with :class:`Returned` or :class:`Raised`. The only effect that runs a tool."""

    allowed: Allowed


@dataclass(frozen=True, slots=True)
class Returned:
    """The tool returned this."""

    value: object


@dataclass(frozen=True, slots=True)
class Raised:
    """The tool raised this. A value, so that a tool can't throw anything into the steps."""

    error: Exception


Effect: TypeAlias = (
    ReadClock
    | LoadState
    | ResolvePaths
    | Evaluate
    | Append
    | ReadArtifacts
    | LabelArtifacts
    | ReadOperands
    | ReadPages
    | KeepQuestion
    | DropQuestion
    | KeepDraft
    | ReadDraft
    | DropDraft
    | AskPerson
    | Execute
)
