"""The steps by which a call of a staged tool becomes a draft, and a released draft a call (T8, T9).

A draft is decided like any call; what the policy denies is never drafted. It runs nothing, so it brings no label. A
release is consumed in the same append as the decision that it allows, under the label version that both were made
under: of any number of processes, one delivers it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from interlock.errors import InterlockError, Refused
from interlock.gate.approval_steps import Round, Settled, read
from interlock.gate.effects import Effect, KeepDraft, ReadPages
from interlock.model.decisions import (
    ASKED_ENOUGH,
    NOT_BINDABLE,
    NOT_RELEASED,
    STAGED,
    STAGING_FAILED,
    Decision,
    Reason,
    Verdict,
    failure,
)
from interlock.model.document import Asked
from interlock.model.drafts import (
    DENIED,
    MAX_OPEN,
    Draft,
    Status,
    draft_id,
    is_full,
    lapses,
    open_draft,
)
from interlock.model.entries import Drafted, Lapsed, Taken
from interlock.model.grants import ENOUGH, Bound, shape_of
from interlock.model.operands import Operand, operands_digest, unreadable
from interlock.model.question import asked_about
from interlock.model.times import later
from interlock.model.tools import ToolId


@dataclass(frozen=True, slots=True)
class OutboxRules:
    """What is drafted here instead of sent.

    Attributes:
        tools: whose calls are drafted.
        expiry: for how many seconds a draft may be released and delivered.
        delivering: id of the released draft that a round delivers; only the outbox itself sets it.
    """

    tools: frozenset[ToolId]
    expiry: float = 86_400.0
    delivering: str = ""

    def stages(self, tool: ToolId, verdict: Verdict) -> bool:
        """Does such a call go through the outbox? What is denied is denied, and not drafted."""
        return bool(self.delivering) or (tool in self.tools and verdict is not Verdict.DENY)


_STAGED: Final = Reason(
    STAGED,
    Verdict.ASK,
    "This tool's calls are drafted, and a person releases them.",
    "the operator routes this tool to the outbox",
)


def bound(one: Asked, decision: Decision, operands: Sequence[Operand], this: Round) -> Bound:
    """What a release of this call is bound to, as things are now."""
    labels = this.state.exposure.labels | {*one.labels, *one.spec.untrusted}
    codes = frozenset(decision.codes) - {STAGED}
    spec = this.manifest.spec(one.call.tool).digest
    rules = (decision.revision, decision.manifest)
    return Bound(one.call.digest, one.call.tool, spec, labels, codes, *rules, operands_digest(operands))


def staged(
    one: Asked,
    calls: Sequence[Asked],
    decision: Decision,
    number: int,
    this: Round,
    outbox: OutboxRules,
    drafted: dict[str, str],
    *,
    record: bool,
) -> Generator[Effect, Any, Settled]:
    """What comes of a call that goes through the outbox.

    Args:
        decision: the policy's, with its causes even when it allows.
        drafted: the drafts of this round, by the digest of their call; identical calls are one draft.
        record: False for a dry run, of which nothing is kept.
    """
    if outbox.delivering:
        return (yield from _delivered(one, decision, number, this, outbox.delivering))
    state, shape = this.state, shape_of(one.call.tool, one.arguments)
    same = drafted.get(one.call.digest) or open_draft(state.drafts, one.call.digest)
    if same:
        return Settled(_asks(decision, same))
    if state.denials.get(shape, 0) >= ENOUGH:
        return Settled(
            replace(_refused(decision, ASKED_ENOUGH, f"{ENOUGH} calls of this shape were denied"), terminal=True)
        )
    if is_full(state.drafts, len(drafted)):
        return Settled(_refused(decision, STAGING_FAILED, f"{MAX_OPEN} drafts wait already; release or reject some"))
    operands = yield from read(one)
    if unreadable(operands):
        problem = f"can't be read: {', '.join(unreadable(operands)[:4])}"
        return Settled(_refused(decision, NOT_BINDABLE, problem), shape=shape)
    name = draft_id(state.conversation, number, one.call.digest)
    draft = yield from _draft(one, calls, decision, name, number, operands, this, later(this.at, outbox.expiry))
    body = draft.encode()
    if record:
        try:
            # INVARIANT: what a person will be shown is stored before the model is told that there is a draft.
            yield KeepDraft(draft)
        except InterlockError as error:
            return Settled(_refused(decision, STAGING_FAILED, f"it could not be drafted: {error}"))
    own = bound(one, decision, operands, this)
    drafted[one.call.digest] = name
    entry = Drafted(
        this.at,
        name,
        state.conversation,
        number,
        own.call,
        own.tool.server,
        own.tool.name,
        own.spec,
        tuple(sorted(own.labels)),
        tuple(sorted(own.codes)),
        own.revision,
        own.manifest,
        own.operands,
        shape,
        draft.digest,
        len(body),
        draft.question.expires,
    )
    return Settled(_asks(decision, name), (entry,), operands=operands)


def _draft(
    one: Asked,
    calls: Sequence[Asked],
    decision: Decision,
    name: str,
    number: int,
    operands: tuple[Operand, ...],
    this: Round,
    expires: str,
) -> Generator[Effect, Any, Draft]:
    if this.pages is None:
        causes = tuple(sorted({each.source.call for each in decision.causes if each.source is not None}))
        this.pages = yield ReadPages(causes)
    question = asked_about(
        one,
        id=name,
        call_ids=[one.call.id],
        number=number,
        setting=this.setting,
        reasons=decision.reasons,
        causes=decision.causes,
        beside=[each for each in calls if each is not one],
        operands=operands,
        labels=bound(one, decision, operands, this).labels,
        pages=this.pages,
        rules=(decision.revision, decision.manifest),
        at=this.at,
        expires=expires,
    )
    return Draft(question, one.call.arguments.decode(), one.call.id)


def _asks(decision: Decision, name: str) -> Decision:
    return replace(decision, verdict=Verdict.ASK, reasons=(_STAGED, *decision.reasons), draft=name)


def _refused(decision: Decision, code: str, problem: str) -> Decision:
    return replace(decision, verdict=Verdict.DENY, reasons=(failure(code, problem), *decision.reasons))


def _delivered(one: Asked, decision: Decision, number: int, this: Round, name: str) -> Generator[Effect, Any, Settled]:
    """A released draft, decided anew: it runs, or its release lapses.

    Raises:
        Refused: nobody has released it, or somebody else delivers it; nothing is recorded.
    """
    kept = this.state.drafts.get(name)
    if kept is None or kept.status is not Status.RELEASED or not kept.at <= this.at < kept.expires:
        raise Refused(f"draft {name} is not released")
    if decision.verdict is Verdict.DENY:
        return Settled(replace(decision, draft=name), (Lapsed(this.at, name, DENIED),))
    operands = yield from read(one)
    why = lapses(kept, bound(one, decision, operands, this))
    if why:
        denied = replace(_refused(decision, NOT_RELEASED, f"draft {name}: {why}"), draft=name)
        return Settled(denied, (Lapsed(this.at, name, why),))
    allowed = replace(decision, verdict=Verdict.ALLOW, reasons=(), causes=(), grant=name, draft=name)
    return Settled(allowed, (Taken(this.at, name, number, one.call.digest),), operands=operands)
