"""The catalogue: what well-known MCP servers' tools can do, each with where that was read.

A catalogue file holds a table ``[catalogue]`` and tools in the manifest's own words. It says of a tool what a manifest
would say of it; it is data that the operator's manifest is written from, and nothing at run time reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from interlock.errors import ManifestError
from interlock.model.listed import ListedTool, Listing
from interlock.model.manifest import SERVER, Manifest
from interlock.model.manifest_file import ToolEntry
from interlock.model.validation import explained

_Text = Annotated[str, Field(min_length=1)]
_Texts = Annotated[list[_Text], Field(min_length=1)]
_STRICT: Final = ConfigDict(extra="forbid", strict=True)


class _About(BaseModel):
    model_config = _STRICT
    title: _Text
    names: _Texts
    packages: _Texts
    hosts: _Texts = []
    source: _Text
    notes: _Text


class _File(BaseModel):
    model_config = _STRICT
    version: Annotated[int, Field(ge=1, le=1)]
    catalogue: _About
    tools: Annotated[dict[str, ToolEntry], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Known:
    """One server that the catalogue knows.

    Attributes:
        names: what it is called in configurations and by itself; the first is the catalogue's own.
        packages: what it is run from.
        hosts: where it is reached, if its vendor runs it.
        source: where its list of tools was read.
        entries: by tool, in the manifest's words.
    """

    title: str
    names: tuple[str, ...]
    packages: tuple[str, ...]
    hosts: tuple[str, ...]
    source: str
    notes: str
    entries: Mapping[str, Mapping[str, Any]]

    @property
    def name(self) -> str:
        return self.names[0]

    def manifest(self, server: str, tools: Iterable[str] | None = None) -> Manifest:
        """The manifest of this server under the operator's name for it, of all of its tools or of some.

        Raises:
            ManifestError: the name is no name of a server.
        """
        chosen = {one: dict(self.entries[one]) for one in (self.entries if tools is None else tools)}
        return Manifest.parse({"version": 1, "servers": {server: {"tools": chosen}}}, f"catalogue: {self.name}")


def parse_known(document: Mapping[str, Any], where: str) -> Known:
    """Read one catalogue file strictly: its table, and every tool as a manifest would.

    Raises:
        ManifestError: with every problem and its place.
    """
    try:
        file = _File.model_validate(dict(document))
    except ValidationError as error:
        raise ManifestError(explained(error, where)) from None
    about = file.catalogue
    entries = {name: MappingProxyType(dict(one)) for name, one in document["tools"].items()}
    known = Known(
        about.title,
        tuple(about.names),
        tuple(about.packages),
        tuple(about.hosts),
        about.source,
        about.notes,
        MappingProxyType(entries),
    )
    if not SERVER.fullmatch(known.name):
        raise ManifestError(f"{where}: catalogue.names: {known.name!r} is no name of a server")
    missing = sorted(name for name, one in entries.items() if "arguments" not in one)
    if missing:
        raise ManifestError(f"{where}: tools.{missing[0]}.arguments: missing; without them no version can be compared")
    known.manifest(known.name)
    return known


class Match(IntEnum):
    """By what a server was recognised. NAME and TOOLS are the server's own word, or a word in somebody's file."""

    NONE = 0
    TOOLS = 1
    NAME = 2
    PACKAGE = 3
    TOLD = 4

    @property
    def sure(self) -> bool:
        """Is it known what runs, and not only what it is called?"""
        return self >= Match.PACKAGE


@dataclass(frozen=True, slots=True)
class Clues:
    """What is known of a server besides its list: its name in a configuration, and the words that start it."""

    name: str = ""
    command: tuple[str, ...] = ()
    url: str = ""


_VERSION: Final = re.compile(r"(?<=.)(?:@[^/@]*|:[^/:]*|[=~<>!]=.*|\[.*\])$")
_RUNNERS: Final = frozenset({"npx", "bunx", "uvx", "pipx", "pnpx"})
_SUBCOMMANDS: Final = frozenset(
    {("npm", "exec"), ("pnpm", "dlx"), ("yarn", "dlx"), ("bun", "x"), ("pipx", "run"), ("uv", "run")}
)
_TAKES_PACKAGE: Final = frozenset({"-p", "--package", "--from"})
# Options of `docker run` that take a value, as far as they are used to run servers.
_TAKES_VALUE: Final = frozenset(
    "-e --env -v --volume --mount --name --network --net -p --publish -w --workdir -u --user --env-file --add-host -l"
    " --label --entrypoint --platform --pull --memory -m --cpus --python --directory --project --index-url"
    " --registry".split()
)
_IN_MODULES: Final = re.compile(r"node_modules/((?:@[^/]+/)?[^/]+)/")


def package_of(command: Iterable[str]) -> str:
    """The package that a command runs, without its version, or nothing.

    A package that is only mentioned (``npx other --like mcp-server-time``) is not what runs: where it can't be told, it
    is not known.
    """
    words = [one for one in command if one]
    if len(words) > 1 and words[0].lower() in ("cmd", "cmd.exe") and words[1].lower() == "/c":
        words = words[2:]
    if not words:
        return ""
    program = words[0].replace("\\", "/").rpartition("/")[2].removesuffix(".exe").removesuffix(".cmd")
    rest = words[1:]
    if program in ("node", "bun", "deno"):
        inside = _IN_MODULES.findall(rest[0].replace("\\", "/")) if rest else []
        return inside[-1] if inside else ""
    if program in ("python", "python3", "py") and rest[:1] == ["-m"]:
        return rest[1].partition(".")[0].replace("_", "-") if len(rest) > 1 else ""
    if program in ("docker", "podman") and "run" in rest[:1]:
        return _plain(_first_word(rest[1:]))
    if program not in _RUNNERS and (program, *rest[:1]) in _SUBCOMMANDS:
        rest, program = rest[1:], "npx"
    if program in _RUNNERS:
        given = [rest[at + 1] for at, one in enumerate(rest[:-1]) if one in _TAKES_PACKAGE]
        first = rest.index(_first_word(rest)) if _first_word(rest) else len(rest)
        named = [one for one in given if rest.index(one) < first]
        return _plain(named[0] if named else _first_word(rest))
    return _plain(program)


def _first_word(words: list[str]) -> str:
    """The first word that is neither an option nor the value of one."""
    skip = False
    for one in words:
        if skip:
            skip = False
        elif one.startswith("-"):
            skip = one in _TAKES_VALUE | _TAKES_PACKAGE
        else:
            return one
    return ""


def _plain(word: str) -> str:
    return _VERSION.sub("", word)


def recognised(known: Iterable[Known], clues: Clues, listing: Listing | None = None) -> tuple[Known | None, Match]:
    """The server of the catalogue that this one is, and by what. The surest evidence wins; a tie of two is nobody."""
    everybody = tuple(known)
    best: dict[str, tuple[Match, int]] = {}
    for one in everybody:
        match = _match(one, clues, listing)
        if match[0] is not Match.NONE:
            best[one.name] = match
    if not best:
        return None, Match.NONE
    top = max(best.values())
    winners = [one for one in everybody if best.get(one.name) == top]
    return (winners[0], top[0]) if len(winners) == 1 else (None, Match.NONE)


def _match(one: Known, clues: Clues, listing: Listing | None) -> tuple[Match, int]:
    here = set(one.entries)
    theirs = {tool.name for tool in listing.tools} if listing is not None else set()
    shared = len(here & theirs)
    host = (urlsplit(clues.url).hostname or "") if clues.url else ""
    runs = package_of(clues.command)
    if runs in one.packages or host in one.hosts or (listing is not None and listing.package in one.packages):
        return Match.PACKAGE, shared
    said = {clues.name.casefold(), listing.identity.name.casefold() if listing is not None else ""}
    if said & {name.casefold() for name in one.names}:
        return Match.NAME, shared
    # A third of the tools, and at least three, by the same names: a fork, or the same server under another name.
    if shared >= 3 and shared * 3 >= len(theirs):
        return Match.TOOLS, shared
    return Match.NONE, 0


def stray_arguments(entry: Mapping[str, Any], tool: ListedTool) -> tuple[str, ...]:
    """Arguments that the tool takes and the catalogue does not know of: whatever they do, nobody has looked at it."""
    stray = tuple(one for one in tool.names if one not in entry["arguments"])
    return (*stray, "(anything)") if tool.takes_anything else stray
