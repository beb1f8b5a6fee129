"""How good the asking is: counted from journals, so that it can be computed of any record, later and by anybody. Pure.

Nothing here is about what a call held: journals hold digests.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from interlock.model.decisions import STAGED
from interlock.model.entries import Answered, Asked, Consumed, Drafted, Entry, Rejected, Released, Ruling, Taken


@dataclass(slots=True)
class Part:
    """Figures of one control, of one tool, or of everything.

    Attributes:
        questions: that were put to a person; identical calls of a batch are one.
        approved, refused, edited: what a person answered.
        unanswered: questions that nobody answered, and calls that nobody could be asked about.
        stamped: calls that somebody who approves everything would have let run, and that did not run.
        seconds: between question and answer, for those that a person answered.
    """

    questions: int = 0
    approved: int = 0
    refused: int = 0
    edited: int = 0
    unanswered: int = 0
    stamped: int = 0
    seconds: list[float] = field(default_factory=list)

    @property
    def answered(self) -> int:
        return self.approved + self.refused + self.edited

    def as_data(self) -> dict[str, Any]:
        return {
            "questions": self.questions,
            "approved": self.approved,
            "refused": self.refused,
            "edited": self.edited,
            "unanswered": self.unanswered,
            "share approved": round(self.approved / self.answered, 3) if self.answered else None,
            "seconds to answer": {"p50": quantile(self.seconds, 0.5), "p90": quantile(self.seconds, 0.9)},
            "a rubber stamp would have let run": self.stamped,
        }


@dataclass(slots=True)
class Report:
    """All of it.

    Attributes:
        conversations: journals that were read.
        calls: calls that a model made; one that was asked about and then ran is one.
        ran: calls that ran because a person said yes.
        drafted, released, rejected, sent: what became of calls that were drafted.
    """

    conversations: int = 0
    calls: int = 0
    ran: int = 0
    drafted: int = 0
    released: int = 0
    rejected: int = 0
    sent: int = 0
    whole: Part = field(default_factory=Part)
    controls: dict[str, Part] = field(default_factory=dict)
    tools: dict[str, Part] = field(default_factory=dict)

    @property
    def asks_per_100_calls(self) -> float:
        return round(100 * self.whole.questions / self.calls, 1) if self.calls else 0.0

    def as_data(self) -> dict[str, Any]:
        return {
            "conversations": self.conversations,
            "calls": self.calls,
            "asks per 100 calls": self.asks_per_100_calls,
            "ran after a yes": self.ran,
            **self.whole.as_data(),
            "outbox": {
                "drafted": self.drafted,
                "released": self.released,
                "rejected": self.rejected,
                "sent": self.sent,
            },
            "controls": {name: self.controls[name].as_data() for name in sorted(self.controls)},
            "tools": {name: self.tools[name].as_data() for name in sorted(self.tools)},
        }

    def parts(self, tool: str, codes: Iterable[str]) -> list[Part]:
        """Where something about this tool counts, and these controls."""
        own = [self.controls.setdefault(code, Part()) for code in sorted(set(codes))]
        return [self.whole, self.tools.setdefault(tool, Part()), *own]

    def add(self, entries: Sequence[Entry]) -> None:
        """Count one conversation."""
        self.conversations += 1
        asked = {one.question: one for one in entries if isinstance(one, Asked)}
        answers = {one.question: one for one in entries if isinstance(one, Answered)}
        used = Counter(one.question for one in entries if isinstance(one, Consumed))
        again = {one.number for one in entries if isinstance(one, Consumed) and one.question in asked}
        delivered = {one.number for one in entries if isinstance(one, Taken)}
        rulings = [one for one in entries if isinstance(one, Ruling)]
        about = {one.call for one in asked.values()}
        self.calls += sum(one.number not in again | delivered for one in rulings)
        self.ran += sum(used[name] for name in asked)
        self.sent += len(delivered)
        for kind, name in ((Drafted, "drafted"), (Released, "released"), (Rejected, "rejected")):
            setattr(self, name, getattr(self, name) + sum(isinstance(one, kind) for one in entries))
        for question in asked.values():
            self._question(question, answers.get(question.question), used[question.question])
        for one in rulings:
            # Asked about by nobody: no channel, or a question that a batch before it had asked already.
            if one.verdict == "ask" and one.call not in about and STAGED not in one.codes:
                for part in self.parts(_name(one.server, one.tool), one.codes):
                    part.unanswered += 1
                    part.stamped += 1

    def _question(self, question: Asked, answer: Answered | None, used: int) -> None:
        said = "none" if answer is None else answer.answer
        for part in self.parts(_name(question.server, question.tool), question.codes):
            part.questions += 1
            part.stamped += max(0, question.uses - used) if said != "approve" else 0
            match said:
                case "approve":
                    part.approved += 1
                case "refuse":
                    part.refused += 1
                case "edit":
                    part.edited += 1
                case _:
                    part.unanswered += 1
            if answer is not None and said != "none":
                part.seconds.append(_seconds(question.at, answer.at))


def _name(server: str, tool: str) -> str:
    return f"{server}/{tool}" if server else tool


def _seconds(begin: str, end: str) -> float:
    """Never below zero: a clock that was put back says nothing about how long somebody thought."""
    return max(0.0, (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds())


def quantile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that at least this share of the values does not exceed; None of none."""
    if not values:
        return None
    return round(sorted(values)[max(0, math.ceil(share * len(values)) - 1)], 3)
