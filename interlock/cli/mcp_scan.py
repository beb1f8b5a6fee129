"""``interlock mcp scan``: what the MCP servers of a client can do together."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
from rich.table import Table
from rich.text import Text

from interlock.cli.output import console, json_option, print_json
from interlock.errors import InterlockError, Misconfigured
from interlock.model.catalogue import Clues, Known, Match, recognised
from interlock.model.classified import classify, legs_of
from interlock.model.clients import Configured, expanded, read_client
from interlock.model.listed import read_listing
from interlock.model.results import printable
from interlock.model.settings import parse_settings
from interlock.model.tools import ToolId, ToolSpec
from interlock.policy.bundle import assemble
from interlock.policy.catalogue_files import shipped_catalogue
from interlock.policy.embedded import EmbeddedEngine
from interlock.policy.sources import shipped_sources
from interlock.policy.trifectas import LEGS, Trifecta, after, breaking_all, trifectas, unseen

AT_ONCE: Final = 4
SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Scanned:
    """One server: what is known of its tools, and from where.

    Attributes:
        state: ``listed``, ``catalogue`` (as the catalogue has it), ``unknown`` (every leg) or ``off``.
        problem: why it was not listed.
    """

    server: Configured
    state: str
    catalogue: str
    specs: tuple[ToolSpec, ...]
    problem: str = ""


@click.command("scan")
@click.argument("configurations", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--yes", is_flag=True, help="Start the configured commands without asking.")
@click.option("--offline", is_flag=True, help="Start and reach nothing: what the catalogue knows, or every leg.")
@click.option("--timeout", type=click.FloatRange(min=1, max=600), default=30.0, show_default=True, help="For each.")
@json_option
def scan(configurations: tuple[Path, ...], yes: bool, offline: bool, timeout: float, as_json: bool) -> None:
    """Say which lethal trifectas the MCP servers of a client make possible together, and what would break each.

    CONFIGURATIONS are files of Claude Desktop, Claude Code, Cursor, VS Code, Codex or Gemini; several count as one
    installation. Servers are started as they are configured, and asked for their tools only.

    Exit code 0: no trifecta is possible; 1: there is one; 2: nothing could be said.
    """
    servers = read_all(configurations)
    running = [one for one in servers if one.enabled]
    if not offline and running and not yes:
        _ask(running)
    catalogue = shipped_catalogue()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        scanned = list(pool.map(lambda one: _scanned(one, catalogue, offline, timeout), servers))
    bundle = assemble(shipped_sources(), parse_settings({}))
    specs = [spec for one in scanned for spec in one.specs]
    evaluate = EmbeddedEngine(bundle).evaluate
    found = trifectas(specs, bundle, evaluate)
    # A server that has all three legs by itself hides what the others could do with its help, and without it.
    rest = trifectas(after(specs, [one.breaks for one in found]), bundle, evaluate) if found else ()
    if as_json:
        print_json(_as_json(scanned, found, rest))
    else:
        _show(scanned, found, rest)
    raise SystemExit(1 if found else 0)


def read_all(files: Iterable[Path]) -> tuple[Configured, ...]:
    """Every server of several configurations; the same server in two of them is one.

    Raises:
        Misconfigured: a file is wrong, or two different servers have one name.
    """
    found: dict[str, Configured] = {}
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise Misconfigured(f"{file}: can't be read as UTF-8") from None
        for one in read_client(text, "toml" if file.suffix == ".toml" else "json", str(file)):
            other = found.setdefault(one.name, one)
            if (other.command, other.arguments, other.url) != (one.command, one.arguments, one.url):
                raise Misconfigured(f"{file}: another file has another server {one.name!r}; scan them apart, or rename")
    return tuple(found[name] for name in sorted(found))


def _ask(servers: list[Configured]) -> None:
    out = console(stderr=True)
    out.print("To list their tools, these are started or reached:")
    for one in servers:
        words = (one.command, *one.arguments) if one.command else ("(its address)",)
        out.print(Text(f"  {one.name}: {printable(' '.join(words))}"))
    if not sys.stdin.isatty():
        raise Misconfigured("nobody is there to ask; use --yes to start them, or --offline")
    if not click.confirm("Start them?", err=True):
        raise Misconfigured("nothing was started; use --offline for what the catalogue knows")


def _scanned(one: Configured, catalogue: tuple[Known, ...], offline: bool, timeout: float) -> Scanned:
    if not one.enabled:
        return Scanned(one, "off", "", ())
    problem = ""
    if not offline:
        try:
            return _listed(one, catalogue, timeout)
        except InterlockError as error:  # not started, not reached, or no list: what is left is what anybody knows
            problem = str(error)
    known, match = recognised(catalogue, _clues(one))
    if known is not None and match.sure:
        manifest = known.manifest(one.name)
        return Scanned(one, "catalogue", known.name, _offered(one, manifest), problem)
    return Scanned(one, "unknown", "", (unseen(one.name),), problem)


def _clues(one: Configured) -> Clues:
    return Clues(one.name, (one.command, *one.arguments), one.url)


def _listed(one: Configured, catalogue: tuple[Known, ...], timeout: float) -> Scanned:
    from interlock.integrations.mcp_lists import Place, listed_tools

    here = expanded(one, os.environ)
    place = Place(here.command, here.arguments, here.env, here.folder, here.url, here.headers, here.sse)
    listing = read_listing(listed_tools(place, timeout), one.name)
    found = classify(listing, one.name, catalogue, _clues(one))
    specs = _offered(one, found.manifest)
    if any(one.offers(name) for name in found.unusable):
        specs = (*specs, unseen(one.name))
    by = found.known.name if found.known is not None and found.match is not Match.NONE else ""
    return Scanned(one, "listed", by, specs)


def _offered(one: Configured, specs: Iterable[ToolSpec]) -> tuple[ToolSpec, ...]:
    return tuple(spec for spec in specs if one.offers(spec.id.name))


def _show(scanned: list[Scanned], found: tuple[Trifecta, ...], rest: tuple[Trifecta, ...]) -> None:
    out = console()
    table = Table("server", "tools", "legs", "known from", "", box=None)
    for one in scanned:
        legs = {leg for spec in one.specs for leg in legs_of(spec)}
        known = {"listed": "its list", "catalogue": "the catalogue", "unknown": "nothing: every leg", "off": "off"}
        source = known[one.state] + (f", {one.catalogue}" if one.state == "listed" and one.catalogue else "")
        count = str(len(one.specs)) if one.state in ("listed", "catalogue") else "?" if one.state == "unknown" else "0"
        shown = ", ".join(leg for leg in LEGS if leg in legs) or "none"
        table.add_row(Text(one.server.name), count, shown, source, Text(printable(one.problem)))
    out.print(table)
    out.print()
    if not found:
        out.print("No lethal trifecta is possible with these servers.")
        return
    out.print(_together(found))
    every = breaking_all(found)
    if every and len(found) > 1:
        out.print(Text(f"Breaks all of them: {' or '.join(map(str, every))}."))
    if rest:
        out.print("\nWith all of these changes made, these are still possible:")
        out.print(_together(rest))
    else:
        out.print("With all of these changes made, no lethal trifecta is possible.")
    out.print("The last column is what the shipped controls say to the last call, to a receiver that nobody named.")


def _together(found: tuple[Trifecta, ...]) -> Table:
    table = Table(
        "together", "untrusted comes by", "private comes by", "it leaves by", "one change", "Interlock", box=None
    )
    for each in found:
        shown_legs = [Text(_some(each.tools[leg])) for leg in LEGS]
        table.add_row(Text(" + ".join(each.servers)), *shown_legs, Text(str(each.breaks)), each.held.value)
    return table


def _some(tools: tuple[ToolId, ...]) -> str:
    shown = ", ".join(str(one) for one in tools[:SHOWN])
    return shown if len(tools) <= SHOWN else f"{shown} and {len(tools) - SHOWN} more"


def _as_json(scanned: list[Scanned], found: tuple[Trifecta, ...], rest: tuple[Trifecta, ...]) -> dict[str, Any]:
    return {
        "servers": [
            {
                "name": one.server.name,
                "client": one.server.client,
                "known_from": one.state,
                "catalogue": one.catalogue or None,
                "problem": one.problem or None,
                "tools": {spec.id.name: list(legs_of(spec)) for spec in one.specs},
            }
            for one in scanned
        ],
        "trifectas": [_trifecta_json(one) for one in found],
        "still_possible": [_trifecta_json(one) for one in rest],
        "breaks_all": [str(one) for one in breaking_all(found)],
    }


def _trifecta_json(one: Trifecta) -> dict[str, Any]:
    return {
        "servers": list(one.servers),
        "tools": {leg: [str(tool) for tool in tools] for leg, tools in one.tools.items()},
        "story": [str(tool) for tool in one.story],
        "one_change": {
            "says": str(one.breaks),
            "kind": one.breaks.kind,
            "server": one.breaks.server,
            "tools": list(one.breaks.tools),
            "leg": one.breaks.leg,
        },
        "interlock": one.held.value,
    }
