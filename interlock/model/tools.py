"""What a tool may return, what it may reach, and where it may send (a tool spec).

A spec is a promise of the operator. What is not promised is assumed: a tool that nobody declared has every leg.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from interlock.model.canonical import pack
from interlock.model.digests import NO_DIGEST, Digest, digest
from interlock.model.labels import Label, Leg, leg_of


class Egress(StrEnum):
    """Who can read what a call sends.

    NONE: nobody else. BLIND: a receiver that the operator fixed, that no argument can change, and whose audience
    is closed. CHOSEN: everything else that leaves.
    """

    NONE = "none"
    BLIND = "blind"
    CHOSEN = "chosen"


class Effect(StrEnum):
    """What a call changes besides sending. ADD makes something new and loses nothing; CONTROL changes what agents or
    Interlock are allowed to do."""

    NONE = "none"
    ADD = "add"
    WRITE = "write"
    DESTROY = "destroy"
    CONTROL = "control"


class Audience(StrEnum):
    """Who sees what a call leaves behind, in the operator's word. CLOSED: nobody outside; SELF: the person only."""

    OPEN = ""
    CLOSED = "closed"
    SELF = "self"


class Trust(StrEnum):
    """What the operator says of a field of a result.

    TRUSTED: only trusted parties write it, so its values vouch, and it does not taint. PRIVATE: it does not taint and
    vouches for nothing. METADATA: the provider fills it, a stranger may have chosen it; it taints. UNTRUSTED: it
    taints. TOOL: nothing was said, so it has the tool's labels and vouches for nothing.
    """

    TRUSTED = "trusted"
    PRIVATE = "private"
    METADATA = "metadata"
    UNTRUSTED = "untrusted"
    TOOL = ""

    @property
    def taints(self) -> bool:
        return self not in (Trust.TRUSTED, Trust.PRIVATE)


class Kind(StrEnum):
    """Kind of a value that a call names. UNKNOWN is what could not be parsed; it is never grounded.

    WORDS, AMOUNT, TIME and SECRET are kinds of pinned arguments only: they name nobody.
    """

    URL = "url"
    EMAIL = "email"
    PATH = "path"
    DOMAIN = "domain"
    ACCOUNT = "account"
    PHONE = "phone"
    CHANNEL = "channel"
    USER = "user"
    ID = "id"
    NAME = "name"
    WORDS = "words"
    AMOUNT = "amount"
    TIME = "time"
    SECRET = "secret"  # noqa: S105 - the name of a kind
    UNKNOWN = "unknown"


PINS_ONLY: Final = frozenset({Kind.WORDS, Kind.AMOUNT, Kind.TIME, Kind.SECRET})
"""Kinds that stand under ``parties`` only."""

Named = tuple[tuple[str, Kind], ...]
"""Paths of arguments with the kind of value that stands there."""


@dataclass(frozen=True, slots=True, order=True)
class FieldSpec:
    """What the operator says of one field of a structured result, by path with wildcards."""

    path: str
    trust: Trust
    labels: tuple[Label, ...] = ()

    @property
    def taints(self) -> bool:
        """Does the field bring untrusted labels? With one of its own it does, whatever its class says."""
        return self.trust.taints or any(leg_of(one) is Leg.UNTRUSTED for one in self.labels)


@dataclass(frozen=True, slots=True, order=True)
class IdSpec:
    """A field that holds the id of a record.

    Attributes:
        names: keys beside it that name the record: the id is grounded when such a name was typed.
        made: the call that returns it has made the record.
        queries: arguments of the call that pick its records by words: a typed query designates what it finds.
    """

    path: str
    kind: Kind
    noun: str = ""
    names: tuple[str, ...] = ()
    made: bool = False
    queries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, order=True)
class Condition:
    """One test of an argument under ``when``. ``values`` are what the test allows; ``more`` is for SQL its tables."""

    argument: str
    test: str
    values: tuple[Any, ...] = ()
    more: tuple[str, ...] = ()
    dialect: str = ""


@dataclass(frozen=True, slots=True)
class Clause:
    """Conditions, and the narrower spec of a call for which all of them hold."""

    conditions: tuple[Condition, ...]
    spec: ToolSpec


@dataclass(frozen=True, slots=True, order=True)
class ToolId:
    """Identity of a tool: the pair, never a joined string (``a__b`` + ``c`` is not ``a`` + ``b__c``).

    ``server`` is empty for a tool of the agent's own process.
    """

    server: str
    name: str

    def __str__(self) -> str:
        return f"{self.server}/{self.name}" if self.server else self.name


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool as the operator declared it.

    Attributes:
        returns: labels that its result may bring, ``private`` and ``untrusted``.
        reads: private labels of data that it can send on without returning them (sharing a file by id).
        opens: egress labels of standing channels that it opens (a port, a public share, a webhook).
        egress: the strongest class of what it sends.
        effect: what it changes besides sending.
        destinations: argument name → kind, for arguments that name a receiver or a target.
        content: names of arguments that are payload.
        arguments: names of all arguments that the tool takes, where they are known; for `interlock check`.
        objects: argument path → kind, for what is deleted, overwritten, shared or attached.
        parties: argument path → kind, for who is booked or paid, and whatever else must come from the person.
        nouns: argument path → noun of its kind (``file`` of ``id:file``), where one is given.
        audience: who sees what the call leaves behind.
        fields: what single fields of a structured result are.
        ids: fields that hold ids of records.
        keep: fields below this level are dropped before the model sees them; TOOL drops nothing.
        when: clauses with narrower specs, in order.
        writes_to, reads_from: argument name → kind of artifact (``path``, ``url``, ``table``, ``key``) that a call
            writes or reads; the argument ``*`` stands for any artifact of its kind.
        description: for people, and part of the digest: a tool that describes itself anew is a new tool.
        defaults: argument name → canonical JSON of the value that the tool takes when the argument is left out; shown
            to a person who is asked.
        known: False only for :func:`undeclared` tools.
        private: derived: private labels that a call joins as soon as it is allowed, whether it succeeds or fails.
        untrusted: derived: labels that a result joins when it touched the outside.
    """

    id: ToolId
    returns: tuple[Label, ...]
    egress: Egress
    reads: tuple[Label, ...] = ()
    opens: tuple[Label, ...] = ()
    effect: Effect = Effect.NONE
    destinations: tuple[tuple[str, Kind], ...] = ()
    content: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    description: str = ""
    known: bool = True
    digest: Digest = NO_DIGEST
    objects: Named = ()
    parties: Named = ()
    nouns: tuple[tuple[str, str], ...] = ()
    audience: Audience = Audience.OPEN
    fields: tuple[FieldSpec, ...] = ()
    ids: tuple[IdSpec, ...] = ()
    keep: Trust = Trust.TOOL
    when: tuple[Clause, ...] = ()
    writes_to: tuple[tuple[str, str], ...] = ()
    reads_from: tuple[tuple[str, str], ...] = ()
    defaults: tuple[tuple[str, str], ...] = ()
    private: tuple[Label, ...] = field(init=False, default=())
    untrusted: tuple[Label, ...] = field(init=False, default=())
    roles: Mapping[str, Kind | None] = field(init=False, default_factory=dict, compare=False)
    noun_of: Mapping[str, str] = field(init=False, default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        for name in ("returns", "reads", "opens", "destinations", "objects", "parties", "nouns", "content"):
            object.__setattr__(self, name, tuple(sorted(set(getattr(self, name)))))
        for name in ("arguments", "fields", "ids", "writes_to", "reads_from", "defaults"):
            object.__setattr__(self, name, tuple(sorted(set(getattr(self, name)))))
        carried = (*self.returns, *(one for each in self.fields for one in each.labels))
        private = {one for one in carried if leg_of(one) is Leg.PRIVATE} | set(self.reads)
        untrusted = {one for one in carried if leg_of(one) is Leg.UNTRUSTED}
        object.__setattr__(self, "private", tuple(sorted(private)))
        object.__setattr__(self, "untrusted", tuple(sorted(untrusted)))
        roles: dict[str, Kind | None] = dict.fromkeys(self.content)
        roles.update((*self.destinations, *self.objects, *self.parties))
        object.__setattr__(self, "roles", MappingProxyType(roles))
        object.__setattr__(self, "noun_of", MappingProxyType(dict(self.nouns)))
        object.__setattr__(self, "digest", digest("tool", self.canonical()))

    def canonical(self) -> bytes:
        """Canonical bytes of everything that the spec says."""
        return pack(
            {
                **({"defaults": self.defaults} if self.defaults else {}),
                "server": self.id.server,
                "name": self.id.name,
                "returns": self.returns,
                "egress": self.egress.value,
                "reads": self.reads,
                "opens": self.opens,
                "effect": self.effect.value,
                "destinations": _named(self.destinations),
                "objects": _named(self.objects),
                "parties": _named(self.parties),
                "nouns": self.nouns,
                "content": self.content,
                "arguments": self.arguments,
                "audience": self.audience.value,
                "fields": self.fields,
                "ids": self.ids,
                "keep": self.keep.value,
                "when": [[clause.conditions, clause.spec.digest] for clause in self.when],
                "writes_to": self.writes_to,
                "reads_from": self.reads_from,
                "description": self.description,
                "known": self.known,
            }
        )

    @property
    def sends(self) -> bool:
        """Can anything leave by this call, now (egress) or later (a channel that it opens)?"""
        return self.egress is not Egress.NONE or bool(self.opens)


def _named(pairs: Iterable[tuple[str, Kind]]) -> list[list[str]]:
    return [[name, kind.value] for name, kind in pairs]


def widened(spec: ToolSpec, returns: tuple[Label, ...], opens: tuple[Label, ...]) -> ToolSpec:
    """The spec of one call that may bring more than its tool was declared with."""
    wider = replace(spec, returns=(*spec.returns, *returns), opens=(*spec.opens, *opens))
    # The digest names what the operator declared, and not what this call came upon.
    object.__setattr__(wider, "digest", spec.digest)
    return wider


def undeclared(tool: ToolId) -> ToolSpec:
    """The spec of a tool that nobody declared: every leg, egress chosen, and not known (T7)."""
    return ToolSpec(
        tool,
        returns=(Label("private:unknown"), Label("untrusted:unknown")),
        reads=(Label("private:unknown"),),
        opens=(Label("egress:unknown"),),
        egress=Egress.CHOSEN,
        effect=Effect.DESTROY,
        writes_to=tuple(("*", kind) for kind in ("key", "path", "table", "url")),
        known=False,
    )


# Words that name a receiver in most tools' schemas.
_RECEIVERS: Final = frozenset(
    "to cc bcc recipient recipients receiver email emails mail address addresses url uri link endpoint webhook"
    " callback host hostname server domain channel room user users username member members attendees participants"
    " invitees share with phone number account iban payee reply forward target destination".split()
)


def words(text: str) -> set[str]:
    """The words of an identifier, in lower case: ``shareWith``, ``share_with`` and ``share-with`` have the same."""
    return {one.lower() for one in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", text)}


def looks_like_receiver(argument: str) -> bool:
    """Does an argument's name suggest that it names a receiver?"""
    return bool(words(argument) & _RECEIVERS)
