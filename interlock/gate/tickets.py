"""Calls taken up again: they were decided by another process, and their result is observed here.

Nothing of a ticket is stored but what the journal says of its decision: the digest of the exact call, and the labels
that it may bring. Whoever reports the result hands the call in again, and the digest says whether it is that one.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

from interlock.errors import Refused
from interlock.gate import artifact_steps, steps
from interlock.gate.effects import Effect, LoadState, ResolvePaths
from interlock.model.calls import Call, freeze
from interlock.model.decisions import Decision, Verdict
from interlock.model.digests import Digest
from interlock.model.document import asked
from interlock.model.entries import Ruling
from interlock.model.narrowing import places_to_resolve
from interlock.model.results import Allowed
from interlock.model.state import State
from interlock.model.tools import widened


def taken_up(call: Call, decided: Ruling, rules: steps.Rules) -> Generator[Effect, Any, Allowed]:
    """The allowed call of a decision that is on record.

    A spec that has changed since can only add: the labels of the decision stay, and if the manifest is another one, no
    field of the result is read for itself.

    Raises:
        Refused: it was not allowed, or this is not the very call.
    """
    if not decided.runs:
        raise Refused("the call was not allowed; only allowed calls have a result to observe")
    frozen, spec = freeze(call, rules.manifest, decided.call_id)
    if frozen.digest != decided.call:
        raise Refused("this is not the call that was decided under this id: its tool or its arguments are others")
    (located,) = yield from steps._located([steps._Proposal(decided.call_id, asked(frozen, spec), None)], rules)
    one = located.asked
    assert one is not None  # located as it was given
    spec = one.spec
    if decided.manifest != rules.manifest.digest:
        spec = replace(spec, fields=(), ids=())
    brought = tuple(one for one in (*decided.private, *decided.untrusted) if one not in spec.private + spec.untrusted)
    spec = widened(spec, brought, tuple(one for one in decided.opens if one not in spec.opens))
    decision = Decision(
        Verdict.ALLOW,
        revision=decided.revision,
        manifest=decided.manifest,
        document=Digest(decided.document),
        engine=decided.engine,
        decision_id=decided.decision_id,
    )
    return Allowed(decided.number, one.call, spec, decision, one.reads, one.writes)


def late(conversation: str, call: Call, number: int, rules: steps.Rules) -> Generator[Effect, Any, Allowed]:
    """A call that ran at a host which runs calls whatever we say, such as after asking somebody itself.

    The labels in flight under its number are in the journal, and join whatever is found here.

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
    return Allowed(number, frozen, one.spec, decision, one.reads, one.writes, one.carried)
