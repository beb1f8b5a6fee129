"""``interlock journal``: is the record whole, and what does it say?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from interlock.cli.output import console, json_option, print_json
from interlock.cli.store import age, conversation_option, namespace_option
from interlock.cli.stored import (
    durable,
    key_from,
    lines_of,
    meant,
    opened,
    progress,
    read_file,
    which_store,
    written,
)
from interlock.errors import JournalUnavailable, Misconfigured, Tampered
from interlock.gate.steps import stamp
from interlock.model.canonical import Json
from interlock.model.configuration import OtelChoice
from interlock.model.decision_log import events
from interlock.model.results import printable
from interlock.model.telemetry import spans
from interlock.stores import archive as archives
from interlock.stores import audit, signing
from interlock.stores.journal_file import read_sealed
from interlock.stores.sql_store import SqlNamespace, SqlStore
from interlock.stores.trimming import started


@click.group()
def journal() -> None:
    """Verify journals, keep their heads, shorten them, export decisions and spans."""


@journal.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@namespace_option
@conversation_option
@click.option("--key-file", type=click.Path(path_type=Path), help="Key of the heads, which also signs those printed.")
@click.option("--heads", type=click.Path(path_type=Path), help="Write the heads to this new file, to keep elsewhere.")
@click.option(
    "--against", "--head", type=click.Path(path_type=Path), help="Heads that were kept: nothing may be behind them."
)
@click.option(
    "--key", "public", type=click.Path(path_type=Path), help="Public key that the kept heads are signed with."
)
@click.option(
    "--archive", type=click.Path(path_type=Path), multiple=True, help="What `trim` exported, oldest first: it must fit."
)
@which_store
@json_option
def verify(
    file: Path | None,
    namespace: str | None,
    conversation: str | None,
    key_file: Path | None,
    heads: Path | None,
    against: Path | None,
    public: Path | None,
    archive: tuple[Path, ...],
    configuration: Path,
    named: str | None,
    as_json: bool,
) -> None:
    """Find the first broken place of the journals in a store, or of one that was saved to FILE.

    A chain does not show that its end was cut off together with its head. Heads that were kept somewhere else do: write
    them with --heads, signed if there is a key, and compare with --against. Exit code 1 when anything is broken.
    """
    key = key_from(key_file)
    if public is not None and against is None:
        raise Misconfigured("--key is what kept heads are signed with; say which with --head")
    broken: list[dict[str, str]] = []
    kept = _kept(against, public, broken)
    if file is not None:
        _verify_file(file, key, kept, broken, as_json)
        return
    found_heads: list[dict[str, Any]] = []
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
        archived = _archived(found, archive, broken) if archive else None
        for held in kept:
            _compare(found, held, key, archived, broken)
    if heads is not None:
        with written(heads) as out:
            for head in found_heads:
                print(json.dumps(head), file=out)
    _told(found_heads, broken, as_json)


def _verify_file(file: Path, key: bytes, kept: list[Any], broken: list[dict[str, str]], as_json: bool) -> None:
    entries = 0
    try:
        sealed, _ = read_sealed(file, key)
        entries = len(sealed)
        for held in kept:
            audit.fits_saved(sealed, held, key)
    except Tampered as problem:
        broken.append({"namespace": "", "conversation": str(file), "problem": str(problem)})
    if broken:
        _told([], broken, as_json)
    elif as_json:
        print_json({"entries": entries, "broken": []})
    else:
        console().print(f"{entries} entries, as their head says")


def _kept(against: Path | None, public: Path | None, broken: list[dict[str, str]]) -> list[Any]:
    """Heads that were kept; with a public key, held against their signature first."""
    if against is None:
        return []
    data = read_file(against)
    if public is not None:
        signature = against.with_name(against.name + ".jws")
        try:
            signing.check(data, read_file(signature).decode("ascii", "replace"), read_file(public))
        except Tampered as problem:
            broken.append({"namespace": "", "conversation": str(against), "problem": str(problem)})
            return []
    try:
        return [json.loads(line) for line in data.decode().splitlines()]
    except ValueError:
        raise Misconfigured(f"{against}: not a file of heads") from None


def _archived(store: SqlStore, files: tuple[Path, ...], broken: list[dict[str, str]]) -> archives.Archive | None:
    archive = archives.Archive()
    for file in files:
        try:
            for value in progress(lines_of(file), "archived entries read"):
                archive.add(value)
        except Tampered as problem:
            broken.append({"namespace": "", "conversation": str(file), "problem": str(problem)})
            return None
    for namespace, conversation in archive.conversations():
        try:
            archive.joins(store.within(namespace), conversation)
        except (Tampered, JournalUnavailable) as problem:
            broken.append({"namespace": namespace, "conversation": conversation, "problem": f"archive: {problem}"})
    return archive


def _compare(
    store: SqlStore, kept: Any, key: bytes, archive: archives.Archive | None, broken: list[dict[str, str]]
) -> None:
    name = kept.get("namespace") if isinstance(kept, dict) else None
    one = kept.get("conversation") if isinstance(kept, dict) else None
    if not isinstance(name, str) or not isinstance(one, str):
        raise Misconfigured("--against: not a file of heads")
    try:
        audit.reaches(store.within(name), kept, key, archive)
    except Tampered as problem:
        broken.append({"namespace": name, "conversation": one, "problem": str(problem)})
    except JournalUnavailable as problem:
        broken.append({"namespace": name, "conversation": one, "problem": f"gone: {problem}"})


def _name(bad: dict[str, str]) -> str:
    return f"{printable(bad['namespace'])} {printable(bad['conversation'])}".strip()


def _told(heads: list[dict[str, Any]], broken: list[dict[str, str]], as_json: bool) -> None:
    if as_json:
        print_json({"heads": heads, "broken": broken})
    else:
        for bad in broken:
            console().print(Text.assemble((_name(bad), "bold red"), f"  {bad['problem']}"))
        for head in heads if len(heads) <= 20 else []:
            name = f"{printable(head['namespace'])} {printable(head['conversation'])}"
            console().print(Text(f"{name}  {head['sequence']} {head['digest']} {head['signature']}".rstrip()))
        console().print(f"{len(heads)} journals are whole, {len(broken)} are not")
    if broken:
        raise SystemExit(1)


@journal.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@namespace_option
@conversation_option
@click.option("--key-file", type=click.Path(path_type=Path), help="Key of the heads, which also signs those printed.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="A new file instead of standard output, to keep elsewhere."
)
@click.option("--sign", type=click.Path(path_type=Path), help="Private key (Ed25519 or P-256): signs --out as OUT.jws.")
@which_store
def head(
    file: Path | None,
    namespace: str | None,
    conversation: str | None,
    key_file: Path | None,
    out: Path | None,
    sign: Path | None,
    configuration: Path,
    named: str | None,
) -> None:
    """Print the heads of journals, one JSON object per line, after holding each journal against its own.

    What is damaged is told and has no head: exit code 1, and nothing is written. Compare later with `verify --head`.
    """
    key, broken, found = key_from(key_file), list[dict[str, str]](), list[dict[str, Any]]()
    if sign is not None and out is None:
        raise Misconfigured("--sign signs the file of --out; name one")
    if file is not None:
        _, held = read_sealed(file, key)  # damage ends this here
        found.append(audit.signed_head(held, "", "", key))
    else:
        with opened(configuration, named) as store:
            key = key or store.key
            for view, one in progress(meant(store, namespace, conversation), "journals verified"):
                try:
                    checked = audit.verified(view, one, key)
                except Tampered as problem:
                    broken.append({"namespace": view.name, "conversation": one, "problem": str(problem)})
                else:
                    found.append(audit.signed_head(checked.head, view.name, one, key))
    if broken:
        _told([], broken, as_json=False)
    pem = None if sign is None else read_file(sign)
    data = "".join(f"{json.dumps(one)}\n" for one in found)
    signature = None if pem is None else signing.sign(data.encode(), pem)
    with written(out) as place:
        place.write(data)
    if signature is not None and out is not None:
        with written(out.with_name(out.name + ".jws")) as place:
            print(signature, file=place)


@journal.command()
@namespace_option
@conversation_option
@click.option("--older-than", metavar="AGE", required=True, help="Entries written before: 36h, 90d.")
@click.option(
    "--export", "archive", type=click.Path(path_type=Path), help="Write them to this new file first; .gz compresses."
)
@click.option("--yes", is_flag=True, help="Drop them; without it, only say what would be dropped.")
@which_store
@json_option
def trim(
    namespace: str | None,
    conversation: str | None,
    older_than: str,
    archive: Path | None,
    yes: bool,
    configuration: Path,
    named: str | None,
    as_json: bool,
) -> None:
    """Drop old entries behind a checkpoint in the chain: labels and everything else that counts stay as they are.

    A journal is held against its head first; one that is damaged is told, keeps every entry, and makes exit code 1.
    Age is by the clocks of the writers. Heads that were kept before can be compared with the archive only, so keep new
    ones afterwards.
    """
    now = datetime.now(UTC)
    limit = stamp(now - age(older_than))
    broken: list[dict[str, str]] = []
    with opened(configuration, named) as found:
        cuts = list(_cuts(found, namespace, conversation, limit, broken))
        if archive is not None and yes and cuts:
            with written(archive) as out:
                for view, one, begin, through in progress(cuts, "journals exported"):
                    for link in audit.chain(view, one, begin):
                        if link.sequence > through:
                            break
                        print(json.dumps(archives.archive_line(view.name, one, link), ensure_ascii=False), file=out)
            durable(archive)
        for view, one, _, through in progress(cuts if yes else [], "journals shortened"):
            view.trim(one, through=through, at=stamp(now))
        if yes and cuts:
            found.settle()
    dropped = [
        {"namespace": view.name, "conversation": one, "entries": through - begin, "through": through}
        for view, one, begin, through in cuts
    ]
    if as_json:
        print_json({"dropped": yes, "journals": dropped, "broken": broken})
    else:
        for bad in broken:
            console().print(Text.assemble((_name(bad), "bold red"), f"  {bad['problem']}"))
        what = "dropped" if yes else "would be dropped; --yes does it"
        entries = sum(through - begin for _, _, begin, through in cuts)
        console().print(f"{entries} entries of {len(cuts)} journals {what}; every label stays")
    if broken:
        raise SystemExit(1)


def _cuts(
    store: SqlStore, namespace: str | None, conversation: str | None, limit: str, broken: list[dict[str, str]]
) -> Iterator[tuple[SqlNamespace, str, int, int]]:
    """Journals with entries older than a time: where each begins, and the last of these."""
    for view, one in progress(meant(store, namespace, conversation), "journals verified"):
        try:
            through = audit.older(view, one, limit)
            if through:
                checked = audit.verified(view, one, store.key)
                yield view, one, checked.dropped, through
        except Tampered as problem:
            broken.append({"namespace": view.name, "conversation": one, "problem": str(problem)})


@journal.command()
@namespace_option
@conversation_option
@click.option("--out", type=click.Path(path_type=Path), help="A new file instead of standard output; .gz compresses.")
@click.option("--erase", multiple=True, metavar="POINTER", help="Leave this out of every event, as /input/call/id.")
@click.option(
    "--mask", multiple=True, metavar="POINTER[=TEXT]", help="Put a text in its place in every event; by default ***."
)
@click.option("--otel", is_flag=True, help="Send spans to the collector of [otel] instead.")
@click.option("--endpoint", metavar="URL", help="The collector, if not the configuration's; with --otel.")
@which_store
def export(
    namespace: str | None,
    conversation: str | None,
    out: Path | None,
    erase: tuple[str, ...],
    mask: tuple[str, ...],
    otel: bool,
    endpoint: str | None,
    configuration: Path,
    named: str | None,
) -> None:
    """Write every decision as an event of OPA's decision log, one JSON object per line, or send spans with --otel.

    Events and spans hold digests, names of tools, ids of calls, verdicts and codes: no prompts, arguments or results.
    """
    if otel and (out is not None or erase or mask):
        raise Misconfigured("--otel sends spans; --out, --erase and --mask are for events")
    if endpoint is not None and not otel:
        raise Misconfigured("--endpoint is where --otel sends to")
    if otel:
        _send(_collector(configuration, endpoint), namespace, conversation, configuration, named)
        return
    masks: dict[str, Json] = {}
    for one in mask:
        pointer, given, text = one.partition("=")
        masks[pointer] = text if given else "***"
    with opened(configuration, named) as found, written(out) as file:
        for view, one in progress(meant(found, namespace, conversation), "journals exported"):
            for event in events(audit.decoded(view, one), view.name, one, erase, masks):
                print(json.dumps(event, ensure_ascii=False), file=file)


def _collector(configuration: Path, endpoint: str | None) -> OtelChoice:
    from interlock.assembly import read_configuration

    chosen = read_configuration(configuration)[0].otel if configuration.is_file() else None
    if endpoint is not None:
        return OtelChoice(endpoint=endpoint) if chosen is None else chosen.model_copy(update={"endpoint": endpoint})
    if chosen is None:
        raise Misconfigured(f"{configuration}: names no collector; write [otel] with endpoint, or give --endpoint")
    return chosen


def _send(
    choice: OtelChoice, namespace: str | None, conversation: str | None, configuration: Path, named: str | None
) -> None:
    from interlock import telemetry  # loaded late, with the SDK

    exporter, sent = telemetry.otlp_exporter(choice), 0
    try:
        with opened(configuration, named) as found:
            for view, one in progress(meant(found, namespace, conversation), "journals sent"):
                state = started(view.base(one)).state
                entries = (entry for _, entry in audit.decoded(view, one))
                sent += telemetry.send(spans(view.name, one, entries, state), exporter, choice.service)
    finally:
        exporter.shutdown()
    click.echo(f"interlock: {sent} spans sent", err=True)
