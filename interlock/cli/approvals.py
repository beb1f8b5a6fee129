"""``interlock approvals``: the other terminal, at which a person answers what an agent waits for."""

from __future__ import annotations

import getpass
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from rich.table import Table
from rich.text import Text

from interlock.approvals.elsewhere import Desk
from interlock.approvals.terminal import Terminal
from interlock.approvals.webhook import announcement
from interlock.cli.approvals_report import report
from interlock.cli.output import console, json_option, print_json
from interlock.cli.stored import opened, which_store
from interlock.errors import ApproverUnavailable, Misconfigured, Refused
from interlock.gate.conversation import SystemClock
from interlock.model.question import Question
from interlock.model.question_view import LINE, lines, summary
from interlock.model.results import printable
from interlock.stores.sql_questions import SqlQuestions

SCHEMA: Final = 1
_F = TypeVar("_F", bound=Callable[..., Any])


@click.group(help="Show the calls that wait for a person, and approve or refuse them.")
def approvals() -> None:
    """See the help above."""


approvals.add_command(report)


def _where(command: _F) -> _F:
    """Whose questions: the namespace can't be guessed, since whoever answers must have the right to."""
    command = click.option("--namespace", metavar="NAME", required=True, help="Whose questions these are.")(command)
    return which_store(command)


@contextmanager
def _desk(configuration: Path, named: str | None, namespace: str) -> Iterator[Desk]:
    with opened(configuration, named) as store:
        yield Desk(store, SqlQuestions(store), SystemClock(), namespace)


@approvals.command("list")
@_where
@json_option
def list_questions(configuration: Path, named: str | None, namespace: str, as_json: bool) -> None:
    """List what waits for an answer, oldest first."""
    with _desk(configuration, named, namespace) as desk:
        found = desk.open_questions()
    if as_json:
        rows = [
            {
                "question": one.id,
                "conversation": one.conversation,
                "tool": one.tool,
                "server": one.server,
                "calls": len(one.call_ids),
                "asked": one.at,
                "expires": one.expires,
                "codes": [code for code, _ in one.reasons],
                "digest": one.digest,
            }
            for one, _ in found
        ]
        print_json({"schema": SCHEMA, "namespace": namespace, "questions": rows})
        return
    if not found:
        click.echo("nothing waits for an answer", err=True)
        return
    table = Table("question", "asked", "until", "call", "asked by", box=None)
    for one, _ in found:
        codes = ", ".join(code for code, _ in one.reasons)
        table.add_row(*(Text(text) for text in (one.id, one.at[11:19], one.expires[11:19], summary(one), codes)))
    console().print(table)


@approvals.command()
@click.argument("question")
@_where
@json_option
def show(question: str, configuration: Path, named: str | None, namespace: str, as_json: bool) -> None:
    """Show a QUESTION, whole. Its last line is the digest that `approve --shown` takes."""
    with _desk(configuration, named, namespace) as desk:
        found, _ = desk.find(question)
    if as_json:
        click.echo(announcement(found).decode())
        return
    _print(found)
    click.echo(f"Digest {found.digest}")


@approvals.command()
@click.argument("question")
@click.option("--shown", metavar="DIGEST", help="The digest that `show` printed, instead of being asked here.")
@click.option("--by", metavar="NAME", help="Who approves, for the record; by default who runs this command.")
@click.option("--standing", metavar="MINUTES", type=click.IntRange(1, 1440), help="Also let the tool send there later.")
@_where
def approve(
    question: str,
    shown: str | None,
    by: str | None,
    standing: int | None,
    configuration: Path,
    named: str | None,
    namespace: str,
) -> None:
    """Approve a QUESTION: each call that it is about may run once, as it was shown.

    At a terminal the question is shown and you are asked; elsewhere --shown says that you have seen it. With --standing
    the tool may also send other things to this one receiver without asking, until something untrusted is read.
    """
    with _desk(configuration, named, namespace) as desk:
        found, _ = desk.find(question)
        who = by or f"{getpass.getuser()} with interlock approvals"
        if shown is None:
            answer = _asked_here(found)
            if answer != "approve":
                click.echo(f"question {found.id} was not approved", err=True)
                raise SystemExit(1)
        elif shown != found.digest:
            raise Refused(f"{printable(shown)} is not the digest of question {found.id}; show it again")
        held = desk.answer(found, "approve", who)
        click.echo(f"question {found.id} is {held.status.value} until {held.expires[:19]}Z", err=True)
        if standing is not None:
            stood = desk.stand(found, standing * 60.0, who)
            click.echo(f"{found.tool} may send there until {stood.expires[:19]}Z", err=True)


@approvals.command()
@click.argument("question")
@click.option("--by", metavar="NAME", help="Who refuses, for the record; by default who runs this command.")
@_where
def refuse(question: str, by: str | None, configuration: Path, named: str | None, namespace: str) -> None:
    """Refuse a QUESTION: none of its calls runs."""
    with _desk(configuration, named, namespace) as desk:
        name, held = desk.refuse(question, by or f"{getpass.getuser()} with interlock approvals")
    click.echo(f"question {name} is {held.status.value}", err=True)


@approvals.command()
@click.option("--every", type=click.FloatRange(0.05, 3600), default=1.0, show_default=True, help="Seconds per look.")
@click.option("--for", "seconds", type=click.FloatRange(0), help="Stop after so many seconds.")
@_where
@json_option
def watch(
    every: float, seconds: float | None, configuration: Path, named: str | None, namespace: str, as_json: bool
) -> None:
    """Wait for questions and ask them here, one after the other; with --json print each as a line instead."""
    until = None if seconds is None else time.monotonic() + seconds
    seen: set[str] = set()
    with _desk(configuration, named, namespace) as desk:
        while until is None or time.monotonic() < until:
            for found, _ in desk.open_questions():
                if found.id in seen:
                    continue
                seen.add(found.id)
                if as_json:
                    click.echo(announcement(found).decode())
                    sys.stdout.flush()
                else:
                    _answered_here(desk, found)
            time.sleep(every)


def _answered_here(desk: Desk, found: Question) -> None:
    answer = _asked_here(found)
    if answer is None:
        return
    try:
        held = desk.answer(found, answer, f"{getpass.getuser()} with interlock approvals")
    except Refused as error:
        click.echo(f"interlock: {error}", err=True)
    else:
        click.echo(f"question {found.id} is {held.status.value}", err=True)


def _asked_here(found: Question) -> str | None:
    try:
        answer = Terminal(editable=False).ask(found, 3600)
    except ApproverUnavailable:
        raise Misconfigured(
            "this is no terminal; show the question, then approve it with --shown and the digest that was printed"
        ) from None
    return None if answer is None else answer.verdict


def _print(found: Question) -> None:
    columns = shutil.get_terminal_size((LINE, 0)).columns
    for line in lines(found, min(LINE, max(columns, 40))):
        click.echo(line)
