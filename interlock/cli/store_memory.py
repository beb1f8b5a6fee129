"""``interlock store artifacts`` and ``forget``: what an operator does with what outlives conversations."""

from __future__ import annotations

from pathlib import Path

import click
from rich.text import Text

from interlock.cli.output import console, json_option, print_json
from interlock.cli.stored import opened, which_store
from interlock.errors import Refused
from interlock.model.facts import Selection
from interlock.stores.sql_artifacts import SqlArtifacts
from interlock.stores.sql_facts import SqlFacts


@click.command()
@click.option("--begin", is_flag=True, help="Your word that no agent has written an artifact yet.")
@click.option("--lost", is_flag=True, help="Your word that a part of it is missing: a backup was put back. For good.")
@which_store
@json_option
def artifacts(begin: bool, lost: bool, configuration: Path, named: str | None, as_json: bool) -> None:
    """Verify the record of artifacts, begin it, or say that a part of it is lost.

    A record that was not begun, or is damaged, can vouch for nothing: whatever agents read is every leg. Exit code 1.
    """
    with opened(configuration, named) as found:
        if begin and lost:
            raise Refused("a record is begun or lost; give one of the two")
        made = SqlArtifacts.begin if begin else SqlArtifacts.lost if lost else SqlArtifacts
        damage = made(found).damage
    if as_json:
        print_json({"whole": not damage, "damage": damage})
    else:
        console().print(Text(damage or "the record of artifacts is whole"))
    if damage:
        raise SystemExit(1)


@click.command()
@click.argument("facts", nargs=-1)
@click.option("--namespace", metavar="NAME", required=True, help="The namespace of the facts.")
@click.option(
    "--before", metavar="TIME", default="", help="Only those not written or changed since, such as 2026-11-29."
)
@click.option("--conversation", metavar="ID", default="", help="Only those that it wrote, or that hold labels of it.")
@click.option("--everything", is_flag=True, help="All facts of the namespace.")
@which_store
@json_option
def forget(
    facts: tuple[str, ...],
    namespace: str,
    before: str,
    conversation: str,
    everything: bool,
    configuration: Path,
    named: str | None,
    as_json: bool,
) -> None:
    """Delete the texts of FACTS, or of those that the options name. Their labels stay."""
    selection = Selection(facts, before, conversation, everything)
    if selection == Selection():
        raise Refused("forget what? Name facts, --before, --conversation or --everything")
    with opened(configuration, named) as found:
        forgotten = SqlFacts(found).forget(namespace, selection)
    if as_json:
        print_json({"forgotten": forgotten})
    else:
        console().print(f"{forgotten} facts lost their text")
