"""Proposals as a change of the operator's own file: a unified diff that a person may take.

The file is edited as text, so that comments and order stay. Then it is read, and if it does not say exactly what was
meant, there is no diff but the lines to write by hand: a file can say things in ways that no edit here foresees.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from interlock.errors import Misconfigured
from interlock.learning.proposals import Proposal, declaration
from interlock.model.markup import read

_HEADER: Final = re.compile(r"^\s*\[(?!\[)\s*([^\]]+?)\s*\]\s*(#.*)?$")


def diff(text: str, name: str, proposals: Sequence[Proposal]) -> str:
    """A unified diff of the file, or nothing when there is nothing to change.

    Raises:
        Misconfigured: the file can't be changed as text; the message says what to write by hand.
    """
    if not proposals:
        return ""
    changed = edited(text, proposals)
    before, after = (one.splitlines(keepends=True) for one in (text, changed))
    return "".join(difflib.unified_diff(before, after, f"a/{name}", f"b/{name}"))


def edited(text: str, proposals: Sequence[Proposal]) -> str:
    """The text of the file with the proposals in it.

    Raises:
        Misconfigured: see :func:`diff`.
    """
    lists: dict[tuple[str, str], list[str]] = {}
    tools: list[Proposal] = []
    for one in sorted(proposals):
        if one.sort == "tools":
            tools.append(one)
        else:
            table = "settings.address_book" if one.sort == "address_book" else "settings"
            lists.setdefault((table, one.key or one.sort), []).append(one.value)
    lines = text.splitlines()
    current = read(text, "toml", "the configuration", Misconfigured)
    wanted = _wanted(current, lists, tools)
    for (table, key), values in sorted(lists.items()):
        _put(lines, table, key, values)
    for one in tools:
        lines += ["", *_table(one)]
    changed = "\n".join(lines) + "\n"
    try:
        right = read(changed, "toml", "the change", Misconfigured) == wanted
    except Misconfigured:
        right = False
    if not right:
        by_hand = "\n".join(_by_hand(lists, tools))
        raise Misconfigured(f"the file can't be changed as text; write into it by hand:\n{by_hand}")
    return changed


def _wanted(
    current: Mapping[str, Any], lists: Mapping[tuple[str, str], list[str]], tools: Iterable[Proposal]
) -> dict[str, Any]:
    whole: dict[str, Any] = _copied(current)
    for (table, key), values in lists.items():
        place = whole
        for part in table.split("."):
            place = place.setdefault(part, {})
        place[key] = [*values, *place.get(key, [])]
    for one in tools:
        whole.setdefault("tools", {})[one.value] = declaration(one)
    return whole


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _put(lines: list[str], table: str, key: str, values: Sequence[str]) -> None:
    """Write values into the list of a table: behind its opening bracket, so that whatever stands in it stays; or as a
    list below the table's name; or in a table of its own."""
    start = next((place for place, line in enumerate(lines) if _named(line) == table), None)
    if start is None:
        lines += ["", f"[{table}]", f"{key} = [{', '.join(map(_quoted, values))}]"]
        return
    for place in range(start + 1, len(lines)):
        if _named(lines[place]) is not None:
            break
        found = re.match(rf"\s*{re.escape(key)}\s*=\s*\[", lines[place])
        if found is not None:
            behind = lines[place][found.end() :]
            if behind.partition("#")[0].strip():
                more = "" if behind.lstrip().startswith("]") else ", "
                lines[place] = f"{found[0]}{', '.join(map(_quoted, values))}{more}{behind}"
            else:
                lines[place + 1 : place + 1] = [f"    {_quoted(one)}," for one in values]
            return
    lines.insert(start + 1, f"{key} = [{', '.join(map(_quoted, values))}]")


def _named(line: str) -> str | None:
    found = _HEADER.match(line)
    return None if found is None else found[1].replace(" ", "")


def _table(one: Proposal) -> list[str]:
    entry = declaration(one)
    lines = [
        f"# Called {one.calls} times in the records, {one.approved} of them approved, and never declared. Take",
        "# this only if it returns no credentials, opens no channel and destroys nothing: a record can't say.",
        f"[tools.{_key(one.value)}]",
    ]
    return lines + [f"{key} = {_value(value)}" for key, value in entry.items()]


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return _quoted(value)


def _quoted(text: str) -> str:
    """A basic string of TOML. Whatever is not plain is escaped: the diff is shown to a person."""
    plain = (char if char.isascii() and char.isprintable() and char not in '"\\' else _escaped(char) for char in text)
    return f'"{"".join(plain)}"'


def _escaped(char: str) -> str:
    return f"\\{char}" if char in '"\\' else f"\\U{ord(char):08X}"


def _by_hand(lists: Mapping[tuple[str, str], list[str]], tools: Iterable[Proposal]) -> Iterable[str]:
    for (table, key), values in sorted(lists.items()):
        yield f"  [{table}] {key}: add {', '.join(map(_quoted, values))}"
    for one in tools:
        yield from (f"  {line}" for line in _table(one))
