"""``interlock store``: what an operator does with a store."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from interlock.cli.output import console, json_option, print_json
from interlock.cli.store_memory import artifacts, forget
from interlock.cli.stored import chosen, key_from, meant, opened, progress, which_store, written
from interlock.errors import Misconfigured, Tampered
from interlock.gate.steps import stamp
from interlock.model.records import message_body
from interlock.model.results import printable
from interlock.stores import audit
from interlock.stores.choice import migrated
from interlock.stores.sql import SCHEMA
from interlock.stores.sql_store import SqlNamespace

namespace_option = click.option("--namespace", metavar="NAME", help="Only this namespace.")
conversation_option = click.option("--conversation", metavar="ID", help="Only this conversation; needs --namespace.")


@click.group()
def store() -> None:
    """Migrate a store, look at it, export, verify and purge conversations, facts and artifacts."""


store.add_command(artifacts)
store.add_command(forget)


@store.command()
@which_store
@json_option
def migrate(configuration: Path, named: str | None, as_json: bool) -> None:
    """Make the tables, or bring them to the schema of this version.

    Nothing else ever changes them. Everything happens in one transaction, or nothing.
    """
    changed = migrated(*chosen(configuration, named))
    if as_json:
        print_json({"changed": changed, "schema": SCHEMA})
    else:
        console().print(f"schema {SCHEMA}" + ("" if changed else ", as it was"))


@store.command()
@which_store
@json_option
def info(configuration: Path, named: str | None, as_json: bool) -> None:
    """Show how much there is, by namespace."""
    with opened(configuration, named) as found:
        counted = found.namespaces()
    if as_json:
        rows = [
            {
                "namespace": one.namespace,
                "conversations": one.conversations,
                "entries": one.entries,
                "dropped": one.dropped,
                "messages": one.messages,
                "last": one.last,
            }
            for one in counted
        ]
        print_json({"schema": SCHEMA, "namespaces": rows})
        return
    table = Table("namespace", "conversations", "entries", "dropped", "messages", "last entry", box=None)
    for one in counted:
        numbers = (one.conversations, one.entries, one.dropped, one.messages)
        table.add_row(Text(printable(one.namespace)), *map(str, numbers), one.last[:19])
    console().print(table)


@store.command()
@click.argument("conversation")
@click.option("--namespace", metavar="NAME", required=True, help="The namespace of the conversation.")
@click.option("--out", type=click.Path(path_type=Path), help="A new file instead of standard output; .gz compresses.")
@click.option("--no-content", is_flag=True, help="Leave the messages out: entries hold digests and lengths only.")
@which_store
def export(
    conversation: str, namespace: str, out: Path | None, no_content: bool, configuration: Path, named: str | None
) -> None:
    """Write everything that is stored of a CONVERSATION as JSON lines: its head, its entries, its messages.

    It is verified first. What it holds is as private as the conversation was.
    """
    with opened(configuration, named) as found:
        view = found.within(namespace)
        checked = audit.verified(view, conversation, found.key)
        with written(out) as file:
            head = audit.signed_head(checked.head, namespace, conversation, found.key)
            print(json.dumps({"head": head}), file=file)
            for link in audit.chain(view, conversation):
                line = {"sequence": link.sequence, "digest": link.digest, "entry": json.loads(link.body)}
                print(json.dumps(line, ensure_ascii=False), file=file)
            for line in [] if no_content else _messages(view, conversation):
                print(json.dumps(line), file=file)


def _messages(view: SqlNamespace, conversation: str) -> Any:
    after = 0
    while page := view.messages_ever(conversation, after=after, limit=500):
        for one in page:
            body = None if one.message is None else json.loads(message_body(one.message, one.cover))
            yield {"place": one.place, "entry": one.entry, "retired": one.retired, "message": body}
        after = page[-1].place


@store.command()
@namespace_option
@conversation_option
@click.option("--key-file", type=click.Path(path_type=Path), help="The key of the heads, if not the configuration's.")
@which_store
@json_option
def verify(
    namespace: str | None,
    conversation: str | None,
    key_file: Path | None,
    configuration: Path,
    named: str | None,
    as_json: bool,
) -> None:
    """Hold every entry, checkpoint and message against the heads.

    Exit code 1 when anything does not fit; each conversation is told with its first broken place.
    """
    count = entries = messages = 0
    damaged: list[dict[str, str]] = []
    with opened(configuration, named) as found:
        found.key = key_from(key_file) or found.key
        for space, one in found.headless():
            if namespace in (None, space) and conversation in (None, one):
                damaged.append({"namespace": space, "conversation": one, "problem": "its head is gone"})
        for view, one in progress(meant(found, namespace, conversation), "conversations verified"):
            count += 1
            try:
                checked = audit.verified(view, one, found.key)
            except Tampered as problem:
                damaged.append({"namespace": view.name, "conversation": one, "problem": str(problem)})
                continue
            entries, messages = entries + checked.entries, messages + checked.messages
    if as_json:
        print_json({"conversations": count, "entries": entries, "messages": messages, "damaged": damaged})
    else:
        for bad in damaged:
            name = f"{printable(bad['namespace'])} {printable(bad['conversation'])}"
            console().print(Text.assemble((name, "bold red"), f"  {bad['problem']}"))
        console().print(f"{count} conversations, {entries} entries, {messages} messages; {len(damaged)} damaged")
    if damaged:
        raise SystemExit(1)


@store.command()
@click.option("--namespace", metavar="NAME", required=True, help="The namespace whose content is erased.")
@conversation_option
@click.option("--older-than", metavar="AGE", help="Only conversations without an entry for so long: 36h, 30d.")
@click.option("--yes", is_flag=True, help="Erase; without it, only say what would be erased.")
@which_store
@json_option
def purge(
    namespace: str,
    conversation: str | None,
    older_than: str | None,
    yes: bool,
    configuration: Path,
    named: str | None,
    as_json: bool,
) -> None:
    """Erase the content of conversations: their messages. Journals stay, and with them every label.

    Age is by the last entry's time, as its writer's clock told it.
    """
    now = datetime.now(UTC)
    limit = stamp(now - age(older_than)) if older_than else ""
    names: list[str] = []
    messages = entries = 0
    labels: set[str] = set()
    with opened(configuration, named) as found:
        view = found.within(namespace)
        idle = set(_idle(view, limit)) if limit else set()
        for _, one in progress(meant(found, namespace, conversation), "conversations seen"):
            # Asked again, since somebody may have come back to it while others were erased.
            if limit and (one not in idle or not view.is_idle(one, limit)):
                continue
            names.append(one)
            messages += view.contents(one)
            if yes:
                view.erase(one, at=stamp(now))
            held = view.head(one)
            entries, labels = entries + held.sequence - view.base(one).sequence, labels | set(held.labels)
        if names and yes:
            found.settle()
    if as_json:
        remains = {"entries": entries, "labels": sorted(labels)}
        print_json({"erased": yes, "conversations": names, "messages": messages, "remains": remains})
    else:
        what = "erased" if yes else "would be erased; --yes does it"
        console().print(f"{messages} messages of {len(names)} conversations {what}")
        console().print(
            Text(
                f"what remains: {entries} entries with digests, lengths, names of tools and sources, ids of calls;"
                f" labels: {', '.join(map(printable, sorted(labels))) or 'none'}; facts of the namespace, see"
                " `interlock store forget`"
            )
        )


def _idle(view: SqlNamespace, limit: str) -> Any:
    after = ""
    while page := view.idle_since(limit, after=after, limit=500):
        yield from page
        after = page[-1]


def age(text: str) -> timedelta:
    """How long ago, as people write it. Raises Misconfigured."""
    found = re.fullmatch(r"([1-9][0-9]{0,4})([hd])", text)
    if not found:
        raise Misconfigured(f"--older-than {text!r}: write a number of hours or days, such as 36h or 30d")
    return timedelta(**{{"h": "hours", "d": "days"}[found[2]]: int(found[1])})
