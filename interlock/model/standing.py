"""Standing approvals: one conversation, one tool, one receiver that somebody vouches for, until a time.

An object of its own and no grant: it lets any number of calls run, so it is weaker in every other way. It never answers
what the trifecta objects to, nor a call that may have happened already, and it is void after the next untrusted
observation, whether or not its label was there before, and after the next label of any kind that was not there before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from interlock.model.digests import Digest
from interlock.model.entries import Stood, Voided
from interlock.model.tools import ToolId

MAX_STANDING: Final = 16
NEVER: Final = frozenset(
    {
        *("trifecta", "open_channel", "secret_egress", "credential_egress", "talks_back"),
        *("control_plane", "unknown_tool", "in_doubt"),
    }
)
"""Codes that no standing approval answers."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What calls it answers. ``destination``: digest of their one receiver."""

    at: str
    expires: str
    question: str
    tool: ToolId
    spec: Digest
    destination: Digest
    codes: frozenset[str]
    revision: str
    manifest: str
    by: str

    def answers(
        self, tool: ToolId, spec: Digest, destination: Digest, codes: Collection[str], rules: tuple[str, str], at: str
    ) -> bool:
        """Does it let this call run? ``rules``: policy revision and manifest digest that are in force."""
        return (
            self.at <= at < self.expires
            and (self.tool, self.spec, self.destination) == (tool, spec, destination)
            and (self.revision, self.manifest) == rules
            and bool(codes)
            and self.codes.issuperset(codes)
            and NEVER.isdisjoint(codes)
        )


Approvals = Mapping[str, Standing]
NONE_STANDING: Final[Approvals] = MappingProxyType({})


def standing_id(question: str) -> str:
    """The id of the standing approval that is made from a question; a question makes one at most."""
    return f"s-{question[2:]}"


def applied(standing: Approvals, entry: Stood | Voided, conversation: str) -> Approvals:
    """The approvals after one of their own entries."""
    if isinstance(entry, Voided):
        return without(standing, entry.question) if entry.question in standing else standing
    if entry.conversation != conversation or not NEVER.isdisjoint(entry.codes) or entry.standing in standing:
        return standing
    one = Standing(
        entry.at,
        entry.expires,
        entry.question,
        ToolId(entry.server, entry.tool),
        entry.spec,
        entry.destination,
        frozenset(entry.codes),
        entry.revision,
        entry.manifest,
        entry.by,
    )
    kept = dict(standing)
    if len(kept) >= MAX_STANDING:
        del kept[next(iter(kept))]
    return MappingProxyType({**kept, entry.standing: one})


def without(standing: Approvals, name: str) -> Approvals:
    return MappingProxyType({other: one for other, one in standing.items() if other != name})


def settled(standing: Approvals, at: str) -> Approvals:
    """The approvals once an entry of this time is on record: what is over stays over."""
    over = [name for name, one in standing.items() if at >= one.expires]
    return standing if not over else MappingProxyType({n: one for n, one in standing.items() if n not in over})
