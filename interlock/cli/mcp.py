"""``interlock mcp``: the proxy in front of MCP servers, and its pins."""

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from interlock.assembly import Interlock, read_configuration
from interlock.cli.mcp_scan import scan
from interlock.cli.output import console, json_option, print_json
from interlock.conversations import Conversations
from interlock.errors import Misconfigured
from interlock.gate.conversation import Conversation
from interlock.model.markup import read
from interlock.model.pins import ServerPins, parse_pins, pins_text
from interlock.model.results import printable
from interlock.ports import Store

if TYPE_CHECKING:
    from interlock.model.proxies import ProxyChoice

_config = click.option(
    "--config", type=click.Path(path_type=Path), default=Path("interlock.toml"), show_default=True,
    help="The operator's configuration.",
)  # fmt: skip


@click.group()
def mcp() -> None:
    """Stand in front of MCP servers; see what they say, and pin it."""


mcp.add_command(scan)


@mcp.command()
@_config
@click.option("--http", "address", metavar="HOST:PORT", help="Serve over streamable HTTP instead of standard input.")
def proxy(config: Path, address: str | None) -> None:
    """Serve an MCP client, with every call going through the gate to the servers of the configuration."""
    _needs_the_sdk()
    from interlock.integrations.mcp.proxy import Proxy
    from interlock.integrations.mcp.serving import over_http, over_stdio, run

    choice, folder = chosen(config)
    interlock = Interlock.load(config)
    made = Proxy(interlock, choice, folder, pins_of(choice, folder), first_of(interlock, choice))
    version = importlib.metadata.version("interlock")
    if address is None:
        run(over_stdio, made, version)
    else:
        host, port = _address(address)
        run(over_http, made, version, host, port, token_of(choice))


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise click.BadParameter("write HOST:PORT, such as 127.0.0.1:8080", param_hint="--http")
    return host, int(port)


def token_of(choice: ProxyChoice) -> str:
    """The token that clients over HTTP must send.

    Raises:
        Misconfigured: it should be in an environment variable that is not set.
    """
    if not choice.token_from:
        return ""
    token = os.environ.get(choice.token_from, "")
    if not token:
        raise Misconfigured(f"mcp.token_from: the environment variable {choice.token_from} is not set")
    return token


@mcp.command()
@_config
@click.option("--check", is_flag=True, help="Write nothing; exit code 1 when something differs.")
@json_option
def pin(config: Path, check: bool, as_json: bool) -> None:
    """Ask the servers what they are now, show what differs from the pins, and write it down as seen.

    What is pinned counts as read by you: declared tools stand as they are declared, and their descriptions bring no
    label of a stranger.
    """
    _needs_the_sdk()
    from interlock.integrations.mcp.pinning import seen_now
    from interlock.integrations.mcp.serving import run

    choice, folder = chosen(config)
    if not choice.pins:
        raise Misconfigured(f'{config}: [mcp] names no file for pins; write pins = "mcp-pins.toml"')
    known = pins_of(choice, folder) if (folder / choice.pins).exists() else {}
    now, upstreams = run(seen_now, choice, folder)
    changes = _changes(known, now)
    if as_json:
        print_json({"changes": [{"server": one, "name": two, "what": three} for one, two, three in changes]})
    else:
        table = Table("server", "what", "since the last pin", "it says", box=None)
        for server, name, what in changes:
            listed = upstreams[server].listing if server in upstreams else None
            said = ""
            if listed is not None and name == "(instructions)":
                said = listed.instructions
            elif listed is not None and name in listed.tools:
                said = listed.tools[name].tool.description or ""
            table.add_row(server, Text(printable(name)), what, Text(printable(said.replace("\n", " ⏎ "))))
        console().print(table if changes else "Everything is as it was pinned.")
    if check:
        raise SystemExit(1 if changes else 0)
    if changes:
        written = folder / (choice.pins + ".new")
        written.write_text(pins_text(now), encoding="utf-8")
        written.replace(folder / choice.pins)


def _changes(known: dict[str, ServerPins], now: dict[str, ServerPins]) -> list[tuple[str, str, str]]:
    found = []
    for server in sorted(known.keys() | now.keys()):
        old, new = known.get(server, ServerPins()), now.get(server, ServerPins())
        pairs = {name: (old.tools.get(name, ""), new.tools.get(name, "")) for name in old.tools.keys() | new.tools}
        pairs["(instructions)"] = (old.instructions, new.instructions)
        for name, (before, after) in sorted(pairs.items()):
            if before != after:
                found.append((server, name, "changed" if before and after else "new" if after else "gone"))
    return found


def chosen(config: Path) -> tuple[ProxyChoice, Path]:
    """The ``[mcp]`` of a configuration, and the folder that its paths are relative to.

    Raises:
        Misconfigured: there is none, or it is wrong.
    """
    configuration, folder = read_configuration(config)
    if configuration.mcp is None:
        raise Misconfigured(f"{config}: there is no [mcp.servers.NAME]; write one for each server behind the proxy")
    return configuration.mcp, folder


KEPT = "mcp"
"""Name of the conversation of a principal, in the principal's namespace."""


def first_of(interlock: Interlock, choice: ProxyChoice) -> Conversation | None:
    """The conversation of everything that can't be told apart, where it outlives the process.

    Raises:
        Misconfigured: nothing keeps it.
        JournalUnavailable: it can't be taken up.
    """
    if choice.conversation != "principal":
        return None
    if not isinstance(interlock.journal, Store):
        raise Misconfigured('mcp.conversation = "principal" needs a [journal] of kind "sqlite" or "postgres"')
    return Conversations(interlock.journal, choice.principal).standing(KEPT).conversation


def pins_of(choice: ProxyChoice, folder: Path) -> dict[str, ServerPins]:
    """The pins that a configuration names.

    Raises:
        Misconfigured: the file can't be read or is wrong.
    """
    if not choice.pins:
        return {}
    file = folder / choice.pins
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise Misconfigured(f"{file}: can't be read; write it with `interlock mcp pin`") from None
    return parse_pins(read(text, "toml", str(file), Misconfigured), str(file))


def _needs_the_sdk() -> None:
    try:
        import mcp as _sdk  # noqa: F401 - is it there?
    except ImportError:
        raise ImportError("the proxy needs the MCP SDK: pip install interlock[mcp]") from None
