"""A ticket taken up again: the call was allowed by another process, and its result is observed here.

Nothing of a ticket is stored but what the journal says of its decision: the digest of the exact call, and the labels
that it may bring. Whoever reports the result hands the call in again, and the digest says whether it is that one.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

from interlock.errors import Refused
from interlock.gate import steps
from interlock.gate.effects import Effect
from interlock.model.calls import Call, freeze
from interlock.model.decisions import Decision, Verdict
from interlock.model.digests import Digest
from interlock.model.document import asked
from interlock.model.entries import Ruling
from interlock.model.results import Allowed
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
