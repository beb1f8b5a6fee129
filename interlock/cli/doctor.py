"""``interlock doctor``: does everything that must hold still hold?"""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Literal, TypeAlias

import click
from rich.table import Table
from rich.text import Text

from interlock.assembly import read_configuration
from interlock.cli.hook_probe import probe
from interlock.cli.install import command_for, config_option, parsed_settings, project_option, settings_of
from interlock.cli.output import console, json_option, print_json
from interlock.errors import InterlockError
from interlock.hook import default_config
from interlock.hooks import Desk
from interlock.integrations.host_reactions import UNENFORCEABLE, unenforceable
from interlock.integrations.host_settings import FORMS, findings, ours
from interlock.stores.choice import opened_store
from interlock.stores.sql_artifacts import SqlArtifacts
from interlock.stores.sql_store import SqlStore

Mark: TypeAlias = Literal["ok", "note", "wrong"]
PROXIES: Final = ("http_proxy", "https_proxy", "all_proxy")
SOME: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. ``wrong`` is something that does not hold."""

    mark: Mark
    what: str
    text: str


@click.command()
@config_option
@project_option
@click.option("--host", "hosts", multiple=True, type=click.Choice(sorted(FORMS)), help="Must be installed in this one.")
@json_option
def doctor(config: Path | None, project: Path | None, hosts: tuple[str, ...], as_json: bool) -> None:
    """Check the package, the configuration, the store, the clock, the environment, and the hooks of coding agents.

    Exit code 1 when something does not hold. The hooks are tried out as their hosts would run them.
    """
    chosen = Path(os.path.abspath(config or default_config()))
    found = [*package(), *environment(), *configuration(chosen)]
    for host in sorted(FORMS):
        found += installed(host, chosen, project, must=host in hosts)
    if as_json:
        print_json([asdict(one) for one in found])
    else:
        table = Table("", "what", "found", box=None)
        for one in found:
            style = {"ok": "green", "note": "yellow", "wrong": "bold red"}[one.mark]
            table.add_row(Text(one.mark, style), one.what, Text(one.text))
        console().print(table)
    if any(one.mark == "wrong" for one in found):
        raise SystemExit(1)


def package() -> Iterator[Finding]:
    """Others have packages of this name: whichever was installed last is what Python finds."""
    names = sorted(set(importlib.metadata.packages_distributions().get("interlock", [])))
    if names == ["interlock"]:
        yield Finding("ok", "package", f"interlock {importlib.metadata.version('interlock')}")
    elif "interlock" in names or not names:
        others = [one for one in names if one != "interlock"]
        text = f"{', '.join(others)} has a package `interlock` too; use another environment" if others else ""
        yield Finding("wrong" if others else "note", "package", text or "runs from a checkout that is not installed")
    else:
        yield Finding("wrong", "package", f"`interlock` is a package of {', '.join(names)} here, not this one")


def environment() -> Iterator[Finding]:
    there = sorted({name for name in os.environ if name.lower() in PROXIES and os.environ[name]})
    if there:
        yield Finding("note", "proxies", f"{', '.join(there)} stand in the environment; no decision goes through them")
    now = datetime.now(UTC)
    if now.year < 2025:
        yield Finding("wrong", "clock", f"the clock says {now:%Y-%m-%d}; approvals and records need the right time")


def configuration(path: Path) -> Iterator[Finding]:
    """Does it load, with what it names, and is its store there and older than now?"""
    try:
        desk = Desk(str(path))
        try:
            for host in sorted(FORMS):
                desk.lock(host)
        finally:
            desk.close()
    except InterlockError as error:
        yield Finding("wrong", "configuration", str(error))
        return
    yield Finding("ok", "configuration", f"{path}: configuration, manifests and controls load")
    chosen, folder = read_configuration(path)
    assert chosen.journal is not None  # a desk needs one
    store = opened_store(chosen.journal, folder)
    assert isinstance(store, SqlStore)
    try:
        damage = SqlArtifacts(store).damage
        last = max((one.last for one in store.namespaces() if one.last), default="")
    except InterlockError as error:
        yield Finding("wrong", "store", str(error))
        return
    finally:
        store.close()
    yield Finding("wrong", "artifacts", damage) if damage else Finding("ok", "store", "open, and artifacts are whole")
    if last and datetime.fromisoformat(last) > datetime.now(UTC) + SOME:
        yield Finding("wrong", "clock", f"the clock is behind the last entry of the store, {last}")
    else:
        yield Finding("ok", "clock", "not behind the store")


def installed(host: str, config: Path, project: Path | None, *, must: bool) -> Iterator[Finding]:
    """The hooks of one host: there, set to block, and holding."""
    file = settings_of(host, project)
    try:
        settings = parsed_settings(file)
    except InterlockError as error:
        yield Finding("wrong", host, str(error))
        return
    mine = [one for event in FORMS[host].events for _, one in ours(settings, event)]
    if not mine:
        yield Finding("wrong" if must else "note", host, f"not installed in {file}")
        return
    wrong = findings(settings, host, command_for(host, config))
    for text in wrong:
        yield Finding("wrong", host, text)
    if not wrong:
        yield Finding("ok", host, f"hooks stand in {file}, set to block where the host can be told so")
    for one in probe(host, str(mine[0]["command"])):
        yield Finding("wrong" if one.problem else "ok", host, one.what + (f": {one.problem}" if one.problem else ""))
    for fault in unenforceable(host):
        yield Finding("note", host, f"{fault}: {UNENFORCEABLE}")
    if host == "codex":
        yield Finding("note", host, "whether you have trusted the hooks is Codex's to know; look at /hooks in it")
