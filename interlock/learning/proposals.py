"""Proposals: one receiver, domain or host that the operator could vouch for, or one tool that could be declared."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from interlock.assembly import Manifest, Parts
from interlock.learning.evidence import STRANGERS, Seen
from interlock.learning.records import Record
from interlock.model.decisions import Verdict
from interlock.model.destinations import is_below_public_suffix, normalised, voice_of
from interlock.model.manifest import NAME, SERVER
from interlock.model.tools import Kind

Sort = Literal["address_book", "own_domains", "hosts", "tools"]

MAX_PROPOSALS: Final = 64
# So many different addresses of one domain, or pages of one host, before all of it is proposed.
ENOUGH_FOR_A_DOMAIN: Final = 3
BOOK: Final = frozenset({"url", "email", "path", "domain", "account", "phone", "channel", "user"})
# Anybody can have an address there, so nobody's own domain they are.
FREE_MAIL: Final = frozenset(
    "gmail.com googlemail.com outlook.com hotmail.com live.com msn.com yahoo.com ymail.com icloud.com me.com mac.com"
    " aol.com gmx.com gmx.de gmx.net web.de mail.com mail.ru yandex.com yandex.ru proton.me protonmail.com pm.me"
    " tutanota.com tuta.io zoho.com fastmail.com hey.com qq.com 163.com 126.com t-online.de".split()
)


@dataclass(frozen=True, slots=True, order=True)
class Proposal:
    """One thing to vouch for or to declare.

    Attributes:
        sort: the setting, or ``tools``.
        key: kind of a value in the address book; empty otherwise.
        value: the value, or the name of the tool.
        calls: how many refused calls of the records speak for it.
        approved: how many of them a person approved.
        places: for a tool, arguments that hold receivers, with their kind.
        tried: on a record. What is known from a journal alone could not be.
    """

    sort: Sort
    key: str
    value: str
    calls: int = field(compare=False, default=0)
    approved: int = field(compare=False, default=0)
    places: tuple[tuple[str, str], ...] = ()
    tried: bool = field(compare=False, default=True)

    @property
    def name(self) -> str:
        return ".".join(part for part in (self.sort, self.key) if part) + f": {self.value}"


def candidates(seen: Sequence[Seen], records: Sequence[Record], least: int) -> list[Proposal]:
    """What could be proposed, in a fixed order. Nothing that a stranger's text named in any record is among it.

    Args:
        least: from how many refused calls on; one is enough if a person approved it.
    """
    found = [*_receivers(seen, least), *_tools(seen, records, least)]
    return sorted(found, key=lambda one: (-one.approved, -one.calls, one))[:MAX_PROPOSALS]


def poisoned(seen: Iterable[Seen]) -> frozenset[tuple[str, str]]:
    """Receivers, by kind and value, and parties behind them, that a stranger named somewhere or a person refused."""
    found: set[tuple[str, str]] = set()
    for call in seen:
        for one in call.destinations:
            if call.refused or one["origin"] in STRANGERS or one["talks_back"]:
                found.add((one["kind"], one["value"]))
                if one["talks_back"] or one["kind"] in ("url", "email"):
                    found.add(("voice", voice_of(Kind(one["kind"]), one["value"])))
    return frozenset(found)


def _receivers(seen: Sequence[Seen], least: int) -> list[Proposal]:
    bad = poisoned(seen)
    speaking: dict[tuple[str, str], list[Seen]] = defaultdict(list)
    for call in seen:
        if call.verdict is Verdict.ALLOW or call.steered:
            continue
        for key in {(one["kind"], one["value"]) for one in call.loose if one["kind"] in BOOK}:
            if key not in bad:
                speaking[key].append(call)
    found, behind = [], defaultdict[tuple[str, str], dict[str, list[Seen]]](dict)
    for (kind, value), calls in speaking.items():
        approved = sum(one.approved for one in calls)
        if len(calls) >= least or approved:
            found.append(Proposal("address_book", kind, value, len(calls), approved))
        if kind in ("email", "url"):
            behind[kind, voice_of(Kind(kind), value)][value] = calls
    for (kind, voice), values in behind.items():
        if len(values) < ENOUGH_FOR_A_DOMAIN or not _may_be_own(kind, voice, bad):
            continue
        if all(any((one.key, one.value) == (kind, value) for one in found) for value in values):
            continue  # what is narrower does as well
        calls = [one for some in values.values() for one in some]
        sort: Sort = "own_domains" if kind == "email" else "hosts"
        found.append(Proposal(sort, "", voice, len(calls), sum(one.approved for one in calls)))
    return found


def _may_be_own(kind: str, voice: str, bad: Iterable[tuple[str, str]]) -> bool:
    if normalised(Kind.DOMAIN, voice) is None or not is_below_public_suffix(voice):
        return False
    if kind == "email" and (voice in FREE_MAIL or any(voice.endswith(f".{one}") for one in FREE_MAIL)):
        return False
    return not any(sort == "voice" and (other == voice or other.endswith(f".{voice}")) for sort, other in bad)


def _tools(seen: Sequence[Seen], records: Sequence[Record], least: int) -> list[Proposal]:
    """Tools that nobody declared."""
    counted: dict[str, int] = defaultdict(int)
    approved: dict[str, int] = defaultdict(int)
    values: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for call in seen:
        if "unknown_tool" in call.codes and call.document is not None:
            counted[call.tool] += 1
            approved[call.tool] += call.approved
            for name, value in call.document["call"]["arguments"].items():
                values[call.tool][name].append(value)
    for record in records:
        for one in record.rulings:
            if "unknown_tool" in one.codes:
                tool = f"{one.server}/{one.tool}" if one.server else one.tool
                counted[tool] += 1
                approved[tool] += one.call in record.approved
    found = []
    for tool, calls in counted.items():
        server, _, name = tool.rpartition("/")
        if server or not NAME.fullmatch(name) or (server and not SERVER.fullmatch(server)):
            continue  # a server's tools are declared with its identity, which no record holds
        if calls >= least or approved[tool]:
            given = values.get(tool, {})
            places = tuple(sorted(_places(given).items()))
            found.append(Proposal("tools", "", tool, calls, approved[tool], places, tried=tool in values))
    return found


def _places(values: Mapping[str, Sequence[Any]]) -> dict[str, str]:
    """Arguments whose every recorded value is an address, or a page."""
    kinds: dict[str, str] = {}
    for name, some in values.items():
        flat = [one for value in some for one in (value if isinstance(value, list) else [value])]
        if name.isidentifier() and flat and all(isinstance(one, str) for one in flat):
            if all("@" in one and normalised(Kind.EMAIL, one) for one in flat):
                kinds[name] = "email"
            elif all("://" in one and normalised(Kind.URL, one) for one in flat):
                kinds[name] = "url"
    return kinds


def declaration(one: Proposal) -> dict[str, Any]:
    """How a tool would be declared: with all legs, but as one that opens nothing, destroys nothing and returns no
    credentials. That is what a person has to know before they take it; no record can prove it."""
    category = re.sub(r"[^a-z0-9_]", "_", one.value.lower())[:32].strip("_") or "tool"
    category = category if category[0].isalpha() and category not in ("unknown", "credentials") else f"tool_{category}"
    entry: dict[str, Any] = {
        "returns": [f"private:{category}", f"untrusted:{category}"],
        "egress": "chosen",
        "effect": "write",
    }
    return {**entry, "destinations": dict(one.places)} if one.places else entry


def applied(parts: Parts, proposals: Iterable[Proposal]) -> Parts:
    """The parts as they would be with these proposals. What is declared already stays as it is."""
    settings = {**parts.settings, "address_book": {**parts.settings.get("address_book", {})}}
    tools: dict[str, Any] = {}
    declared = {str(tool) for tool in parts.manifest.specs}
    for one in proposals:
        if one.sort == "tools":
            if one.value not in declared:
                tools[one.value] = declaration(one)
        elif one.sort == "address_book":
            settings["address_book"][one.key] = _with(settings["address_book"].get(one.key, []), one.value)
        else:
            settings[one.sort] = _with(settings.get(one.sort, []), one.value)
    manifest = parts.manifest
    if tools:
        manifest = manifest.joined(Manifest.parse({"version": 1, "tools": tools}, "the proposal"), "the proposal")
    return replace(parts, manifest=manifest, settings=settings)


def _with(values: Sequence[str], value: str) -> list[str]:
    return [*values] if value in values else [*values, value]
