"""Recorded events, one after the other, through a guard whose tools are never run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from interlock.assembly import Interlock, LocalFiles, Parts
from interlock.errors import Refused
from interlock.gate.conversation import Conversation
from interlock.gate.guard import Guard
from interlock.gate.steps import stamp
from interlock.model.calls import Call, freeze
from interlock.model.decisions import INVALID_CALL, Verdict
from interlock.model.digests import Digest, content_digest, voice_digest
from interlock.model.document import asked
from interlock.model.entries import Decided, Failed, Observed
from interlock.model.labels import Label, Source, Taint
from interlock.model.manifest import NAME, SERVER
from interlock.model.messages import Message
from interlock.model.results import MALFORMED, Outcome, Ticket, ToolResult
from interlock.model.tools import Kind, ToolId, ToolSpec, undeclared
from interlock.model.turns import UNKNOWN, Answered, Attached, Event, Hosted, Said, Turn, UnparsedText, admissions
from interlock.replay.lines import Brought, Line, printable
from interlock.replay.transcripts import Transcript
from interlock.stores.memory import MemoryJournal

# How a result begins when Interlock itself had refused the call in the recorded conversation.
REFUSALS: Final = (
    "Not done: this call was denied by the security policy.",
    "Not done: this call needs a person's approval, and nobody has given it.",
)


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What a recording can't tell, and what is made of it.

    Attributes:
        typed: text in the user's role counts as typed by the person; otherwise it vouches for nothing.
        trust_refusals: a result that begins like one of our refusals means that the call was not made. Whoever can
            write a tool's result can write that, too.
    """

    typed: bool = True
    trust_refusals: bool = False


@dataclass(slots=True)
class Noticed:
    """What a replay saw beside the calls.

    Attributes:
        said: texts in the user's role.
        pasted: those that the record calls pasted.
        attached: images, documents and whatever else was let in without a tool.
        refusals: results that begin like our own refusals.
        stray: results that belong to no call; they count as everything.
    """

    said: int = 0
    pasted: int = 0
    attached: int = 0
    refusals: int = 0
    stray: int = 0


class Unanswered(Exception):
    """Stands for the outcome of a call whose result is not in the record."""


class Ticking:
    """A clock that starts where it is told and moves on with every look, so that what came first is known by time."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def now(self) -> datetime:
        """See :meth:`interlock.ports.Clock.now`."""
        self._now += timedelta(microseconds=1)
        return self._now


@dataclass(frozen=True, slots=True)
class Side:
    """An Interlock to replay with, and its clock."""

    lock: Interlock
    clock: Ticking


def side(parts: Parts, start: datetime, folder: Path) -> Side:
    """The Interlock of a replay: a journal of its own, in memory, and a time that is given.

    Relative paths in arguments are taken to begin in ``folder``: a recording does not say where its tools worked.
    """
    clock = Ticking(start)
    lock = Interlock(
        manifest=parts.manifest,
        policies=parts.policies,
        settings=parts.settings,
        protected=parts.protected,
        journal=MemoryJournal(),
        clock=clock,
        files=LocalFiles(folder),
    )
    return Side(lock, clock)


def replay(
    recording: Transcript, sides: Sequence[Side], assumptions: Assumptions, noticed: Noticed
) -> Iterator[tuple[Line, ...]]:
    """Replay one conversation through every side at once; each in a conversation of its own.

    Yields:
        For every call, in order, its line on each side.
    """
    players = [_Player(one.lock, one.clock, recording, assumptions) for one in sides]
    for place, event in enumerate(recording.events):
        _notice(noticed, event, stray=isinstance(event, Answered) and place not in recording.settles)
        yield from zip(*(player.take(place, event) for player in players), strict=True)


def _notice(noticed: Noticed, event: Event, *, stray: bool) -> None:
    if isinstance(event, Said):
        noticed.said += 1
        noticed.pasted += event.pasted
    elif isinstance(event, Attached):
        noticed.attached += 1
    elif isinstance(event, Answered):
        noticed.stray += stray
        noticed.refusals += event.text.startswith(REFUSALS)


class _Player:
    """One conversation on its way through one Interlock."""

    def __init__(self, lock: Interlock, clock: Ticking, recording: Transcript, assumptions: Assumptions) -> None:
        self._clock = clock
        self._manifest = lock.manifest
        self._recording = recording
        self._assumptions = assumptions
        self._conversation = Conversation(clock=clock)
        self._guard: Guard = lock.guard(self._conversation)
        # Calls that wait for their recorded result: those that are allowed here too, and those that are not.
        self._pending: dict[tuple[int, int], tuple[Ticket, str]] = {}
        self._made: dict[tuple[int, int], tuple[int, ToolSpec]] = {}
        self._known: tuple[tuple[tuple[Label, Source], ...], tuple[Brought, ...]] = ((), ())

    def take(self, place: int, event: Event) -> list[Line]:
        """Let one event happen; lines for the calls that it decides."""
        if isinstance(event, Turn):
            return [*self._hosted(event.hosted), *self._decided(place, event)]
        if isinstance(event, Said):
            self._said(event)
        elif isinstance(event, Attached):
            self._guard.admit(event.text, labels=event.labels, source=printable(event.source))
        elif (call := self._recording.settles.get(place)) is not None:
            self._settled(call, event)
        else:
            # Something that the model has read, and nobody knows from where.
            self._guard.admit(event.text, labels=UNKNOWN, source="a result of no call")
        return []

    def _said(self, event: Said) -> None:
        if event.pasted:
            self._conversation.say(event.text, pasted=True)
        elif self._assumptions.typed:
            self._conversation.say(event.text)
        else:
            self._conversation.push(Message.user(event.text))

    def _hosted(self, hosted: Iterable[Hosted]) -> Iterator[Line]:
        """What the provider ran: what the manifest makes of it, and then its labels, before anything is decided."""
        for one in hosted:
            if one.arguments is not None:
                yield self._there(one)
            for admission in admissions([one], self._manifest):
                self._guard.admit(admission.text, labels=admission.labels, source=admission.source)

    def _there(self, one: Hosted) -> Line:
        legs, tool = self._legs(self._conversation.exposure), ToolId(one.server, one.name)
        if tool not in self._manifest.specs:
            return Line(0, printable(str(tool)), Verdict.ALLOW, (), legs, "hosted")
        decision = self._guard.preview(Call(one.name, one.arguments, server=one.server))
        return Line(0, str(tool), decision.verdict, decision.codes, legs, "hosted")

    def _decided(self, place: int, turn: Turn) -> list[Line]:
        if not turn.proposals:
            return []
        before = self._conversation.exposure
        ticket = self._guard.propose(*turn.calls)
        lines = []
        doubtful: list[tuple[int, int]] = []
        for number, (proposal, outcome) in enumerate(zip(turn.proposals, ticket.outcomes.values(), strict=True)):
            recorded = self._recorded(self._recording.results.get((place, number)))
            if outcome.pending:
                self._pending[place, number] = ticket, outcome.call_id
            elif recorded != "not run":
                self._make((place, number), proposal.call, outcome)
            if recorded == "none":
                doubtful.append((place, number))
            legs = self._legs(before, _coming(outcome, ticket, before))
            problem = _problem(proposal.call, outcome)
            line = Line(outcome.number, _tool(proposal.call), outcome.verdict, outcome.decision.codes, legs)
            lines.append(replace(line, recorded=recorded, problem=problem, document=outcome.decision.document))
        for key in doubtful:
            self._doubted(key)
        return lines

    def _recorded(self, result: Answered | None) -> str:
        if result is None:
            return "none"
        refused = self._assumptions.trust_refusals and result.text.startswith(REFUSALS)
        if refused or not result.executed:
            return "not run"
        return "error" if result.is_error else "result"

    def _make(self, key: tuple[int, int], call: Call, outcome: Outcome) -> None:
        """Record that a call which is refused here was made there: it is in flight from now on, like any other."""
        spec, voices, unheard, digested = self._named(call)
        self._conversation.record(
            Decided(
                at=stamp(self._clock.now()),
                number=outcome.number,
                call_id=outcome.call_id,
                server=spec.id.server,
                tool=spec.id.name,
                call=digested,
                verdict="allow",
                codes=("recorded",),
                version=self._conversation.state.version,
                private=spec.private,
                untrusted=spec.untrusted,
                opens=spec.opens,
                voices=voices,
                unheard=unheard,
            )
        )
        self._made[key] = (outcome.number, spec)

    def _named(self, call: Call) -> tuple[ToolSpec, tuple[Digest, ...], bool, Digest]:
        """What a call may bring, whom it would have it from, whether that can't be told, and its digest."""
        try:
            frozen, spec = freeze(call, self._manifest)
        except Refused:  # the recorded host made something of it; what, and with whom, nobody knows
            tool = _identity(call)
            spec = self._manifest.spec(tool) if tool is not None else undeclared(ToolId("", MALFORMED))
            return spec, (), bool(spec.untrusted), content_digest("")
        found = asked(frozen, spec).destinations
        voices = tuple(sorted({voice_digest(one.voice) for one in found if one.voice}))
        return spec, voices, any(one.kind is Kind.UNKNOWN and one.argument for one in found), frozen.digest

    def _settled(self, key: tuple[int, int], event: Answered) -> None:
        """The recorded result of a call has come: its labels join."""
        if key in self._pending:
            ticket, call_id = self._pending.pop(key)
            result = ToolResult(event.text, external=event.external, is_error=event.is_error)
            self._guard.observe(ticket, call_id, result)
        elif key in self._made:
            call, spec = self._made.pop(key)
            labels = (*spec.private, *spec.opens, *(spec.untrusted if event.external else ()))
            at, content = stamp(self._clock.now()), content_digest(event.text)
            self._conversation.record(Observed(at, call, event.external, content, len(event.text), labels))

    def _doubted(self, key: tuple[int, int]) -> None:
        """No result is in the record, so the call may have been made: its labels join, as after a crash."""
        if key in self._pending:
            ticket, call_id = self._pending.pop(key)
            self._guard.observe(ticket, call_id, Unanswered())
        elif key in self._made:
            call, spec = self._made.pop(key)
            labels = (*spec.private, *spec.opens, *spec.untrusted)
            error = Unanswered.__name__
            self._conversation.record(Failed(stamp(self._clock.now()), call, True, error, labels, doubt=True))

    def _legs(self, exposure: Taint, coming: Iterable[str] = ()) -> tuple[Brought, ...]:
        if exposure.items != self._known[0]:  # it changes rarely, and lines share what is the same
            first = sorted(exposure.items, key=lambda item: item[1])  # by time
            legs = tuple(Brought(held, source.call, printable(source.tool)) for held, source in first)
            self._known = exposure.items, legs
        return (*self._known[1], *(Brought(one, 0, "this turn") for one in sorted(coming)))


def _coming(outcome: Outcome, ticket: Ticket, before: Taint) -> set[str]:
    """Labels that this call or one beside it would bring, whatever it returns."""
    allowed = ticket.allowed.get(outcome.call_id)
    if allowed is not None:
        return {str(one) for one in (*allowed.spec.private, *allowed.spec.opens) if one not in before.labels}
    return {str(cause.label) for cause in outcome.decision.causes if cause.source is None}


def _identity(call: Call) -> ToolId | None:
    """The tool that a call names, unless what it names can be no tool."""
    if not NAME.fullmatch(call.name):
        return None
    return ToolId(call.server, call.name) if not call.server or SERVER.fullmatch(call.server) else None


def _tool(call: Call) -> str:
    tool = _identity(call)
    return MALFORMED if tool is None else str(tool)


def _problem(call: Call, outcome: Outcome) -> str:
    if outcome.decision.code != INVALID_CALL:
        return ""
    if isinstance(call.arguments, UnparsedText):
        return call.arguments.problem
    return outcome.decision.reasons[0].for_person
