"""The document: what a policy engine is asked (the Rego ``input``), version 1.

Every key is always there. The document is checked against its schema before any engine sees it (T6), and the schema
is generated from the types below, so what is published is what is checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

from typing_extensions import TypedDict

from interlock.errors import EngineUnavailable
from interlock.model.calls import FrozenCall
from interlock.model.carried import CLEAN, Carried
from interlock.model.control_plane import Control, candidates, targets, touched
from interlock.model.destinations import Destination, find, named, unclassified
from interlock.model.digests import Digest, voice_digest
from interlock.model.labels import Label, Leg, categories
from interlock.model.links import links
from interlock.model.narrowing import narrowed
from interlock.model.origins import GROUNDING, NO_LISTS, AllowLists, Origin, origin_of
from interlock.model.provenance import EMPTY, Provenance
from interlock.model.tools import Effect, Egress, Kind, ToolSpec

if TYPE_CHECKING:
    from pydantic import TypeAdapter


class Legs(TypedDict):
    """Sorted categories of each leg."""

    untrusted: list[str]
    private: list[str]
    egress: list[str]


class Forecast(TypedDict):
    """Exposure joined with the private and egress labels of this call and of its siblings.

    ``credentials`` is true when ``private`` holds credentials or the unknown: a plain fact, so that a proof can test it
    with an equality (the absence of a word in a list can't be proved without a negation).
    """

    untrusted: list[str]
    private: list[str]
    egress: list[str]
    credentials: bool


class ConversationPart(TypedDict):
    id: str
    namespace: str
    parent: str


class ToolPart(TypedDict):
    """The tool as declared; ``effect`` is raised to ``control`` when the arguments name a protected file."""

    server: str
    name: str
    known: bool
    digest: str
    returns: list[str]
    reads: list[str]
    opens: list[str]
    egress: Literal["none", "blind", "chosen"]
    effect: Literal["none", "add", "write", "destroy", "control"]
    audience: Literal["", "closed", "self"]


_KindName = Literal[
    "url",
    "email",
    "path",
    "domain",
    "account",
    "phone",
    "channel",
    "user",
    "id",
    "name",
    "words",
    "amount",
    "time",
    "secret",
    "unknown",
]
Mode = Literal["enforce", "shadow"]
_OriginName = Literal["user", "operator", "trusted", "metadata", "designated", "mixed", "untrusted", "unseen"]


class DestinationPart(TypedDict):
    """One receiver or target. ``talks_back``: it is itself a source of untrusted content in this conversation."""

    argument: str
    kind: _KindName
    value: str
    origin: _OriginName
    talks_back: bool


class NamedPart(TypedDict):
    """One object, party or link. ``noun`` is what an id is the id of, or empty."""

    argument: str
    kind: _KindName
    noun: str
    value: str
    origin: _OriginName


class VouchedPart(TypedDict):
    """Plain facts: does somebody vouch for everything of this sort that the call names? Nothing named is vouched for.

    ``receivers``: all destinations that arguments name, and nothing is unclassified; a call that names none, of a tool
    that could name some, has none that is vouched for. ``targets`` is more: the call names at least one destination,
    object or party, somebody vouches for all of them, and nothing is unclassified.
    """

    receivers: bool
    objects: bool
    parties: bool
    links: bool
    targets: bool


class CallPart(TypedDict):
    """This call. ``labels`` is what it would add by itself; ``control`` says whose rules it would change.

    ``credentials``: it reads credentials by itself. ``drip``: private material has left several times already to a
    receiver of this call that nobody vouches for.
    """

    digest: str
    arguments: dict[str, Any]
    siblings: int
    destinations: list[DestinationPart]
    grounded: bool
    unclassified: list[str]
    labels: Legs
    control: Literal["none", "agent", "interlock"]
    objects: list[NamedPart]
    parties: list[NamedPart]
    links: list[NamedPart]
    vouched: VouchedPart
    credentials: bool
    drip: bool


class Document(TypedDict):
    """What a control sees as ``input``."""

    schema: Literal[1]
    now: str
    conversation: ConversationPart
    exposure: Legs
    forecast: Forecast
    tool: ToolPart
    call: CallPart
    mode: Mode


_PARTS: Final = (
    Legs,
    Forecast,
    ConversationPart,
    ToolPart,
    DestinationPart,
    NamedPart,
    VouchedPart,
    CallPart,
    Document,
)


@cache
def _adapter() -> TypeAdapter[Document]:
    from pydantic import ConfigDict, TypeAdapter  # loaded late: importing Interlock must not wait for it

    for part in _PARTS:
        # What `pydantic.with_config` does to a class, without pydantic at import.
        setattr(part, "__pydantic_config__", ConfigDict(extra="forbid", strict=True))  # noqa: B010 - mypy
    return TypeAdapter(Document)


def check_document(document: object) -> None:
    """Refuse a document that does not fit its schema.

    Raises:
        EngineUnavailable: with the places that do not fit. The engine is not asked.
    """
    from pydantic import ValidationError

    try:
        _adapter().validate_python(document)
        if not isinstance(document, dict) or type(document["schema"]) is not int:  # True and 1.0 equal 1
            raise EngineUnavailable("the document does not fit its schema at: schema")
    except ValidationError as error:
        places = sorted(
            {".".join(map(str, one["loc"])) for one in error.errors(include_input=False, include_url=False)}
        )
        raise EngineUnavailable(f"the document does not fit its schema at: {', '.join(places[:8])}") from None


def document_schema() -> dict[str, Any]:
    """The JSON schema of the document, as published."""
    return _adapter().json_schema()


@dataclass(frozen=True, slots=True)
class Asked:
    """One call of a batch with everything about it that does not depend on the conversation's labels.

    ``paths`` are the texts that may name protected files, ``removed`` those that go with all below them; both as
    written and as resolved. ``reads`` and ``writes`` are keys of artifacts, ``carried`` is what is on record of those
    that it reads; its labels are in ``spec``.
    """

    call: FrozenCall
    spec: ToolSpec
    arguments: dict[str, Any]
    destinations: tuple[Destination, ...]
    unclassified: tuple[str, ...]
    paths: tuple[str, ...]
    removed: tuple[str, ...] = ()
    objects: tuple[Destination, ...] = ()
    parties: tuple[Destination, ...] = ()
    links: tuple[Destination, ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    carried: Carried = CLEAN

    @property
    def labels(self) -> tuple[Label, ...]:
        """Private and egress labels: what executing this call adds whatever it returns."""
        return self.spec.private + self.spec.opens


def asked(call: FrozenCall, spec: ToolSpec, resolved: Mapping[str, tuple[str, ...]] | None = None) -> Asked:
    """Find what the arguments name, under the narrowest spec that they prove.

    Args:
        resolved: what the file system makes of :func:`interlock.model.narrowing.places_to_resolve`; without it no
            condition on a path holds.
    """
    arguments = call.thawed()
    if spec.when:
        spec = narrowed(spec, arguments, resolved or {})
    return Asked(
        call,
        spec,
        arguments,
        find(spec, arguments),
        unclassified(spec, arguments),
        candidates(spec, arguments),
        targets(spec, arguments),
        named(spec, spec.objects, arguments),
        named(spec, spec.parties, arguments),
        links(spec, arguments),
    )


_CHOSEN: Final = frozenset({Origin.USER, Origin.OPERATOR})


@dataclass(frozen=True, slots=True)
class Setting:
    """What a document says about the conversation at the moment of asking.

    Attributes:
        exposure: taint joined with everything in flight.
        typed: digests of values that the person typed.
        operator: digests of the operator's address book.
        voices: digests of the parties that untrusted content came from in this conversation.
        deafening: True when there were too many voices to remember; then every destination talks back.
        protected: absolute paths of Interlock's own files.
        lists: the operator's allow-lists.
        index: the conversation's provenance.
        grounding: origins that ground a value.
        mode: are decisions enforced here?
    """

    conversation: str
    namespace: str
    parent: str
    exposure: tuple[Label, ...]
    typed: frozenset[Digest]
    operator: frozenset[Digest]
    voices: frozenset[Digest]
    deafening: bool
    protected: tuple[str, ...]
    lists: AllowLists = NO_LISTS
    index: Provenance = EMPTY
    grounding: frozenset[Origin] = GROUNDING
    mode: Mode = "enforce"

    def origin(self, one: Destination) -> Origin:
        """Who vouches for an object, a party or a link here."""
        return origin_of(one, self.typed, self.operator, self.lists, self.index)

    def receiver_origin(self, one: Destination) -> Origin:
        """Who vouches for a destination here. An id that the person typed names a place, such as a repository to look
        at, and nobody who may read what is sent there."""
        typed = frozenset[Digest]() if one.kind is Kind.ID else self.typed
        return origin_of(one, typed, self.operator, self.lists, self.index)

    def is_grounded(self, one: Destination) -> bool:
        """Does anybody vouch for a destination here?"""
        return self.grounds(one, self.receiver_origin(one))

    def talks_back(self, one: Destination) -> bool:
        """Did untrusted content come from there? An unknown destination might be anybody."""
        return (
            self.deafening
            or (one.voice != "" and voice_digest(one.voice) in self.voices)
            or (one.kind is Kind.UNKNOWN and bool(self.voices))
        )

    def grounds(self, one: Destination, origin: Origin) -> bool:
        """Does this origin ground the value? A list of hotels says which there are, not which of them the person wants:
        names are grounded by the person and the operator alone."""
        return origin in (_CHOSEN if one.kind is Kind.NAME else self.grounding)


def legs(labels: Iterable[Label]) -> Legs:
    """Categories by leg."""
    untrusted, private, egress = _categories(tuple(labels))
    return {"untrusted": list(untrusted), "private": list(private), "egress": list(egress)}


@lru_cache(maxsize=4096)
def _categories(labels: tuple[Label, ...]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    # Conversations repeat themselves: the same few sets of labels are asked about again and again.
    untrusted, private, egress = (tuple(categories(labels, leg)) for leg in Leg)
    return untrusted, private, egress


def build(one: Asked, siblings: Sequence[Asked], setting: Setting, now: datetime) -> Document:
    """The document of one call. ``siblings`` are the other calls of the batch, in any order (T15)."""
    spec = one.spec
    exposure = legs(setting.exposure)
    coming = {label for sibling in siblings for label in sibling.labels}
    ahead = legs((*setting.exposure, *one.labels, *sorted(coming)))
    destinations: list[DestinationPart] = []
    grounded = bool(one.destinations) and not one.unclassified
    receivers = not one.unclassified and spec.known
    named_some = False
    for destination in one.destinations:
        origin = setting.receiver_origin(destination)
        grounded = grounded and setting.grounds(destination, origin)
        destinations.append(_destination(destination, origin, setting))
        if destination.argument:
            named_some = True
            known = setting.grounds(destination, origin) or setting.grounds(destination, setting.origin(destination))
            receivers = receivers and known
    objects, all_objects = _vouched(one.objects, setting, changes=spec.effect, sends=spec.sends)
    parties, all_parties = _vouched(one.parties, setting)
    payload, all_links = _vouched(one.links, setting)
    targets = receivers and all_objects and all_parties and bool(named_some or one.objects or one.parties)
    receivers = receivers and (named_some or not spec.destinations or spec.egress is Egress.NONE)
    control = Control.AGENT if spec.effect is Effect.CONTROL else Control.NONE
    if one.paths:
        found = touched(one.paths, setting.protected, one.removed)
        control = found if found is not Control.NONE else control
    effect = Effect.CONTROL if control is not Control.NONE else spec.effect
    return {
        "schema": 1,
        "now": f"{now.isoformat(timespec='seconds')[:19]}Z",
        "conversation": {"id": setting.conversation, "namespace": setting.namespace, "parent": setting.parent},
        "exposure": exposure,
        "forecast": {
            "untrusted": exposure["untrusted"],
            "private": ahead["private"],
            "egress": ahead["egress"],
            "credentials": not {"credentials", "unknown"}.isdisjoint(ahead["private"]),
        },
        "tool": {
            "server": spec.id.server,
            "name": spec.id.name,
            "known": spec.known,
            "digest": spec.digest,
            "returns": list(spec.returns),
            "reads": list(spec.reads),
            "opens": list(spec.opens),
            "egress": spec.egress.value,
            "effect": effect.value,
            "audience": spec.audience.value,
        },
        "call": {
            "digest": one.call.digest,
            "arguments": one.arguments,
            "siblings": len(siblings),
            "destinations": destinations,
            "grounded": grounded,
            "unclassified": list(one.unclassified),
            "labels": legs((*spec.private, *spec.untrusted, *spec.opens)),
            "control": control.value,
            "objects": objects,
            "parties": parties,
            "links": payload,
            "vouched": {
                "receivers": receivers,
                "objects": all_objects,
                "parties": all_parties,
                "links": all_links,
                "targets": targets,
            },
            "credentials": any(label in _CREDENTIALS for label in spec.private),
            "drip": not grounded and is_drip(setting, loose_receivers(one, setting)),
        },
        "mode": setting.mode,
    }


_CREDENTIALS: Final = frozenset({"private:credentials", "private:unknown"})
MAX_DRIPS: Final = 8


def _vouched(
    values: Sequence[Destination], setting: Setting, *, changes: Effect = Effect.NONE, sends: bool = True
) -> tuple[list[NamedPart], bool]:
    """The values with their origins, and whether somebody vouches for all of them.

    A record that the person's own query found may be changed, but not destroyed, and nothing of it may leave: what the
    query finds beside it may be a stranger's.
    """
    may_be_designated = not sends and changes in (Effect.ADD, Effect.WRITE)
    parts: list[NamedPart] = []
    whole = True
    for one in values:
        origin = setting.origin(one)
        whole = whole and (setting.grounds(one, origin) or (may_be_designated and origin is Origin.DESIGNATED))
        parts.append(
            {
                "argument": one.argument,
                "kind": one.kind.value,
                "noun": one.noun,
                "value": one.value,
                "origin": origin.value,
            }
        )
    return parts, whole


def loose_receivers(one: Asked, setting: Setting) -> tuple[Digest, ...]:
    """The parties that a sending call goes to and that nobody vouches for; an unknown one is everybody's."""
    if one.spec.egress is not Egress.CHOSEN:
        return ()
    loose = (each for each in one.destinations if not setting.is_grounded(each))
    return tuple(sorted({voice_digest(each.voice) for each in loose}))


def is_drip(setting: Setting, receivers: Iterable[Digest]) -> bool:
    """Has private material left to one of these receivers eight times already?"""
    index = setting.index
    return any(index.flooded or index.sent.get(one, 0) >= MAX_DRIPS for one in receivers)


def _destination(destination: Destination, origin: Origin, setting: Setting) -> DestinationPart:
    return {
        "argument": destination.argument,
        "kind": destination.kind.value,
        "value": destination.value,
        "origin": origin.value,
        "talks_back": setting.talks_back(destination),
    }
