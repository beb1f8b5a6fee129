"""The manifest: the set of all tool specs, parsed strictly.

TOML or YAML, version 1. An unknown key, a missing ``returns`` or ``egress``, or a tool that stands twice is a
load error that names the place; nothing of a wrong manifest is loaded.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self

from interlock.errors import ManifestError, Refused
from interlock.model.canonical import pack
from interlock.model.digests import NO_DIGEST, Digest, digest
from interlock.model.labels import Label, Leg, label, leg_of
from interlock.model.markup import Syntax, read
from interlock.model.tools import Effect, Egress, Kind, ToolId, ToolSpec, looks_like_receiver, undeclared

if TYPE_CHECKING:
    from interlock.model.manifest_file import ToolEntry

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:/-]{0,127}")
SERVER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")


@dataclass(frozen=True, slots=True)
class Manifest:
    """All declared tools. Equal manifests have equal digests, whatever the order of their files.

    ``paths`` are the files it was read from, if it was: only the operator may change them.
    """

    specs: Mapping[ToolId, ToolSpec]
    digest: Digest = NO_DIGEST
    paths: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        frozen = MappingProxyType(dict(sorted(self.specs.items())))
        object.__setattr__(self, "specs", frozen)
        whole = pack([spec.digest for spec in frozen.values()])
        object.__setattr__(self, "digest", digest("manifest", whole))

    @classmethod
    def parse(cls, document: Mapping[str, Any], where: str = "manifest") -> Self:
        """Read a manifest that is already a mapping.

        Args:
            document: ``{"version": 1, "tools": {name: {...}}, "servers": {name: {"tools": {...}}}}``.
            where: what errors call it, usually a path.

        Raises:
            ManifestError: with every problem found, each with its place.
        """
        from interlock.model.manifest_file import parse_file

        file = parse_file(document, where)
        specs: dict[ToolId, ToolSpec] = {}
        if "" in file.servers:
            raise ManifestError(
                f"{where}: servers: a server needs a name; the agent's own tools stand under [tools.NAME]"
            )
        groups = [("", file.tools), *((name, one.tools) for name, one in file.servers.items())]
        for server, tools in groups:
            for name, tool in tools.items():
                spec = _spec(where, ToolId(server, name), tool)
                specs[spec.id] = spec
        _refuse_lookalikes(where, specs)
        return cls(specs)

    @classmethod
    def loads(cls, text: str, *, syntax: Syntax = "toml", where: str = "manifest") -> Self:
        """Read a manifest from text. Raises ManifestError, which for a tool declared twice names both places."""
        return cls.parse(read(text, syntax, where, ManifestError), where)

    def joined(self, specs: Iterable[ToolSpec], where: str = "tools=") -> Self:
        """This manifest and more specs. A tool that both declare is an error, not a choice.

        Raises:
            ManifestError: naming both places.
        """
        merged = dict(self.specs)
        for spec in specs:
            if spec.id in merged:
                raise ManifestError(
                    f"tool {str(spec.id)!r} is declared twice: in the manifest and by {where}; keep one of them"
                )
            merged[spec.id] = spec
        _refuse_lookalikes(where, merged)
        more = specs.paths if isinstance(specs, Manifest) else ()
        return type(self)(merged, paths=(*self.paths, *more))

    def spec(self, tool: ToolId) -> ToolSpec:
        """The declared spec, or one with every leg."""
        return self.specs.get(tool) or undeclared(tool)

    def lookalike(self, tool: ToolId) -> ToolId | None:
        """A declared tool that differs from this name only by case or width; None for a declared name."""
        if tool in self.specs:
            return None
        wanted = folded(tool)
        return next((known for known in self.specs if folded(known) == wanted), None)

    def __iter__(self) -> Iterator[ToolSpec]:
        return iter(self.specs.values())

    def __len__(self) -> int:
        return len(self.specs)


def folded(tool: ToolId) -> tuple[str, str]:
    """What a person would read as the same name: width, case and invisible characters folded away."""

    def fold(text: str) -> str:
        plain = unicodedata.normalize("NFKC", text).casefold()
        return "".join(char for char in plain if unicodedata.category(char) not in ("Cf", "Cc", "Zs"))

    return fold(tool.server), fold(tool.name)


def _refuse_lookalikes(where: str, specs: Mapping[ToolId, ToolSpec]) -> None:
    seen: dict[tuple[str, str], ToolId] = {}
    for tool in specs:
        other = seen.setdefault(folded(tool), tool)
        if other != tool:
            raise ManifestError(f"{where}: tools {str(other)!r} and {str(tool)!r} differ only by case; rename one")


def _spec(where: str, tool: ToolId, entry: ToolEntry) -> ToolSpec:
    place = f"{where}: tool {str(tool)!r}"
    if not NAME.fullmatch(tool.name) or (tool.server and not SERVER.fullmatch(tool.server)):
        raise ManifestError(f"{place}: names are ASCII letters, digits and _.:/- (servers: _.-), at most 128")
    try:
        returns = tuple(label(one) for one in entry.returns)
        reads = tuple(label(one) for one in entry.reads)
        opens = tuple(label(one) for one in entry.opens)
        destinations = tuple((name, _kind(kind)) for name, kind in entry.destinations.items())
    except Refused as error:
        raise ManifestError(f"{place}: {error}") from None
    only_legs(place, "returns", returns, Leg.UNTRUSTED, Leg.PRIVATE)
    only_legs(place, "reads", reads, Leg.PRIVATE)
    only_legs(place, "opens", opens, Leg.EGRESS)
    both = sorted(set(entry.destinations) & set(entry.content))
    if both:
        raise ManifestError(f"{place}: {both} stand under destinations and content; an argument is one or the other")
    egress = Egress(entry.egress)
    if egress is Egress.BLIND and (destinations or entry.audience != "closed"):
        # `blind` is earned: a field that names a receiver, or an open audience, makes it `chosen`.
        raise ManifestError(
            f'{place}: egress "blind" needs audience = "closed" and no destinations; else write "chosen"'
        )
    receivers = sorted(one for one in (*entry.arguments, *entry.content) if looks_like_receiver(one))
    if egress is Egress.BLIND and receivers:
        raise ManifestError(f'{place}: egress "blind", but {receivers} look like receivers; write "chosen"')
    if egress is not Egress.BLIND and entry.audience:
        raise ManifestError(f'{place}: audience belongs to egress "blind" only')
    return ToolSpec(
        tool,
        returns=returns,
        egress=egress,
        reads=reads,
        opens=opens,
        effect=Effect(entry.effect),
        destinations=destinations,
        content=tuple(entry.content),
        arguments=tuple(entry.arguments),
        writes_to=tuple(entry.writes_to.items()),
        reads_from=tuple(entry.reads_from.items()),
        description=entry.description,
    )


def _kind(text: str) -> Kind:
    try:
        kind = Kind(text)
    except ValueError:
        kind = Kind.UNKNOWN
    if kind is Kind.UNKNOWN:
        names = ", ".join(one.value for one in Kind if one is not Kind.UNKNOWN)
        raise Refused(f"{text!r} is not a kind of destination; use one of {names}")
    return kind


def only_legs(place: str, field: str, labels: Iterable[Label], *legs: Leg) -> None:
    """Refuse labels of another leg than a field takes: they would be promised and never joined."""
    for one in labels:
        if leg_of(one) not in legs:
            allowed = " or ".join(leg.value for leg in legs)
            raise ManifestError(f"{place}: {one!r} under {field}, which takes {allowed} labels")
