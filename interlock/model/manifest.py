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
from typing import Any, Final, Self

from interlock.errors import ManifestError
from interlock.model.canonical import pack
from interlock.model.digests import NO_DIGEST, Digest, digest
from interlock.model.labels import Label, Leg, leg_of
from interlock.model.markup import Syntax, read
from interlock.model.tools import ToolId, ToolSpec, undeclared

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
        from interlock.model.manifest_entries import read_spec  # with pydantic, so loaded late
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
                spec = read_spec(where, ToolId(server, name), tool)
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

    def standing(self, listed: Mapping[str, frozenset[str]]) -> Self:
        """This manifest, in which of the servers that are named only these tools stand as declared. What else was
        declared of them is void: the server says something else now, so it is a tool that nobody declared (T7)."""
        kept = {
            tool: spec
            for tool, spec in self.specs.items()
            if tool.server not in listed or tool.name in listed[tool.server]
        }
        return self if len(kept) == len(self.specs) else type(self)(kept, paths=self.paths)

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


def only_legs(place: str, field: str, labels: Iterable[Label], *legs: Leg) -> None:
    """Refuse labels of another leg than a field takes: they would be promised and never joined."""
    for one in labels:
        if leg_of(one) not in legs:
            allowed = " or ".join(leg.value for leg in legs)
            raise ManifestError(f"{place}: {one!r} under {field}, which takes {allowed} labels")
