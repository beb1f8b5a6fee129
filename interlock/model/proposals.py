"""A manifest entry for a tool that no catalogue knows, out of its name, its schema and what its server says of it.

It is a proposal for a person to read. It never leaves a tool without a leg: whatever comes out of a server is at least
text that somebody else wrote. The annotations of a server only add.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from interlock.model import evidence as words_of
from interlock.model.listed import Argument, ListedTool, parts_of
from interlock.model.pins import is_gateway

_FORMS: Final = {"uri": "url", "url": "url", "email": "email", "idn-email": "email", "hostname": "domain"}
_KINDS: Final = {
    "url": "url",
    "urls": "url",
    "uri": "url",
    "link": "url",
    "endpoint": "url",
    "webhook": "url",
    "callback": "url",
    "email": "email",
    "emails": "email",
    "mail": "email",
    "cc": "email",
    "bcc": "email",
    "recipient": "email",
    "recipients": "email",
    "host": "domain",
    "hostname": "domain",
    "domain": "domain",
    "phone": "phone",
    "iban": "account",
}
LEVELS: Final = ("low", "medium", "high")


@dataclass(frozen=True, slots=True)
class Proposal:
    """One entry in the manifest's words, with why, and how sure: ``low``, ``medium`` or ``high``."""

    entry: Mapping[str, Any]
    reasons: tuple[str, ...]
    confidence: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "entry", MappingProxyType(dict(self.entry)))


@dataclass(slots=True)
class _Found:
    """What speaks for each leg, collected word by word."""

    reasons: list[str] = field(default_factory=list)
    sends: list[str] = field(default_factory=list)

    def send(self, why: str) -> None:
        self.sends.append(why)


def propose(tool: ListedTool, category: str) -> Proposal:
    """Propose an entry.

    Args:
        category: of the labels, such as the server's name.
    """
    named = parts_of(tool.name)
    told = frozenset(parts_of(tool.described))
    arguments = tool.arguments
    # Verbs come first in some names and last in others: `get_issue`, `pods_delete`.
    verbs = [one for one in named if _is_verb(one)]
    found = _Found()
    _names_a_sender(named, verbs, arguments, found)
    _takes_a_receiver(arguments, only_looks=not found.sends, found=found)
    _asks_outside(named, told, arguments, found)
    _hints(tool.hints, arguments, found)
    if tool.takes_anything or any(one.hidden for one in arguments):
        found.send("it takes what its schema does not name")
    gateway = is_gateway(tool.schema)
    if gateway:
        found.send("it runs other tools by their names")
    returns = [f"untrusted:{category}"]
    found.reasons.append("untrusted: what a server returns may have been written by somebody else")
    public = _public(named, told, verbs, arguments)
    secret = sorted(words_of.SECRETS & {*named, *(one for each in arguments for one in _secret_words(each))})
    if public and not secret and not gateway:
        found.reasons.append(f"not private: it speaks of {_quoted(public)}")
    else:
        returns.append(f"private:{category}")
        found.reasons.append("private: nothing says that anybody may read it")
    if secret or words_of.RUNS & set(verbs):
        returns.append("private:credentials")
        found.reasons.append(f"credentials: {_quoted(secret or sorted(words_of.RUNS & set(verbs)))}")
    entry: dict[str, Any] = {"returns": returns, "egress": "chosen" if found.sends else "none"}
    if found.sends:
        found.reasons.append("egress: " + "; ".join(found.sends))
    else:
        found.reasons.append(f"no egress: it only looks ({_quoted(verbs[:1])}), and names no receiver")
    if _opens(named, arguments):
        entry["opens"] = ["egress:channel"]
        found.reasons.append("opens: a receiver that stays")
    effect = "control" if gateway else _effect(verbs, tool.hints)
    if effect != "none":
        entry["effect"] = effect
    entry |= _roles(arguments, sends=bool(found.sends), effect=effect)
    entry["arguments"] = list(tool.names)
    return Proposal(entry, tuple(found.reasons), _confidence(verbs, found, public))


def _public(
    named: tuple[str, ...], told: frozenset[str], verbs: list[str], arguments: tuple[Argument, ...]
) -> list[str]:
    """Words of what anybody may read, where the tool only looks for it. An address may also lead inside a network."""
    looks = not verbs or verbs[0] in words_of.READS
    if not looks or _local(arguments) or any(_names_a_place_elsewhere(one) for one in arguments):
        return []
    if words_of.OWNED & {*named, *told}:
        return []
    return sorted(words_of.PUBLIC & {*named, *told})


def _secret_words(one: Argument) -> tuple[str, ...]:
    parts = parts_of(one.name)
    return () if {"page", "next", "cursor", "continuation", "max"} & set(parts) else parts


def _is_verb(word: str) -> bool:
    tables = (words_of.READS, words_of.ADDS, words_of.CHANGES, words_of.DESTROYS, words_of.RUNS, words_of.SENDS)
    return any(word in one for one in tables)


def _quoted(many: Iterable[str]) -> str:
    return ", ".join(repr(one) for one in many) or "nothing"


def _names_a_sender(named: tuple[str, ...], verbs: list[str], arguments: tuple[Argument, ...], found: _Found) -> None:
    """By its name: everything but looking, and changing files of this machine, can be seen by somebody."""
    if not verbs:
        found.send(f"no word of {_quoted(named)} says what it does")
        return
    for word in named:
        if word in words_of.SENDS or word in words_of.RUNS or word in words_of.RENDERS:
            found.send(f"{word!r} in its name")
    changing = [one for one in verbs if one in words_of.ADDS | words_of.CHANGES | words_of.DESTROYS]
    if changing and not found.sends and not _local(arguments):
        found.send(f"{changing[0]!r}: what it changes may be read by others")


def _local(arguments: tuple[Argument, ...]) -> bool:
    """Does it take a place on this machine, and none that could be elsewhere?"""
    if any(_names_a_place_elsewhere(one) for one in arguments):
        return False
    return any(set(parts_of(one.name)) & words_of.LOCAL or one.name in words_of.LOCAL for one in arguments)


def _names_a_place_elsewhere(one: Argument) -> bool:
    elsewhere = {"url", "uri", "owner", "repo", "bucket", "branch", "project", "server", "host", "id", "namespace"}
    return one.form in _FORMS or bool(set(parts_of(one.name)) & elsewhere and one.name != "repo_path")


def _takes_a_receiver(arguments: tuple[Argument, ...], *, only_looks: bool, found: _Found) -> None:
    """A place that the question goes to, or a program: then looking is sending, too."""
    for one in arguments:
        parts = set(parts_of(one.name))
        if not one.texts:
            continue
        if parts & words_of.STRONG_RECEIVERS or one.form in _FORMS:
            found.send(f"argument {one.path!r} names a receiver")
        elif only_looks and not one.closed and set(parts_of(one.name)[-1:]) & words_of.ARBITRARY:
            found.send(f"argument {one.path!r} is a program")


def _asks_outside(named: tuple[str, ...], told: frozenset[str], arguments: tuple[Argument, ...], found: _Found) -> None:
    outside = sorted(words_of.OUTSIDE & {*named, *told})
    if words_of.TOLD & told:
        found.send(f"its description says {_quoted(sorted(words_of.TOLD & told))}")
    if outside and any(one.texts and not one.closed for one in arguments):
        found.send(f"it speaks of {_quoted(outside)}")
    searches = {"search", "query", "find"} & set(named) and not _local(arguments)
    if searches and any(one.texts and not one.closed for one in arguments):
        found.send("what is searched for goes to whoever searches")
    if {"http", "https"} & {word for one in arguments for word in parts_of(one.described)}:
        found.send("an argument is described as an address")


def _hints(hints: Mapping[str, Any], arguments: tuple[Argument, ...], found: _Found) -> None:
    """INVARIANT: a server's hints only add. `readOnlyHint: true` and `openWorldHint: false` say nothing here."""
    if hints.get("openWorldHint") is True and any(one.texts and not one.closed for one in arguments):
        found.send("its server says that it meets an open world")


def _opens(named: tuple[str, ...], arguments: tuple[Argument, ...]) -> bool:
    parts = {*named, *(part for one in arguments if one.texts for part in parts_of(one.name))}
    return bool(parts & {"webhook", "webhooks", "callback", "tunnel", "expose", "port", "ports", "deploy", "cron"})


_EFFECTS: Final = ("none", "add", "write", "destroy", "control")


def _effect(verbs: list[str], hints: Mapping[str, Any]) -> str:
    found = {"none"}
    for word in verbs or ["?"]:
        if word in words_of.RUNS:
            found.add("control")
        elif word in words_of.DESTROYS or word == "?":
            found.add("destroy")
        elif word in words_of.CHANGES:
            found.add("write")
        elif word in words_of.ADDS or word in words_of.SENDS:
            found.add("add")
    if hints.get("destructiveHint") is True:
        found.add("destroy")
    elif hints.get("readOnlyHint") is False:
        found.add("write")
    return max(found, key=_EFFECTS.index)


def _roles(arguments: tuple[Argument, ...], *, sends: bool, effect: str) -> dict[str, Any]:
    """Receivers, objects and payload, where names are plain. A text in no role grounds nothing in a sending tool."""
    receivers: dict[str, str] = {}
    objects: dict[str, str] = {}
    content: list[str] = []
    for one in arguments:
        parts = parts_of(one.name)
        kind = _FORMS.get(one.form) or next((_KINDS[part] for part in reversed(parts) if part in _KINDS), "")
        if not one.texts or any(one.path.startswith(f"{above}.") for above in (*receivers, *objects, *content)):
            continue
        if sends and (kind or one.name == "to"):
            receivers[one.path] = kind or "email"
        elif effect not in ("none", "control") and set(parts) & words_of.LOCAL:
            objects[one.path] = "path"
        elif sends and "." not in one.path and one.name in words_of.PAYLOAD:
            content.append(one.path)
    roles = {"destinations": receivers, "objects": objects, "content": content}
    return {name: value for name, value in roles.items() if value}


def _confidence(verbs: list[str], found: _Found, public: list[str]) -> str:
    """How sure it is that nothing is missing and little is too much."""
    if not verbs:
        return "low"
    if len(found.sends) > 1 or (not found.sends and not public):
        return "high"
    return "medium"
