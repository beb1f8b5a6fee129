"""Which MCP servers a client is configured with: Claude Desktop and Code, Cursor, VS Code, Codex, Gemini.

Read is what starts or reaches a server, and which of its tools are switched off. Everything else is the client's own.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from interlock.errors import Misconfigured

Format: TypeAlias = Literal["json", "toml"]


@dataclass(frozen=True, slots=True)
class Configured:
    """One server of a configuration.

    Attributes:
        client: whose configuration it is, by its shape.
        env, headers: may hold secrets: never shown.
        enabled: False where the client is told not to start it.
        only, without: tools that are switched on or off by name; ``only`` is None when all are on.
    """

    name: str
    client: str
    command: str = ""
    arguments: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    folder: str = ""
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    sse: bool = False
    enabled: bool = True
    only: frozenset[str] | None = None
    without: frozenset[str] = frozenset()

    def offers(self, tool: str) -> bool:
        """Does the client let a model see a tool?"""
        return tool not in self.without and (self.only is None or tool in self.only)


def read_client(text: str, form: Format, where: str) -> tuple[Configured, ...]:
    """Every server of one configuration, by name.

    Raises:
        Misconfigured: it can't be read, has no servers in any known place, or one of them is no server.
    """
    document = _parsed(text, form, where)
    found: dict[str, Configured] = {}
    places = list(_places(document))
    if not places:
        raise Misconfigured(
            f"{where}: no servers: mcpServers, servers, mcp.servers, projects.*.mcpServers or mcp_servers is expected"
        )
    for client, prefix, servers in places:
        if not isinstance(servers, Mapping):
            raise Misconfigured(f"{where}: the servers of {client} are no object")
        for name, entry in servers.items():
            one = _server(client, str(name), entry, f"{where}: server {str(name)!r}")
            # The same name in two projects is two servers.
            shown = one.name if one.name not in found else f"{one.name}@{prefix or client}"
            if shown in found and found[shown] != one:
                raise Misconfigured(f"{where}: server {shown!r} stands twice; rename one")
            found[shown] = replace(one, name=shown)
    return tuple(found[name] for name in sorted(found))


def _parsed(text: str, form: Format, where: str) -> Mapping[str, Any]:
    try:
        document = tomllib.loads(text) if form == "toml" else json.loads(plain_json(text), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise Misconfigured(f"{where}: not {form.upper()}: {error}") from None
    if not isinstance(document, Mapping):
        raise Misconfigured(f"{where}: an object is expected")
    return document


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{twice!r} stands twice; keep one of them")
    return dict(pairs)


_TOKEN: Final = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/|,(?=\s*(?:(?://[^\n]*|/\*.*?\*/)\s*)*[\]}])', re.DOTALL
)


def plain_json(text: str) -> str:
    """JSON as VS Code writes it, without comments and without commas before a closing bracket."""
    return _TOKEN.sub(
        lambda found: found.group() if found.group().startswith('"') else " ", text.removeprefix("\ufeff")
    )


def _places(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Client by shape, a prefix for names that stand twice, and the servers."""
    if "mcpServers" in document:
        yield "mcpServers", "", document["mcpServers"]
    if "mcp_servers" in document:
        yield "Codex", "", document["mcp_servers"]
    if "servers" in document:
        yield "VS Code", "", document["servers"]
    mcp = document.get("mcp")
    if isinstance(mcp, Mapping) and "servers" in mcp:
        yield "VS Code", "", mcp["servers"]
    projects = document.get("projects")
    for folder, project in projects.items() if isinstance(projects, Mapping) else ():
        if isinstance(project, Mapping) and project.get("mcpServers"):
            yield "Claude Code", str(folder).rstrip("/").rpartition("/")[2], project["mcpServers"]


def _server(client: str, name: str, entry: Any, where: str) -> Configured:
    if not isinstance(entry, Mapping):
        raise Misconfigured(f"{where}: an object is expected")
    command, url = entry.get("command", ""), entry.get("url") or entry.get("httpUrl") or entry.get("serverUrl") or ""
    arguments = entry.get("args", [])
    if not isinstance(command, str) or not isinstance(url, str) or bool(command) == bool(url):
        raise Misconfigured(f"{where}: either a command or a url is expected, as a text")
    if not isinstance(arguments, list) or not all(isinstance(one, str) for one in arguments):
        raise Misconfigured(f"{where}: args: a list of texts is expected")
    on = entry.get("enabled", True) is not False and entry.get("disabled", False) is not True
    only = entry.get("enabled_tools", entry.get("includeTools"))
    off = entry.get("disabled_tools", entry.get("excludeTools", []))
    return Configured(
        name,
        client,
        command=command,
        arguments=tuple(arguments),
        env=_texts(entry.get("env", {}), f"{where}: env"),
        folder=entry["cwd"] if isinstance(entry.get("cwd"), str) else "",
        url=url,
        headers=_texts(entry.get("headers", entry.get("http_headers", {})), f"{where}: headers"),
        # Gemini's `url` is the older transport; `type` says so elsewhere.
        sse=entry.get("type") == "sse",
        enabled=on,
        only=None if only is None else _names(only, f"{where}: enabled_tools"),
        without=_names(off, f"{where}: disabled_tools"),
    )


def _texts(value: Any, where: str) -> Mapping[str, str]:
    if value is None:
        return MappingProxyType({})
    if not isinstance(value, Mapping):
        raise Misconfigured(f"{where}: an object of texts is expected")
    return MappingProxyType({str(name): str(one) for name, one in value.items() if one is not None})


def _names(value: Any, where: str) -> frozenset[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise Misconfigured(f"{where}: a list of texts is expected")
    return frozenset(value)


_VARIABLE: Final = re.compile(r"\$\{(?:(env|input):)?([^}:]+)(?::-([^}]*))?\}")


def expanded(one: Configured, variables: Mapping[str, str]) -> Configured:
    """The server with ``${NAME}``, ``${NAME:-default}`` and ``${env:NAME}`` filled in.

    Raises:
        Misconfigured: a variable is not set, or is one that only the client can fill (``${input:…}``).
    """

    def value(found: re.Match[str]) -> str:
        source, name, default = found.groups()
        if source != "input" and name in variables:
            return variables[name]
        if source != "input" and default is not None:
            return str(default)
        what = "is asked for by the client" if source == "input" else "is not set"
        raise Misconfigured(f"server {one.name!r}: ${{{name}}} {what}; set it, or use --offline")

    fill: Callable[[str], str] = lambda text: _VARIABLE.sub(value, text)  # noqa: E731 - it reads better in line
    return replace(
        one,
        command=fill(one.command),
        arguments=tuple(fill(each) for each in one.arguments),
        env=MappingProxyType({name: fill(each) for name, each in one.env.items()}),
        folder=fill(one.folder),
        url=fill(one.url),
        headers=MappingProxyType({name: fill(each) for name, each in one.headers.items()}),
    )
