"""Proposals, tried: on the records that they come from, and on stories of attacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from interlock.assembly import FixedClock, LocalFiles, Parts, bundled, interlock_over, scenario_parts
from interlock.errors import Misconfigured
from interlock.gate.conversation import Conversation
from interlock.learning.evidence import Seen, survey
from interlock.learning.proposals import Proposal, applied, candidates
from interlock.learning.records import Record
from interlock.model.decisions import Verdict
from interlock.policy.embedded import EmbeddedEngine
from interlock.scenarios import find_scenarios, load_scenario, play


@dataclass(frozen=True, slots=True)
class Dropped:
    """A proposal that is not made, and why."""

    proposal: Proposal
    why: str


@dataclass(frozen=True, slots=True)
class Learned:
    """What came of it.

    Attributes:
        proposals: to be taken together.
        refused: number of refused calls in the records today; ``left`` with the proposals.
        attacks: number of calls in stories of attacks that were tried.
        digests_only: names of records that hold no messages.
    """

    proposals: tuple[Proposal, ...]
    dropped: tuple[Dropped, ...]
    calls: int
    refused: int
    left: int
    attacks: int
    digests_only: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Attack:
    """One call of a story of an attack, and what is said of it."""

    place: str
    verdict: Verdict


def learn(records: Sequence[Record], parts: Parts, attacks: Path, now: datetime, folder: Path, least: int) -> Learned:
    """Find what would have removed refusals from these records without admitting anything that must stay out.

    Args:
        attacks: a folder of scenario files; every call of their attacks may become stricter, never more lenient.
        now: the time at which all is decided.
        folder: where relative paths in recorded arguments begin.

    Raises:
        Misconfigured: a scenario is wrong, or there is none with an attack: then nothing could be promised.
    """
    before = survey(records, parts, now, folder)
    stories = Stories(attacks)

    def problem(some: Sequence[Proposal]) -> str:
        return _loosened(before, survey(records, applied(parts, some), now, folder)) or stories.admitted(some)

    def helps(one: Proposal) -> bool:
        # What is known from a journal alone can be tried on nothing.
        return not one.tried or _refused(survey(records, applied(parts, [one]), now, folder)) < _refused(before)

    kept: list[Proposal] = []
    dropped: list[Dropped] = []
    some = candidates(before, records, least)
    # Who is vouched for more is judged no more strictly (T5): if all together admit nothing, none of them does.
    try:
        harmless = not problem(some)
    except Misconfigured:
        harmless = False
    for one in some:
        try:
            why = "" if harmless else problem([one])
            why = why or ("" if helps(one) else "it removes no refusal by itself")
        except Misconfigured as error:
            why = f"it would not load: {error}"
        if why:
            dropped.append(Dropped(one, why))
        else:
            kept.append(one)
    kept = kept if harmless else _together(kept, dropped, problem)
    after = survey(records, applied(parts, kept), now, folder)
    return Learned(
        tuple(sorted(kept)),
        tuple(sorted(dropped, key=lambda one: one.proposal)),
        len(before),
        _refused(before),
        _refused(after),
        stories.calls,
        tuple(one.name for one in records if one.talk is None),
    )


def _together(
    kept: list[Proposal], dropped: list[Dropped], problem: Callable[[Sequence[Proposal]], str]
) -> list[Proposal]:
    """What is harmless alone may not be together. If so, they are taken one after the other, the best first."""
    if not problem(kept):
        return kept
    found: list[Proposal] = []
    for one in kept:
        why = problem([*found, one])
        if why:
            dropped.append(Dropped(one, f"with the others {why}"))
        else:
            found.append(one)
    return found


def _refused(seen: Sequence[Seen]) -> int:
    return sum(one.verdict is not Verdict.ALLOW for one in seen)


def _loosened(before: Sequence[Seen], after: Sequence[Seen]) -> str:
    """A recorded call that must stay as it was, and would not."""
    for old, new in zip(before, after, strict=True):
        if new.verdict.strictness < old.verdict.strictness and old.steered:
            why = "a person refused" if old.refused else "whose receiver a stranger's text named"
            return f"call {old.number} of {old.record}, {why}, would get {new.verdict.value}"
    return ""


class Stories:
    """The attacks of a folder, and what is said of them today."""

    def __init__(self, folder: Path) -> None:
        self._files = [(file, load_scenario(file)) for file in find_scenarios(folder)]
        self._before = self._told(())
        self.calls = len(self._before)
        if not self.calls:
            raise Misconfigured(f"{folder}: holds no story of an attack, so nothing could be tried against one")

    def admitted(self, some: Sequence[Proposal]) -> str:
        """A call of an attack that would be judged more leniently, or nothing."""
        for old, new in zip(self._before, self._told(some), strict=True):
            if new.verdict.strictness < old.verdict.strictness:
                return f"an attack would get {new.verdict.value} instead of {old.verdict.value}: {new.place}"
        return ""

    def _told(self, some: Sequence[Proposal]) -> list[Attack]:
        found: list[Attack] = []
        for file, scenario in self._files:
            parts = applied(scenario_parts(scenario, file.parent), some)
            engine = EmbeddedEngine(bundled(parts)[1], ask_samples=False)
            lock = interlock_over(parts, engine, FixedClock(scenario.time), LocalFiles())
            for name, story in scenario.stories.items():
                if story.kind == "attack":
                    conversation = Conversation.new()
                    for place, step, outcome in play(lock.guard(conversation), conversation, story):
                        where = f"{file.name}, {name}, {place} ({step.call})"
                        found.append(Attack(where, outcome.verdict))
        return found
