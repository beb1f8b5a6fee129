"""Calls whose result arrives where nobody holds their ticket: hooks are a new process for each event.

A result is taken up by the call that it is of and its number in the conversation. What was decided stays decided: the
labels in flight are in the journal, and join whatever is found here.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from interlock.gate import artifact_steps
from interlock.gate.effects import Effect, LoadState, ResolvePaths
from interlock.gate.steps import Rules
from interlock.model.calls import Call, freeze
from interlock.model.decisions import Decision, Verdict
from interlock.model.document import asked
from interlock.model.narrowing import places_to_resolve
from interlock.model.results import Allowed, Outcome, Ticket
from interlock.model.state import State


def taken_up(conversation: str, call: Call, number: int, rules: Rules) -> Generator[Effect, Any, Ticket]:
    """The ticket of a call that ran, so that its result can be observed.

    Args:
        call: as it ran. Arguments that are not those that were decided bring the labels that *they* can bring, besides
            those that were decided; its result is then withheld.
        number: of the decision; 0 when there was none: every label that the call can bring joins as a late result.

    Raises:
        Refused: the call is malformed.
    """
    state: State = yield LoadState(conversation)
    frozen, spec = freeze(call, rules.manifest)
    answers: dict[str, tuple[str, ...]] = {}
    for path in places_to_resolve(spec, frozen.thawed()) if spec.when else ():
        answers[path] = yield ResolvePaths((path,))
    one = yield from artifact_steps.keyed(asked(frozen, spec, answers))
    one = yield from artifact_steps.loaded(one, state.namespace)
    flight = state.in_flight.get(number)
    if flight is None or flight.call != frozen.digest:
        yield from artifact_steps.labelled(one, state)  # nobody foresaw what it would write
    verdict = Verdict.ALLOW if flight is not None else Verdict.DENY
    decision = Decision(verdict, revision=rules.revision, manifest=rules.manifest.digest)
    allowed = Allowed(number, frozen, one.spec, decision, one.reads, one.writes, one.carried)
    pending = Outcome(str(frozen.tool), frozen.id, decision, number, pending=True)
    return Ticket(conversation, {frozen.id: pending}, {frozen.id: allowed})
