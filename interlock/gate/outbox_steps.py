"""What a person and the host do with drafts (T8, T9): release, reject, deliver."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from interlock.errors import Conflict, InterlockError, Refused, Unavailable
from interlock.gate.approval_steps import Round, read
from interlock.gate.draft_steps import OutboxRules, bound
from interlock.gate.effects import Append, DropDraft, Effect, LoadState, ReadClock, ReadDraft
from interlock.gate.steps import Rules, propose, run_allowed, weigh
from interlock.model.calls import Call
from interlock.model.decisions import Verdict
from interlock.model.drafts import WAITING, Draft, Kept, Status, read_draft
from interlock.model.entries import Rejected, Released
from interlock.model.labels import Label
from interlock.model.operands import unreadable
from interlock.model.results import Outcome
from interlock.model.state import State
from interlock.model.times import stamp

MAX_RACES: Final = 256


def call_of(draft: Draft) -> Call:
    """The call that a draft is of, with its exact arguments; its id says that it is the draft's."""
    from interlock.model.canonical import unpack

    return Call(draft.question.tool, unpack(draft.arguments.encode()), draft.id, draft.question.server)


def release(
    conversation: str, draft: Draft, shown: Collection[Label], by: str, rules: Rules
) -> Generator[Effect, Any, Kept]:
    """Decide a draft anew and journal its release: it may be delivered once.

    Args:
        shown: everything that the person was shown: what the conversation held, and what the call may bring.

    Raises:
        Refused: it does not wait for a person, labels have entered that were not shown, its tool is another one by now,
            or the policy denies it now; nothing was written.
        Unavailable: it could not be written.
    """
    for _ in range(MAX_RACES):
        state: State = yield LoadState(conversation)
        now: datetime = yield ReadClock()
        at = stamp(now)
        kept = waiting(state, draft.id, at)
        if kept.status is not Status.DRAFTED:
            raise Refused(f"draft {draft.id} is released already")
        if rules.manifest.spec(kept.bound.tool).digest != kept.bound.spec:
            raise Refused(f"draft {draft.id}: its tool was declared anew since; reject it and have it drafted again")
        (found,) = yield from weigh([call_of(draft)], state, now, rules)
        one, decision = found.asked, found.decision
        if one is None or one.call.digest != kept.bound.call:
            raise Refused(f"draft {draft.id} is no call that could be made")
        if decision.verdict is Verdict.DENY:
            raise Refused(f"draft {draft.id}: the policy denies it now ({', '.join(decision.codes)})")
        operands = yield from read(one)
        if unreadable(operands):
            raise Refused(f"draft {draft.id}: can't be read: {', '.join(unreadable(operands)[:4])}")
        own = bound(one, decision, operands, Round(state, found.setting, rules.manifest, None, at))
        if not own.labels <= set(shown):
            raise Refused(f"draft {draft.id}: labels have entered since it was shown; show it again")
        entry = Released(
            at,
            draft.id,
            state.conversation,
            own.call,
            tuple(sorted(own.labels)),
            tuple(sorted(own.codes)),
            own.revision,
            own.manifest,
            own.operands,
            by,
        )
        try:
            after: State = yield Append(conversation, (entry,), state.version)
        except Conflict:
            continue  # somebody wrote meanwhile, perhaps another release
        return after.drafts[draft.id]
    raise Unavailable(f"the labels changed {MAX_RACES} times while a release was recorded; try again")


def reject(conversation: str, draft: str, by: str) -> Generator[Effect, Any, Kept]:
    """Journal that a draft is never to be sent, and forget what it would have sent.

    Raises:
        Refused: it does not wait for a person, nor for its delivery; nothing was written.
        Unavailable: it could not be written.
    """
    for _ in range(MAX_RACES):
        state: State = yield LoadState(conversation)
        now: datetime = yield ReadClock()
        waiting(state, draft, stamp(now))
        try:
            after: State = yield Append(conversation, (Rejected(stamp(now), draft, by),), state.version)
        except Conflict:
            continue
        yield from _forget(state, draft)
        return after.drafts[draft]
    raise Unavailable(f"the labels changed {MAX_RACES} times while a rejection was recorded; try again")


def waiting(state: State, draft: str, at: str) -> Kept:
    """A draft that waits for a person, or for its delivery. Raises Refused."""
    kept = state.drafts.get(draft)
    if kept is None:
        raise Refused(f"no draft {draft!r} is known in this conversation")
    if kept.status not in WAITING:
        raise Refused(f"draft {draft} is {kept.status.value}")
    if not kept.at <= at < kept.expires:
        raise Refused(f"draft {draft} could be released from {kept.at} until {kept.expires}; it is {at}")
    return kept


def deliver(conversation: str, draft: str, rules: Rules) -> Generator[Effect, Any, Outcome | None]:
    """Run a released draft, once, with exactly its bytes; it is decided anew right before, and journalled before.

    Returns:
        Its outcome; None when it is not released, or somebody else delivers it.

    Raises:
        Tampered: what is stored is not what was drafted; nothing was run.
    """
    state: State = yield LoadState(conversation)
    kept = state.drafts.get(draft)
    if kept is None or kept.status is not Status.RELEASED:
        return None
    body: bytes | None = yield ReadDraft(state.namespace, state.conversation, draft)
    if body is None:
        raise Refused(f"draft {draft} is not stored any more; reject it")
    call = call_of(read_draft(body, kept.body))
    outbox = rules.outbox or OutboxRules(frozenset())
    ticket = yield from propose(conversation, [call], replace(rules, outbox=replace(outbox, delivering=draft)))
    allowed = ticket.allowed.get(draft)
    if allowed is None:
        outcome = ticket.outcomes[draft]
        return outcome if outcome.number else None
    outcome = yield from run_allowed(conversation, allowed)
    yield from _forget(state, draft)
    return outcome


def _forget(state: State, draft: str) -> Generator[Effect, Any, None]:
    """What a draft would send is stored no longer than somebody may have to look at it."""
    try:
        yield DropDraft(state.namespace, state.conversation, draft)
    except InterlockError:
        pass  # it is over, and that is on record; what is still stored is dropped when somebody looks


def own_labels(draft: Draft, kept: Kept, state: State) -> Sequence[Label]:
    """What is shown of the labels of a draft: those at its drafting, and what has entered since."""
    return tuple(sorted({*draft.question.labels, *kept.bound.labels, *state.exposure.labels}))
