"""What a set of controls can see of a document: the key under which its answer may be remembered.

Evaluation is a pure function of the parts of the document that the loaded controls read, and the loader knows those
paths. Two documents that look alike have the same answer under the same revision. Most calls of a conversation look
alike: the shipped controls read no argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from interlock.model.canonical import pack

Paths: TypeAlias = Sequence[tuple[str | None, ...]]
_SHAPE: Final = "\x00shape"


def look(document: Any, paths: Paths) -> bytes:
    """The parts of a document at some paths, as canonical bytes.

    A missing key looks different from null, and a value of another type different from both.
    """
    return pack([_plain(document, path) for path in paths])


def _plain(document: Any, path: tuple[str | None, ...]) -> Any:
    """The short way for a path that names every key of a well-formed document; anything odd takes the long one."""
    value = document
    try:
        for part in path:
            value = value[part]
    except (KeyError, TypeError, IndexError):
        return _at(document, path)
    return value


def _at(value: Any, path: tuple[str | None, ...]) -> Any:
    for place, part in enumerate(path):
        if part is None:
            rest = path[place + 1 :]
            if isinstance(value, list):
                return [_at(item, rest) for item in value]
            if isinstance(value, dict):
                return {key: _at(item, rest) for key, item in value.items()}
            return ["\x00scalar", value]
        if part == _SHAPE:
            return None
        if not isinstance(value, dict) or part not in value:
            return ["\x00missing", None if isinstance(value, dict | list) else value]
        value = value[part]
    return value
