"""Answers from elsewhere: another terminal, a callback. Only the journal says that a question was answered."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from interlock.errors import ApproverUnavailable, InterlockError, Refused, Tampered
from interlock.gate import approval_steps
from interlock.gate.drivers import World, drive
from interlock.model.answers import ControlText
from interlock.model.grants import Held, Status
from interlock.model.question import Answer, Question, read_question, until
from interlock.model.results import printable
from interlock.model.standing import Standing
from interlock.model.times import stamp
from interlock.ports import Clock, Journal, Questions, Store

_LOGGER: Final = logging.getLogger("interlock")
POLL: Final = 0.5


class Elsewhere:
    """Waits until the question is answered in the journal. Implements :class:`interlock.ports.Approver`."""

    def __init__(self, journal: Journal | Store, *, poll: float = POLL) -> None:
        """
        Args:
            journal: that of the Interlock; a store that other processes share.
            poll: seconds between two looks.
        """
        self._journal = journal
        self._poll = max(0.01, poll)

    def ask(self, question: Question, seconds: float) -> Answer | None:
        """See :meth:`interlock.ports.Approver.ask`. The answer stands in the journal already, so it gives None."""
        _LOGGER.warning(
            "a person is asked: interlock approvals show %s --namespace %s", question.id, printable(question.namespace)
        )
        self.wait(question, seconds)
        return None

    def wait(self, question: Question, seconds: float, also: Callable[[], None] = lambda: None) -> None:
        """Wait until it is answered or otherwise over, or so many seconds.

        Args:
            also: done at each look.

        Raises:
            ApproverUnavailable: the journal can't be read.
        """
        within = view(self._journal, question.namespace)
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            also()
            try:
                held = within.state(question.conversation).questions.get(question.id)
            except InterlockError as error:
                raise ApproverUnavailable(f"the journal can't be read: {error}") from error
            if held is None or held.status is not Status.PENDING:
                return
            time.sleep(min(self._poll, left))


def view(journal: Journal | Store, namespace: str) -> Journal:
    """The journal of a namespace. Raises Refused: not a namespace."""
    return journal.within(namespace) if isinstance(journal, Store) else journal


class Desk:
    """The other side: looks at the open questions of one namespace and answers them, in any process.

    Raises from every method:
        ApproverUnavailable, JournalUnavailable: the store can't be read or written.
    """

    def __init__(self, journal: Journal | Store, questions: Questions, clock: Clock, namespace: str) -> None:
        """``namespace``: whose questions these are; whoever may answer them is for the caller to know."""
        self.namespace = namespace
        self._journal = view(journal, namespace)
        self._questions = questions
        self._clock = clock

    def open_questions(self) -> list[tuple[Question, Held]]:
        """What waits for an answer, oldest first. What is over is no longer kept afterwards.

        One that can't be shown, because it is not what was asked, is left out and logged: it must not hide the others.
        """
        found, after = [], ""
        now = stamp(self._clock.now())
        while page := self._questions.waiting(self.namespace, after=after):
            for conversation, name in page:
                held = self._held(conversation, name)
                if self._is_over(conversation, name, held, now):
                    self._questions.drop(self.namespace, conversation, name)
                if held is None or held.status is not Status.PENDING or now >= held.expires:
                    continue
                try:
                    found.append((self._read(conversation, name, held), held))
                except Tampered as error:
                    if self._pending(conversation, name):  # else it was answered while we looked
                        _LOGGER.error("question %s can't be shown, and can be refused only: %s", name, error)
            after = page[-1][1]
        return found

    def _is_over(self, conversation: str, name: str, held: Held | None, now: str) -> bool:
        """May what is kept be thrown away? A question is kept a moment before the journal knows of it."""
        if held is not None:
            return held.status is not Status.PENDING or now >= held.expires
        body = self._questions.question(self.namespace, conversation, name)
        return body is not None and now >= until(body)

    def find(self, name: str) -> tuple[Question, Held]:
        """One open question by its id, or by the beginning of it that is no other's.

        Raises:
            Refused: there is none, or there are several.
            Tampered: what is kept of it is not what was asked; it must not be shown, and can be refused only.
        """
        conversation, whole, held = self._meant(name)
        return self._read(conversation, whole, held), held

    def refuse(self, name: str, by: str) -> tuple[str, Held]:
        """Refuse an open question, one that can't be shown too. Gives its whole id.

        Raises:
            Refused: there is none, or there are several.
        """
        conversation, whole, _ = self._meant(name)
        return whole, drive(approval_steps.answer(conversation, whole, "refuse", printable(by)), self._world())

    def _meant(self, name: str) -> tuple[str, str, Held]:
        meant = [pair for pair in self._all() if pair[1].startswith(name)]
        exact = [pair for pair in meant if pair[1] == name]
        if len(exact or meant) != 1:
            what = "is not one question" if meant else "is not open"
            raise Refused(f"{printable(name)} {what} in namespace {printable(self.namespace)}; see the list")
        conversation, whole = (exact or meant)[0]
        held = self._held(conversation, whole)
        if held is None or held.status is not Status.PENDING:
            why = "is not known" if held is None else f"is {held.status.value}{': ' if held.why else ''}{held.why}"
            raise Refused(f"question {whole} {why}")
        return conversation, whole, held

    def stand(self, question: Question, seconds: float, by: str) -> Standing:
        """Let the tool of a question that was approved send to its one receiver, for so many seconds.

        Raises:
            Refused: see :meth:`interlock.Guard.stand`.
        """
        return drive(approval_steps.stand(question.conversation, question, seconds, printable(by)), self._world())

    def answer(self, question: Question, verdict: str, by: str) -> Held:
        """Journal an answer to a question that was shown.

        Raises:
            Refused: it is not open any more.
        """
        if verdict not in ("approve", "refuse"):
            raise Refused(f"{verdict!r} is no answer; approve or refuse")
        steps = approval_steps.answer(question.conversation, question.id, verdict, printable(by))  # type: ignore[arg-type]  # checked above
        return drive(steps, self._world())

    def _world(self) -> World:
        return replace(unruled(self._journal, self._clock), questions=self._questions)

    def _all(self) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        while page := self._questions.waiting(self.namespace, after=found[-1][1] if found else ""):
            found += page
        return found

    def _held(self, conversation: str, name: str) -> Held | None:
        return self._journal.state(conversation).questions.get(name)

    def _pending(self, conversation: str, name: str) -> bool:
        held = self._held(conversation, name)
        return held is not None and held.status is Status.PENDING

    def _read(self, conversation: str, name: str, held: Held) -> Question:
        body = self._questions.question(self.namespace, conversation, name)
        if body is None:
            raise Tampered(0, f"question {name} is not kept any more; refuse the call where it was asked")
        return read_question(body, held.body)


def unruled(journal: Journal | Store, clock: Clock) -> World:
    """A world in which nothing is decided: for answering, and for looking."""
    return World(_NoEngine(), journal, clock, _NoFiles())


class _NoEngine:
    """Answering asks no engine and resolves no path."""

    name = revision = ""
    controls: Mapping[str, ControlText] = MappingProxyType({})
    looks_at = None

    def evaluate(self, document: bytes) -> str:  # noqa: ARG002 - the port's
        raise ApproverUnavailable("no engine is asked here")


class _NoFiles:
    def resolve(self, paths: object) -> tuple[str, ...]:  # noqa: ARG002 - the port's
        raise ApproverUnavailable("no path is resolved here")
