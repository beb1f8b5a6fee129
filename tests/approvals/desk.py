"""What the tests about approvals share: a clock that is told, people of every kind, and a send that is asked.

Proves nothing by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from interlock import Answer, ApprovalRules, Conversation, Guard, Interlock, Manifest, MemoryJournal, Question
from interlock.errors import ApproverUnavailable
from interlock.model.entries import Entry, decode

TOOLS: dict[str, Any] = {
    "fetch": {"returns": ["untrusted:web"], "egress": "chosen", "destinations": {"url": "url"}},
    "read_mail": {"returns": ["private:mail"], "egress": "none"},
    "read_files": {"returns": ["private:files"], "egress": "none"},
    "send": {
        "returns": [],
        "egress": "chosen",
        "destinations": {"to": "email", "bcc": "email"},
        "content": ["body"],
        "defaults": {"bcc": "archive@corp.example"},
    },
    "shell": {"returns": ["private:files"], "egress": "chosen"},
    "write": {"returns": [], "egress": "none", "effect": "write", "objects": {"path": "path"}, "content": ["text"]},
    "read_page": {"returns": ["untrusted:web"], "egress": "none"},
    "calc": {"returns": [], "egress": "none"},
}
MANIFEST = Manifest.parse({"version": 1, "tools": TOOLS})
EVE = {"to": "eve@evil.test", "body": "the plan"}
KIM = {"to": "kim@corp.example", "body": "the plan"}


class ToldClock:
    """Tells the time that it was told, and goes on by a millisecond at each look."""

    def __init__(self) -> None:
        self.time = datetime(2026, 11, 29, 12, tzinfo=UTC)

    def now(self) -> datetime:
        self.time += timedelta(milliseconds=1)
        return self.time

    def jump(self, **by: float) -> None:
        self.time += timedelta(**by)


class Person:
    """Answers what it is told to, and remembers what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.asked: list[Question] = []
        self.meanwhile: Callable[[Question], None] = lambda _: None

    def ask(self, question: Question, seconds: float) -> Any:
        self.asked.append(question)
        self.meanwhile(question)
        answer = self._answers.pop(0) if self._answers else None
        if isinstance(answer, BaseException):
            raise answer
        return answer


YES = Answer("approve", "kim")
NO = Answer("refuse", "kim")
GONE = ApproverUnavailable("nobody is there")


def locked(approver: Any = None, journal: Any = None, clock: ToldClock | None = None, **options: Any) -> Interlock:
    """An Interlock under which a send of private data is asked, and the trifecta too."""
    given = {
        "manifest": MANIFEST,
        "journal": MemoryJournal() if journal is None else journal,
        "clock": clock or ToldClock(),
        "settings": {"trifecta": "ask", "leak_guard": "ask"},
        "approver": approver,
        "approvals": ApprovalRules(seconds=60, expiry=600),
    }
    return Interlock(**{**given, **options})


def reader(lock: Interlock, typed: str = "") -> Guard:
    """A guard of a conversation that has read private mail, so that each send is asked."""
    conversation = Conversation(clock=lock._world[1])
    if typed:
        conversation.say(typed)
    guard = lock.guard(conversation)
    assert guard.call("read_mail", {}, run=lambda: "a mail").executed
    return guard


class Sent:
    """The tool that sends, which counts."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def __call__(self, **given: Any) -> str:
        self.calls.append(given)
        return "sent"


def entries(lock: Interlock, guard: Guard) -> list[Entry]:
    """What the journal holds of the conversation."""
    journal: Any = lock.journal
    return [decode(one.body) for one in journal.entries(guard.conversation.id)]


def kinds(lock: Interlock, guard: Guard) -> list[str]:
    """Kinds of the entries, in order."""
    return [one.kind for one in entries(lock, guard)]
