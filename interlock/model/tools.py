"""What a tool may return, what it may reach, and where it may send (a tool spec).

A spec is a promise of the operator. What is not promised is assumed: a tool that nobody declared has every leg.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

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
    """What a call changes besides sending. CONTROL changes what agents or Interlock are allowed to do."""

    NONE = "none"
    WRITE = "write"
    DESTROY = "destroy"
    CONTROL = "control"


class Kind(StrEnum):
    """Kind of a destination. UNKNOWN is what a field holds that could not be parsed; it is never grounded."""

    URL = "url"
    EMAIL = "email"
    PATH = "path"
    DOMAIN = "domain"
    ACCOUNT = "account"
    PHONE = "phone"
    CHANNEL = "channel"
    USER = "user"
    ID = "id"
    UNKNOWN = "unknown"


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
        writes_to, reads_from: argument name → kind of artifact (``path``, ``url``, ``table``, ``key``) that a call
            writes or reads; the argument ``*`` stands for any artifact of its kind.
        description: for people, and part of the digest: a tool that describes itself anew is a new tool.
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
    writes_to: tuple[tuple[str, str], ...] = ()
    reads_from: tuple[tuple[str, str], ...] = ()
    private: tuple[Label, ...] = field(init=False, default=())
    untrusted: tuple[Label, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        for name in ("returns", "reads", "opens", "destinations", "content", "arguments", "writes_to", "reads_from"):
            object.__setattr__(self, name, tuple(sorted(set(getattr(self, name)))))
        private = {one for one in self.returns if leg_of(one) is Leg.PRIVATE} | set(self.reads)
        untrusted = (one for one in self.returns if leg_of(one) is Leg.UNTRUSTED)
        object.__setattr__(self, "private", tuple(sorted(private)))
        object.__setattr__(self, "untrusted", tuple(untrusted))
        object.__setattr__(self, "digest", digest("tool", self.canonical()))

    def canonical(self) -> bytes:
        """Canonical bytes of everything that the spec says."""
        return pack(
            {
                "server": self.id.server,
                "name": self.id.name,
                "returns": self.returns,
                "egress": self.egress.value,
                "reads": self.reads,
                "opens": self.opens,
                "effect": self.effect.value,
                "destinations": [[name, kind.value] for name, kind in self.destinations],
                "content": self.content,
                "arguments": self.arguments,
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
