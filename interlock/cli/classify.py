"""``interlock classify``: a manifest for a server's tools, for a person to read."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from interlock.cli.output import console, json_option, print_json
from interlock.errors import Misconfigured
from interlock.model.catalogue import Clues
from interlock.model.classified import Classification, Classified, classify, manifest_text
from interlock.model.listed import Change, Listing, changes, read_listing
from interlock.model.results import printable
from interlock.policy.catalogue_files import shipped_catalogue


@click.command("classify")
@click.argument("target", nargs=-1, required=True)
@click.option("--server", metavar="NAME", default="", help="Your name for the server; that of the catalogue otherwise.")
@click.option(
    "--as", "told", metavar="NAME", default="", help="It is this server of the catalogue: you know what runs."
)
@click.option("--env", "handed", metavar="NAME", multiple=True, help="A variable that the command finds, too.")
@click.option(
    "--since",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A list that was saved before: show and write only what is different.",
)
@click.option("--save", type=click.Path(path_type=Path, dir_okay=False), help="Keep the list, for --since later.")
@click.option(
    "--write", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True), help="Write the entries here."
)
@click.option("--timeout", type=click.FloatRange(min=1, max=600), default=30.0, show_default=True, help="In seconds.")
@click.option("--strict", is_flag=True, help="Exit code 1 when --since finds a difference.")
@json_option
def command(
    target: tuple[str, ...],
    server: str,
    told: str,
    handed: tuple[str, ...],
    since: Path | None,
    save: Path | None,
    write: Path | None,
    timeout: float,
    strict: bool,
    as_json: bool,
) -> None:
    """Propose manifest entries for the tools of an MCP server.

    TARGET is a file with what `tools/list` answered, an address, or, after `--`, the command that starts the server.

    Tools that the catalogue knows get its entries; for all others entries are proposed from name, schema and
    annotations, with reasons. Nothing is in force before you put it into your manifest.
    """
    if write is not None and str(write) != "-" and write.exists():
        raise Misconfigured(f"{write} exists and may hold your corrections; name another file")
    listing, clues = _asked(target, handed, timeout)
    if save is not None:
        _write(save, json.dumps(_saved(listing), indent=1, ensure_ascii=True) + "\n")
    catalogue = shipped_catalogue()
    found = classify(listing, server or "server", catalogue, clues, told)
    if not server:
        name = found.known.name if found.known is not None else _slug(listing.identity.name) or "server"
        found = classify(listing, name, catalogue, clues, told)
    different = changes(read_list(since), listing) if since is not None else None
    if write is not None:
        text = manifest_text(found, different)
        if str(write) == "-":
            click.echo(text, nl=False)
        else:
            _write(write, text)
    if as_json:
        print_json(_as_json(found, different))
    elif str(write) != "-":
        _show(found, different)
    raise SystemExit(1 if strict and different else 0)


def read_list(file: Path) -> Listing:
    """A list of tools from a file of JSON.

    Raises:
        Misconfigured: it can't be read, or is no list.
    """
    try:
        return read_listing(json.loads(file.read_text(encoding="utf-8")), str(file))
    except (OSError, ValueError, RecursionError) as error:
        raise Misconfigured(f"{file}: not JSON that can be read: {error}") from None


def _asked(target: tuple[str, ...], handed: tuple[str, ...], timeout: float) -> tuple[Listing, Clues]:
    if len(target) == 1 and target[0].endswith(".json"):
        listing = read_list(Path(target[0]))
        return listing, Clues()
    from interlock.integrations.mcp_lists import Place, listed_tools

    if len(target) == 1 and target[0].startswith(("http://", "https://")):
        place, clues = Place(url=target[0]), Clues(url=target[0])
    else:
        missing = [name for name in handed if name not in os.environ]
        if missing:
            raise Misconfigured(f"--env {missing[0]}: there is no such variable here; set it first")
        env = {name: os.environ[name] for name in handed}
        place, clues = Place(target[0], target[1:], env), Clues(command=target)
    return read_listing(listed_tools(place, timeout), str(place)), clues


def _saved(listing: Listing) -> dict[str, Any]:
    server = {"name": listing.identity.name, "version": listing.identity.version}
    package = {"package": listing.package, "version": listing.version} if listing.package else {}
    return {**package, "server": server, "tools": [dict(one.raw) for one in listing.tools]}


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Misconfigured(f"{file}: can't be written ({error.strerror})") from None


def _slug(text: str) -> str:
    plain = "".join(char if char.isascii() and (char.isalnum() or char in "._-") else "-" for char in text.lower())
    return plain.strip("._-")[:64]


def _shown(found: Classification, different: tuple[Change, ...] | None) -> list[Classified]:
    names = None if different is None else {one.name for one in different}
    return [one for one in found.tools if names is None or one.tool.name in names]


def _show(found: Classification, different: tuple[Change, ...] | None) -> None:
    out = console()
    matched = f"{found.known.title}, by its {found.match.name.lower()}" if found.known is not None else "not known"
    out.print(Text(f"{found.server}: {printable(str(found.listing.identity))}; catalogue: {matched}"))
    if different == ():
        out.print("Nothing is different.")
        return
    table = Table("tool", "legs", "effect", "from", "confidence", "why", box=None)
    what = {one.name: one for one in different or ()}
    for one in _shown(found, different):
        change = what.get(one.tool.name)
        name = one.tool.name if change is None else f"{one.tool.name} ({', '.join((change.what, *change.parts))})"
        why = "; ".join(one.reasons if one.origin == "proposed" else one.reasons[1:])
        table.add_row(
            Text(printable(name)),
            ", ".join(one.legs) or "none",
            one.spec.effect.value,
            one.origin,
            one.confidence,
            Text(printable(why)),
        )
    for name, problem in sorted(found.unusable.items()):
        table.add_row(Text(printable(ascii(name))), "every leg", "destroy", "left out", "", Text(problem))
    out.print(table)
    for gone in (one for one in what.values() if one.what == "gone"):
        out.print(Text(f"gone: {printable(gone.name)}"))
    counts = Counter(one.origin for one in _shown(found, different))
    out.print(", ".join(f"{counts[name]} {name}" for name in ("catalogue", "widened", "proposed") if counts[name]))


def _as_json(found: Classification, different: tuple[Change, ...] | None) -> dict[str, Any]:
    return {
        "server": found.server,
        "identity": {"name": found.listing.identity.name, "version": found.listing.identity.version},
        "catalogue": found.known.name if found.known is not None else None,
        "matched_by": found.match.name.lower(),
        "changes": None
        if different is None
        else [{"tool": one.name, "what": one.what, "parts": list(one.parts)} for one in different],
        "tools": [
            {
                "name": one.tool.name,
                "legs": list(one.legs),
                "from": one.origin,
                "confidence": one.confidence,
                "reasons": list(one.reasons),
                "digest": str(one.tool.pin),
                "entry": dict(one.entry),
            }
            for one in _shown(found, different)
        ],
        "unusable": dict(found.unusable),
    }
