"""What can be asked, as functions of a caller and a request. Each runs in a worker thread and keeps nothing.

A conversation is looked up in the caller's namespace and nowhere else; its transcript stays with the agent, and here
are only its journal and what follows from it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from interlock.assembly import Interlock
from interlock.conversations import Conversations
from interlock.errors import (
    Misconfigured,
    Refused,
    Unavailable,
)
from interlock.gate.conversation import Conversation, SystemClock, new_id
from interlock.gate.guard import Guard
from interlock.gate.steps import stamp
from interlock.model.calls import Call, call_digest, freeze
from interlock.model.canonical import canonical
from interlock.model.decisions import INVALID_CALL, Decision, Reason, Verdict, failure
from interlock.model.digests import Digest
from interlock.model.entries import Failed, Forked, Observed, Ruling
from interlock.model.results import Outcome, ToolResult
from interlock.model.state import State, inherited
from interlock.model.tools import ToolId
from interlock.model.transcript import Transcript
from interlock.ports import Clock, Namespace, Store
from interlock.serve import shapes
from interlock.serve.callers import Caller
from interlock.serve.calls import Calls, Known
from interlock.serve.meters import Meters
from interlock.serve.problems import Problem, not_found
from interlock.serve.record import Again, NoTranscript, Record
from interlock.serve.told import decided_call, observed_result, refused, withheld

TRIM_EVERY: Final = 1000
IDLE: Final = timedelta(hours=24)


class ReportedFailure(Exception):
    """What a tool raised somewhere else, of which nothing is known."""


class Desk:
    """Answers requests for an Interlock above a store. Safe between threads."""

    def __init__(
        self, lock: Interlock, meters: Meters, *, conversations: int = 10_000, clock: Clock | None = None
    ) -> None:
        """
        Args:
            conversations: how many of a namespace may have been active in the last 24 hours.

        Raises:
            Misconfigured: the Interlock has no store, so no other process could know what this one does.
        """
        journal = lock.journal
        if not isinstance(journal, Store):
            raise Misconfigured(
                'interlock serve needs a store: write [journal] with kind = "sqlite" or "postgres" in the configuration'
            )
        self.lock = lock
        self.meters = meters
        meters.engine_events.counts = lambda: dict(getattr(lock.engine, "counts", {}))
        self._store = journal
        self._clock = clock or SystemClock()
        self._most = conversations
        self._known = Known()
        self._asked = 0
        self._counts: dict[str, tuple[str, int]] = {}
        self._counting = threading.Lock()

    # --- conversations ----------------------------------------------------------------------------------------------

    def begin(self, caller: Caller, asked: shapes.Begin) -> dict[str, Any]:
        """A new conversation."""
        if asked.text:
            speaks(caller)
        view = self._view(caller)
        self._room(view)
        conversation = Conversation(namespace=view.name, labels=asked.labels, clock=self._clock)
        if asked.text:
            conversation.say(asked.text)
        self.lock.guard(conversation)
        self.meters.conversations.labels("new").inc()
        return {"conversation": conversation.id, "damage": ""}

    def resume(self, caller: Caller, name: str, asked: shapes.Resume) -> dict[str, Any]:
        """Take a conversation up again; one that is damaged goes on as another one with every leg."""
        found = Conversations(self._store, caller.namespace, clock=self._clock).load(name, newest=1, alone=asked.alone)
        if found.damage:
            self.meters.conversations.labels("damaged").inc()
        return {"conversation": found.id, "damage": found.damage}

    def fork(self, caller: Caller, name: str) -> dict[str, Any]:
        """Another conversation that begins as this one stands.

        Forks of one process are told of late results; those of two are not. So there must be nothing that could come
        late.
        """
        view = self._view(caller)
        state = view.state(name)
        if state.in_flight or state.children:
            raise Problem(
                409, "in_flight", "calls of this conversation have no outcome yet; observe them, or resume it alone"
            )
        self._room(view)
        other = new_id()
        at = stamp(self._clock.now())
        view.open((inherited(state, at, other),))
        view.append(name, (Forked(at, other),))
        self.meters.conversations.labels("forked").inc()
        return {"conversation": other, "damage": ""}

    def inspect(self, caller: Caller, name: str) -> dict[str, Any]:
        """What has entered a conversation, and what is under way."""
        state = self._view(caller).state(name)
        return {
            "conversation": name,
            "parent": state.parent,
            "version": state.version,
            "calls": state.calls,
            "taint": [
                {"label": one, "at": source.at, "call": source.call, "source": source.tool, "digest": source.digest}
                for one, source in state.taint.items
            ],
            "exposure": sorted(state.exposure),
            "in_flight": [
                {"number": number, "tool": one.tool, "at": one.at, "labels": sorted(one.labels)}
                for number, one in state.in_flight.items()
            ],
            "in_doubt": len(state.doubts),
        }

    def say(self, caller: Caller, name: str, asked: shapes.Say) -> dict[str, Any]:
        """Text of the person: typed, or pasted."""
        speaks(caller)
        conversation, _ = self._conversation(caller, name)
        self.lock.guard(conversation)
        conversation.say(asked.text, pasted=asked.pasted)
        return {"conversation": name}

    def admit(self, caller: Caller, name: str, asked: shapes.Admit) -> dict[str, Any]:
        """Content that enters without a tool: its labels are on record before this returns."""
        conversation, _ = self._conversation(caller, name)
        self.lock.guard(conversation).admit(asked.text, labels=asked.labels, source=asked.source)
        return {"conversation": name}

    # --- calls ------------------------------------------------------------------------------------------------------

    def propose(self, caller: Caller, name: str, asked: Sequence[shapes.ProposedCall]) -> dict[str, Any]:
        """Decide the calls of one turn, or say again what was decided under these ids."""
        calls = [_call(one) for one in asked]
        conversation, record = self._conversation(caller, name, frozenset(one.id for one in calls))
        if any(one.id in record.calls.decided for one in calls):  # without asking anew what is known here already
            record.calls.catch_up(record.view, name, record.view.state(name))
            return {"conversation": name, "calls": self._again(record, calls)}
        ticket = self.lock.guard(conversation).propose(*calls)
        if record.repeated:
            return {"conversation": name, "calls": self._again(record, calls)}
        for outcome in ticket.outcomes.values():
            self.meters.decided(outcome.decision, frozenset(self.lock.engine.controls))
        if not any(one.number for one in ticket.outcomes.values()):
            # Nothing is on record: the conversation is missing or damaged, or the store is away.
            raise record.failure or Unavailable("the round could not be recorded")
        return {"conversation": name, "calls": [decided_call(one) for one in ticket.outcomes.values()]}

    def preview(self, caller: Caller, name: str, asked: Sequence[shapes.ProposedCall]) -> dict[str, Any]:
        """What would be decided now. Nothing is recorded, so nothing may run because of it."""
        calls = [_call(one) for one in asked]
        conversation, record = self._conversation(caller, name)
        guard = self.lock.guard(conversation)
        found = []
        for place, one in enumerate(calls):
            decision = guard.preview(one, *calls[:place], *calls[place + 1 :])
            if record.failure is not None:
                raise record.failure
            found.append(decided_call(Outcome(one.name, one.id, decision, for_model=refused(decision))))
        return {"conversation": name, "calls": found}

    def observe(self, caller: Caller, name: str, asked: shapes.Observe) -> dict[str, Any]:
        """What came of an allowed call, whichever process allowed it."""
        call = _call(asked.call)
        conversation, record = self._conversation(caller, name)
        decided = self._decision(record, name, call.id)
        result = _result(asked)
        guard = self.lock.guard(conversation)
        try:
            ticket = guard.take_up(call, decided)
        except Refused as error:
            raise Problem(409, "not_allowed", str(error)) from None
        known = self._observed_again(guard, record, decided, call, result)
        if known is not None:
            return known
        outcome = guard.observe(ticket, call.id, result)
        if record.failure is not None:
            raise record.failure
        if withheld(outcome):  # perhaps another process was told the same meanwhile
            record.calls.catch_up(record.view, name, record.view.state(name))
            known = self._observed_again(guard, record, decided, call, result)
            if known is not None:
                return known
        return observed_result(name, outcome, repeated=False)

    def explain(self, caller: Caller, name: str, call_id: str) -> dict[str, Any]:
        """A decision as the journal has it, and what came of it."""
        _, record = self._conversation(caller, name)
        one = self._decision(record, name, call_id)
        landed = record.calls.landed.get(one.number)
        return {
            "conversation": name,
            "id": one.call_id,
            "number": one.number,
            "at": one.at,
            "tool": one.tool,
            "server": one.server,
            "verdict": one.verdict,
            "codes": list(one.codes),
            "version": one.version,
            "call": one.call,
            "document": one.document,
            "revision": one.revision,
            "manifest": one.manifest,
            "engine": one.engine,
            "decision_id": one.decision_id,
            "labels": sorted({*one.private, *one.untrusted, *one.opens}),
            "outcome": shapes.outcome_of(one, record.calls.landed),
            "outcome_labels": sorted(landed.labels) if landed is not None else [],
        }

    # --- what they share --------------------------------------------------------------------------------------------

    def _view(self, caller: Caller) -> Namespace:
        return self._store.within(caller.namespace)  # from the credentials, never from the request

    def _conversation(
        self, caller: Caller, name: str, fresh: frozenset[str] = frozenset()
    ) -> tuple[Conversation, Record]:
        """A conversation as one request sees it. Whether it is there shows when it is read."""
        view = self._view(caller)
        self._asked += 1
        if self._asked % TRIM_EVERY == 0:
            self._known.trim()
        record = Record(view, self._known.of(view.name, name), self.meters, fresh)
        state = State(conversation=name, namespace=view.name)
        return Conversation.attached(state, record, NoTranscript(), Transcript(), self._clock), record

    def _decision(self, record: Record, name: str, call_id: str) -> Ruling:
        record.calls.catch_up(record.view, name, record.view.state(name))
        found = record.calls.decided.get(call_id)
        if found is None:
            raise not_found()
        return found

    def _again(self, record: Record, calls: Sequence[Call]) -> list[dict[str, Any]]:
        """The decisions of an earlier request, out of the journal."""
        found = [record.calls.decided.get(one.id) for one in calls]
        if any(one is None for one in found):
            raise Problem(
                409, "other_round", "some of these ids were decided in another turn; send a turn again as it was"
            )
        answers = []
        for call, one in zip(calls, found, strict=True):
            assert one is not None
            self.meters.repeats.labels("call").inc()
            answers.append(self._remembered(call, one, record.calls))
        return answers

    def _remembered(self, call: Call, one: Ruling, calls: Calls) -> dict[str, Any]:
        if self._digest(call) != (one.call if one.tool == call.name and one.server == call.server else None):
            malformed = one.codes == (INVALID_CALL,) and self._digest(call) is None
            if not malformed:
                other = failure(INVALID_CALL, "another call was decided under this id; give each call an id of its own")
                return decided_call(Outcome(call.name, call.id, Decision(Verdict.DENY, (other,))))
        verdict = Verdict(one.verdict)
        reasons = tuple(self._reason(code, verdict) for code in one.codes)
        document = Digest(one.document)
        decision = Decision(
            verdict, reasons, (), one.revision, one.manifest, document, one.engine, decision_id=one.decision_id
        )
        outcome = shapes.outcome_of(one, calls.landed)
        shown = Outcome(
            call.name, call.id, decision, one.number, pending=outcome == "pending", for_model=refused(decision)
        )
        return {**decided_call(shown), "repeated": True, "outcome": outcome}

    def _reason(self, code: str, verdict: Verdict) -> Reason:
        """The journal has codes; what they say is asked of the controls."""
        text = self.lock.engine.controls.get(code)
        if text is None:
            return (
                Reason(code, verdict, "", "see the journal") if code not in _FAILURES else failure(code, "see the log")
            )
        return Reason(code, verdict, text.for_model, text.description)

    def _digest(self, call: Call) -> Digest | None:
        try:
            return freeze(call, self.lock.manifest)[0].digest
        except Refused:
            pass
        try:  # a tool that is a lookalike or malformed by today's manifest may have been fine then
            return call_digest(ToolId(call.server, call.name), canonical(dict(call.arguments)))
        except Refused:
            return None

    def _observed_again(
        self, guard: Guard, record: Record, decided: Ruling, call: Call, result: ToolResult | Exception
    ) -> dict[str, Any] | None:
        """The answer to a result that is on record already, if it is this very result."""
        name = guard.conversation.id
        landed = record.calls.landed.get(decided.number)
        if not isinstance(landed, Observed | Failed):
            return None
        state = State(conversation=name, namespace=record.view.name)
        seen = Conversation.attached(
            state, Again(record.view, decided, landed), NoTranscript(), Transcript(), self._clock
        )
        again = self.lock.guard(seen)
        outcome = again.observe(again.take_up(call, decided), call.id, result)
        if withheld(outcome):
            return None
        self.meters.repeats.labels("result").inc()
        return observed_result(name, outcome, repeated=True)

    def _room(self, view: Namespace) -> None:
        """Refuse a conversation too many. Approximate: what other processes begin is counted within a minute."""
        now = self._clock.now()
        minute = stamp(now)[:16]
        with self._counting:
            at, count = self._counts.get(view.name, ("", 0))
            if at != minute or count >= self._most:
                active = getattr(view, "active_since", None)
                count = self._most if active is None else active(stamp(now - IDLE))
            if count >= self._most:
                raise Problem(
                    429,
                    "too_many_conversations",
                    f"{self._most} conversations of this namespace were active in the last 24 hours",
                    retry_after=60,
                )
            self._counts[view.name] = (minute, count + 1)


_FAILURES: Final = frozenset({"engine_error", "journal_error", "invalid_call", "unavailable"})


def speaks(caller: Caller) -> None:
    """Raises Problem unless the caller may hand in what the person typed."""
    if "speak" not in caller.rights:
        raise Problem(403, "no_right", "these credentials have no right to say what the person typed: `speak`")


def _call(one: shapes.ProposedCall) -> Call:
    return Call(one.name, one.arguments, one.id, one.server)


def _result(asked: shapes.Observe) -> ToolResult | Exception:
    if asked.result is None:
        return ReportedFailure()
    one = asked.result
    return ToolResult(one.content, one.external, tuple(one.labels), one.is_error)
