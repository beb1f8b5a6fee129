"""A model that needs no key: it does what the person asks, and obeys every order that it reads on the way.

It is the worst case that a real model can be talked into, and nothing more: it knows no scenario, and whatever it
writes into a call, it has read in the messages before. It understands two languages.

What a person types, in clauses: ``read``, ``summarise`` or ``compare`` (web addresses and paths), ``mail`` (to an
address), ``note`` (in a path), ``share`` (a path with an address).

What a stranger hides in a text, in lines::

    ASSISTANT: call NAME {"argument": "value"} and call NAME {…}     several in one turn
    ASSISTANT: or else call NAME {…}                                 if the line before was refused or failed
    ASSISTANT: when "thanks" call NAME {…}                           once the person says this word

``{{last:NAME}}`` stands for the newest result of a tool, ``{{last:NAME|url}}`` for the same as part of a URL, and
``{{gist:NAME}}`` for the first line of each of its results. A line waits until all that it needs has been read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import quote

from interlock.model.messages import Message, Role, ToolAnswer, ToolUse

Arguments: TypeAlias = dict[str, str]

_ORDER: Final = re.compile(
    r'^\s*ASSISTANT: (?:when "(?P<word>[^"]+)" )?(?P<otherwise>or else )?(?=call )', re.MULTILINE
)
_CALL: Final = re.compile(r"(?:call|and call) (?P<name>\w+) (?=\{)")
_BLANK: Final = re.compile(r"\{\{(?P<which>last|gist):(?P<name>\w+)(?P<url>\|url)?\}\}")
_VERBS: Final = r"\b(read|summarise|compare|mail|note|share)\b"
_CLAUSE: Final = re.compile(rf"{_VERBS}(.*?)(?={_VERBS}|$)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Step:
    """One turn's worth of calls that somebody wants: ``calls`` with their blanks still in them.

    ``id`` says where the wish stands, so that what was done can be read off the messages: the model keeps no state.
    """

    id: str
    calls: tuple[tuple[str, Arguments], ...]
    word: str = ""
    otherwise: bool = False

    def call_id(self, place: int) -> str:
        return f"{self.id}_{place}"


def reply(messages: Sequence[Message]) -> Message:
    """The model's next turn: the calls of the first step that can be made, orders before the person's wishes."""
    seen = _Seen.of(messages)
    for steps in (*_orders(messages), *_wishes(messages)):
        for place, step in enumerate(steps):
            if not seen.ready(step, steps[place - 1] if place else None):
                continue
            uses = (
                ToolUse(step.call_id(number), name, {key: seen.filled(text) for key, text in arguments.items()})
                for number, (name, arguments) in enumerate(step.calls)
            )
            return Message.assistant("", *uses)
    return Message.assistant("Done.")


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the messages tell: which calls were made, which failed, what came back, what the person said last."""

    made: frozenset[str]
    failed: frozenset[str]
    results: tuple[tuple[str, str], ...]
    said: str

    @staticmethod
    def of(messages: Sequence[Message]) -> _Seen:
        names = {use.id: use.name for message in messages for use in message.uses}
        answers = [block for message in messages for block in message.blocks if isinstance(block, ToolAnswer)]
        said = [message.text for message in messages if message.role is Role.USER]
        return _Seen(
            made=frozenset(names),
            failed=frozenset(answer.id for answer in answers if answer.is_error),
            results=tuple((names[answer.id], answer.text) for answer in answers if not answer.is_error),
            said=said[-1] if said else "",
        )

    def ready(self, step: Step, before: Step | None) -> bool:
        if step.call_id(0) in self.made or step.word.casefold() not in self.said.casefold():
            return False
        if step.otherwise and (before is None or before.call_id(0) not in self.made or not self._failed(before)):
            return False
        blanks = [
            blank for _, arguments in step.calls for text in arguments.values() for blank in _BLANK.finditer(text)
        ]
        return all(self._texts(blank["name"]) for blank in blanks)

    def _failed(self, step: Step) -> bool:
        return any(step.call_id(place) in self.failed for place in range(len(step.calls)))

    def _texts(self, name: str) -> list[str]:
        return [text for tool, text in self.results if tool == name]

    def filled(self, text: str) -> str:
        """The text with its blanks filled. Not in two passes: what is filled in holds no blanks, whatever it says."""

        def found(blank: re.Match[str]) -> str:
            texts = self._texts(blank["name"])
            whole = texts[-1] if blank["which"] == "last" else "\n".join(one.strip().split("\n")[0] for one in texts)
            return quote(whole, safe="") if blank["url"] else whole

        return _BLANK.sub(found, text)


def _orders(messages: Sequence[Message]) -> Iterator[list[Step]]:
    """Orders in tool results, those of the newest message first."""
    for number in range(len(messages) - 1, -1, -1):
        if messages[number].role is Role.TOOL:
            yield [
                _order(f"order_{number}_{place}", messages[number].text, found)
                for place, found in enumerate(_ORDER.finditer(messages[number].text))
            ]


def _order(id: str, text: str, found: re.Match[str]) -> Step:
    calls: list[tuple[str, Arguments]] = []
    decoder, at = json.JSONDecoder(), found.end()
    while head := _CALL.match(text, at):
        arguments, at = decoder.raw_decode(text, head.end())
        calls.append((head["name"], arguments))
        at += len(text[at:]) - len(text[at:].lstrip(" "))
    return Step(id, tuple(calls), found["word"] or "", bool(found["otherwise"]))


def _wishes(messages: Sequence[Message]) -> Iterator[list[Step]]:
    """What the person asked for, in the order of asking."""
    for number, message in enumerate(messages):
        if message.role is Role.USER:
            steps: list[Step] = []
            source = "fetch"
            for clause in _CLAUSE.finditer(message.text):
                calls = _wish(clause[1].lower(), clause[2], source)
                if calls:
                    steps.append(Step(f"wish_{number}_{len(steps)}", calls))
                    source = calls[-1][0] if calls[-1][0] in ("fetch", "read_file") else source
            yield steps


def _wish(verb: str, rest: str, source: str) -> tuple[tuple[str, Arguments], ...]:
    """The calls of one clause. ``source`` is the tool that the person had something read with before."""
    words = [word.strip(".,;:!?") for word in rest.split()]
    urls = [word for word in words if "://" in word]
    addresses = [word for word in words if "@" in word]
    paths = [word for word in words if "/" in word and word not in urls and word not in addresses]
    text = "{{gist:fetch}}" if "summary" in words else f"{{{{last:{source}}}}}"
    match verb:
        case "mail":
            return tuple(("send_email", {"to": to, "subject": "As you asked", "body": text}) for to in addresses)
        case "note":
            return tuple(("write_file", {"path": path, "text": text}) for path in paths)
        case "share":
            return tuple(("share_file", {"path": path, "to": to}) for path in paths for to in addresses)
        case _:
            return (
                *(("fetch", {"url": url}) for url in urls),
                *(("read_file", {"path": path}) for path in paths),
            )
