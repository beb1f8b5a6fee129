"""Answers and failures as the shapes of :mod:`interlock.serve.shapes`."""

from __future__ import annotations

from typing import Any

from interlock.errors import Conflict, InterlockError, Refused, Tampered, Unavailable, UnknownConversation
from interlock.model.decisions import Decision
from interlock.model.results import Outcome, refusal
from interlock.serve.problems import Problem, not_found


def translated(error: Exception) -> Problem:
    """What an exception is for whoever asked. Nothing of its text is repeated but what we wrote for callers."""
    match error:
        case Problem():
            return error
        case UnknownConversation():
            return not_found()
        case Tampered():
            return Problem(
                409,
                "damaged",
                "what is stored of this conversation contradicts itself; resume it to go on with every leg",
            )
        case Conflict():
            return Problem(503, "conflict", "other writers were first each time; send it again", retry_after=1)
        case Unavailable():
            return Problem(503, "store_unavailable", "the store did not answer as promised", retry_after=1)
        case Refused():
            return Problem(422, "refused", "this can't be recorded as it is: labels, ids or texts are malformed")
        case InterlockError():
            return Problem(503, "misconfigured", "the service is not able to decide; its log says why")
        case _:
            return Problem(500, "bug", "an error of the service; nothing was allowed")


def refused(decision: Decision) -> str:
    return "" if decision.runs else refusal(decision)


def decided_call(one: Outcome) -> dict[str, Any]:
    """As :class:`interlock.serve.shapes.DecidedCall`."""
    decision = one.decision
    return {
        "id": one.call_id,
        "number": one.number,
        # INVARIANT: only what is on record as allowed (or shadowed), and has no outcome, may run.
        "run": decision.runs and one.pending and one.number > 0,
        "verdict": decision.verdict.value,
        "code": decision.code,
        "codes": list(decision.codes),
        "reasons": [
            {
                "code": reason.code,
                "verdict": reason.verdict.value,
                "for_model": reason.for_model,
                "for_person": reason.for_person,
                "remedies": list(reason.remedies),
            }
            for reason in decision.reasons
        ],
        "causes": [
            {
                "label": cause.label,
                "at": cause.source.at if cause.source else "",
                "call": cause.source.call if cause.source else 0,
                "source": cause.source.tool if cause.source else "this turn",
            }
            for cause in decision.causes
        ],
        "remedies": [remedy.name for remedy in decision.remedies],
        "approvable": decision.approvable,
        "for_model": "" if decision.runs else one.for_model or refusal(decision),
        "repeated": False,
        "outcome": "pending" if one.pending else "none",
        "engine": decision.engine,
        "revision": decision.revision,
        "manifest": decision.manifest,
        "document": decision.document,
        "decision_id": decision.decision_id,
    }


def withheld(outcome: Outcome) -> bool:
    return outcome.result is None and bool(outcome.decision.reasons)


def observed_result(name: str, outcome: Outcome, *, repeated: bool) -> dict[str, Any]:
    """As :class:`interlock.serve.shapes.Observed`."""
    return {
        "conversation": name,
        "id": outcome.call_id,
        "number": outcome.number,
        "for_model": outcome.for_model,
        "is_error": outcome.is_error,
        "withheld": withheld(outcome),
        "repeated": repeated,
    }
