"""What the commands about stores share: which store, which conversations, and how far it has got."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, TypeVar

import click

from interlock.cli.output import existing
from interlock.errors import JournalUnavailable, Misconfigured
from interlock.model.configuration import JournalChoice, PostgresChoice, SqliteChoice
from interlock.stores.choice import opened_store
from interlock.stores.sql_store import SqlNamespace, SqlStore

_F = TypeVar("_F", bound=Callable[..., Any])


def which_store(command: _F) -> _F:
    """Options that name a store: the configuration's, or one given here."""
    command = click.option(
        "--store", "named", metavar="WHERE", help="A SQLite file or a postgresql:// address, not the configuration's."
    )(command)
    return click.option(
        "--config",
        "configuration",
        type=click.Path(path_type=Path),
        default=Path("interlock.toml"),
        show_default=True,
        help="The operator's configuration.",
    )(command)


def chosen(configuration: Path, named: str | None) -> tuple[JournalChoice, Path]:
    """What was meant, and the folder that its paths are relative to.

    Raises:
        Misconfigured: the configuration names no store.
    """
    from interlock.assembly import read_configuration

    if named is not None:
        if named.startswith(("postgresql://", "postgres://")):
            return PostgresChoice(kind="postgres", dsn=named), Path()
        return SqliteChoice(kind="sqlite", path=named), Path()
    found, folder = read_configuration(existing(configuration))
    if found.journal is None or found.journal.kind == "memory":
        raise Misconfigured(
            f'{configuration}: the journal is in memory; write [journal] with kind = "sqlite" or "postgres", or --store'
        )
    return found.journal, folder


@contextmanager
def opened(configuration: Path, named: str | None) -> Iterator[SqlStore]:
    """The store that was meant, closed afterwards."""
    store = opened_store(*chosen(configuration, named))
    assert isinstance(store, SqlStore)  # `chosen` has refused the one in memory
    try:
        yield store
    finally:
        store.close()


def key_from(file: Path | None) -> bytes:
    """The key in a file, or none.

    Raises:
        Misconfigured: it can't be read, or is too short to be one.
    """
    if file is None:
        return b""
    key = read_file(file)
    if len(key) < 16:
        raise Misconfigured(f"{file}: {len(key)} bytes are too few for a key")
    return key


def meant(store: SqlStore, namespace: str | None, conversation: str | None) -> Iterator[tuple[SqlNamespace, str]]:
    """The conversations that were meant: one, those of a namespace, or all of them.

    Raises:
        Misconfigured: a conversation without its namespace.
        JournalUnavailable: there is no such conversation.
    """
    if conversation is not None:
        if namespace is None:
            raise Misconfigured("a conversation is known by its namespace and its id; give --namespace too")
        view = store.within(namespace)
        view.head(conversation)
        yield view, conversation
        return
    names = [namespace] if namespace is not None else [one.namespace for one in store.namespaces()]
    for name in names:
        view, after = store.within(name), ""
        while page := view.conversations(after=after, limit=500):
            yield from ((view, one) for one in page)
            after = page[-1]


def read_file(path: Path) -> bytes:
    """A file that an option names.

    Raises:
        Misconfigured: it can't be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise Misconfigured(f"{path}: can't be read: {error.strerror}") from None


def lines_of(path: Path) -> Iterator[Any]:
    """Every line of a file of JSON lines, which may be compressed, as a value.

    Raises:
        Misconfigured: it can't be read, or is none.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
            for line in file:
                yield json.loads(line)
    except (OSError, EOFError, ValueError) as error:
        what = error.strerror if isinstance(error, OSError) and error.strerror else "it is no file of JSON lines"
        raise Misconfigured(f"{path}: can't be read: {what}") from None


def durable(path: Path) -> None:
    """See that a file that was written is on the disk, whatever happens next.

    Raises:
        JournalUnavailable: it may not be.
    """
    try:
        for place in (path, path.absolute().parent):
            descriptor = os.open(place, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
    except OSError as error:
        raise JournalUnavailable(f"{path}: {error.strerror}") from None


def progress(items: Iterable[Any], what: str) -> Iterator[Any]:
    """The same items, with a count on standard error for work that takes more than a second."""
    began = said = time.monotonic()
    count = 0
    for count, one in enumerate(items, 1):
        yield one
        now = time.monotonic()
        if now - said > 1:
            said = now
            click.echo(f"interlock: {count} {what}, {now - began:.0f} s", err=True)
    if said != began:
        click.echo(f"interlock: {count} {what}, done", err=True)


@contextmanager
def written(path: Path | None) -> Iterator[TextIO]:
    """Where results go: a new file that is its owner's alone, compressed if its name says so, or standard output.

    Raises:
        JournalUnavailable: the file is there already, or can't be written.
    """
    if path is None:
        yield sys.stdout
        return
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:
            if path.suffix == ".gz":
                with gzip.open(file, "wt", encoding="utf-8") as text:
                    yield text
            else:
                with io.TextIOWrapper(file, encoding="utf-8") as text:
                    yield text
    except OSError as error:
        raise JournalUnavailable(f"{path}: {error.strerror}") from None
