"""Verdicts and decisions, and how they are combined (T3, T4).

The strictest answer wins, in any order. If nothing spoke, the call is denied: there is no neutral element that
allows, so an empty set of controls can't open a gate.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from interlock.model.digests import NO_DIGEST, Digest
from interlock.model.labels import Label, Source
from interlock.model.routes import Remedy


class Verdict(StrEnum):
    """allow < ask < deny."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"

    @property
    def strictness(self) -> int:
        return _STRICTNESS[self]

    def stricter(self, other: Verdict) -> Verdict:
        """The stricter of both."""
        return self if self.strictness >= other.strictness else other


_STRICTNESS: Final = {Verdict.ALLOW: 0, Verdict.ASK: 1, Verdict.DENY: 2}

# Codes of refusals that no control made. Operators can tell "denied by rule" from "denied by failure".
ALLOWED: Final = "allowed"
ENGINE_ERROR: Final = "engine_error"
JOURNAL_ERROR: Final = "journal_error"
INVALID_CALL: Final = "invalid_call"
UNAVAILABLE: Final = "unavailable"
# What came of asking a person.
REFUSED: Final = "refused"
NO_ANSWER: Final = "no_answer"
OPERAND_CHANGED: Final = "operand_changed"
NOT_BINDABLE: Final = "not_bindable"
ASKED_ENOUGH: Final = "asked_enough"
IN_DOUBT: Final = "in_doubt"
# The one control whose objections nothing may be advised against.
CONTROL_PLANE: Final = "control_plane"
# What came of the outbox.
STAGED: Final = "staged"
STAGING_FAILED: Final = "staging_failed"
NOT_RELEASED: Final = "not_released"
FAILURES: Final = frozenset({ENGINE_ERROR, JOURNAL_ERROR, INVALID_CALL, STAGING_FAILED})
GATE_CODES: Final = frozenset(
    {
        *(ALLOWED, ENGINE_ERROR, JOURNAL_ERROR, INVALID_CALL, UNAVAILABLE),
        *(REFUSED, NO_ANSWER, OPERAND_CHANGED, NOT_BINDABLE, ASKED_ENOUGH, IN_DOUBT),
        *(STAGED, STAGING_FAILED, NOT_RELEASED),
    }
)


class Who(StrEnum):
    """Who decided: the policy's rules, a failure of ours, a person, or nobody, who should have answered."""

    RULE = "rule"
    FAILURE = "failure"
    PERSON = "person"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a verdict is not allow.

    Attributes:
        code: of the control that objected, or one of :data:`GATE_CODES`.
        verdict: what this reason alone would give.
        for_model: what the model may be told; holds no argument values, no secrets, no way around.
        for_person: what a person is told; may name tools and labels.
        remedies: names of changes that may lift the objection, as the control says; see ``Decision.remedies``.
    """

    code: str
    verdict: Verdict
    for_model: str
    for_person: str
    remedies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cause:
    """A label that took part in a refusal and where it came from.

    ``source`` is None for a label that this call itself, or a call beside it in the same batch, would bring.
    """

    label: Label
    source: Source | None


@dataclass(frozen=True, slots=True)
class Decision:
    """The strictest answer, with everything that is needed to explain it later.

    Attributes:
        verdict: allow, ask or deny.
        reasons: every objection, strictest first, then by code; empty when allowed.
        causes: the labels that took part, by label; empty when allowed.
        revision: of the controls and settings that answered: their digest, or what an OPA server reports.
        manifest: digest of the manifest.
        document: digest of the document that was asked; empty when none was.
        engine: name of the engine; empty when none was asked.
        decision_id: under which the engine's own log has it; empty when it keeps none.
        enforced: False only in shadow mode, where the call runs all the same.
        question: id of the question that a person is asked, or was asked.
        grant: id of the approval that lets the call run; empty when the policy allows it by itself.
        terminal: calls of this shape were denied so often that the model is told to stop.
        draft: id of the draft that the call became, or that it delivers.
        remedies: what would make it allowed; the policy was asked about each of them.
    """

    verdict: Verdict
    reasons: tuple[Reason, ...] = ()
    causes: tuple[Cause, ...] = ()
    revision: str = ""
    manifest: str = ""
    document: Digest = NO_DIGEST
    engine: str = ""
    enforced: bool = True
    decision_id: str = ""
    question: str = ""
    grant: str = ""
    terminal: bool = False
    draft: str = ""
    remedies: tuple[Remedy, ...] = ()

    @property
    def who(self) -> Who:
        """Who decided. A call that is asked has been decided by nobody yet."""
        if self.verdict is Verdict.ASK or self.code == NO_ANSWER:
            return Who.NOBODY
        if self.grant or self.code == REFUSED:
            return Who.PERSON
        return Who.FAILURE if self.code in FAILURES else Who.RULE

    @property
    def code(self) -> str:
        """Code of the strictest reason; ``allowed`` when nothing objected."""
        return self.reasons[0].code if self.reasons else ALLOWED

    @property
    def codes(self) -> tuple[str, ...]:
        return tuple(reason.code for reason in self.reasons)

    @property
    def drafted(self) -> bool:
        """Was the call put into the outbox instead of being made?"""
        return self.verdict is Verdict.ASK and bool(self.draft)

    @property
    def runs(self) -> bool:
        """Does the call run? In shadow mode all do whose refusal is not enforced even there."""
        return self.verdict is Verdict.ALLOW or not self.enforced

    @property
    def approvable(self) -> bool:
        """Could a person's approval change the outcome? Never for a denial."""
        return self.verdict is Verdict.ASK

    @property
    def candidates(self) -> tuple[str, ...]:
        """Changes that the objecting controls name, whether or not they would help here."""
        return tuple(sorted({one for reason in self.reasons for one in reason.remedies}))


def combined(reasons: Iterable[Reason], answered: int) -> tuple[Verdict, tuple[Reason, ...]]:
    """The strictest verdict of all that spoke, with the objections in an order that input order can't change.

    Args:
        reasons: one per control that objected.
        answered: how many controls answered at all. With none, the call is denied.
    """
    objections = tuple(sorted(reasons, key=lambda reason: (-reason.verdict.strictness, reason.code)))
    if not answered:
        nobody = failure(ENGINE_ERROR, "no control is loaded, so nothing can allow this call")
        return Verdict.DENY, (nobody, *objections)
    return (objections[0].verdict if objections else Verdict.ALLOW), objections


_MODEL_TEXTS: Final = {
    ENGINE_ERROR: "The security policy could not be evaluated, so the call was not made. Trying again will not help"
    " until the operator has repaired it.",
    JOURNAL_ERROR: "The security journal could not be written, so the call was not made.",
    INVALID_CALL: "The call was malformed and was not made.",
    UNAVAILABLE: "This tool is not available here. Do not call it again.",
    REFUSED: "A person was asked and refused this call. Do not try it again in another form.",
    NO_ANSWER: "This call needs a person's approval, and nobody answered.",
    OPERAND_CHANGED: "A file that this call names was changed after a person had approved it, so the approval is void.",
    NOT_BINDABLE: "This call needs a person's approval, and a file that it names can't be read, so nobody can approve"
    " what it holds.",
    STAGING_FAILED: "This call is only ever drafted for a person to release, and it could not be drafted. Nothing was"
    " sent.",
    NOT_RELEASED: "This draft is no longer what a person released, so nothing was sent.",
    ASKED_ENOUGH: "Calls like this one were denied three times, so nobody is asked again.",
}


def failure(code: str, problem: str, *, for_model: str = "") -> Reason:
    """A denial by failure. ``problem`` is for people; the model learns only the kind of failure."""
    return Reason(code, Verdict.DENY, for_model or _MODEL_TEXTS[code], problem)
