"""The path of one call, written once (T4, T8, T14, T15, T18).

Generators that yield effects and are told what came of them; no input, no output, no clock, no lock. Both drivers run
these very steps, so sync and async can't drift apart.

``propose``: freeze → look at the arguments → load the state → build the document → evaluate → **journal the decision
and put the labels in flight** → ticket. ``observe``: journal the outcome, which joins the labels → what the model may
see. ``run_allowed`` executes in between.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, cast

from interlock.errors import Bug, Conflict, EngineUnavailable, InterlockError, Refused, Unavailable
from interlock.gate import approval_steps, artifact_steps, draft_steps
from interlock.gate.approval_steps import ApprovalRules, Round, Settled
from interlock.gate.draft_steps import OutboxRules
from interlock.gate.effects import (
    Append,
    Effect,
    Evaluate,
    Execute,
    LoadState,
    Raised,
    ReadClock,
    ReadOperands,
    ResolvePaths,
    Returned,
)
from interlock.model.answers import Answered, ControlText, judged, parse_answers
from interlock.model.artifacts import page_of
from interlock.model.calls import Call, FrozenCall, call_digest, freeze, is_call_id
from interlock.model.canonical import pack
from interlock.model.decisions import (
    ENGINE_ERROR,
    IN_DOUBT,
    INVALID_CALL,
    JOURNAL_ERROR,
    OPERAND_CHANGED,
    STAGING_FAILED,
    UNAVAILABLE,
    Cause,
    Decision,
    Reason,
    Verdict,
    failure,
)
from interlock.model.digests import NO_DIGEST, Digest, content_digest, digest, voice_digest
from interlock.model.document import Asked, Mode, Setting, asked, build, check_document, loose_receivers
from interlock.model.entries import Decided, Entry, Failed, Observed, Shadowed
from interlock.model.fields import NOTHING_SEEN, Seen, left_out, look_at, words_of_arguments
from interlock.model.labels import Label, label
from interlock.model.look import Paths, look
from interlock.model.manifest import Manifest
from interlock.model.narrowing import places_to_resolve
from interlock.model.operands import Operand
from interlock.model.origins import GROUNDING, NO_LISTS, AllowLists, Origin
from interlock.model.question import Question
from interlock.model.results import (
    MALFORMED,
    Allowed,
    Outcome,
    Ticket,
    ToolResult,
    class_name,
    failure_text,
    finished,
    refusal,
    text_for_model,
)
from interlock.model.state import InFlight, State
from interlock.model.times import stamp as stamp
from interlock.model.tools import Effect as Changes
from interlock.model.tools import Kind, ToolId

Steps: TypeAlias = Generator[Effect, Any, Any]

# A lost race is decided anew. Losing this often means that somebody writes without pause: then refusing is right.
MAX_RACES: Final = 256
MAX_ROUND: Final = 128
MAX_UNDERSTOOD: Final = 256
MAX_RESULT_LABELS: Final = 64


@dataclass(frozen=True, slots=True)
class Rules:
    """What the steps know without asking: fixed for the life of an Interlock.

    Attributes:
        operator: digests of the operator's address book.
        protected: absolute paths of Interlock's own files.
        unavailable: declared tools that may not run here.
        looks_at: paths that the engine's answers depend on, or None.
        lists: the operator's allow-lists.
        grounding: origins that ground a value.
        approvals: how a person is asked; None when nobody can be asked here.
        outbox: what is drafted instead of sent; None when nothing is.
        book: the operator's address book in normal form, to be shown to people.
        mode: ``shadow`` decides and records, and lets every call run that is well-formed and leaves Interlock's own
            files alone.
    """

    manifest: Manifest
    controls: Mapping[str, ControlText]
    revision: str
    engine: str
    operator: frozenset[Digest]
    protected: tuple[str, ...]
    unavailable: frozenset[ToolId] = frozenset()
    looks_at: Paths | None = None
    lists: AllowLists = NO_LISTS
    grounding: frozenset[Origin] = GROUNDING
    approvals: ApprovalRules | None = None
    outbox: OutboxRules | None = None
    book: tuple[tuple[Kind, str], ...] = ()
    mode: Mode = "enforce"

    _understood: dict[str | bytes, tuple[Verdict, tuple[Reason, ...]]] = field(default_factory=dict, compare=False)

    def understood(self, raw: str | bytes) -> tuple[Verdict, tuple[Reason, ...]]:
        """The strict reading of an engine's answer; a pure function, so its last results are kept."""
        known = self._understood.get(raw)
        if known is None:
            known = judged(parse_answers(raw, self.controls), self.controls)
            if len(self._understood) >= MAX_UNDERSTOOD:
                self._understood.clear()
            self._understood[raw] = known
        return known


@dataclass(frozen=True, slots=True)
class _Proposal:
    """One call of a round: either ``asked`` or the ``problem`` for which it can't be."""

    call_id: str
    asked: Asked | None
    problem: Reason | None
    tool: ToolId | None = None
    settled: Settled | None = None


@dataclass(frozen=True, slots=True)
class _Judged:
    """``guarded``: the call would change Interlock's own files, or nobody knows whether it would."""

    decision: Decision
    document: Digest
    receivers: tuple[Digest, ...] = ()
    guarded: bool = False


def propose(
    conversation: str, calls: Sequence[Call], rules: Rules, beside: frozenset[int] = frozenset()
) -> Generator[Effect, Any, Ticket]:
    """Decide one round of calls together and journal the decisions.

    Every call of the round is in the ticket exactly once, refused or pending. Raises nothing but :class:`Bug` and
    interpreter exits: whatever fails, nothing has been executed yet, so a refusal is always safe.

    Args:
        beside: numbers of calls in flight that belong to the same round: what their results may bring can't have shaped
            the arguments of these calls.
    """
    proposals = _prepared(calls, rules)
    try:
        decided = yield from _decide(conversation, proposals, rules, record=True, beside=beside)
    except Bug:
        raise
    except Exception as error:  # fail closed: any failure before the record is a refusal of the whole round
        decided = _refused_round(proposals, rules, error)
    outcomes: dict[str, Outcome] = {}
    allowed: dict[str, Allowed] = {}
    questions: dict[str, Question] = {}
    for number, proposal, decision in decided:
        call_id, tool = proposal.call_id, str(proposal.tool or MALFORMED)
        settled = proposal.settled
        if decision.runs and proposal.asked is not None:
            asked_for = proposal.asked
            operands = settled.operands if settled is not None else ()
            allowed[call_id] = Allowed(
                number,
                asked_for.call,
                asked_for.spec,
                decision,
                asked_for.reads,
                asked_for.writes,
                asked_for.carried,
                operands,
            )
            outcomes[call_id] = Outcome(tool, call_id, decision, number, pending=True, is_error=False)
        else:
            text, is_error = refusal(decision), not decision.drafted
            outcomes[call_id] = Outcome(tool, call_id, decision, number, for_model=text, is_error=is_error)
            if settled is not None and settled.question is not None:
                questions[call_id] = settled.question
    return Ticket(conversation, outcomes, allowed, questions)


def preview(conversation: str, calls: Sequence[Call], rules: Rules) -> Generator[Effect, Any, list[Decision]]:
    """The decisions that :func:`propose` would make. Nothing is recorded and nothing is in flight (T8)."""
    proposals = _prepared(calls, rules)
    try:
        decided = yield from _decide(conversation, proposals, rules, record=False)
    except Bug:
        raise
    except Exception as error:  # the same answer that propose gives
        decided = _refused_round(proposals, rules, error)
    return [decision for _, _, decision in decided]


@dataclass(frozen=True, slots=True)
class Weighed:
    """What the policy alone says of a call in some state; ``asked`` is None when the call is malformed."""

    asked: Asked | None
    setting: Setting
    decision: Decision


def weigh(calls: Sequence[Call], state: State, now: datetime, rules: Rules) -> Generator[Effect, Any, list[Weighed]]:
    """What the policy would say of a round of calls in a state that is given. Nothing is recorded, nobody is asked, and
    no grant counts."""
    proposals = yield from _located(_prepared(calls, rules), rules)
    proposals = yield from _carrying(proposals, state.namespace)
    valid = [one.asked for one in proposals if one.asked is not None]
    setting = _setting(state, rules)
    weighed: list[Weighed] = []
    for proposal in proposals:
        one = proposal.asked
        if one is None:
            reasons = () if proposal.problem is None else (proposal.problem,)
            weighed.append(Weighed(None, setting, Decision(Verdict.DENY, reasons)))
            continue
        siblings = [other for other in valid if other is not one]
        found = yield from _judge(one, siblings, setting, state, now, rules)
        weighed.append(Weighed(one, setting, _doubtful(one, found.decision, state)))
    return weighed


def observe(conversation: str, allowed: Allowed, result: ToolResult | BaseException) -> Generator[Effect, Any, Outcome]:
    """Journal what came of an allowed call, which joins its labels, and say what the model may see.

    If the outcome can't be journalled the result is withheld; the labels then stay in flight, so nothing is forgotten.
    """
    outcome = Outcome(str(allowed.call.tool), allowed.call.id, allowed.decision, allowed.number, executed=True)
    try:
        result = _given(result)
        seen = NOTHING_SEEN
        if isinstance(result, BaseException):
            text = failure_text(result)
        else:
            seen = _looked_at(allowed, result)
            result = replace(result, content=seen.content) if seen.dropped else result
            text = text_for_model(seen.content) + left_out(seen.dropped)
        now: datetime = yield ReadClock()
        at = stamp(now)
        flight = yield from _recorded(conversation, allowed, _landed(allowed, result, text, at, seen), at, text)
    except Bug:
        raise
    except Exception as error:  # not on record: the content must not reach the model
        return _withheld(outcome, result, error)
    if flight is None or flight.call != allowed.call.digest:
        # A second result for one call is somebody's mistake or trick: its labels have joined, its content is dropped.
        again = "This call has its result already; another one is not shown."
        return _withheld(outcome, result, Refused("this call has its result already"), again)
    if isinstance(result, BaseException):
        return replace(outcome, error=result, for_model=text)
    return Outcome(
        outcome.tool,
        outcome.call_id,
        outcome.decision,
        outcome.number,
        executed=True,
        result=result.content,
        for_model=text,
        is_error=bool(result.is_error),
    )


def _recorded(
    conversation: str, allowed: Allowed, entry: Observed | Failed, at: str, text: str
) -> Generator[Effect, Any, InFlight | None]:
    """Journal an outcome, and give the call in flight that it ended. Of two results for one call, one gets None."""
    for _ in range(MAX_RACES):
        state: State = yield LoadState(conversation)
        read = yield from artifact_steps.read_by(allowed, state.namespace, at, text)
        yield from artifact_steps.handed_on(allowed, state, entry)
        try:
            yield Append(conversation, (*read, artifact_steps.as_read(entry, allowed, read, text)), state.version)
        except Conflict:
            continue  # somebody wrote meanwhile, perhaps the other result of this very call
        return state.in_flight.get(allowed.number)
    raise Unavailable(f"the labels changed {MAX_RACES} times while a result was recorded")


def run_allowed(conversation: str, allowed: Allowed) -> Generator[Effect, Any, Outcome]:
    """Execute one allowed call and observe it."""
    changed = yield from still_approved(conversation, allowed)
    if changed is not None:
        return changed
    try:
        reply: Returned | Raised = yield Execute(allowed)
    except BaseException as error:
        # Cancelled, or an interpreter exit, or a coroutine that nobody awaits any more (its driver throws GeneratorExit
        # in): the call is in doubt. Its labels join now, and nothing retries it.
        yield from _in_doubt(conversation, allowed, error)
        raise
    if isinstance(reply, Raised):
        return (yield from observe(conversation, allowed, reply.error))
    value = reply.value
    return (yield from observe(conversation, allowed, value if isinstance(value, ToolResult) else ToolResult(value)))


def still_approved(conversation: str, allowed: Allowed) -> Generator[Effect, Any, Outcome | None]:
    """Right before an approved call runs: are the files that it names what the person was shown?

    Returns:
        None if it may run; else its outcome. Then it is not run, and that is on record.
    """
    if not allowed.operands:
        return None
    try:
        paths = tuple(one.path for one in allowed.operands)
        now: tuple[Operand, ...] = yield ReadOperands(paths)
        if sorted(now) == sorted(allowed.operands):
            return None
        reason = failure(OPERAND_CHANGED, f"operand changed after {allowed.decision.grant} was approved")
        at: datetime = yield ReadClock()
        entry = Failed(stamp(at), allowed.number, False, "OperandChanged")
        yield Append(conversation, (entry,), None)
    except Bug:
        raise
    except Exception as error:  # nobody knows what the file holds: it is not run, and stays in flight
        problem = str(error) if isinstance(error, InterlockError) else type(error).__name__
        reason = failure(JOURNAL_ERROR, f"the call was not run: {problem}")
    decision = replace(allowed.decision, verdict=Verdict.DENY, reasons=(reason,))
    tool = str(allowed.call.tool)
    return Outcome(tool, allowed.call.id, decision, allowed.number, for_model=refusal(decision))


def _in_doubt(conversation: str, allowed: Allowed, error: BaseException) -> Steps:
    try:
        now: datetime = yield ReadClock()
        spec = allowed.spec
        labels = (*spec.private, *spec.opens, *spec.untrusted)
        entry = Failed(stamp(now), allowed.number, True, class_name(error), labels, doubt=True)
        yield Append(conversation, (entry,), None)
        if allowed.writes and allowed.reads:
            state: State = yield LoadState(conversation)
            yield from artifact_steps.handed_on(allowed, state, entry)
    except Bug:
        raise
    except Exception:
        pass  # still in flight, so still in the exposure: the record is poorer, the decisions are not


# --- deciding -------------------------------------------------------------------------------------------------------


def _prepared(calls: Sequence[Call], rules: Rules) -> list[_Proposal]:
    """Freeze every call, and give each an id of its own. Malformed calls are refused here, whatever else they say."""
    proposals: list[_Proposal] = []
    taken: set[str] = set()
    given = {call_id for call_id in (getattr(raw, "id", "") for raw in calls) if is_call_id(call_id)}
    for place, raw in enumerate(calls, 1):
        wanted = getattr(raw, "id", "")
        call_id = wanted if is_call_id(wanted) else ""
        found: Asked | None = None
        problem: Reason | None = None
        tool: ToolId | None = None
        repeated = call_id in taken
        if not call_id or repeated:
            call_id = _free_id(place, taken | given)
        taken.add(call_id)
        if repeated:
            problem = failure(INVALID_CALL, "two calls of one turn carry the same id")
        elif place > MAX_ROUND:
            problem = failure(INVALID_CALL, f"more than {MAX_ROUND} calls in one turn")
        else:
            found, problem, tool = _frozen(raw, call_id, rules)
        proposals.append(_Proposal(call_id, found, problem, tool))
    return proposals


def _frozen(raw: Call, call_id: str, rules: Rules) -> tuple[Asked | None, Reason | None, ToolId | None]:
    try:
        if not isinstance(raw, Call):
            raise Refused(f"a call is a Call, not {type(raw).__name__}")
        frozen, spec = freeze(raw, rules.manifest, call_id)
        if frozen.tool in rules.unavailable:
            return None, failure(UNAVAILABLE, f"{str(frozen.tool)!r} is denied by the workspace"), frozen.tool
        return asked(frozen, spec), None, frozen.tool
    except Bug:
        raise
    except Refused as error:
        text = f"The call was malformed and was not made: {error}."
        return None, failure(INVALID_CALL, str(error), for_model=text), None
    except Exception as error:  # objects that fight back: nothing about them is repeated
        return None, failure(INVALID_CALL, f"the call could not be read ({class_name(error)})"), None


def _free_id(place: int, taken: set[str]) -> str:
    """An id that no call of the round carries; ids that repeat can't be told apart by whoever reads the results."""
    name, suffix = f"call_{place}", 2
    while name in taken:
        name, suffix = f"call_{place}#{suffix}", suffix + 1
    return name


_Decided: TypeAlias = list[tuple[int, _Proposal, Decision]]


def _decide(
    conversation: str,
    proposals: Sequence[_Proposal],
    rules: Rules,
    *,
    record: bool,
    beside: frozenset[int] = frozenset(),
) -> Generator[Effect, Any, _Decided]:
    now: datetime = yield ReadClock()
    proposals = yield from _located(proposals, rules)
    for _ in range(MAX_RACES):
        state: State = yield LoadState(conversation)
        proposals = yield from _carrying(proposals, state.namespace)
        valid = [proposal.asked for proposal in proposals if proposal.asked is not None]
        seen = _as_of(state, beside) if beside else state
        setting = _setting(seen, rules)
        judgements: list[_Judged] = []
        for place, one in enumerate(valid):
            siblings = valid[:place] + valid[place + 1 :]
            judgements.append((yield from _judge(one, siblings, setting, seen, now, rules)))
        this = Round(state, setting, rules.manifest, rules.approvals, stamp(now))
        # A draft that is delivered is a release, which counts in any mode.
        delivers = rules.outbox is not None and bool(rules.outbox.delivering)
        if rules.mode == "shadow" and not delivers:
            judgements = [_shadowed(one, judged_one, seen) for one, judged_one in zip(valid, judgements, strict=True)]
        else:
            proposals, judgements = yield from _settled(proposals, valid, judgements, this, rules.outbox, record)
        decided = _numbered(proposals, judgements, state.calls)
        if not record:
            return decided
        for _, proposal, decision in decided:
            if proposal.asked is not None and decision.runs:
                yield from artifact_steps.labelled(proposal.asked, state)
        receivers = {id(one): judged_one.receivers for one, judged_one in zip(valid, judgements, strict=True)}
        entries: list[Entry] = []
        for number, proposal, decision in decided:
            entries += proposal.settled.before if proposal.settled is not None else ()
            loose = receivers.get(id(proposal.asked), ())
            entries.append(_entry(number, proposal, decision, state.version, stamp(now), loose))
        settled = [proposal.settled for proposal in proposals if proposal.settled is not None]
        if any(one.new for one in settled):
            yield from approval_steps.kept(settled)
            entries += approval_steps.questions(settled, valid, this)
        try:
            # INVARIANT: the decision is on record before anything can happen because of it (T8).
            yield Append(conversation, entries, state.version, _pages(decided))
        except Conflict:
            yield from approval_steps.not_asked(settled)
            now = yield ReadClock()  # not before what was written meanwhile: a time before a grant is none of its times
            continue  # the labels changed while we thought: decide anew under the new ones
        return decided
    raise Unavailable(f"the labels changed {MAX_RACES} times while this call was decided; try again later")


def _settled(
    proposals: Sequence[_Proposal],
    valid: Sequence[Asked],
    judgements: Sequence[_Judged],
    this: Round,
    outbox: OutboxRules | None,
    record: bool,
) -> Generator[Effect, Any, tuple[list[_Proposal], list[_Judged]]]:
    """What persons have said of these calls. Nothing of it is looked for when the policy allows all of them."""
    judged_calls = list(judgements)
    if this.state.doubts:
        judged_calls = [
            replace(judged_one, decision=_doubtful(one, judged_one.decision, this.state))
            for one, judged_one in zip(valid, judgements, strict=True)
        ]
    staged = [
        outbox is not None and outbox.stages(one.call.tool, judged_one.decision.verdict)
        for one, judged_one in zip(valid, judged_calls, strict=True)
    ]
    if not any(staged) and all(one.decision.verdict is Verdict.ALLOW for one in judged_calls):
        return list(proposals), judged_calls
    numbers = [number for number, one in enumerate(proposals, this.state.calls + 1) if one.asked is not None]
    decisions = [one.decision for one in judged_calls]
    # Nobody is asked about what is drafted: whoever releases it is asked then.
    asked_now = [
        replace(decision, verdict=Verdict.ALLOW) if drafts else decision
        for decision, drafts in zip(decisions, staged, strict=True)
    ]
    settled = yield from approval_steps.settled(valid, asked_now, numbers, this)
    drafted: dict[str, str] = {}
    for place, one in enumerate(valid):
        if outbox is not None and staged[place]:
            decision = decisions[place]
            decision = replace(decision, causes=decision.causes or _causes(one, (), this.state))
            settled[place] = yield from draft_steps.staged(
                one, valid, decision, numbers[place], this, outbox, drafted, record=record
            )
    found = iter(settled)
    with_words = [one if one.asked is None else replace(one, settled=next(found)) for one in proposals]
    return with_words, [replace(j, decision=s.decision) for j, s in zip(judged_calls, settled, strict=True)]


def _shadowed(one: Asked, judged_one: _Judged, state: State) -> _Judged:
    """What would have been decided, and nothing comes of it: nobody is asked and no grant is used. Only Interlock's own
    files are guarded all the same, and whatever might be one of them."""
    decision = _doubtful(one, judged_one.decision, state)
    stays = judged_one.guarded and decision.verdict is not Verdict.ALLOW
    return replace(judged_one, decision=replace(decision, enforced=stays))


_DOUBTFUL: Final = Reason(
    IN_DOUBT,
    Verdict.ASK,
    "The very same call was made before, and nobody knows whether it happened. It is not repeated without a person.",
    "the same call was cut off or stopped without an outcome: it may have happened already",
)


def _doubtful(one: Asked, decision: Decision, state: State) -> Decision:
    """What may have happened already is not done again by itself, and whoever is asked is told so."""
    if decision.verdict is Verdict.DENY or not state.doubts:
        return decision
    if not one.spec.sends and one.spec.effect is Changes.NONE:
        return decision
    if one.call.digest not in state.doubts and NO_DIGEST not in state.doubts:
        return decision
    reasons = tuple(sorted((*decision.reasons, _DOUBTFUL), key=lambda each: each.code))
    return replace(decision, verdict=Verdict.ASK, reasons=reasons, causes=decision.causes or _causes(one, (), state))


def _as_of(state: State, beside: frozenset[int]) -> State:
    """The state without what the results of these calls may bring, which nobody has seen."""
    flights = dict(state.in_flight)
    for number in beside & flights.keys():
        flights[number] = replace(flights[number], untrusted=(), voices=(), unheard=False)
    return replace(state, in_flight=MappingProxyType(flights))


def _located(proposals: Sequence[_Proposal], rules: Rules) -> Generator[Effect, Any, list[_Proposal]]:
    """Add to each call the paths that its own ones resolve to, so that a link can't hide a protected file, nor a way
    out of a folder that a clause of the manifest names; and the keys of the artifacts that it names."""
    located = []
    for proposal in proposals:
        one = proposal.asked
        if one is None:
            located.append(proposal)
            continue
        spec = rules.manifest.spec(one.call.tool)
        below = places_to_resolve(spec, one.arguments) if spec.when else ()
        if below:
            answers: dict[str, tuple[str, ...]] = {}
            for path in below:
                answers[path] = yield ResolvePaths((path,))
            one = asked(one.call, spec, answers)
        if one.paths:
            resolved: tuple[str, ...] = yield ResolvePaths(one.paths)
            one = replace(one, paths=tuple(sorted({*one.paths, *resolved})))
        if one.removed:
            gone: tuple[str, ...] = yield ResolvePaths(one.removed)
            one = replace(one, removed=tuple(sorted({*one.removed, *gone})))
        one = yield from artifact_steps.keyed(one)
        located.append(replace(proposal, asked=one) if one is not proposal.asked else proposal)
    return located


def _carrying(proposals: list[_Proposal], namespace: str) -> Generator[Effect, Any, list[_Proposal]]:
    carrying = []
    for proposal in proposals:
        if proposal.asked is not None and proposal.asked.reads:
            proposal = replace(proposal, asked=(yield from artifact_steps.loaded(proposal.asked, namespace)))
        carrying.append(proposal)
    return carrying


def _setting(state: State, rules: Rules) -> Setting:
    voices, anybody = state.heard()
    return Setting(
        conversation=state.conversation,
        namespace=state.namespace,
        parent=state.parent,
        exposure=tuple(state.exposure),
        typed=state.typed,
        operator=rules.operator,
        voices=voices,
        deafening=anybody,
        protected=rules.protected,
        lists=rules.lists,
        index=state.provenance,
        grounding=rules.grounding,
        mode=rules.mode,
    )


def _judge(
    one: Asked, siblings: Sequence[Asked], setting: Setting, state: State, now: datetime, rules: Rules
) -> Generator[Effect, Any, _Judged]:
    document_digest = NO_DIGEST
    receivers: tuple[Digest, ...] = ()
    engine, revision, decision_id = rules.engine, rules.revision, ""
    guarded = True
    try:
        document = build(one, siblings, setting, now)
        check_document(document)  # before any engine sees it (T6)
        guarded = document["call"]["control"] == "interlock"
        asked_bytes = pack(document)
        document_digest = digest("document", asked_bytes)
        seen = None if rules.looks_at is None else look(document, rules.looks_at)
        raw = yield Evaluate(asked_bytes, seen)
        verdict, reasons = rules.understood(raw)
        if isinstance(raw, Answered):
            engine, revision, decision_id = raw.engine, raw.revision, raw.decision_id
        leaves = verdict is not Verdict.DENY or rules.mode == "shadow"
        if leaves and document["forecast"]["private"] and not document["call"]["grounded"]:
            receivers = loose_receivers(one, setting)
    except Bug:
        raise
    except Exception as error:  # an engine's silence, error or nonsense is a denial (T4)
        problem = str(error) if isinstance(error, InterlockError) else type(error).__name__
        verdict, reasons = Verdict.DENY, (failure(ENGINE_ERROR, problem),)
    causes: tuple[Cause, ...] = ()
    if verdict is not Verdict.ALLOW:
        causes = _causes(one, siblings, state)
    decision = Decision(
        verdict=verdict,
        reasons=reasons,
        causes=causes,
        revision=revision,
        manifest=rules.manifest.digest,
        document=document_digest,
        engine=engine,
        decision_id=decision_id,
    )
    return _Judged(decision, document_digest, receivers, guarded)


def _causes(one: Asked, siblings: Sequence[Asked], state: State) -> tuple[Cause, ...]:
    exposure = state.exposure
    known = [Cause(held, exposure.source(held)) for held in exposure]
    coming = {held for call in (one, *siblings) for held in call.labels} - exposure.labels
    return tuple(sorted((*known, *(Cause(held, None) for held in coming)), key=lambda cause: cause.label))


def _numbered(proposals: Sequence[_Proposal], judgements: Sequence[_Judged], calls: int) -> _Decided:
    decided: _Decided = []
    waiting = iter(judgements)
    for number, proposal in enumerate(proposals, calls + 1):
        if proposal.problem is not None:
            decision = Decision(Verdict.DENY, (proposal.problem,))
        else:
            decision = next(waiting).decision
        decided.append((number, proposal, decision))
    return decided


def _entry(
    number: int, proposal: _Proposal, decision: Decision, version: int, at: str, receivers: tuple[Digest, ...]
) -> Decided | Shadowed:
    one = proposal.asked
    verdict: Literal["allow", "ask", "deny"] = decision.verdict.value
    if one is None:
        # Malformed: neither its name nor its arguments can be trusted to be what they look like.
        tool = proposal.tool or ToolId("", MALFORMED)
        nothing_digest = content_digest("")
        return Decided(
            at, number, proposal.call_id, tool.server, tool.name, nothing_digest, verdict, decision.codes, version
        )
    runs = decision.runs
    nothing: tuple[Label, ...] = ()
    kind = Decided if decision.enforced else Shadowed
    return kind(
        at=at,
        number=number,
        call_id=proposal.call_id,
        server=one.call.tool.server,
        tool=one.call.tool.name,
        call=one.call.digest,
        verdict=verdict,
        codes=decision.codes,
        version=version,
        private=one.spec.private if runs else nothing,
        untrusted=one.spec.untrusted if runs else nothing,
        opens=one.spec.opens if runs else nothing,
        voices=_voices(one) if runs else (),
        unheard=runs and (not one.carried.heard or _somewhere(one)),
        document=decision.document,
        revision=decision.revision,
        manifest=decision.manifest,
        engine=decision.engine,
        said=words_of_arguments(one.arguments) if runs else "",
        receivers=receivers if runs else (),
        decision_id=decision.decision_id,
        shape=proposal.settled.shape if proposal.settled is not None and not runs else NO_DIGEST,
    )


def _voices(one: Asked) -> tuple[Digest, ...]:
    """Whose words an untrusted result would hold: those of the places that are asked, and of who wrote there."""
    asked_there = {voice_digest(found.voice) for found in one.destinations if found.voice}
    return tuple(sorted(asked_there.union(one.carried.voices)))


def _somewhere(one: Asked) -> bool:
    return any(found.kind is Kind.UNKNOWN and found.argument for found in one.destinations)


def _pages(decided: _Decided) -> tuple[tuple[int, str], ...]:
    """What the allowed calls will read of strangers' words or of private data."""
    return tuple(
        (number, page_of(one.asked.destinations, one.asked.reads))
        for number, one, decision in decided
        if one.asked is not None and decision.runs and (one.asked.spec.untrusted or one.asked.spec.private)
    )


def _refused_round(proposals: Sequence[_Proposal], rules: Rules, error: Exception) -> _Decided:
    """Nothing was recorded, so nothing may run: every call of the round is refused, with number 0."""
    code = ENGINE_ERROR if isinstance(error, EngineUnavailable) else JOURNAL_ERROR
    problem = str(error) if isinstance(error, InterlockError) else type(error).__name__
    decided: _Decided = []
    for proposal in proposals:
        stages = rules.outbox is not None and proposal.tool in rules.outbox.tools and code == JOURNAL_ERROR
        reason = proposal.problem or failure(STAGING_FAILED if stages else code, problem)
        decision = Decision(Verdict.DENY, (reason,), revision=rules.revision, manifest=rules.manifest.digest)
        decided.append((0, proposal, decision))
    return decided


# --- observing ------------------------------------------------------------------------------------------------------


def _looked_at(allowed: Allowed, result: ToolResult) -> Seen:
    """The result, read field by field where the manifest says what its fields are."""
    carried = tuple(label(one) for one in result.labels)
    spec, arguments = allowed.spec, allowed.call.thawed() if allowed.spec.ids else {}
    text = text_for_model(result.content)
    failed = result.is_error is not False or result.external is False
    return look_at(spec, arguments, result.content, text, carried, failed=failed)


def _landed(allowed: Allowed, result: ToolResult | BaseException, text: str, at: str, seen: Seen) -> Observed | Failed:
    """The entry of an outcome. It carries the declared labels too, so it is right even when nobody waits for it."""
    spec = allowed.spec
    if isinstance(result, BaseException):
        # An exception may carry remote text, and a time-out says nothing about what was sent: it was external.
        labels = (*spec.private, *spec.opens, *spec.untrusted)
        return Failed(at, allowed.number, external=True, error=class_name(result), labels=labels)
    external = result.external is not False
    extra = tuple(label(one) for one in result.labels)
    if len(extra) > MAX_RESULT_LABELS:
        raise Refused(f"a result carries at most {MAX_RESULT_LABELS} labels of its own")
    exact = seen.untrusted is not None
    declared = (seen.untrusted or ()) if exact else (spec.untrusted if external else ())
    labels = tuple(sorted({*spec.private, *spec.opens, *declared, *extra}))
    return Observed(
        at,
        allowed.number,
        external,
        content_digest(text),
        len(text),
        labels,
        exact=exact,
        words=seen.heard,
        vouched=seen.vouched,
        records=seen.records,
        dropped=seen.dropped,
    )


def _given(result: ToolResult | BaseException) -> ToolResult | BaseException:
    """The result, or the error that stands for one that is still to be read."""
    if isinstance(result, ToolResult):
        try:
            finished(result.content)
        except Refused as error:
            return error
    return result


_UNRECORDED: Final = "The call was made, but its result could not be recorded and is withheld. Do not repeat the call."


def _withheld(
    outcome: Outcome, result: ToolResult | BaseException, error: Exception, text: str = _UNRECORDED
) -> Outcome:
    problem = str(error) if isinstance(error, InterlockError) else type(error).__name__
    reason = failure(JOURNAL_ERROR, f"the outcome is withheld: {problem}")
    decision = replace(outcome.decision, reasons=(*outcome.decision.reasons, reason))
    failed = cast(BaseException, result) if issubclass(type(result), BaseException) else error
    return replace(outcome, decision=decision, error=failed, for_model=text)


def same(frozen: FrozenCall) -> bool:
    """Do the arguments still have the digest that was decided? Checked by the driver right before execution (T8)."""
    return call_digest(frozen.tool, frozen.arguments) == frozen.digest
