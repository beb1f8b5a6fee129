"""Entries of a manifest as TOML that a person reads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def comment(text: str) -> str:
    """One line of comment: whatever is not printable is escaped, so that no name can begin a line of its own."""
    return "# " + (text if text.isprintable() else ascii(text)[1:-1])


def entry_text(server: str, name: str, entry: Mapping[str, Any]) -> list[str]:
    """The lines of ``[servers.SERVER.tools.NAME]``."""
    lines = [f"[servers.{_key(server)}.tools.{_key(name)}]"]
    for key, value in entry.items():
        if key == "when":
            lines += ["when = [", *(f"    {_value(one)}," for one in value), "]"]
        else:
            lines.append(f"{key} = {_value(value)}")
    return lines


def _key(text: str) -> str:
    return text if _BARE.fullmatch(text) else _string(text)


def _value(value: Any) -> str:
    """TOML of a JSON value, on one line."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(key)} = {_value(one)}" for key, one in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(one) for one in value) + "]"
    return _string(value) if isinstance(value, str) else json.dumps(value)


def _string(text: str) -> str:
    return '"' + "".join(_char(char) for char in text) + '"'


def _char(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if "\ud800" <= char <= "\udfff":
        return "\ufffd"  # half of a character, which TOML has no way to write
    return char if char.isprintable() else f"\\U{ord(char):08x}"
