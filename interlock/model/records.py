"""Records of a session file: one line, one write, all or nothing.

A record carries journal entries, a change of the transcript, or both: a rewrite and the labels that stood at it are one
record. Unlike a journal it holds bodies, since a conversation is to be continued from it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from interlock.errors import Refused, Tampered
from interlock.model.canonical import MAX_BYTES, unpack
from interlock.model.chain import Sealed
from interlock.model.digests import Digest, digest
from interlock.model.entries import Entry, encode, read_entry
from interlock.model.labels import EVERY_LEG, Label, label
from interlock.model.messages import Block, Image, Message, Role, Text, ToolAnswer, ToolUse, plain
from interlock.model.transcript import Cover, common

MAX_LINE: Final = 64 * MAX_BYTES


@dataclass(frozen=True, slots=True)
class Record:
    """What one write says.

    Attributes:
        entries: of the journal.
        changes: of the transcript, in order.
        labels: the exposure after the entries, beside a change: a checkpoint that only adds.
    """

    entries: tuple[Entry, ...] = ()
    changes: tuple[Change, ...] = ()
    labels: tuple[Label, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """The list of messages is now its first ``keep`` ones and ``messages``, each with what covers it."""

    keep: int
    messages: tuple[Message, ...]
    covers: tuple[Cover, ...]


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message of a transcript in a store.

    Attributes:
        place: from 1, in the order in which messages were stored; never used twice.
        entry: place in the journal of the ``transcribed`` entry that names its digest.
        message: None when its content was erased.
        cover: labels that stood when it entered; None when a rewrite made that uncertain, or it was erased.
        retired: place in the journal of the entry since which it is no longer in the transcript; 0 while it is.
    """

    place: int
    entry: int
    message: Message | None
    cover: Cover
    retired: int = 0


def changes_between(states: Iterable[tuple[Sequence[Message], Sequence[Cover]]], base: int = 0) -> tuple[Change, ...]:
    """How each list of messages becomes the next one.

    Args:
        states: lists with their covers; the first is the one that stands.
        base: how many older messages stand before all of them.
    """
    found: list[Change] = []
    before: Sequence[Message] | None = None
    for messages, covers in states:
        if before is not None:
            keep = common(before, messages)
            if keep < len(before) or keep < len(messages):
                found.append(Change(base + keep, tuple(messages[keep:]), tuple(covers[keep:])))
        before = messages
    return tuple(found)


def message_body(message: Message, cover: Cover) -> bytes:
    """A message with its cover as a store keeps it.

    Raises:
        Refused: larger than 64 MiB.
    """
    body = _dump(_written(message, cover))
    if len(body) > MAX_LINE:
        raise Refused(f"a message of {len(body)} bytes is more than a store takes ({MAX_LINE})")
    return body


def message_digest(body: bytes) -> Digest:
    """What a ``transcribed`` entry says of a stored message."""
    return digest("message", body)


def read_body(body: bytes, place: int) -> tuple[Message, Cover]:
    """Read a stored message. Whether it is what its entry says is its digest's to tell.

    Raises:
        Tampered: not a message that this version writes.
    """
    try:
        message, cover = _message(json.loads(body))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, Refused) as error:
        raise Tampered(place, f"message {place} is none of this version ({type(error).__name__})") from None
    if message.role is Role.SYSTEM:
        raise Tampered(place, f"message {place} is in the system role, which no store has ever kept")
    return message, cover


def body_of(record: Record) -> bytes:
    """The bytes that the chain covers. Any text survives: NUL and lone surrogates are written as escapes.

    Raises:
        Refused: larger than 64 MiB.
    """
    value = {
        "changes": [
            {"keep": one.keep, "messages": list(map(_written, one.messages, one.covers))} for one in record.changes
        ],
        "entries": [unpack(encode(entry)) for entry in record.entries],
        "labels": list(record.labels),
    }
    body = _dump(value)
    if len(body) > MAX_LINE:
        raise Refused(f"a record of {len(body)} bytes is more than a session file takes in one write ({MAX_LINE})")
    return body


def line_of(sealed: Sealed) -> bytes:
    """One line of a session file, without its end."""
    head = {"digest": sealed.digest, "previous": sealed.previous, "sequence": sealed.sequence}
    return b'{"body":' + sealed.body + b"," + _dump(head)[1:]


def read_line(line: bytes, place: int) -> tuple[Sealed, Record]:
    """Read one line. Whether it belongs where it stands is the chain's to say.

    Raises:
        Tampered: not a line that this version writes, to the byte.
    """
    if len(line) > MAX_LINE + MAX_BYTES:
        raise Tampered(place, "is longer than any record")
    try:
        value = json.loads(line)
        record = _record(value["body"], place)
        sealed = Sealed(value["sequence"], Digest(value["previous"]), body_of(record), Digest(value["digest"]))
        if type(sealed.sequence) is not int or line_of(sealed) != line:
            raise Tampered(place, "is not written as this version writes it")
    except Tampered:
        raise
    # Whatever a stranger's bytes can raise here says the same: this is no record of ours.
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, Refused) as error:
        raise Tampered(place, f"is not a record of this version ({type(error).__name__})") from None
    return sealed, record


def labels_in(line: bytes) -> frozenset[Label]:
    """Every label in a whole line that was not acknowledged; every leg when it is none of ours."""
    try:
        _, record = read_line(line, 0)
    except Tampered:
        return frozenset(EVERY_LEG)
    found = set(record.labels)
    for entry in record.entries:
        for name in ("labels", "private", "untrusted", "opens"):
            found |= set(getattr(entry, name, ()))
    return frozenset(found)


def salvaged(lines: Iterable[bytes]) -> tuple[Message, ...]:
    """What can still be read of the messages in damaged lines: for showing, under every label."""
    found: list[Message] = []
    for line in lines:
        try:
            for one in json.loads(line)["body"]["changes"]:
                change = _change(one)
                found[change.keep :] = change.messages
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, Refused):
            continue
    return tuple(found)


def last_that_fit(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """As many of the last messages as fit into one record with room to spare."""
    room = MAX_LINE // 2
    for place in range(len(messages) - 1, -1, -1):
        one = messages[place]
        try:
            room -= len(body_of(Record(changes=(Change(0, (one,), (None,)),))))
        except Refused:  # it alone is too large
            room = -1
        if room < 0:
            return messages[place + 1 :]
    return messages


def _dump(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":")).encode()


def _record(value: Any, place: int) -> Record:
    if set(value) != {"changes", "entries", "labels"}:
        raise Refused("unknown keys")
    entries = tuple(read_entry(one, place) for one in value["entries"])
    return Record(entries, tuple(map(_change, value["changes"])), tuple(label(one) for one in value["labels"]))


def _change(value: Any) -> Change:
    if set(value) != {"keep", "messages"} or type(value["keep"]) is not int or value["keep"] < 0:
        raise Refused("not a change")
    pairs = [_message(one) for one in value["messages"]]
    return Change(value["keep"], tuple(one for one, _ in pairs), tuple(cover for _, cover in pairs))


def _written(message: Message, cover: Cover) -> dict[str, Any]:
    return {
        "role": message.role.value,
        "blocks": [_block(one) for one in message.blocks],
        "labels": None if cover is None else list(cover),
    }


def _block(block: Block) -> dict[str, Any]:
    match block:
        case Text(text):
            return {"text": text}
        case ToolUse(id=call_id, name=name, arguments=arguments, server=server):
            return {"use": call_id, "name": name, "arguments": plain(arguments), "server": server}
        case ToolAnswer(id=call_id, text=text, is_error=is_error):
            return {"answers": call_id, "text": text, "is_error": is_error}
        case Image(media_type=media_type, payload=payload):
            return {"image": media_type, "payload": base64.b64encode(payload).decode()}


def _message(value: Any) -> tuple[Message, Cover]:
    if set(value) != {"role", "blocks", "labels"}:
        raise Refused("not a message")
    covers = value["labels"]
    cover = None if covers is None else tuple(label(one) for one in covers)
    return Message(Role(value["role"]), tuple(map(_read_block, value["blocks"]))), cover


def _read_block(value: Mapping[str, Any]) -> Block:
    texts: Iterable[Any] = [value.get(name, "") for name in ("text", "use", "name", "server", "answers", "image")]
    if not all(isinstance(one, str) for one in texts):
        raise Refused("not a block")
    match sorted(value):
        case ["text"]:
            return Text(value["text"])
        case ["arguments", "name", "server", "use"]:
            return ToolUse(value["use"], value["name"], value["arguments"], value["server"])
        case ["answers", "is_error", "text"] if isinstance(value["is_error"], bool):
            return ToolAnswer(value["answers"], value["text"], value["is_error"])
        case ["image", "payload"]:
            return Image(value["image"], base64.b64decode(value["payload"], validate=True))
        case _:
            raise Refused("not a block")
