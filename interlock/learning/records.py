"""Records of any kind, read: session files, conversations in a store, transcripts, and journals without messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from interlock.errors import JournalUnavailable, Misconfigured
from interlock.integrations import interlock_messages
from interlock.model.digests import Digest, content_digest
from interlock.model.entries import Entry, Ruling
from interlock.model.grants import Status
from interlock.model.labels import Label
from interlock.model.messages import Message, Role, Text
from interlock.model.state import State, apply
from interlock.model.turns import Attached, Event
from interlock.replay import Transcript, read_transcript, transcript
from interlock.stores.journal_file import read_journal
from interlock.stores.session_file import SessionFile


@dataclass(frozen=True, slots=True)
class Record:
    """One recorded conversation.

    Attributes:
        name: what people call it.
        talk: what was said and called; None when only digests are there.
        approved, refused: digests of calls that a person was asked about, by what they answered.
        rulings: what its journal says of each call, when there is nothing else.
    """

    name: str
    talk: Transcript | None
    approved: frozenset[Digest] = frozenset()
    refused: frozenset[Digest] = frozenset()
    rulings: tuple[Ruling, ...] = ()


_SESSION: Final = b'{"interlock_session":'
_JOURNAL: Final = b'{"version":1}'


def read_record(path: Path, key: bytes = b"") -> Record:
    """Read a session file, a journal that was saved, or a transcript; which of them it is, its first line tells.

    Raises:
        Misconfigured: it can't be read, or is none of them.
        Tampered: a session or a journal is not what its head says; nothing is learned from it.
    """
    try:
        with path.open("rb") as file:
            first = file.readline(200)
    except OSError as error:
        raise Misconfigured(f"{path}: can't be read: {error.strerror}") from None
    if first.startswith(b"SQLite format 3"):
        raise Misconfigured(f"{path}: this is a store; name it with --store")
    if first.startswith(_SESSION):
        held = SessionFile.look(path.absolute(), key=key)
        return _talked(str(path), held.folded, held.messages_ever())
    if first.strip() == _JOURNAL:
        entries = read_journal(path, key)
        return _digests(str(path), entries)
    return Record(str(path), read_transcript(path))


def stored_record(name: str, state: State, messages: Iterable[Message], entries: Iterable[Entry]) -> Record:
    """A conversation of a store. One whose messages were erased has its journal left."""
    every = tuple(messages)
    return _talked(name, state, every) if every else _digests(name, entries)


def _digests(name: str, entries: Iterable[Entry]) -> Record:
    state = State()
    rulings = []
    for entry in entries:
        if isinstance(entry, Ruling):
            rulings.append(entry)
        state = apply(state, entry)
    if not rulings and not state.conversation:
        raise JournalUnavailable(f"{name}: holds no conversation")
    approved, refused = _answers(state)
    return Record(name, None, approved, refused, tuple(rulings))


def _talked(name: str, state: State, messages: Iterable[Message]) -> Record:
    approved, refused = _answers(state)
    entered = [_entered(label, source.tool) for label, source in state.taint.items if source.call == 0]
    events = (*entered, *interlock_messages.recorded(_lines(messages, state.texts)))
    return Record(name, transcript(name, "interlock", events), approved, refused)


def _entered(label: Label, source: str) -> Event:
    """What entered without a call did so at some time; it is taken to have been there from the beginning."""
    return Attached((label,), source)


def _lines(messages: Iterable[Message], typed: frozenset[Digest]) -> Iterator[dict[str, Any]]:
    """Messages as a replay reads them. What is not on record as typed counts as pasted."""
    for message in messages:
        (line,) = map(json.loads, interlock_messages.lines([message]))
        texts = [block.text for block in message.blocks if isinstance(block, Text)]
        pasted = not all(content_digest(one) in typed for one in texts)
        if message.role is Role.USER:
            yield {**line, "pasted": pasted}
            continue
        yield line
        if message.role is Role.TOOL and texts:  # the person's text, folded into the results of a round
            yield {"interlock": 1, "role": "user", "text": "\n".join(texts), "pasted": pasted}


def _answers(state: State) -> tuple[frozenset[Digest], frozenset[Digest]]:
    held = state.questions.values()
    approved = frozenset(one.bound.call for one in held if one.status in (Status.GRANTED, Status.USED))
    return approved, frozenset(one.bound.call for one in held if one.status is Status.REFUSED)
