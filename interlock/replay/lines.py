"""What a replay reports: one line per call, and sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from interlock.model.decisions import ALLOWED, Verdict


@dataclass(frozen=True, slots=True)
class Brought:
    """A label that was there when a call was decided, and what brought it.

    Attributes:
        call: number of the call that brought it; 0 when no call did.
        by: what brought it, in words.
    """

    label: str
    call: int
    by: str


@dataclass(frozen=True, slots=True)
class Line:
    """One recorded call and what would have been decided.

    Attributes:
        number: of the call in its conversation; 0 for one that the provider ran.
        tool: its identity.
        legs: every label that was there or that this turn would bring, with what brought it first.
        recorded: ``result``, ``error``, ``not run`` (the record says so), ``none`` (it says nothing) or ``hosted``: run
            by the provider, so that it can't be refused, and the verdict is what the manifest makes of it.
        problem: what is wrong with the shape of the call.
        document: digest of what the policy was asked.
    """

    number: int
    tool: str
    verdict: Verdict
    codes: tuple[str, ...]
    legs: tuple[Brought, ...] = ()
    recorded: str = "none"
    problem: str = ""
    document: str = ""

    @property
    def code(self) -> str:
        return self.codes[0] if self.codes else ALLOWED

    @property
    def hosted(self) -> bool:
        return self.recorded == "hosted"

    @property
    def made_anyway(self) -> bool:
        """Refused here and yet made in the record, as far as that shows: its labels have joined."""
        return self.verdict is not Verdict.ALLOW and self.recorded != "not run"


@dataclass(slots=True)
class Totals:
    """Sums over all calls of all transcripts, of the first side; ``changed`` counts those that another side decides
    otherwise."""

    calls: int = 0
    hosted: int = 0
    made_anyway: int = 0
    changed: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    tools: dict[str, Counter[str]] = field(default_factory=dict)
    controls: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, lines: Sequence[Line]) -> None:
        """Count one call."""
        line = lines[0]
        self.changed += changed(lines)
        if line.hosted:
            self.hosted += 1
            return
        self.calls += 1
        self.made_anyway += line.made_anyway
        self.verdicts[line.verdict.value] += 1
        self.tools.setdefault(line.tool, Counter())[line.verdict.value] += 1
        for place, code in enumerate(line.codes):
            self.controls.setdefault(code, Counter())["objected" if place else "first"] += 1


def changed(lines: Sequence[Line]) -> bool:
    """Would another side decide otherwise, or for another first reason?"""
    return any((one.verdict, one.code) != (lines[0].verdict, lines[0].code) for one in lines[1:])


def printable(text: str) -> str:
    """Text that somebody else wrote, for a terminal: one line, nothing invisible, not long."""
    plain = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return plain if len(plain) <= 80 else f"{plain[:79]}…"
