"""Reading recorded conversations, in any of the shapes that a codec knows.

JSON whole, or one message per line. What a file is, is told by what only one shape has; where that says nothing, the
caller has to. A key that stands twice is an error: what was recorded is then not what can be read.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from interlock.errors import Misconfigured
from interlock.integrations import anthropic_messages, interlock_messages, openai_chat, openai_responses
from interlock.model.turns import Answered, Event, Turn


class TranscriptError(Misconfigured):
    """A transcript can't be read; the message names the file, the place and what to do."""


class Shape(Protocol):
    """What a replay needs of a codec, which is a module of :mod:`interlock.integrations`."""

    def recorded(self, messages: Iterable[Any]) -> Iterator[Event]: ...

    def resembles(self, message: Any) -> bool: ...


SHAPES: Final[Mapping[str, Shape]] = {
    "anthropic": anthropic_messages,
    "chat": openai_chat,
    "responses": openai_responses,
    "interlock": interlock_messages,
}


@dataclass(frozen=True, slots=True)
class Transcript:
    """A recorded conversation.

    Attributes:
        path: the file.
        shape: a key of :data:`SHAPES`.
        events: what happened, in order.
        results: the recorded result of a call, by place of its turn among the events and of the call in the turn.
        settles: which call a recorded result belongs to, by place of the result. Results of no call are left out.
    """

    path: str
    shape: str
    events: tuple[Event, ...]
    results: Mapping[tuple[int, int], Answered]
    settles: Mapping[int, tuple[int, int]]

    @property
    def calls(self) -> int:
        return sum(len(one.proposals) for one in self.events if isinstance(one, Turn))


def transcript(path: str, shape: str, events: Iterable[Event]) -> Transcript:
    """Put recorded results to their calls: to the latest turn that has an open call of this id, there in order."""
    every = tuple(events)
    results: dict[tuple[int, int], Answered] = {}
    settles: dict[int, tuple[int, int]] = {}
    open_calls: dict[str, list[deque[tuple[int, int]]]] = {}
    for place, event in enumerate(every):
        if isinstance(event, Turn):
            mine: dict[str, deque[tuple[int, int]]] = {}
            for number, proposal in enumerate(event.proposals):
                mine.setdefault(_id(proposal.wanted), deque()).append((place, number))
            for key, waiting in mine.items():
                open_calls.setdefault(key, []).append(waiting)
        elif isinstance(event, Answered):
            stack = open_calls.get(_id(event.id), [])
            if stack:
                call = settles[place] = stack[-1].popleft()
                results[call] = event
                if not stack[-1]:
                    stack.pop()
    return Transcript(path, shape, every, results, settles)


def _id(wanted: Any) -> str:
    return wanted if isinstance(wanted, str) else ""


def read_transcript(path: Path, shape: str = "") -> Transcript:
    """Read a transcript: JSON (messages, or a request that has them) or JSONL (one message per line).

    Args:
        shape: a key of :data:`SHAPES`; without it the messages are looked at.

    Raises:
        TranscriptError: it can't be read, or it can't be told what shape it has.
    """
    messages = _messages(path)
    found = {name for name, one in SHAPES.items() if any(map(one.resembles, messages))}
    if shape and found and shape not in found:
        # Read in a shape that is not its own, it would have no calls, and look clean.
        raise TranscriptError(f"{path}: --shape {shape}, but it looks like {' and '.join(sorted(found))}")
    name = shape or _shape(path, messages, found)
    return transcript(str(path), name, SHAPES[name].recorded(messages))


def _messages(path: Path) -> list[Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        what = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise TranscriptError(f"{path}: can't be read: {what}") from None
    if path.suffix in (".jsonl", ".ndjson"):
        return _lines(path, text)
    try:
        whole = _json(path, text, "")
    except TranscriptError:
        # Many recorders write lines into a `.json` file. If the first line stands alone, so do the others.
        first, _, rest = text.partition("\n")
        try:
            _json(path, first, "")
        except TranscriptError:
            rest = ""
        if not rest.strip():
            raise
        return _lines(path, text)
    return _unwrapped(path, whole)


def _lines(path: Path, text: str) -> list[Any]:
    numbered = ((number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip())
    found = [_json(path, line, f" line {number}:") for number, line in numbered]
    return _unwrapped(path, found[0]) if len(found) == 1 else found


def _unwrapped(path: Path, whole: Any) -> list[Any]:
    """The messages in a document: a list, a request with its history, or one message."""
    if isinstance(whole, list):
        return whole
    if not isinstance(whole, dict):
        raise TranscriptError(f"{path}: not a conversation; write a list of messages, or one message per line")
    if isinstance(whole.get("messages"), list):
        return [*whole["messages"]]
    if isinstance(whole.get("input"), list):
        return [*whole["input"], *([{"output": whole["output"]}] if isinstance(whole.get("output"), list) else [])]
    if isinstance(whole.get("input"), str):
        return [{"role": "user", "content": whole["input"]}, {"output": whole.get("output", [])}]
    return [whole]


def _json(path: Path, text: str, where: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except _Twice as error:
        raise TranscriptError(f"{path}:{where} a key stands twice in one object: {error}; record it anew") from None
    except (ValueError, RecursionError) as error:
        detail = f"line {error.lineno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else "nested too deeply"
        raise TranscriptError(f"{path}:{where} not JSON ({detail})") from None


class _Twice(Exception):
    """A key stands twice: what was recorded is not what can be read."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        counted = Counter(name for name, _ in pairs)
        raise _Twice(ascii(next(name for name, times in counted.items() if times > 1))[:80])
    return found


def _shape(path: Path, messages: Sequence[Any], found: set[str]) -> str:
    """The only shape that some message resembles. Texts alone look the same in all of them, and have no calls."""
    if len(found) == 1:
        return next(iter(found))
    if not found and all(isinstance(one, dict) and "role" in one for one in messages):
        return "chat"
    seems = f"it looks like {' and '.join(sorted(found))}" if found else "it looks like none of them"
    raise TranscriptError(f"{path}: can't tell its shape, {seems}; say --shape {', '.join(SHAPES)}")
