"""``interlock outbox``: what an agent has drafted instead of sent, and a person's way to let it go or not."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from rich.table import Table
from rich.text import Text

from interlock.cli.output import console, existing, json_option, print_json
from interlock.cli.stored import opened, which_store
from interlock.errors import ApproverUnavailable, Misconfigured, Refused
from interlock.gate.outbox import Outbox, Shown
from interlock.model.draft_view import lines, pages
from interlock.model.question_view import summary
from interlock.model.results import printable

SCHEMA: Final = 1
_F = TypeVar("_F", bound=Callable[..., Any])


@click.group(help="Show what is drafted instead of sent, release or reject it.")
def outbox() -> None:
    """See the help above."""


def _where(command: _F) -> _F:
    """Whose drafts: the namespace can't be guessed, since whoever releases must have the right to."""
    command = click.option("--namespace", metavar="NAME", required=True, help="Whose drafts these are.")(command)
    return which_store(command)


@contextmanager
def _outbox(configuration: Path, named: str | None, namespace: str, *, decides: bool = False) -> Iterator[Outbox]:
    """The outbox of a store. ``decides``: with the operator's rules, which a release is decided by."""
    from interlock.assembly import Interlock, drafts_only

    with opened(configuration, named) as store:
        if not decides:
            yield drafts_only(store, namespace)
            return
        lock = Interlock.load(existing(configuration), journal=store, approver=_NobodyHere())
        yield lock.outbox(namespace)


class _NobodyHere:
    """In the place of the channel that the configuration names: releasing asks nobody else."""

    def ask(self, question: object, seconds: float) -> None:  # noqa: ARG002 - the port's
        raise ApproverUnavailable("nobody is asked here")


@outbox.command("list")
@_where
@json_option
def list_drafts(configuration: Path, named: str | None, namespace: str, as_json: bool) -> None:
    """List the drafts that wait, oldest first, and those of which nobody knows whether they were sent."""
    with _outbox(configuration, named, namespace) as box:
        found = box.drafts()
    if as_json:
        print_json({"schema": SCHEMA, "namespace": namespace, "drafts": [_as_data(one) for one in found]})
        return
    if not found:
        click.echo("the outbox is empty", err=True)
        return
    table = Table("draft", "status", "drafted", "until", "call", box=None)
    for one in found:
        cells = (one.draft.id, one.kept.status.value, one.kept.at[11:19], one.kept.expires[:16])
        table.add_row(*map(Text, (*cells, summary(one.draft.question))))
    console().print(table)


def _as_data(one: Shown) -> dict[str, Any]:
    shown = one.draft.question
    return {
        "draft": one.draft.id,
        "status": one.kept.status.value,
        "conversation": shown.conversation,
        "tool": shown.tool,
        "server": shown.server,
        "drafted": one.kept.at,
        "expires": one.kept.expires,
        "codes": sorted(one.kept.bound.codes),
        "labels": list(one.labels),
        "since": list(one.since),
        "why": one.kept.why,
        "by": one.kept.by,
        "digest": one.digest,
    }


@outbox.command()
@click.argument("draft")
@click.option("--raw", is_flag=True, help="Print the exact bytes of its arguments and nothing else.")
@_where
@json_option
def show(draft: str, raw: bool, configuration: Path, named: str | None, namespace: str, as_json: bool) -> None:
    """Show a DRAFT, whole. Its last line is the digest that `release --shown` takes."""
    with _outbox(configuration, named, namespace) as box:
        found = box.find(draft)
    if raw:
        click.echo(found.draft.arguments.encode(), nl=False)
        return
    if as_json:
        print_json({"schema": SCHEMA, **_as_data(found), "arguments": found.draft.arguments})
        return
    for line in lines(found.draft, found.kept, found.since):
        click.echo(line)
    click.echo(f"Digest {found.digest}")


@outbox.command()
@click.argument("draft")
@click.option("--shown", metavar="DIGEST", help="The digest that `show` printed, instead of being asked here.")
@click.option("--by", metavar="NAME", help="Who releases, for the record; by default who runs this command.")
@_where
def release(
    draft: str, shown: str | None, by: str | None, configuration: Path, named: str | None, namespace: str
) -> None:
    """Release a DRAFT: it is decided anew by the configuration, and the agent's process may send it once.

    At a terminal the draft is shown and you are asked; elsewhere --shown says that you have seen it.
    """
    with _outbox(configuration, named, namespace, decides=True) as box:
        found = box.find(draft)
        if shown is None and not _released_here(found):
            click.echo(f"draft {found.draft.id} was not released", err=True)
            raise SystemExit(1)
        if shown is not None and shown != found.digest:
            raise Refused(
                f"{printable(shown)} is not the digest of draft {found.draft.id} and of what its conversation holds"
                " now; show it again"
            )
        kept = box.release(found, by or _me())
    click.echo(f"draft {found.draft.id} is {kept.status.value}; it is sent by the agent's process", err=True)


@outbox.command()
@click.argument("draft")
@click.option("--by", metavar="NAME", help="Who rejects, for the record; by default who runs this command.")
@_where
def reject(draft: str, by: str | None, configuration: Path, named: str | None, namespace: str) -> None:
    """Reject a DRAFT: it is never sent, and what it would have sent is deleted."""
    with _outbox(configuration, named, namespace) as box:
        kept = box.reject(draft, by or _me())
    click.echo(f"the draft is {kept.status.value}", err=True)


def _me() -> str:
    return f"{getpass.getuser()} with interlock outbox"


def _released_here(found: Shown) -> bool:
    from interlock.approvals.terminal import Terminal

    try:
        answer = Terminal().confirm("Release", partial(pages, found.draft, found.kept, found.since), 3600)
    except ApproverUnavailable:
        raise Misconfigured(
            "this is no terminal; show the draft, then release it with --shown and the digest that was printed"
        ) from None
    return answer is not None and answer.verdict == "approve"
