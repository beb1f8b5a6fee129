"""``interlock learn``: what could be vouched for or declared, so that honest work is refused less; as a diff."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from interlock.assembly import read_parts, shipped_scenarios
from interlock.cli.output import console, existing, json_option, print_json
from interlock.cli.stored import key_from, meant, opened
from interlock.errors import Misconfigured
from interlock.learning import Learned, Proposal, Record, learn, read_record, stored_record
from interlock.learning.changes import diff
from interlock.stores import audit

# More messages than this of one stored conversation are more than a person will look through for a receiver.
MAX_MESSAGES = 20_000


@click.command("learn")
@click.argument("records", nargs=-1, type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="RECORD...")
@click.option("--config", type=click.Path(path_type=Path), default=Path("interlock.toml"), show_default=True)
@click.option("--store", "named", metavar="WHERE", help="Learn from a store too: a SQLite file, or postgresql://…")
@click.option("--attacks", type=click.Path(path_type=Path, exists=True), help="Scenarios; without it the shipped ones.")
@click.option("--least", default=2, show_default=True, type=click.IntRange(1), help="Refused calls that speak for it.")
@click.option("--key-file", type=click.Path(path_type=Path), help="Key of the heads of sessions and journals.")
@click.option("--now", type=click.DateTime(), default=None, help="The time at which it is decided, in UTC.")
@json_option
def command(
    records: tuple[Path, ...],
    config: Path,
    named: str | None,
    attacks: Path | None,
    least: int,
    key_file: Path | None,
    now: datetime | None,
    as_json: bool,
) -> None:
    """Propose receivers to vouch for and tools to declare, from RECORDs: session files, journals that were saved, and
    transcripts. Prints a unified diff of the configuration; nothing is applied.

    A proposal comes from calls that were refused at least --least times, or that a person approved. It is dropped when
    an attack of --attacks, or a recorded call whose receiver a stranger named, would be judged more leniently. Journals
    hold digests: from them alone only tools that nobody declared can be learned.
    """
    if not records and named is None:
        raise Misconfigured("name records: session files, saved journals or transcripts, or a store with --store")
    parts = read_parts(existing(config))
    if config.suffix != ".toml":
        raise Misconfigured(f"{config}: only a .toml configuration can be changed as text")
    key = key_from(key_file)
    every = [*(read_record(one, key) for one in sorted(set(records))), *_stored(named, config)]
    begin = now.replace(tzinfo=UTC) if now is not None else datetime.now(UTC)
    found = learn(every, parts, attacks or shipped_scenarios(), begin, Path.cwd(), least)
    change = diff(config.read_text(encoding="utf-8"), config.as_posix().lstrip("/"), found.proposals)
    if as_json:
        print_json(_as_json(found, change))
        return
    click.echo(change, nl=False)
    _told(found)


def _stored(named: str | None, config: Path) -> Iterator[Record]:
    if named is None:
        return
    with opened(config, named) as store:
        for view, one in meant(store, None, None):
            entries = [entry for _, entry in audit.decoded(view, one)]
            rows = view.messages_ever(one, limit=MAX_MESSAGES)
            messages = [row.message for row in rows if row.message is not None]
            yield stored_record(f"{view.name}/{one}", view.state(one), messages, entries)


def _told(found: Learned) -> None:
    """Everything that is not the diff goes to standard error: the diff may be piped on."""
    out = console(stderr=True)
    table = Table("proposal", "refused calls", "approved", "", show_edge=False, pad_edge=False)
    for one in found.proposals:
        table.add_row(escape(ascii(one.name)[1:-1]), str(one.calls), str(one.approved), _said(one))
    for dropped in found.dropped:
        one = dropped.proposal
        table.add_row(
            escape(ascii(one.name)[1:-1]),
            str(one.calls),
            str(one.approved),
            f"dropped: {escape(ascii(dropped.why)[1:-1])}",
        )
    if table.row_count:
        out.print(table)
    out.print(
        f"{found.refused} of {found.calls} recorded calls are refused today, {found.left} with the proposals;"
        f" {found.attacks} calls of attacks are judged no more leniently. Nothing was changed."
    )
    for name in found.digests_only:
        out.print(f"{escape(ascii(name)[1:-1])}: digests only; receivers can be learned from messages alone")


def _said(one: Proposal) -> str:
    return "[green]proposed[/green]" if one.tried else "[yellow]proposed[/yellow], tried on attacks only"


def _as_json(found: Learned, change: str) -> dict[str, Any]:
    return {
        "proposals": [_proposal(one) for one in found.proposals],
        "dropped": [{**_proposal(one.proposal), "why": one.why} for one in found.dropped],
        "calls": found.calls,
        "refused": found.refused,
        "left": found.left,
        "attacks": found.attacks,
        "digests_only": list(found.digests_only),
        "diff": change,
    }


def _proposal(one: Proposal) -> dict[str, Any]:
    return {
        "sort": one.sort,
        "key": one.key,
        "value": one.value,
        "calls": one.calls,
        "approved": one.approved,
        "tried": one.tried,
    }
