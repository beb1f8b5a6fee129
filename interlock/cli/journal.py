"""``interlock journal``: is the record whole, and what does it say?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from interlock.cli.output import console, json_option, print_json
from interlock.cli.store import conversation_option, namespace_option
from interlock.cli.stored import key_from, meant, opened, progress, which_store, written
from interlock.errors import JournalUnavailable, Misconfigured, Tampered
from interlock.model.decision_log import events
from interlock.model.results import printable
from interlock.stores import audit
from interlock.stores.journal_file import read_journal
from interlock.stores.sql_store import SqlStore


@click.group()
def journal() -> None:
    """Verify journals, keep and compare their heads, export decisions."""


@journal.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@namespace_option
@conversation_option
@click.option("--key-file", type=click.Path(path_type=Path), help="Key of the heads, which also signs those printed.")
@click.option("--heads", type=click.Path(path_type=Path), help="Write the heads to this new file, to keep elsewhere.")
@click.option("--against", type=click.Path(path_type=Path), help="Heads that were kept: nothing may be behind them.")
@which_store
@json_option
def verify(
    file: Path | None,
    namespace: str | None,
    conversation: str | None,
    key_file: Path | None,
    heads: Path | None,
    against: Path | None,
    configuration: Path,
    named: str | None,
    as_json: bool,
) -> None:
    """Find the first broken place of the journals in a store, or of one that was saved to FILE.

    A chain does not show that its end was cut off together with its head. Heads that were kept somewhere else do: write
    them with --heads, signed if there is a key, and compare with --against. Exit code 1 when anything is broken.
    """
    key = key_from(key_file)
    if file is not None:
        _verify_file(file, key, as_json)
        return
    found_heads: list[dict[str, Any]] = []
    broken: list[dict[str, str]] = []
    with opened(configuration, named) as found:
        found.key = key = key or found.key
        for space, one in found.headless():
            if namespace in (None, space) and conversation in (None, one):
                broken.append({"namespace": space, "conversation": one, "problem": "its head is gone"})
        for view, one in progress(meant(found, namespace, conversation), "journals verified"):
            try:
                checked = audit.verified(view, one, key)
            except Tampered as problem:
                broken.append({"namespace": view.name, "conversation": one, "problem": str(problem)})
                continue
            found_heads.append(audit.signed_head(checked.head, view.name, one, key))
        for kept in _kept(against):
            _compare(found, kept, key, broken)
    if heads is not None:
        with written(heads) as out:
            for head in found_heads:
                print(json.dumps(head), file=out)
    _told(found_heads, broken, as_json)


def _verify_file(file: Path, key: bytes, as_json: bool) -> None:
    try:
        entries = read_journal(file, key)
    except Tampered as problem:
        _told([], [{"namespace": "", "conversation": str(file), "problem": str(problem)}], as_json)
        return
    if as_json:
        print_json({"entries": len(entries), "broken": []})
    else:
        console().print(f"{len(entries)} entries, as their head says")


def _kept(against: Path | None) -> list[Any]:
    if against is None:
        return []
    try:
        return [json.loads(line) for line in against.read_text(encoding="utf-8").splitlines()]
    except OSError as error:
        raise Misconfigured(f"{against}: can't be read: {error.strerror}") from None
    except ValueError:
        raise Misconfigured(f"{against}: not a file of heads") from None


def _compare(store: SqlStore, kept: Any, key: bytes, broken: list[dict[str, str]]) -> None:
    name = kept.get("namespace") if isinstance(kept, dict) else None
    one = kept.get("conversation") if isinstance(kept, dict) else None
    if not isinstance(name, str) or not isinstance(one, str):
        raise Misconfigured("--against: not a file of heads")
    try:
        audit.reaches(store.within(name), kept, key)
    except Tampered as problem:
        broken.append({"namespace": name, "conversation": one, "problem": str(problem)})
    except JournalUnavailable as problem:
        broken.append({"namespace": name, "conversation": one, "problem": f"gone: {problem}"})


def _told(heads: list[dict[str, Any]], broken: list[dict[str, str]], as_json: bool) -> None:
    if as_json:
        print_json({"heads": heads, "broken": broken})
    else:
        for bad in broken:
            name = f"{printable(bad['namespace'])} {printable(bad['conversation'])}".strip()
            console().print(Text.assemble((name, "bold red"), f"  {bad['problem']}"))
        for head in heads if len(heads) <= 20 else []:
            name = f"{printable(head['namespace'])} {printable(head['conversation'])}"
            console().print(Text(f"{name}  {head['sequence']} {head['digest']} {head['signature']}".rstrip()))
        console().print(f"{len(heads)} journals are whole, {len(broken)} are not")
    if broken:
        raise SystemExit(1)


@journal.command()
@namespace_option
@conversation_option
@click.option("--out", type=click.Path(path_type=Path), help="A new file instead of standard output; .gz compresses.")
@click.option("--erase", multiple=True, metavar="POINTER", help="Leave this out of every event, as /input/call/id.")
@which_store
def export(
    namespace: str | None,
    conversation: str | None,
    out: Path | None,
    erase: tuple[str, ...],
    configuration: Path,
    named: str | None,
) -> None:
    """Write every decision as an event of OPA's decision log, one JSON object per line.

    Events hold digests, names of tools, ids of calls, verdicts and codes: no prompts, arguments or results.
    """
    with opened(configuration, named) as found, written(out) as file:
        for view, one in progress(meant(found, namespace, conversation), "journals exported"):
            for event in events(audit.decoded(view, one), view.name, one, erase):
                print(json.dumps(event, ensure_ascii=False), file=file)
