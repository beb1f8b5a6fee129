"""What came of a call, as values: a denial and a tool's error are results, never exceptions in the agent loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import orjson

from interlock.errors import Refused
from interlock.model.calls import Call, FrozenCall
from interlock.model.canonical import MAX_DEPTH
from interlock.model.decisions import Decision, Verdict, Who
from interlock.model.routes import routes_for_model
from interlock.model.tools import ToolSpec

if TYPE_CHECKING:  # they are about calls, and need what this module has
    from interlock.model.carried import Carried
    from interlock.model.operands import Operand
    from interlock.model.question import Question


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gave back.

    Attributes:
        content: text, or anything; what is not text is shown to the model as JSON or its ``str``.
        external: did the call touch the outside? Say False only when you know: refusals by the harness, arguments
            that were refused before anything was sent. When in doubt it was external, and that is the default.
        labels: labels that this result carries beyond those its tool declares; they only add.
        is_error: the content describes an error.
    """

    content: Any = ""
    external: bool = True
    labels: tuple[str, ...] | list[str] = ()
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one call. ``for_model`` is always text that may be handed to the model.

    Attributes:
        tool: identity as proposed (the raw name when it was malformed).
        call_id: the id that the result must answer.
        number: of the call in its conversation; 0 when it was not recorded.
        decision: why.
        executed: was the tool entered?
        result: what the tool returned (the content of a ToolResult); None when not executed or withheld.
        error: the exception that the tool raised, or None.
        for_model: text for the model: the result, the refusal, or a safe description of the error.
        is_error: does ``for_model`` describe a refusal or an error?
        pending: allowed and not yet observed.
    """

    tool: str
    call_id: str
    decision: Decision
    number: int = 0
    executed: bool = False
    result: Any = None
    error: BaseException | None = None
    for_model: str = ""
    is_error: bool = True
    pending: bool = False

    @property
    def verdict(self) -> Verdict:
        return self.decision.verdict


@dataclass(frozen=True, slots=True)
class Allowed:
    """An allowed call that waits for its outcome: what may run, exactly.

    ``reads`` and ``writes`` are keys of artifacts, ``carried`` is what was on record of those that it reads.
    ``operands``: the files that an approved call names, as the person was shown them; read again before it runs.
    """

    number: int
    call: FrozenCall
    spec: ToolSpec
    decision: Decision
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    carried: Carried | None = None
    operands: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True)
class Ticket:
    """The answer to a proposal.

    Attributes:
        conversation: its id.
        outcomes: by call id, in the order of the proposal; refused calls have their final outcome already, allowed
            ones are ``pending``.
        allowed: by call id, what may run.
        questions: by call id, what a person is asked; once it is answered, the same call proposed again may run.
        instead: by call id, what a person proposed in place of a call.
    """

    conversation: str
    outcomes: Mapping[str, Outcome]
    allowed: Mapping[str, Allowed] = field(default_factory=dict)
    questions: Mapping[str, Question] = field(default_factory=dict)
    instead: Mapping[str, Call] = field(default_factory=dict)


# How an outcome calls the tool of a malformed call: its name may be text that someone else wrote.
MALFORMED: Final = "(malformed)"


def class_name(error: BaseException) -> str:
    """The name of an exception's class, unless it was made up: then it could be text that someone else wrote."""
    return type_name(type(error)) or "an exception"


def type_name(kind: type) -> str:
    """The name of a class, unless it was made up; then nothing."""
    name = kind.__name__
    return name if name.isascii() and name.isidentifier() and len(name) <= 64 else ""


def finished(content: Any, depth: int = 0) -> None:
    """Refuse what has not given its content yet: it would reach the model after we have looked, unobserved.

    Raises:
        Refused: an iterator, a file, a generator or an awaitable, also inside lists and objects.
    """
    if isinstance(content, str | bytes | int | float | None):
        return
    if isinstance(content, Iterator | AsyncIterator | Awaitable):
        raise Refused("the tool returned something that is still to be read; return its whole result")
    if depth < MAX_DEPTH and isinstance(content, list | tuple | dict):
        for item in content.values() if isinstance(content, dict) else content:
            finished(item, depth + 1)


def printable(text: str) -> str:
    """A host's note, such as a file name, in a form that any journal can hold: escaped where it is not printable."""
    plain = text if text.isprintable() else ascii(text)[1:-1]
    return plain[:256]


def text_for_model(content: Any) -> str:
    """Text of a result. Lone surrogates, which no provider's JSON can carry, become ``?``."""
    if isinstance(content, str):
        text = content
    elif content is None:
        text = ""
    else:
        try:
            text = orjson.dumps(content, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS).decode()
        except (TypeError, ValueError):
            text = str(content)
    return text.encode("utf-8", "replace").decode("utf-8") if _lone(text) else text


def _lone(text: str) -> bool:
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


_LAST: Final = (
    "Calls like this one have been denied three times now, and no other form of it will be allowed. Do not call it"
    " again; tell the user what you wanted to do."
)


_DRAFTED: Final = (
    "Drafted, not sent: the call waits in the outbox as {}, where a person may release or reject it. Nothing was sent."
    " Do not call it again; tell the user that it waits there."
)


def refusal(decision: Decision) -> str:
    """What the model is told of a denied or asked call: which control, why, which routes are open. No values."""
    if decision.drafted:
        return _DRAFTED.format(decision.draft)
    if decision.verdict is Verdict.ASK and decision.question:
        opening = "Not done: this call needs a person's approval, and a person is being asked."
    elif decision.verdict is Verdict.ASK:
        opening = "Not done: this call needs a person's approval, and nobody has given it."
    elif decision.who is Who.PERSON:
        opening = "Not done: a person refused this call."
    elif decision.who is Who.NOBODY:
        opening = "Not done: nobody answered."
    else:
        opening = "Not done: this call was denied by the security policy."
    # Only what decided: an approval that a milder control would be content with lifts no denial.
    decisive = [reason for reason in decision.reasons if reason.verdict is decision.verdict]
    why = " ".join(f"[{reason.code}] {reason.for_model}" for reason in decisive[:3])
    return f"{opening} {why} {_LAST if decision.terminal else routes_for_model(decision.remedies)}".strip()


def failure_text(error: BaseException) -> str:
    """A safe description of a tool's exception: its class, never its text, which a stranger may have written."""
    return f"The tool failed with {class_name(error)}. Nothing of its message is shown here."
