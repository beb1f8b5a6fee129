"""``interlock session``: look into a session file, without a lock and without writing anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from interlock.cli.output import console, json_option, print_json
from interlock.errors import JournalUnavailable, Tampered
from interlock.model.labels import EVERY_LEG
from interlock.model.messages import Image, Message, ToolUse
from interlock.model.results import printable
from interlock.model.state import State
from interlock.model.transcript import Transcript
from interlock.stores.session_file import SessionFile

_COLOURS = {"untrusted": "red", "private": "magenta", "egress": "yellow"}


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--key-file", type=click.Path(path_type=Path), help="File with the key of the session's head.")
@click.option("--last", default=20, show_default=True, help="Show so many of the last messages; 0 shows all.")
@json_option
def session(file: Path, key_file: Path | None, last: int, as_json: bool) -> None:
    """Show what a session FILE holds: its labels and where they came from, and which labels cover each message.

    Exit code 1 when the file is damaged: loading it would give every leg.
    """
    try:
        key = key_file.read_bytes() if key_file else b""
    except OSError as error:
        raise JournalUnavailable(f"{key_file}: can't be read: {error.strerror}") from error
    try:
        held = SessionFile.look(file.absolute(), key=key)
    except Tampered as problem:
        if as_json:
            print_json({"damaged": str(problem), "taint": list(EVERY_LEG)})
        else:
            console().print(
                Text.assemble(
                    ("damaged", "bold red"), f"  {problem}\nLoading it gives every leg, and keeps the file beside."
                )
            )
        raise SystemExit(1) from None
    transcript = held.transcript()
    if as_json:
        print_json(_as_json(held.folded, transcript))
    else:
        _show(held.folded, transcript, last)


def _as_json(state: State, transcript: Transcript) -> dict[str, Any]:
    covers = zip(transcript.messages, transcript.covers, strict=True)
    return {
        "damaged": "",
        "conversation": state.conversation,
        "namespace": state.namespace,
        "parent": state.parent,
        "calls": state.calls,
        "taint": [
            {"label": label, "at": one.at, "call": one.call, "source": one.tool} for label, one in state.taint.items
        ],
        "in_flight": [{"call": number, "tool": one.tool, "since": one.at} for number, one in state.in_flight.items()],
        "children": list(state.children),
        "messages": [
            {"role": one.role.value, "labels": list(EVERY_LEG if cover is None else cover)} for one, cover in covers
        ],
    }


def _show(state: State, transcript: Transcript, last: int) -> None:
    out = console()
    count = len(transcript.messages)
    out.print(
        Text.assemble(
            (state.conversation, "bold"), f"  {count} messages, {state.calls} calls decided, verified against its head"
        )
    )
    taint = Table("label", "since", "brought by", box=None, title="Taint", title_justify="left")
    for label, source in state.taint.items:
        by = f"call {source.call}, {source.tool}" if source.call else source.tool
        taint.add_row(Text(label, _COLOURS[label.partition(":")[0]]), source.at[:19], printable(by))
    out.print(taint if state.taint else Text("Clean: no label has entered.", style="green"))
    for number, flight in state.in_flight.items():
        out.print(Text(f"call {number}, {flight.tool}: no outcome yet; loading joins {', '.join(flight.labels)}"))
    for child, delegation in state.children.items():
        out.print(Text(f"{child}: delegated, not joined; loading joins {', '.join(delegation.labels)}"))
    first = max(0, count - last) if last else 0
    rows = Table("", "role", "text", "covered by", box=None, title="Messages", title_justify="left")
    for place in range(first, count):
        cover = transcript.covers[place]
        known = ", ".join(cover) or "nothing" if cover is not None else "unknown: every leg"
        message = transcript.messages[place]
        rows.add_row(str(place), message.role.value, Text(_short(message)), Text(known, style="dim"))
    out.print(rows)
    if first:
        out.print(Text(f"{first} earlier messages are not shown; --last 0 shows all", style="dim"))


def _short(message: Message) -> str:
    """One line that says what a message is, escaped: what a stranger wrote must not draw on the terminal."""
    parts = [printable(message.text.replace("\n", " ⏎ "))[:60]] if message.text else []
    parts += [f"[calls {printable(use.name)}]" for use in message.blocks if isinstance(use, ToolUse)]
    parts += ["[image]" for one in message.blocks if isinstance(one, Image)]
    return " ".join(parts)
