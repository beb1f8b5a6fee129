"""What a person is asked: one exact call, whole (T9).

A question holds everything that its reader needs and everything that a yes is bound to. It is made once, when it is
asked; its bytes have a digest in the journal, so what is shown in another process is what was asked, or nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

import orjson

from interlock.errors import Tampered
from interlock.model.calls import Call
from interlock.model.canonical import canonical
from interlock.model.decisions import Cause, Reason
from interlock.model.destinations import named
from interlock.model.digests import Digest, digest
from interlock.model.document import Asked, Setting
from interlock.model.labels import Label
from interlock.model.operands import Operand
from interlock.model.tools import Effect, Egress, ToolSpec

if TYPE_CHECKING:
    from pydantic import TypeAdapter

MAX_QUESTION: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class Receiver:
    """A destination, an object, a party or a link of the call, with who vouches for it.

    ``role`` is ``destination``, ``object``, ``party`` or ``link``; ``talks_back``: untrusted content came from there.
    """

    role: str
    argument: str
    kind: str
    value: str
    origin: str
    talks_back: bool = False


@dataclass(frozen=True, slots=True)
class Brought:
    """A label that took part, and where it came from: call, tool, time and page. Call 0 is no call of a tool; without
    a time it is what this call, or one beside it, would bring itself."""

    label: Label
    number: int = 0
    tool: str = ""
    at: str = ""
    page: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """One question.

    Attributes:
        id: names it in its conversation.
        at, expires: when it was asked, and until when an answer and a yes are good.
        call: digest of server, name and arguments.
        call_ids: of the identical calls that it is about, by the provider's ids.
        number: of the first of them in the conversation.
        arguments: canonical JSON of the arguments with defaults filled in.
        filled: names of the arguments that are defaults.
        reasons: code of each control that asks, and its words for people.
        beside: the other calls of the batch, each with what it may bring.
        happens: sentences about what the call does.
        operands: files that the arguments name.
    """

    id: str
    namespace: str
    conversation: str
    at: str
    expires: str
    server: str
    tool: str
    call: Digest
    call_ids: tuple[str, ...]
    number: int
    arguments: str
    filled: tuple[str, ...]
    receivers: tuple[Receiver, ...]
    reasons: tuple[tuple[str, str], ...]
    brought: tuple[Brought, ...]
    beside: tuple[str, ...]
    happens: tuple[str, ...]
    operands: tuple[Operand, ...]
    labels: tuple[Label, ...]
    revision: str
    manifest: str

    def encode(self) -> bytes:
        """Bytes that stand for the question, for its digest and for keeping."""
        return orjson.dumps(self, option=orjson.OPT_SORT_KEYS)

    @property
    def digest(self) -> Digest:
        return question_digest(self.encode())

    @property
    def payload(self) -> dict[str, Any]:
        """A fresh copy of the arguments, defaults filled in."""
        found: dict[str, Any] = orjson.loads(self.arguments)
        return found


def question_digest(body: bytes) -> Digest:
    """What an ``asked`` entry says of a question."""
    return digest("question", body)


def read_question(body: bytes, wanted: Digest) -> Question:
    """Read a kept question.

    Args:
        wanted: its digest in the journal.

    Raises:
        Tampered: it is not the question that was asked; nobody must be shown it.
    """
    from pydantic import ValidationError

    if len(body) > MAX_QUESTION or question_digest(body) != wanted:
        raise Tampered(0, "a kept question is not the one that was asked")
    try:
        return _adapter().validate_json(body)
    except ValidationError as error:
        raise Tampered(0, f"not a question of this version ({type(error).__name__})") from None


def until(body: bytes) -> str:
    """Until when a kept question says that it is open, for tidying up only; what can't be read is over."""
    try:
        return str(orjson.loads(body)["expires"])
    except (ValueError, KeyError, TypeError):
        return ""


@cache
def _adapter() -> TypeAdapter[Question]:
    from pydantic import TypeAdapter

    return TypeAdapter(Question)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person answers.

    Attributes:
        verdict: ``edit`` refuses the call that was asked about, and proposes ``instead`` in its place, which is decided
            as if the model had proposed it.
        by: who answered, as far as the channel knows; for the record.
    """

    verdict: Literal["approve", "refuse", "edit"]
    by: str = ""
    instead: Call | None = None

    def __post_init__(self) -> None:
        if self.verdict not in ("approve", "refuse", "edit") or type(self.by) is not str:
            raise ValueError("an answer is approve, refuse or edit, and by whom is a text")
        if (self.verdict == "edit") != isinstance(self.instead, Call):
            raise ValueError("an edit says what to do instead, and nothing else does")


def asked_about(
    one: Asked,
    *,
    id: str,
    call_ids: Sequence[str],
    number: int,
    setting: Setting,
    reasons: Sequence[Reason],
    causes: Sequence[Cause],
    beside: Sequence[Asked],
    operands: Sequence[Operand],
    labels: Iterable[Label],
    pages: Sequence[tuple[int, str]],
    rules: tuple[str, str],
    at: str,
    expires: str,
) -> Question:
    """The question about one call of a batch.

    Args:
        causes: labels that took part with their sources.
        beside: the other calls of the batch.
        labels: all that is shown, which a yes is bound to.
        pages: what earlier calls read, by number.
        rules: policy revision and manifest digest.
    """
    filled = {name: orjson.loads(text) for name, text in one.spec.defaults if name not in one.arguments}
    read = dict(pages)
    return Question(
        id=id,
        namespace=setting.namespace,
        conversation=setting.conversation,
        at=at,
        expires=expires,
        server=one.call.tool.server,
        tool=one.call.tool.name,
        call=one.call.digest,
        call_ids=tuple(call_ids),
        number=number,
        arguments=canonical({**one.arguments, **filled}).decode(),
        filled=tuple(sorted(filled)),
        receivers=tuple(_receivers(one, {**one.arguments, **filled}, setting)),
        reasons=tuple((each.code, each.for_person) for each in reasons),
        brought=tuple(_brought(each, read) for each in causes),
        beside=tuple(_beside(each) for each in beside),
        happens=consequences(one.spec),
        operands=tuple(sorted(operands)),
        labels=tuple(sorted(labels)),
        revision=rules[0],
        manifest=rules[1],
    )


def _receivers(one: Asked, effective: dict[str, Any], setting: Setting) -> Iterable[Receiver]:
    """Whoever the call names, those among the defaults too."""
    spec = one.spec
    for each in named(spec, spec.destinations, effective):
        if each.argument:
            origin = setting.receiver_origin(each).value
            yield Receiver("destination", each.argument, each.kind.value, each.value, origin, setting.talks_back(each))
    objects, parties = named(spec, spec.objects, effective), named(spec, spec.parties, effective)
    for role, values in (("object", objects), ("party", parties), ("link", one.links)):
        for each in values:
            yield Receiver(role, each.argument, each.kind.value, each.value, setting.origin(each).value)


def _brought(cause: Cause, pages: dict[int, str]) -> Brought:
    source = cause.source
    if source is None:
        return Brought(cause.label)
    return Brought(cause.label, source.call, source.tool, source.at, pages.get(source.call, ""))


def _beside(one: Asked) -> str:
    spec = one.spec
    labels = ", ".join(sorted({*spec.private, *spec.untrusted, *spec.opens})) or "no labels"
    return f"{spec.id} ({labels})"


_CHANGES: Final = {
    Effect.ADD: "It adds something where it writes.",
    Effect.WRITE: "It changes something.",
    Effect.DESTROY: "It can destroy something.",
    Effect.CONTROL: "It changes what an agent may do.",
}


def consequences(spec: ToolSpec) -> tuple[str, ...]:
    """What happens when the call runs, as far as the manifest says."""
    said = []
    if not spec.known:
        said.append("Nobody declared this tool, so it may do anything.")
    if spec.egress is Egress.CHOSEN:
        said.append("It sends its arguments to whoever they name, or to whoever the tool chooses.")
    elif spec.egress is Egress.BLIND:
        said.append("It sends its arguments to a closed audience that the operator declared.")
    if spec.reads:
        said.append(f"It can pass on data without showing it here: {', '.join(spec.reads)}.")
    if spec.opens:
        said.append(f"It opens a channel that stays open: {', '.join(spec.opens)}.")
    if spec.effect in _CHANGES:
        said.append(_CHANGES[spec.effect])
    if spec.returns:
        said.append(f"Its result brings: {', '.join(spec.returns)}.")
    return tuple(said or ["It computes something and changes nothing."])
