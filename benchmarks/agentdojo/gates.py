"""What stands between the model and the tools in a run: nothing, a wall, or Interlock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from interlock import Answer as Verdict
from interlock import Conversation, Interlock, Question
from interlock.model.results import text_for_model

Run = Callable[[], Any]
# Says whether a person would approve a call that was asked about, given the call and whether the honest task needs it.
Approver = Callable[[str, dict[str, Any], bool], bool]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one call.

    Attributes:
        verdict: `allow`, `ask` or `deny`, before any approval.
        code: of the strictest control that objected.
        executed: was the tool entered, by verdict or by approval?
        shown: what the model sees; the refusal when it was not executed.
        approved: it ran because a person said yes.
    """

    verdict: str
    code: str
    executed: bool
    shown: str
    approved: bool = False


class Gate(Protocol):
    """One conversation's gate."""

    def call(self, name: str, arguments: dict[str, Any], run: Run, needed: bool) -> Answer: ...


def nobody(name: str, arguments: dict[str, Any], needed: bool) -> bool:
    """Nobody answers, so what is asked does not run."""
    del name, arguments, needed
    return False


def attentive(name: str, arguments: dict[str, Any], needed: bool) -> bool:
    """Approves what the honest task needs and nothing else."""
    del name, arguments
    return needed


def rubber_stamp(name: str, arguments: dict[str, Any], needed: bool) -> bool:
    """Approves everything."""
    del name, arguments, needed
    return True


APPROVERS: dict[str, Approver] = {"none": nobody, "attentive": attentive, "rubber stamp": rubber_stamp}


class AllowAll:
    """No interlock at all: every figure is measured against it."""

    def call(self, name: str, arguments: dict[str, Any], run: Run, needed: bool) -> Answer:
        del name, arguments, needed
        try:
            return Answer("allow", "allowed", True, text_for_model(run()))
        except Exception as error:  # what a tool raises is text for the model, as AgentDojo's own executor has it
            return Answer("allow", "allowed", True, f"{type(error).__name__}: {error}")


class DenyAll:
    """Nothing runs."""

    def call(self, name: str, arguments: dict[str, Any], run: Run, needed: bool) -> Answer:
        del name, arguments, run, needed
        return Answer("deny", "deny_all", False, "refused")


class Person:
    """Whom Interlock asks, by its own port: a rule in the place of somebody. Answers one question after the other."""

    def __init__(self, rule: Approver) -> None:
        self._rule = rule
        self.needed = False
        self.asked: list[Question] = []

    def ask(self, question: Question, seconds: float) -> Verdict | None:
        """See :meth:`interlock.ports.Approver.ask`. Nobody's answer is None, as in a real channel."""
        del seconds
        self.asked.append(question)
        if self._rule is nobody:
            return None
        yes = self._rule(question.tool, question.payload, self.needed)
        return Verdict("approve" if yes else "refuse", "the benchmark")


class Guarded:
    """Interlock, by its public face: whoever is asked is asked by its approver, and a yes is a grant of its own."""

    def __init__(self, lock: Interlock, prompt: str, person: Person) -> None:
        self._guard = lock.guard(Conversation.user(prompt))
        self._person = person

    def call(self, name: str, arguments: dict[str, Any], run: Run, needed: bool) -> Answer:
        self._person.needed = needed
        self._person.asked.clear()
        outcome = self._guard.call(name, arguments, run=lambda **_: run())
        verdict, code = outcome.verdict.value, outcome.decision.code
        if self._person.asked:
            verdict, code = "ask", self._person.asked[0].reasons[0][0]
        approved = bool(self._person.asked) and outcome.executed
        return Answer(verdict, code, outcome.executed, outcome.for_model, approved=approved)
