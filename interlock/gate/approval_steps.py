"""The steps by which a person comes into a decision (T9): find a grant, ask, hear the answer, decide again.

A yes lives in the journal only. It is consumed in the same append as the decision that it allows, under the label
version that both were made under: of any number of processes, one gets it.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Literal

from interlock.errors import Bug, Conflict, Refused, Unavailable
from interlock.gate.effects import (
    Append,
    DropQuestion,
    Effect,
    KeepQuestion,
    LoadState,
    ReadClock,
    ReadOperands,
    ReadPages,
)
from interlock.model import entries
from interlock.model.control_plane import TOO_MANY
from interlock.model.decisions import (
    ASKED_ENOUGH,
    GATE_CODES,
    NOT_BINDABLE,
    OPERAND_CHANGED,
    Decision,
    Verdict,
    failure,
)
from interlock.model.digests import NO_DIGEST, Digest
from interlock.model.document import Asked, Setting
from interlock.model.entries import Consumed, Entry, Stood, Voided
from interlock.model.grants import (
    ENOUGH,
    Bound,
    Held,
    Status,
    answering,
    changed_operands,
    enough,
    grant_for,
    pending_for,
    question_id,
    shape_of,
)
from interlock.model.labels import Label
from interlock.model.manifest import Manifest
from interlock.model.operands import MAX_BELOW, Operand, Sort, below, operand_paths, operands_digest, shown, unreadable
from interlock.model.origins import value_digest
from interlock.model.question import Question, asked_about
from interlock.model.standing import NEVER, Standing, standing_id
from interlock.model.state import State
from interlock.model.times import later, stamp
from interlock.model.tools import Kind

MAX_RACES: Final = 256


@dataclass(frozen=True, slots=True)
class ApprovalRules:
    """How questions are asked here.

    Attributes:
        seconds: how long an answer is waited for; then nobody answered, and the question is closed.
        expiry: how many seconds a question may be answered, and the yes be used, counted from the asking.
    """

    seconds: float = 120.0
    expiry: float = 900.0


@dataclass(frozen=True, slots=True)
class Settled:
    """What came of one call of a round, once it was looked for what a person has said.

    Attributes:
        before: entries that belong before the decision: what it consumes or makes void.
        question: that a person is asked, or was asked and has not answered.
        operands: files that the call names, when it was asked or approved.
        shape: to be counted among the denials.
    """

    decision: Decision
    before: tuple[Entry, ...] = ()
    question: Question | None = None
    new: bool = False
    operands: tuple[Operand, ...] = ()
    shape: Digest = NO_DIGEST


@dataclass(slots=True)
class Round:
    """A round of calls while it is decided: what all of them share, and what the first ones took from the others."""

    state: State
    setting: Setting
    manifest: Manifest
    rules: ApprovalRules | None
    at: str
    taken: dict[str, int] = field(default_factory=dict)
    pages: tuple[tuple[int, str], ...] | None = None

    def labels(self, calls: Sequence[Asked]) -> frozenset[Label]:
        """Everything that is shown: the exposure, and whatever a call of this round may bring."""
        coming = {one for call in calls for one in (*call.labels, *call.spec.untrusted)}
        return self.state.exposure.labels | coming


def settled(
    calls: Sequence[Asked], decisions: Sequence[Decision], receivers: Sequence[int], this: Round
) -> Generator[Effect, Any, list[Settled]]:
    """What a person's words change about the decisions of a round. A denial is never changed.

    Args:
        receivers: number that each call gets in its conversation.
    """
    found: list[Settled] = []
    open_here: dict[Digest, Question] = {}
    together: dict[Digest, list[int]] = {}
    for place, (one, decision) in enumerate(zip(calls, decisions, strict=True)):
        if decision.verdict is Verdict.ASK:
            together.setdefault(one.call.digest, []).append(place)
    for place, (one, decision) in enumerate(zip(calls, decisions, strict=True)):
        if decision.verdict is Verdict.ALLOW:
            found.append(Settled(decision))
            continue
        shape = shape_of(one.call.tool, one.arguments)
        if decision.verdict is Verdict.DENY:
            found.append(_denied(decision, shape, this))
            continue
        found.append((yield from _asked(one, calls, decision, shape, place, together, receivers, open_here, this)))
    return found


def _denied(decision: Decision, shape: Digest, this: Round) -> Settled:
    """A denial by rule counts; one by failure says nothing about the call."""
    if decision.code in GATE_CODES:
        return Settled(decision)
    last = this.state.denials.get(shape, 0) + 1 >= ENOUGH
    return Settled(replace(decision, terminal=last), shape=shape)


def _asked(
    one: Asked,
    calls: Sequence[Asked],
    decision: Decision,
    shape: Digest,
    place: int,
    together: Mapping[Digest, list[int]],
    numbers: Sequence[int],
    open_here: dict[Digest, Question],
    this: Round,
) -> Generator[Effect, Any, Settled]:
    held, rules = this.state.questions, this.rules
    if rules is None:  # nobody can be asked here, and nothing was ever approved by anybody
        last = this.state.denials.get(shape, 0) + 1 >= ENOUGH
        return Settled(replace(decision, terminal=last), shape=shape)
    stands = _standing(one, decision, this)
    if stands:
        return _approved(one, decision, stands, (), numbers[place], this)
    operands = yield from read(one)
    bound = Bound(
        one.call.digest,
        one.call.tool,
        this.manifest.spec(one.call.tool).digest,
        this.labels(calls),
        frozenset(decision.codes),
        decision.revision,
        decision.manifest,
        operands_digest(operands),
    )
    grant = grant_for(held, bound, this.at, this.taken)
    if grant:
        this.taken[grant] = this.taken.get(grant, 0) + 1
        return _approved(one, decision, grant, operands, numbers[place], this)
    changed = changed_operands(held, bound, this.at)
    if changed:
        reason = failure(OPERAND_CHANGED, f"operand changed: a file of question {changed} is not what was approved")
        denied = replace(decision, verdict=Verdict.DENY, reasons=(reason, *decision.reasons), question=changed)
        return Settled(denied, (Voided(this.at, changed, "operand changed"),))
    if unreadable(operands):
        # Never in vain: a yes could not be bound to what is not known.
        reason = failure(NOT_BINDABLE, f"can't be read: {', '.join(unreadable(operands)[:4])}")
        return Settled(replace(decision, verdict=Verdict.DENY, reasons=(reason, *decision.reasons)), shape=shape)
    if enough(this.state.denials, one.call.tool, shape):
        reason = failure(ASKED_ENOUGH, "calls like this one were denied often enough since the person last typed")
        return Settled(replace(decision, verdict=Verdict.DENY, reasons=(reason, *decision.reasons), terminal=True))
    known = open_here.get(one.call.digest)
    if known is not None:  # identical calls of one batch: one question for all of them
        return Settled(replace(decision, question=known.id), question=known)
    # Those before this one have a grant: a yes is not for them.
    places = [other for other in together[one.call.digest] if other >= place]
    waits = pending_for(held, bound, this.at, len(places))
    name = waits or question_id(this.state.conversation, numbers[place], one.call.digest, this.at)
    expires = held[waits].expires if waits else later(this.at, rules.expiry)
    if this.pages is None:
        causes = tuple(sorted({each.source.call for each in decision.causes if each.source is not None}))
        this.pages = yield ReadPages(causes)
    question = asked_about(
        one,
        id=name,
        call_ids=[calls[other].call.id for other in places],
        number=numbers[place],
        setting=this.setting,
        reasons=decision.reasons,
        causes=decision.causes,
        beside=[each for other, each in enumerate(calls) if other not in places],
        operands=shown(operands),
        labels=bound.labels,
        pages=this.pages,
        rules=(decision.revision, decision.manifest),
        at=held[waits].at if waits else this.at,
        expires=expires,
    )
    open_here[one.call.digest] = question
    return Settled(replace(decision, question=name), question=question, new=not waits, operands=operands)


def read(one: Asked) -> Generator[Effect, Any, tuple[Operand, ...]]:
    """The files that a call names, as they are now; those too that it names in a folder that it names."""
    paths = operand_paths(one)
    found: list[Operand] = []
    known: set[str] = set()
    folders: set[str] = set()
    lost = TOO_MANY in paths
    wanted = tuple(each for each in paths if each != TOO_MANY)
    while wanted:
        come: tuple[Operand, ...] = yield ReadOperands(wanted)
        known.update(wanted)
        found += come
        new = {each.resolved: each for each in come if each.sort is Sort.FOLDER and each.resolved not in folders}
        folders.update(new)
        wanted = tuple(sorted({*below(new.values(), paths)} - known))
        if len(known) + len(wanted) > MAX_BELOW:
            lost, wanted = True, ()
    return (*found, Operand(TOO_MANY, "", Sort.UNREADABLE)) if lost else tuple(found)


def _approved(
    one: Asked, decision: Decision, grant: str, operands: tuple[Operand, ...], number: int, this: Round
) -> Settled:
    allowed = replace(decision, verdict=Verdict.ALLOW, reasons=(), causes=(), grant=grant)
    return Settled(allowed, (Consumed(this.at, grant, number, one.call.digest),), operands=operands)


def _standing(one: Asked, decision: Decision, this: Round) -> str:
    """A standing approval for the one receiver of this call, which somebody vouches for."""
    if not this.state.standing or one.unclassified or len(one.destinations) != 1:
        return ""
    (receiver,) = one.destinations
    named_too = {path.partition(".")[0] for path, _ in one.spec.destinations}
    if any(name in named_too and name not in one.arguments for name, _ in one.spec.defaults):
        return ""  # the tool fills in a receiver of its own, which was not the one
    if receiver.kind is Kind.UNKNOWN or not this.setting.is_grounded(receiver) or this.setting.talks_back(receiver):
        return ""
    spec = this.manifest.spec(one.call.tool).digest
    own = value_digest(receiver.kind, receiver.value)
    rules = (decision.revision, decision.manifest)
    for name, standing in this.state.standing.items():
        if standing.answers(one.call.tool, spec, own, decision.codes, rules, this.at):
            return name
    return ""


def questions(settled_calls: Sequence[Settled], calls: Sequence[Asked], this: Round) -> list[entries.Asked]:
    """The entries of the new questions of a round."""
    found = []
    for one, call in zip(settled_calls, calls, strict=True):
        question = one.question
        if question is None or not one.new:
            continue
        found.append(
            entries.Asked(
                question.at,
                question.id,
                question.conversation,
                question.number,
                len(question.call_ids),
                question.call,
                question.server,
                question.tool,
                this.manifest.spec(call.call.tool).digest,
                question.labels,
                tuple(sorted({code for code, _ in question.reasons})),
                question.revision,
                question.manifest,
                operands_digest(one.operands),
                shape_of(call.call.tool, call.arguments),
                question.digest,
                question.expires,
            )
        )
    return found


def kept(settled_calls: Sequence[Settled]) -> Generator[Effect, Any, None]:
    """Keep the new questions where they can be shown, before anybody can be told that they were asked."""
    for one in settled_calls:
        if one.question is not None and one.new:
            yield KeepQuestion(one.question)


def not_asked(settled_calls: Sequence[Settled]) -> Generator[Effect, Any, None]:
    """The round is decided anew: nobody is asked these questions, so what they hold is kept no longer."""
    for one in settled_calls:
        if one.question is not None and one.new:
            yield from _dropped(one.question.namespace, one.question.conversation, one.question.id)


# --- answering ------------------------------------------------------------------------------------------------------


def answer(
    conversation: str, question: str, verdict: Literal["approve", "refuse", "edit", "none"], by: str
) -> Generator[Effect, Any, Held]:
    """Journal an answer, or that nobody answered.

    Returns:
        The question with what became of it.

    Raises:
        Refused: it is not open any more; nothing was written.
        Unavailable: it could not be written.
    """
    for _ in range(MAX_RACES):
        state: State = yield LoadState(conversation)
        now: datetime = yield ReadClock()
        try:
            written = answering(state.questions, state.conversation, question, verdict, by, stamp(now))
        except ValueError as error:
            raise Refused(str(error)) from None
        try:
            after: State = yield Append(conversation, written, state.version)
        except Conflict:
            continue  # somebody else wrote, perhaps another answer
        held = after.questions[question]
        yield from _dropped(state.namespace, state.conversation, question)
        if verdict == "approve" and held.status is not Status.GRANTED:
            raise Refused(f"question {question} is {held.status.value}: {held.why}")
        return held
    raise Unavailable(f"the labels changed {MAX_RACES} times while an answer was recorded; try again")


def _dropped(namespace: str, conversation: str, question: str) -> Generator[Effect, Any, None]:
    """What a call would send is kept no longer than somebody may have to look at it."""
    try:
        yield DropQuestion(namespace, conversation, question)
    except Bug:
        raise
    except Exception:
        pass  # it is answered, and that is on record; what is still kept is dropped when somebody looks


# --- standing approvals -----------------------------------------------------------------------------------------------


def stand(conversation: str, question: Question, seconds: float, by: str) -> Generator[Effect, Any, Standing]:
    """Journal a standing approval for the tool and the one receiver of a question that was approved.

    Raises:
        Refused: there is not exactly one receiver that somebody vouches for, the question was not approved, or a
            control asked that no standing approval answers; nothing was written.
    """
    receivers = [one for one in question.receivers if one.role == "destination"]
    if len(receivers) != 1 or receivers[0].origin not in _GROUNDED or receivers[0].talks_back:
        raise Refused("a standing approval is for one receiver that somebody vouches for")
    codes = tuple(sorted({code for code, _ in question.reasons}))
    if not NEVER.isdisjoint(codes):
        raise Refused(f"no standing approval answers {', '.join(sorted(NEVER & set(codes)))}")
    if not 0 < seconds <= MAX_STANDING_SECONDS:
        raise Refused(f"a standing approval ends within {MAX_STANDING_SECONDS // 3600} hours")
    receiver = value_digest(Kind(receivers[0].kind), receivers[0].value)
    for _ in range(MAX_RACES):
        state: State = yield LoadState(conversation)
        held = state.questions.get(question.id)
        if held is None or held.body != question.digest or held.status not in (Status.GRANTED, Status.USED):
            raise Refused(f"question {question.id} was not approved in this conversation")
        if not state.exposure.labels <= held.bound.labels:
            raise Refused("labels have entered since the question was asked")
        now: datetime = yield ReadClock()
        name, at = standing_id(question.id), stamp(now)
        if name in state.standing:
            return state.standing[name]
        bound = held.bound
        entry = Stood(
            at,
            name,
            state.conversation,
            question.id,
            bound.tool.server,
            bound.tool.name,
            bound.spec,
            receiver,
            codes,
            bound.revision,
            bound.manifest,
            by,
            later(at, seconds),
        )
        try:
            after: State = yield Append(conversation, (entry,), state.version)
        except Conflict:
            continue
        return after.standing[name]
    raise Unavailable(f"the labels changed {MAX_RACES} times while an approval was recorded; try again")


MAX_STANDING_SECONDS: Final = 24 * 3600
_GROUNDED: Final = frozenset({"user", "operator", "trusted"})
