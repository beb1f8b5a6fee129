"""Proves that our channels do what every approver must, and that the checks find approvers that do not.

Mutation that this file catches: a check that any approver passes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from interlock import Answer, Question
from interlock.approvals.elsewhere import Desk, Elsewhere
from interlock.errors import ApproverUnavailable, Refused
from interlock.gate.conversation import SystemClock
from interlock.model.question_view import lines
from interlock.stores.memory_questions import MemoryQuestions
from interlock.stores.memory_store import MemoryStore
from interlock.testing import approvers
from interlock.testing.approvers import CHECKS, check_approver


class Direct:
    """An approver that returns its person's answers."""

    store = None

    def __init__(self) -> None:
        self.approver: Any = self
        self.answers: list[str] = []
        self.text = ""

    def will(self, *answers: str) -> None:
        self.answers = list(answers)

    def saw(self) -> str:
        return self.text

    def ask(self, question: Question, seconds: float) -> Answer | None:
        self.text += "\n".join(lines(question))
        answer = self.answers.pop(0)
        return None if answer == "nothing" else Answer(answer, "kim")  # type: ignore[arg-type]  # one of the words


class FromElsewhere(Direct):
    """Answers come by a store, from a thread that looks at it."""

    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryStore()  # type: ignore[assignment]
        self.approver = Elsewhere(self.store, poll=0.01)  # type: ignore[arg-type]
        self.approver.ask = self._asked(self.approver.ask)

    def _asked(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        def asked(question: Question, seconds: float) -> Any:
            questions = MemoryQuestions()
            questions.keep(question)
            desk = Desk(self.store, questions, SystemClock(), question.namespace)  # type: ignore[arg-type]
            answering = threading.Thread(target=self._answer, args=(desk, question), daemon=True)
            answering.start()
            return ask(question, seconds)

        return asked

    def _answer(self, desk: Desk, question: Question) -> None:
        time.sleep(0.02)
        self.text += "\n".join(lines(question))
        answer = self.answers.pop(0)
        if answer != "nothing":
            desk.answer(question, answer, "kim")


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approvers, "SECONDS", 0.5)


@pytest.mark.parametrize("bench", [Direct, FromElsewhere])
def test_ours(bench: type[Direct]) -> None:
    check_approver(bench())


class Yes(Direct):
    def ask(self, question: Question, seconds: float) -> Answer | None:
        super().ask(question, seconds)
        return Answer("approve")


class ATimeOutIsANo(Direct):
    def ask(self, question: Question, seconds: float) -> Answer | None:
        return super().ask(question, seconds) or Answer("refuse")


class NobodyEver(Direct):
    def ask(self, question: Question, seconds: float) -> Answer | None:
        super().ask(question, seconds)
        raise ApproverUnavailable("closed")


class Short(Direct):
    def saw(self) -> str:
        return self.text[:400]


class Raw(Direct):
    def ask(self, question: Question, seconds: float) -> Answer | None:
        self.text += str(question.payload["body"])
        return super().ask(question, seconds)


@pytest.mark.parametrize("bench", [Yes, ATimeOutIsANo, NobodyEver, Short, Raw])
def test_those_that_are_none(bench: type[Direct]) -> None:
    found = []
    for check in CHECKS:
        try:
            check(bench())
        except AssertionError as error:
            found.append(str(error))
        except IndexError:
            continue  # asked more often than its person has answers
    assert found, f"every check passed {bench.__name__}"


def test_a_desk_takes_no_other_word() -> None:
    desk = Desk(MemoryStore(), MemoryQuestions(), SystemClock(), "default")
    with pytest.raises(Refused, match="approve or refuse"):
        desk.answer(None, "maybe", "kim")  # type: ignore[arg-type]
