"""A server's whole list, classified: from the catalogue where it knows the tool, else proposed, and written down.

Nothing here is in force. The text that comes out is for a person to read, to correct and to put into the manifest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from interlock.errors import ManifestError, Misconfigured
from interlock.model.catalogue import Clues, Known, Match, recognised, stray_arguments
from interlock.model.labels import Leg, leg_of
from interlock.model.listed import Change, ListedTool, Listing
from interlock.model.manifest import SERVER, Manifest
from interlock.model.manifest_text import comment, entry_text
from interlock.model.pins import nameable
from interlock.model.proposals import Proposal, propose
from interlock.model.tools import Effect, Egress, ToolSpec


@dataclass(frozen=True, slots=True)
class Classified:
    """One tool with its entry.

    Attributes:
        origin: ``catalogue``, ``widened`` (the catalogue knows it, and it takes more than the catalogue knows) or
            ``proposed``.
        confidence: ``high``, ``medium`` or ``low``: how little a person will have to correct.
    """

    tool: ListedTool
    entry: Mapping[str, Any]
    origin: str
    confidence: str
    reasons: tuple[str, ...]
    spec: ToolSpec

    @property
    def legs(self) -> tuple[str, ...]:
        """Which legs the entry has, in the order of the word trifecta."""
        return legs_of(self.spec)


def legs_of(spec: ToolSpec) -> tuple[str, ...]:
    """``untrusted``, ``private`` and ``egress``, as far as a spec has them."""
    held = {leg_of(one) for one in (*spec.untrusted, *spec.private)}
    if spec.sends:
        held.add(Leg.EGRESS)
    return tuple(leg.value for leg in (Leg.UNTRUSTED, Leg.PRIVATE, Leg.EGRESS) if leg in held)


@dataclass(frozen=True, slots=True)
class Classification:
    """A server's tools with their entries, and by what the catalogue recognised the server.

    Attributes:
        unusable: names that can't stand in a manifest, and why; such a tool has every leg.
    """

    server: str
    listing: Listing
    known: Known | None
    match: Match
    tools: tuple[Classified, ...]
    unusable: Mapping[str, str]

    @property
    def manifest(self) -> Manifest:
        """What all entries together say."""
        return Manifest({one.spec.id: one.spec for one in self.tools})


def classify(
    listing: Listing, server: str, known: Iterable[Known] = (), clues: Clues | None = None, told: str = ""
) -> Classification:
    """Classify every tool of a list.

    Args:
        server: the operator's name for the server, under which the entries stand.
        known: the catalogue; empty for proposals alone.
        told: the operator's word that it is this server of the catalogue.

    Raises:
        Misconfigured: the name is none of a server, or the catalogue does not know ``told``.
    """
    if not SERVER.fullmatch(server):
        raise Misconfigured(f"{server!r} is no name of a server; use letters, digits and _.-, with --server NAME")
    everybody = tuple(known)
    one, match = recognised(everybody, clues or Clues(server), listing)
    if told:
        one, match = next((each for each in everybody if told in each.names), None), Match.TOLD
        if one is None:
            names = ", ".join(each.name for each in everybody)
            raise Misconfigured(f"the catalogue knows no server {told!r}; it knows: {names}")
    usable, unusable = nameable(tool.name for tool in listing.tools)
    category = _category(server)
    tools = tuple(
        _classified(tool, server, category, one, match)
        for tool in sorted(listing.tools, key=lambda each: each.name)
        if tool.name in usable
    )
    return Classification(server, listing, one, match, tools, unusable)


def _category(server: str) -> str:
    plain = "".join(char if char.isascii() and (char.isalnum() or char in "._-") else "-" for char in server.lower())
    return plain.lstrip("._-") or "server"


def _classified(tool: ListedTool, server: str, category: str, known: Known | None, match: Match) -> Classified:
    entry = known.entries.get(tool.name) if known is not None else None
    proposal = _loadable(propose(tool, category), server, tool.name)
    if known is None or entry is None:
        spec = _spec(server, tool.name, proposal.entry)
        return Classified(tool, proposal.entry, "proposed", proposal.confidence, proposal.reasons, spec)
    stray = stray_arguments(entry, tool)
    reasons: tuple[str, ...] = (f"{known.title}, recognised by its {match.name.lower()}; source: {known.source}",)
    if stray:
        why = f"it takes what the catalogue does not know: {', '.join(map(repr, stray))}"
        wider = _loadable(Proposal(_joined(entry, proposal.entry), (), "medium"), server, tool.name).entry
        reasons = (*reasons, why, *proposal.reasons)
        return Classified(tool, wider, "widened", "medium", reasons, _spec(server, tool.name, wider))
    spec = _spec(server, tool.name, entry)
    if not match.sure and not legs_of(spec):
        # A server that only calls itself `time` must not come out without a leg.
        entry = {**entry, "returns": [*entry["returns"], f"untrusted:{category}"]}
        spec = _spec(server, tool.name, entry)
        reasons = (*reasons, "untrusted: it is not known what runs under that name; say so with --as")
    return Classified(tool, entry, "catalogue", "high" if match.sure else "medium", reasons, spec)


def _spec(server: str, name: str, entry: Mapping[str, Any]) -> ToolSpec:
    manifest = Manifest.parse({"version": 1, "servers": {server: {"tools": {name: dict(entry)}}}}, "classify")
    return next(iter(manifest))


_EVERY_LEG: Final[Mapping[str, Any]] = {
    "returns": ["private:unknown", "untrusted:unknown"],
    "reads": ["private:unknown"],
    "opens": ["egress:unknown"],
    "egress": "chosen",
    "effect": "destroy",
}


def _loadable(proposal: Proposal, server: str, name: str) -> Proposal:
    """The proposal, or every leg: names of arguments come from a server, and need not be any that a manifest takes."""
    try:
        _spec(server, name, proposal.entry)
    except (ManifestError, Misconfigured) as error:
        reasons = (*proposal.reasons, f"its arguments can't stand in a manifest ({error}), so it has every leg")
        return Proposal(_EVERY_LEG, reasons, "low")
    return proposal


def _joined(entry: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that either says of its legs. Clauses go, since what was not known may do the rest; so do roles of
    payload, and whatever says that nobody sees it."""
    both: dict[str, Any] = {}
    for name in ("returns", "reads", "opens"):
        labels = sorted({*entry.get(name, []), *more.get(name, [])})
        if labels or name == "returns":
            both[name] = labels
    both["egress"] = max(entry["egress"], more["egress"], key=[one.value for one in Egress].index)
    effects = [one.value for one in Effect]
    both["effect"] = max(entry.get("effect", "none"), more.get("effect", "none"), key=effects.index)
    for name in ("destinations", "objects", "parties", "writes_to", "reads_from"):
        if name in entry:
            both[name] = dict(entry[name])
    both["arguments"] = list(more.get("arguments", []))
    return both


# --- for a person to read --------------------------------------------------------------------------------------------


def manifest_text(found: Classification, only: Iterable[Change] | None = None) -> str:
    """The entries as TOML with a comment above each, of all tools or of those that changed.

    No text of the server is in it but names: a description could be written to be read by whoever reviews it.
    """
    wanted = None if only is None else {one.name: one for one in only}
    lines = [
        "# Written by `interlock classify` for you to read and correct; nothing of it is in force before you put it",
        "# into your manifest. A digest is of the name, descriptions, schemas and annotations, and of who the server",
        "# says it is: `interlock mcp pin` compares it later.",
        comment(f"server {found.server}: {_server_said(found)}"),
        "version = 1",
    ]
    for one in found.tools:
        change = wanted.get(one.tool.name) if wanted is not None else None
        if wanted is not None and change is None:
            continue
        lines.append("")
        if change is not None:
            lines.append(comment(f"{change.what}{': ' if change.parts else ''}{', '.join(change.parts)}"))
        lines.append(comment(f"{one.origin}, {one.confidence} confidence; legs: {', '.join(one.legs) or 'none'}"))
        lines += [comment(f"- {reason}") for reason in one.reasons]
        lines.append(comment(str(one.tool.pin)))
        lines += entry_text(found.server, one.tool.name, one.entry)
    for name, why in sorted(found.unusable.items()):
        lines += ["", comment(f"left out, so it has every leg: {name!a}: {why}")]
    for gone in (one for one in (wanted or {}).values() if one.what == "gone"):
        lines += ["", comment(f"gone: {gone.name!a}; take its entry out of the manifest")]
    return "\n".join(lines) + "\n"


def _server_said(found: Classification) -> str:
    package = f", from {found.listing.package} {found.listing.version}".rstrip() if found.listing.package else ""
    matched = f"{found.known.title} of the catalogue" if found.known is not None else "not in the catalogue"
    return f"calls itself {str(found.listing.identity)!r}{package}; {matched}"
