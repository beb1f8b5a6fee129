"""What requests and answers look like. Requests are read strictly: an unknown key, a repeated key, a wrong type or a
value that has no canonical form is refused before anything is decided."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from interlock.errors import NotCanonical
from interlock.model.canonical import parse
from interlock.model.entries import Ruling
from interlock.serve.problems import Problem

MAX_CALLS: Final = 64
MAX_LABELS: Final = 64
MAX_EVALUATIONS: Final = 64

_STRICT: Final = ConfigDict(extra="forbid", strict=True, frozen=True)

CallId = Annotated[str, Field(min_length=1, max_length=256, description="chosen by the agent, once in a conversation")]
LabelText = Annotated[str, Field(max_length=160)]
Verdict = Literal["allow", "ask", "deny"]


class Shape(BaseModel):
    model_config = _STRICT


# --- requests ---------------------------------------------------------------------------------------------------------


class Begin(Shape):
    """A new conversation."""

    labels: Annotated[list[LabelText], Field(max_length=MAX_LABELS)] = []
    text: Annotated[str, Field(description="what the person typed first; needs the right `speak`")] = ""


class Nothing(Shape):
    """An empty object."""


class Resume(Shape):
    """A conversation that is taken up again."""

    alone: Annotated[
        bool, Field(description="nobody else works on it: calls without an outcome are in doubt, their labels join")
    ] = False


class ProposedCall(Shape):
    """A tool call as the model wrote it."""

    id: CallId
    name: Annotated[str, Field(max_length=256)]
    arguments: dict[str, Any]
    server: Annotated[str, Field(max_length=256)] = ""


class Propose(Shape):
    """All calls of one turn of the model: they are decided together."""

    calls: Annotated[list[ProposedCall], Field(min_length=1, max_length=MAX_CALLS)]

    @model_validator(mode="after")
    def _each_id_once(self) -> Propose:
        if len({one.id for one in self.calls}) != len(self.calls):
            raise ValueError("two calls of one turn carry the same id")
        return self


class Result(Shape):
    """What a tool returned."""

    content: Annotated[Any, Field(description="text, or any JSON value")]
    external: Annotated[bool, Field(description="did the call touch the outside? false only when you know")] = True
    labels: Annotated[list[LabelText], Field(max_length=MAX_LABELS)] = []
    is_error: bool = False


class Observe(Shape):
    """What came of an allowed call: the call as it was proposed, and its result or `failed`."""

    call: ProposedCall
    result: Result | None = None
    failed: Annotated[bool, Field(description="the tool raised or timed out; nothing of its message is shown")] = False

    @model_validator(mode="after")
    def _one_of_both(self) -> Observe:
        if (self.result is not None) == self.failed:
            raise ValueError("give a result, or failed: true")
        return self


class Admit(Shape):
    """Content that enters without a tool."""

    text: str
    labels: Annotated[list[LabelText], Field(min_length=1, max_length=MAX_LABELS)]
    source: Annotated[str, Field(min_length=1, max_length=1024)]


class Say(Shape):
    """What the person typed; with `pasted`, what they brought from somewhere else."""

    text: Annotated[str, Field(min_length=1)]
    pasted: bool = False


# --- answers ----------------------------------------------------------------------------------------------------------


class Begun(Shape):
    conversation: str
    damage: Annotated[str, Field(description="what was wrong with the stored one; then this one has every leg")] = ""


class Objection(Shape):
    code: str
    verdict: Verdict
    for_model: str
    for_person: str
    remedies: list[str]


class CauseShape(Shape):
    label: str
    at: str
    call: int
    source: str


class DecidedCall(Shape):
    id: str
    number: Annotated[int, Field(description="of the call in its conversation; 0 when it is not on record")]
    run: Annotated[bool, Field(description="run the tool if this is true, and never otherwise")]
    verdict: Verdict
    code: str
    codes: list[str]
    reasons: list[Objection]
    causes: list[CauseShape]
    remedies: list[str]
    approvable: bool
    for_model: Annotated[str, Field(description="the result to hand to the model when the tool does not run")]
    repeated: Annotated[bool, Field(description="this is the decision of an earlier request")]
    outcome: Literal["none", "pending", "observed", "failed", "in_doubt"]
    engine: str
    revision: str
    manifest: str
    document: str
    decision_id: Annotated[str, Field(description="under which the engine's own log has it; empty when it has none")]


class Proposed(Shape):
    conversation: str
    calls: list[DecidedCall]


class Observed(Shape):
    conversation: str
    id: str
    number: int
    for_model: str
    is_error: bool
    withheld: Annotated[bool, Field(description="the result is not on record, or another one is: do not show it")]
    repeated: bool


class Admitted(Shape):
    """It is on record: now the model may see it."""

    conversation: str


class HeldLabel(Shape):
    label: str
    at: str
    call: int
    source: str
    digest: str


class UnderWay(Shape):
    number: int
    tool: str
    at: str
    labels: list[str]


class Inspected(Shape):
    conversation: str
    parent: str
    version: int
    calls: int
    taint: list[HeldLabel]
    exposure: list[str]
    in_flight: list[UnderWay]
    in_doubt: int


class Recorded(Shape):
    """A decision as the journal has it."""

    conversation: str
    id: str
    number: int
    at: str
    tool: str
    server: str
    verdict: Verdict
    codes: list[str]
    version: int
    call: str
    document: str
    revision: str
    manifest: str
    engine: str
    decision_id: str
    labels: list[str]
    outcome: Literal["none", "pending", "observed", "failed", "in_doubt"]
    outcome_labels: list[str]


class Health(Shape):
    status: Literal["ok"]


class Ready(Shape):
    ready: bool
    engine: str
    store: str


class Failure(Shape):
    """Every answer that is no success. It reads as a denial to whoever looks for one."""

    verdict: Literal["deny"]
    run: Literal[False]
    decision: Literal[False]
    code: Literal["gate_error", "engine_error"]
    error: str
    message: str
    request: str


_S = TypeVar("_S", bound=Shape)


def read(kind: type[_S], body: bytes) -> _S:
    """Read a request strictly.

    Raises:
        Problem: it is no JSON that can be trusted (400), or not of this shape (422). Neither says what it holds.
    """
    try:
        value = parse(body)
    except NotCanonical as error:
        raise Problem(400, "malformed", f"the body is refused at {_known(error.path)}: {error.problem}") from None
    if not isinstance(value, dict):
        raise Problem(422, "wrong_shape", "the body must be an object")
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise Problem(422, "wrong_shape", _explained(error)) from None


def _known(path: str) -> str:
    """As much of a path as is not the caller's own: a key of theirs may be a value."""
    found = "$"
    for name, index in re.findall(r"\.(\w+)|(\[\d+\])", path.removeprefix("$")):
        if name and name not in _NAMES:
            break
        found += f".{name}" if name else index
    return found


def _explained(error: ValidationError) -> str:
    """Places and kinds of problems. Keys that the caller made up are values of theirs, and are not repeated."""
    found = []
    for problem in error.errors(include_url=False, include_input=False, include_context=False)[:4]:
        extra = problem["type"] == "extra_forbidden"
        path = problem["loc"][:-1] if extra else problem["loc"]
        place = ".".join(str(part) for part in path if isinstance(part, int) or str(part) in _NAMES) or "body"
        what = {"extra_forbidden": "an unknown key", "missing": "missing"}.get(problem["type"], problem["msg"])
        found.append(f"{place}: {what}")
    return "; ".join(found)


def _names() -> frozenset[str]:
    kinds = (Begin, Resume, ProposedCall, Propose, Result, Observe, Admit, Say)
    return frozenset(name for one in kinds for name in one.model_fields)


_NAMES: Final = _names() | {"subject", "action", "resource", "context", "evaluations", "options", "type", "properties"}


def outcome_of(decided: Ruling, landed: dict[int, Any]) -> str:
    """What is on record of what came of a call."""
    if not decided.runs:
        return "none"
    if decided.number not in landed:
        return "pending"
    found = landed[decided.number]
    if found is None or getattr(found, "doubt", False):
        return "in_doubt"
    return str(found.kind)
