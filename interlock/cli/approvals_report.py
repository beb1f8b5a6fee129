"""``interlock approvals report``: what asking costs and what it is worth, from what was recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import click
from rich.table import Table
from rich.text import Text

from interlock.cli.output import console, json_option, print_json
from interlock.cli.stored import key_from, meant, opened, which_store
from interlock.errors import JournalUnavailable
from interlock.model.approval_report import Part, Report, quantile
from interlock.model.canonical import pack
from interlock.model.entries import Entry
from interlock.stores import audit
from interlock.stores.journal_file import VERSION, read_journal
from interlock.stores.session_entries import recorded

SCHEMA: Final = 1
_JOURNAL: Final = pack({"version": VERSION}) + b"\n"


@click.command("report")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--namespace", metavar="NAME", help="Only the conversations of this namespace of the store.")
@click.option("--key-file", type=click.Path(path_type=Path), help="File with the key of the files' heads.")
@which_store
@json_option
def report(
    files: tuple[Path, ...],
    namespace: str | None,
    key_file: Path | None,
    configuration: Path,
    named: str | None,
    as_json: bool,
) -> None:
    """Count questions and answers in saved journals and session files, or in a store.

    Each record is verified against its head first. "A rubber stamp" is somebody who approves everything: of recorded
    attacks it is what would have come through.
    """
    found = Report()
    if files:
        key = key_from(key_file)
        for file in files:
            found.add(_recorded(file, key))
    else:
        with opened(configuration, named) as store:
            for view, one in meant(store, namespace, None):
                audit.verified(view, one, store.key)
                found.add([entry for _, entry in audit.decoded(view, one)])
    if as_json:
        print_json({"schema": SCHEMA, **found.as_data()})
        return
    for line in _told(found):
        click.echo(line)
    for title, parts in (("control", found.controls), ("tool", found.tools)):
        if parts:
            console().print(_table(title, parts))


def _recorded(file: Path, key: bytes) -> Sequence[Entry]:
    """The entries of a saved journal, or of a session file. Raises Tampered: it is neither, or damaged."""
    try:
        with file.open("rb") as opened_file:
            first = opened_file.readline(1000)
    except OSError as error:
        raise JournalUnavailable(f"{file}: can't be read: {error.strerror}") from error
    if first == _JOURNAL:
        return read_journal(file, key)
    return recorded(file.absolute(), key=key)


def _told(found: Report) -> Iterator[str]:
    whole = found.whole
    yield f"{_so_many(found.conversations, 'conversation')}, {_so_many(found.calls, 'call')}"
    often = f"{_so_many(whole.questions, 'question')}, {found.asks_per_100_calls} per 100 calls"
    yield f"{often}; {_so_many(found.ran, 'call')} ran after a yes"
    share = f"{100 * whole.approved / whole.answered:.0f} %" if whole.answered else "–"
    counts = f"approved {whole.approved} ({share}), refused {whole.refused}, edited {whole.edited}"
    yield f"answered {whole.answered}: {counts}"
    yield f"time to answer: {_time(whole, 0.5)} for half of them, {_time(whole, 0.9)} for nine of ten"
    yield f"not answered, so denied: {whole.unanswered}"
    yield f"a rubber stamp would also have let run: {_so_many(whole.stamped, 'call')}"
    if found.drafted:
        yield (
            f"outbox: drafted {found.drafted}, released {found.released}, rejected {found.rejected}, sent {found.sent}"
        )
    yield ""


def _so_many(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _time(part: Part, share: float) -> str:
    seconds = quantile(part.seconds, share)
    return "–" if seconds is None else f"{seconds:.1f} s"


def _table(title: str, parts: dict[str, Part]) -> Table:
    table = Table(
        title, "questions", "approved", "refused", "edited", "unanswered", "p50", "p90", "rubber stamp", box=None
    )
    for name in sorted(parts):
        one = parts[name]
        counts = (one.questions, one.approved, one.refused, one.edited, one.unanswered)
        cells = (*map(str, counts), _time(one, 0.5), _time(one, 0.9), str(one.stamped))
        table.add_row(Text(name), *cells)
    return table
