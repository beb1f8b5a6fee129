"""The steps by which refused calls get their remedies: each change is made, and the policy is asked about it.

They run after the decision is on record, so they can hold up nothing and allow nothing. Whatever fails here, fewer
remedies are offered.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from interlock.errors import Bug
from interlock.gate.asking_steps import not_run
from interlock.gate.effects import Effect, LoadState, ReadClock
from interlock.gate.steps import Rules, weigh
from interlock.model.calls import Call
from interlock.model.decisions import CONTROL_PLANE, Decision, Verdict
from interlock.model.digests import content_digest
from interlock.model.remedies import MAX_TRIES, Trial, can_be_helped, trials
from interlock.model.results import Ticket, refusal
from interlock.model.routes import Change, Remedy
from interlock.model.state import State
from interlock.model.times import stamp

# INVARIANT: a round of refused calls costs at most so many evaluations more (T18).
MAX_TRIES_OF_A_ROUND: Final = 32
APPROVAL: Final = Remedy((Change.APPROVAL,))


def remedied(
    conversation: str, ticket: Ticket, calls: Sequence[Call], rules: Rules, texts: Sequence[str]
) -> Generator[Effect, Any, Ticket]:
    """The same ticket, with remedies in the refusals, and in what the model is told of them.

    Each call is judged alone, as it would be if it were proposed next.
    """
    proposed = {**dict(zip(ticket.outcomes, calls, strict=True)), **ticket.instead}
    outcomes = dict(ticket.outcomes)
    left = MAX_TRIES_OF_A_ROUND
    try:
        for call_id, outcome in ticket.outcomes.items():
            decision = outcome.decision
            if outcome.pending or not (asks(decision) or can_be_helped(decision)):
                continue
            budget = min(left, MAX_TRIES)
            found, used = yield from remedies_of(conversation, decision, (proposed[call_id],), rules, texts, budget)
            left -= used
            if found:
                decision = replace(decision, remedies=found)
                outcomes[call_id] = replace(outcome, decision=decision, for_model=refusal(decision))
    except BaseException:
        # Cancelled meanwhile: nobody gets this ticket, so nothing of the round is run.
        yield from not_run(conversation, ticket.allowed.values())
        raise
    return replace(ticket, outcomes=outcomes)


def asks(decision: Decision) -> bool:
    """Is a person asked about this call, who may approve it? Nothing is said of how to get by the gate's own files."""
    return decision.verdict is Verdict.ASK and bool(decision.question) and CONTROL_PLANE not in decision.codes


def remedies_of(
    conversation: str,
    decision: Decision,
    calls: Sequence[Call],
    rules: Rules,
    texts: Sequence[str],
    budget: int = MAX_TRIES,
) -> Generator[Effect, Any, tuple[tuple[Remedy, ...], int]]:
    """What would make the first of these calls allowed, and how many evaluations it took to find out.

    Args:
        calls: the refused call, and those that are proposed beside it.
        texts: what stands where the person types, newest first; it counts if it was journalled as typed.
    """
    found: list[Remedy] = []
    used = 0
    names = can_be_helped(decision)
    try:
        if names and budget > 0:
            now: datetime = yield ReadClock()
            state: State = yield LoadState(conversation)
            base = (yield from weigh(calls, state, now, rules))[0]
            used += 1
            if base.asked is not None:
                typed = [one for one in texts if content_digest(one) in state.texts]
                some = trials(base.asked, base.setting, state, names, stamp(now), typed, rules.book)
                for trial in some:
                    if used >= budget:
                        break
                    if _known(trial.remedy, found):
                        continue
                    used += 1
                    if (yield from _opens(trial, calls, now, rules)):
                        found.append(trial.remedy)
    except Bug:
        raise
    except Exception:
        pass  # what could not be tried is not offered
    if asks(decision):
        found.append(APPROVAL)
    return tuple(found), used


def _known(remedy: Remedy, found: Sequence[Remedy]) -> bool:
    """Is there a remedy already that changes the same, or less?"""
    return any(set(one.changes) <= set(remedy.changes) for one in found)


def _opens(trial: Trial, calls: Sequence[Call], now: datetime, rules: Rules) -> Generator[Effect, Any, bool]:
    first, *beside = calls
    weighed = yield from weigh((replace(first, arguments=trial.arguments), *beside), trial.state, now, rules)
    return weighed[0].decision.verdict is Verdict.ALLOW
