"""A question as lines of text: everything that is in it, and nothing that could hide or act (case 68). Pure.

Nothing is cut off. A long text stands in pieces of a line each, a long question in pages that say how many they are.
No line is so long that a screen would break it where a text of others wants it to.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from interlock.model.canonical import pack
from interlock.model.escaping import escaped, hidden, wrapped
from interlock.model.operands import Operand, Sort, shown
from interlock.model.question import Brought, Question, Receiver

WIDTH: Final = 100
LINE: Final = 120
PAGE: Final = 40


def lines(question: Question, columns: int = LINE) -> list[str]:
    """The whole question, in lines of at most so many columns."""
    return [piece for line in _lines(question) for piece in wrapped(line, columns)]


def _lines(question: Question) -> list[str]:
    found = [f"Question {question.id}", ""]
    found += block("Tool", [_tool(question)])
    found += block("What happens", [escaped(one) for one in question.happens])
    found += block("Why you are asked", [f"[{escaped(code)}] {escaped(text)}" for code, text in question.reasons])
    count = len(question.call_ids)
    if count > 1:
        found += block("How often", [f"{count} identical calls; a yes lets each of them run once."])
    found += block("Who is named", [_receiver(one, question.filled) for one in question.receivers])
    found += block("Arguments", list(_arguments(question)))
    found += block("Files", [_operand(one) for one in shown(question.operands)])
    found += block("What is in the conversation, or comes with this call", [_brought(one) for one in question.brought])
    found += block("Beside it", [escaped(one) for one in question.beside])
    found += block("If you say yes", [_good_for(question)])
    return found[:-1] if found and not found[-1] else found


def pages(question: Question, height: int = PAGE, columns: int = LINE) -> list[list[str]]:
    """The same in pages. Each begins with a line that says which one it is, and of how many."""
    return paged(f"Question {question.id}", lines(question, columns), height)


def paged(title: str, whole: Sequence[str], height: int = PAGE) -> list[list[str]]:
    """Lines in pages, none left out."""
    room = max(2, height) - 1
    total = math.ceil(len(whole) / room)
    if total <= 1:
        return [list(whole)]
    return [
        [f"{title}, page {number + 1} of {total}", *whole[number * room : (number + 1) * room]]
        for number in range(total)
    ]


def summary(question: Question) -> str:
    """One line for a list: the tool and who is named. Says how many more there are."""
    values = [escaped(one.value) for one in question.receivers if one.role == "destination"]
    named = [one if len(one) <= 60 else f"{one[:60]}… ({len(one)} characters)" for one in values[:2]]
    more = [f"and {len(values) - 2} more"] if len(values) > 2 else []
    return " ".join([_tool(question), "→" if named else "", ", ".join(named), *more]).strip()


def block(title: str, body: Sequence[str]) -> list[str]:
    return [title, *(f"  {one}" for one in body), ""] if body else []


def _tool(question: Question) -> str:
    return escaped(f"{question.server}/{question.tool}" if question.server else question.tool)


_ORIGINS: Final = {
    "user": "you typed it",
    "operator": "the operator vouches for it",
    "trusted": "a trusted result holds it",
    "metadata": "a provider's field holds it; a stranger may have chosen it",
    "designated": "your own query found it",
    "mixed": "strangers' text holds it too",
    "untrusted": "it stands in strangers' text only",
    "unseen": "nobody named it: the model made it up",
}


def _receiver(one: Receiver, filled: Sequence[str]) -> str:
    whose = _ORIGINS.get(one.origin, "?")
    if one.origin == "unseen" and _top(one.argument) in filled:
        whose = "a default of the tool; nobody named it"
    words = [f"{one.role} {escaped(one.argument)}: {escaped(one.value)} ({one.kind}; {whose})"]
    if one.talks_back:
        words.append("Strangers' text in this conversation came from there.")
    if not one.value.isascii() or "xn--" in one.value.casefold():
        words.append("It holds letters that may look like others.")
    return " ".join(words)


def _arguments(question: Question) -> Iterator[str]:
    payload = question.payload
    if not payload:
        yield "none"
    for name, whole in payload.items():
        default = ", a default that the call leaves out" if name in question.filled else ""
        for path, value in leaves(whole, _step(name)):
            yield from _leaf(escaped(path), value, default)


def _top(path: str) -> str:
    return path.partition(".")[0].partition("[")[0]


_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")


def _step(name: str) -> str:
    """A key as a part of a path: what could be read as something else stands in quotes."""
    return name if _NAME.fullmatch(name) else '"' + name.replace('"', '\\"') + '"'


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of the arguments by its path, in order; empty lists and objects are values too."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from leaves(inner, f"{path}.{_step(name)}" if path else _step(name))
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{index}]")
    else:
        yield path, value


def _leaf(path: str, value: Any, default: str) -> Iterator[str]:
    if not isinstance(value, str):
        yield f"{path}: {pack(value).decode()}{default}"
        return
    unseen = hidden(value)
    notes = f"{len(value)} character{'' if len(value) == 1 else 's'}{default}"
    notes += f", {unseen} of them invisible and escaped here" if unseen else ""
    pieces = list(_pieces(value))
    if len(pieces) == 1:
        yield f"{path} ({notes}): {pieces[0]}"
        return
    yield f"{path} ({notes}), in {len(pieces)} lines:"
    for piece in pieces:
        yield f"  | {piece}"


def _pieces(text: str) -> Iterator[str]:
    """The text in lines: its own ones, with their ends shown, and those of them that are long in several."""
    for line in text.splitlines(keepends=True) or [""]:
        whole = escaped(line)
        for start in range(0, len(whole) or 1, WIDTH):
            yield whole[start : start + WIDTH]


def _operand(one: Operand) -> str:
    name = escaped(one.path) if one.path == one.resolved else f"{escaped(one.path)} → {escaped(one.resolved)}"
    if one.sort is Sort.FILE:
        return f"{name} ({one.size} bytes, sha256 {one.content})"
    if one.sort is Sort.FOLDER:
        return f"{name} (a folder; a yes is not bound to what lies in it)"
    if one.sort is Sort.OTHER:
        return f"{name} (no regular file; a yes is not bound to what it gives)"
    return f"{name} ({one.sort.value})"


def _brought(one: Brought) -> str:
    if not one.at:
        return f"{one.label}: this call, or one beside it, may bring it"
    where = f"call {one.number}, {escaped(one.tool)}" if one.number else escaped(one.tool)
    page = f" ({escaped(one.page)})" if one.page else ""
    return f"{one.label}: {where}{page}, {one.at[:19]}Z"


def _good_for(question: Question) -> str:
    each = "this call runs once" if len(question.call_ids) <= 1 else "each of these calls runs once"
    return f"{each}, with exactly these arguments and files, before {question.expires[:19]}Z, and no other call."
