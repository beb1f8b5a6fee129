"""The strict reading of what a policy engine says (T4).

An answer is an object from the code of every loaded control to ``{"verdict": …}`` with optional ``remedies``. A code
that is missing, a code too many, an unknown key, a wrong type or a word that is no verdict makes the whole answer
void: a control that did not answer has not allowed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from interlock.errors import EngineUnavailable, NotCanonical
from interlock.model.canonical import Json, parse
from interlock.model.decisions import Reason, Verdict, combined

CODE: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
MAX_REMEDIES: Final = 16


@dataclass(frozen=True, slots=True)
class ControlText:
    """What a control says about itself (its METADATA): shown with its objections.

    Attributes:
        title: a few words.
        description: one or two sentences for a person.
        for_model: what the model is told; never built from input.
        own: False for a control that the user added.
    """

    code: str
    title: str
    description: str
    for_model: str
    own: bool = True


class Answered(str):
    """The text of an answer that says who gave it, for engines that speak to others or stand in for each other.

    It is read like any other text. Attributes:
        engine: name of the engine that answered this time.
        revision: of the policies that answered, as the engine reports it; empty when it reports none.
        decision_id: under which the engine has logged it; empty when it has not.
    """

    __slots__ = ("decision_id", "engine", "revision")

    engine: str
    revision: str
    decision_id: str

    def __new__(cls, text: str, *, engine: str, revision: str, decision_id: str = "") -> Self:
        self = super().__new__(cls, text)
        self.engine, self.revision, self.decision_id = engine, revision, decision_id
        return self


@dataclass(frozen=True, slots=True)
class Answer:
    verdict: Verdict
    remedies: tuple[str, ...] = ()


def parse_answers(raw: str | bytes, controls: Mapping[str, ControlText]) -> dict[str, Answer]:
    """Read an engine's answer.

    Args:
        raw: JSON text as the engine gave it.
        controls: every loaded control by code.

    Raises:
        EngineUnavailable: the answer is not exactly one well-formed answer per control. The message names codes and
            shapes, never values.
    """
    try:
        value = parse(raw)
    except NotCanonical as error:
        raise EngineUnavailable(f"the answer is not JSON that can be trusted: {error}") from None
    if not isinstance(value, dict):
        raise EngineUnavailable(f"the answer is {type(value).__name__}, not an object of answers by code")
    silent = sorted(set(controls) - set(value))
    if silent:
        raise EngineUnavailable(f"controls that did not answer: {', '.join(silent)}")
    strange = set(value) - set(controls)
    if strange:
        raise EngineUnavailable(f"{len(strange)} answers came from controls that are not loaded")
    return {code: _answer(code, one) for code, one in value.items()}


def _answer(code: str, value: Json) -> Answer:
    if not isinstance(value, dict):
        raise EngineUnavailable(f"control {code!r} answered {type(value).__name__}, not an object with a verdict")
    if not value.keys() <= {"verdict", "remedies"}:
        raise EngineUnavailable(f"control {code!r} answered with unknown keys")
    word = value.get("verdict")
    if not isinstance(word, str) or word not in Verdict.__members__.values():
        raise EngineUnavailable(f"control {code!r} gave no verdict: write allow, ask or deny")
    remedies = value.get("remedies", [])
    if not isinstance(remedies, list) or len(remedies) > MAX_REMEDIES:
        raise EngineUnavailable(f"control {code!r}: remedies must be a list of at most {MAX_REMEDIES} names")
    names = []
    for remedy in remedies:
        if not isinstance(remedy, str) or not CODE.fullmatch(remedy):
            raise EngineUnavailable(f"control {code!r}: a remedy is a lower-case name")
        names.append(remedy)
    return Answer(Verdict(word), tuple(names))


def judged(answers: Mapping[str, Answer], controls: Mapping[str, ControlText]) -> tuple[Verdict, tuple[Reason, ...]]:
    """Combine parsed answers: the strictest wins, with the text of each control that objected."""
    reasons = [
        Reason(code, answer.verdict, controls[code].for_model, controls[code].description, answer.remedies)
        for code, answer in answers.items()
        if answer.verdict is not Verdict.ALLOW
    ]
    return combined(reasons, len(answers))
