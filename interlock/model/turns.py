"""What the codecs of provider APIs have in common: an assistant turn, without the shape it came in.

A codec reads a turn out of a provider's message and writes the results back. Everything that is the same for all of
them is here, as values and pure functions: ids that are unique, arguments that are never repaired, content that the
provider brought along and that must be admitted before anything of the turn is decided.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from interlock.errors import NotCanonical, Refused
from interlock.model.calls import Call, is_call_id
from interlock.model.canonical import canonical, parse
from interlock.model.manifest import Manifest
from interlock.model.messages import Message, ToolUse
from interlock.model.results import Outcome, text_for_model
from interlock.model.tools import ToolId

# What may be said of content that nobody has described: it may hold a stranger's text and anybody's data.
UNKNOWN: Final = ("private:unknown", "untrusted:unknown")
ATTACHED: Final = ("private:attachment", "untrusted:attachment")
IMAGE: Final = ("private:image",)

NO_OUTCOME: Final = "No outcome of this call is on record. It may have been made. Do not repeat it."
NO_TEXT: Final = "(no text)"

Labels: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class UnparsedText:
    """Stands for arguments that were to be JSON text and are not.

    It is no object, so the gate refuses the call as malformed, and the model is told the name of this class. The text
    is kept out of every message.
    """

    text: str
    problem: str

    def __repr__(self) -> str:
        return f"UnparsedText({self.problem!r})"


@dataclass(frozen=True, slots=True)
class Proposal:
    """One call of a turn.

    Attributes:
        call: what the gate decides; its id is unique in the turn.
        shape: the provider's word for this kind of call; decides the shape of its result.
        wanted: the id that the model wrote, which a recorded result may carry.
        echo: what the provider wants to see again in the result.
        there: the provider runs it itself once the result says that it may.
    """

    call: Call
    shape: str
    wanted: Any = ""
    echo: Mapping[str, Any] = field(default_factory=dict)
    there: bool = False


@dataclass(frozen=True, slots=True)
class Hosted:
    """Content that a tool of the provider, or of a server that the provider talks to, brought into the turn.

    It is in the model's context already, so there is nothing to decide: its labels are admitted.

    Attributes:
        server: the provider's name, or that of the MCP server.
        name: the tool; empty for any tool of the server.
        labels: what it brings unless the manifest declares the tool.
        text: what it brought, as far as it can be seen; only its digest and length are recorded.
        arguments: what the model asked of it, if that can be seen.
        urls: where the content came from, as far as it says.
    """

    server: str
    name: str
    labels: Labels
    text: str = ""
    arguments: Any = None
    urls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the model, whatever provider it came from.

    Attributes:
        text: what the model said, without its reasoning.
        proposals: its calls, in order. Empty when the turn is not complete: half a turn proposes nothing.
        hosted: what the provider brought along. Admit it before anything of this turn is decided.
        history: the turn as it goes back to the provider, with the ids that its results will carry.
        complete: False when it was cut off, refused or aborted.
        paused: the provider wants the history back and will go on by itself.
        stop: the provider's word for why it ended.
    """

    text: str = ""
    proposals: tuple[Proposal, ...] = ()
    hosted: tuple[Hosted, ...] = ()
    history: tuple[dict[str, Any], ...] = ()
    complete: bool = True
    paused: bool = False
    stop: str = ""

    @property
    def calls(self) -> list[Call]:
        return [one.call for one in self.proposals]

    @property
    def message(self) -> Message:
        """The turn as a message of ours."""
        return Message.assistant(self.text, *(_use(one.call) for one in self.proposals))


def _use(call: Call) -> ToolUse:
    arguments = call.arguments
    written = arguments.text if isinstance(arguments, UnparsedText) else arguments
    return ToolUse(call.id, text_of(call.name), written, call.server)


# --- what a recorded conversation consists of -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Said:
    """Text in the user's role. Whether a person typed it is not in the record; ``pasted`` when it says so."""

    text: str
    pasted: bool = False


@dataclass(frozen=True, slots=True)
class Attached:
    """Content in the user's role that is not text, or content that a host let in by itself."""

    labels: Labels
    source: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Answered:
    """The recorded result of one call. ``executed`` and ``external`` are False only where the record says so."""

    id: Any
    text: str
    is_error: bool = False
    executed: bool = True
    external: bool = True


Event: TypeAlias = Said | Attached | Answered | Turn


# --- admitting --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Admission:
    """What to give to ``Guard.admit``."""

    text: str
    labels: Labels
    source: str


def admissions(hosted: Iterable[Hosted], manifest: Manifest | None = None) -> Iterator[Admission]:
    """What has to be admitted for content that the provider brought.

    A tool that the manifest declares under its server has the labels that stand there, channels that it ``opens``
    included. The pages that content says it came from stand in its source, so that they are known as having spoken.
    """
    seen: set[Admission] = set()
    for one in hosted:
        labels = _labels(one, manifest)
        whence = f"{one.server} {one.name}".strip() or "the provider"
        # In parts, since an entry of the journal has a size; past some thousand parties everybody counts as speaking.
        for start in range(0, max(len(one.urls), 1), _PARTIES):
            found = Admission(one.text, labels, " ".join((whence, *map(_party, one.urls[start : start + _PARTIES]))))
            if labels and found not in seen:
                seen.add(found)
                yield found


_PARTIES: Final = 512


def _party(url: str) -> str:
    """A URL as a word of a source. One without a scheme can't be read, and so speaks for everybody."""
    return url if "://" in url else f"://{url}"


def held(server: str, request: Mapping[str, Any], *names: str) -> list[Hosted]:
    """History that the provider holds and a request refers to: nobody here has seen what is in it."""
    return [Hosted(server, "", UNKNOWN, text=name) for name in names if request.get(name)]


def _labels(one: Hosted, manifest: Manifest | None) -> Labels:
    if manifest is None or not one.name:
        return one.labels
    spec = manifest.specs.get(ToolId(one.server, one.name))
    if spec is None:
        return one.labels
    return tuple(sorted({*spec.returns, *spec.reads, *spec.opens}))


def category(text: str) -> str:
    """Any text as a category of a label."""
    plain = re.sub(r"[^a-z0-9_.@/:-]", "-", text.lower())[:100]
    return plain if plain[:1].isalnum() else f"x{plain}"


# --- reading ----------------------------------------------------------------------------------------------------------


def mapping(value: Any) -> dict[str, Any]:
    """The fields of a dict or of an SDK's object, by the names they have on the wire; of anything else, nothing.

    No SDK is imported: their objects are pydantic models, known by ``model_dump``. Only what the server sent is taken,
    so that the turn can go back as it came.
    """
    if isinstance(value, Mapping):
        return {key: item for key, item in value.items() if isinstance(key, str)}
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        try:
            found = dump(by_alias=True, exclude_unset=True, warnings=False)
        except Exception:  # an object that is no pydantic model, or one that can't be written: its plain fields do
            found = None
        if isinstance(found, dict):
            return mapping(found)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
    fields = getattr(value, "__dict__", None)
    return {key: item for key, item in fields.items() if not key.startswith("_")} if isinstance(fields, dict) else {}


def kind_of(fields: Mapping[str, Any], default: str = "") -> str:
    """The ``type`` of a block, item or part; empty, and so unknown, when it is not text."""
    kind = fields.get("type", default)
    return kind if isinstance(kind, str) else ""


def items(value: Any) -> list[Any]:
    """The members of a list or tuple; of anything else, none."""
    return list(value) if isinstance(value, list | tuple) else []


def text_of(value: Any) -> str:
    """A field that should be text: the text, or nothing."""
    return text_for_model(value) if isinstance(value, str) else ""


def written(value: Any) -> str:
    """Any content as text, for digests: text as it is, everything else as JSON."""
    try:
        return text_for_model(value)
    except RecursionError:
        return "(nested too deeply)"


def urls_in(value: Any) -> tuple[str, ...]:
    """Every text under a key ``url`` or ``uri``, in order, each once, but for those that are content themselves."""
    found: dict[str, None] = {}
    waiting: list[Any] = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, list | tuple):
            waiting.extend(reversed(one))
            continue
        fields = mapping(one) if not isinstance(one, str | int | float | bool | None) else {}
        for name, item in reversed(fields.items()):
            if not isinstance(item, str):
                waiting.append(item)
            elif name in ("url", "uri") and item and not item.startswith("data:"):
                found[item] = None
    return tuple(found)


def arguments_of(text: Any) -> Any:
    """Arguments out of JSON text. Never repaired: what is not JSON, or repeats a key, is :class:`UnparsedText`.

    Arguments that are an object already stay as they are; the gate checks them.
    """
    if isinstance(text, Mapping):
        return text
    if not isinstance(text, str):
        return UnparsedText("", f"{type(text).__name__} instead of JSON text")
    try:
        return parse(text)
    except NotCanonical as error:
        return UnparsedText(text, str(error))


def sendable(arguments: Any) -> dict[str, Any]:
    """Arguments as they may stand in the history: an object that any JSON parser takes, or an empty one."""
    if not isinstance(arguments, Mapping):
        return {}
    plain = dict(arguments)
    try:
        canonical(plain)
    except (NotCanonical, RecursionError):
        try:
            json.dumps(plain, allow_nan=False, ensure_ascii=False).encode()
        except (TypeError, ValueError, RecursionError):  # ValueError: NaN, cycles and lone surrogates
            return {}
    return plain


def sendable_text(arguments: Any) -> str:
    """Like :func:`sendable`, for providers that want the arguments as text: text stays what the model wrote."""
    if isinstance(arguments, str):
        return text_for_model(arguments)
    return json.dumps(sendable(arguments), ensure_ascii=False)


def unique_ids(wanted: Sequence[Any], taken: Collection[str] = ()) -> list[str]:
    """An id for every call, none twice and none in ``taken`` (T17).

    The first call that wants an id gets it; repeated, empty and impossible ids are replaced. The same input always
    gives the same ids, and a replacement never takes an id that another call wants.
    """
    # `taken` grows with the conversation, so it is asked and never copied: reading stays linear.
    used: set[str] = set()
    reserved = {one for one in wanted if isinstance(one, str)}
    found: list[str] = []
    for place, one in enumerate(wanted, 1):
        chosen = one if isinstance(one, str) and is_call_id(one) else ""
        if not chosen or chosen in used or chosen in taken:
            chosen = _free(place, reserved, taken)
            reserved.add(chosen)
        used.add(chosen)
        found.append(chosen)
    return found


def _free(place: int, reserved: Collection[str], taken: Collection[str]) -> str:
    number = len(taken) + place
    while (name := f"call_{number}") in reserved or name in taken:
        number += 1
    return name


# --- writing ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back for one call: a text, whether it is a refusal or an error, and the outcome if there is one."""

    proposal: Proposal
    text: str
    is_error: bool
    outcome: Outcome | None = None


def answers(turn: Turn, outcomes: Iterable[Outcome]) -> list[Answer]:
    """Exactly one answer per call of the turn, in its order (T17).

    A call without an outcome, because the host was stopped, is answered with an error that says so.

    Raises:
        Refused: an outcome belongs to no call of this turn, or two belong to one.
    """
    by_id: dict[str, Outcome] = {}
    known = {one.call.id for one in turn.proposals}
    for outcome in outcomes:
        if outcome.call_id not in known:
            raise Refused("an outcome answers no call of this turn; give the outcomes of this turn's calls")
        if outcome.call_id in by_id:
            raise Refused("two outcomes answer one call; give one per call")
        by_id[outcome.call_id] = outcome
    return [_answer(one, by_id.get(one.call.id)) for one in turn.proposals]


def _answer(proposal: Proposal, outcome: Outcome | None) -> Answer:
    if outcome is None or outcome.pending:
        return Answer(proposal, NO_OUTCOME, True)
    # Providers refuse an error without a text.
    text = outcome.for_model or (NO_TEXT if outcome.is_error else "")
    return Answer(proposal, text, outcome.is_error, outcome)
