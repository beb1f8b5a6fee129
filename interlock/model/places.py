"""Places in JSON values, named by paths: keys with dots between them, ``*`` for every key.

Lists are walked by themselves, so that one path finds a single value and a list of them. A path of one key that holds
dots itself is found too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias

Segments: TypeAlias = tuple[str, ...]


@lru_cache(maxsize=4096)
def segments(path: str) -> Segments:
    return tuple(path.split("."))


def at(value: Any, path: str) -> Iterator[Any]:
    """All values at a path, lists opened on the way but not at its end."""
    if isinstance(value, dict) and "." in path and path in value:
        yield value[path]
    yield from _at(value, segments(path))


def _at(value: Any, path: Segments) -> Iterator[Any]:
    if not path:
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _at(item, path)
    elif isinstance(value, dict):
        if path[0] == "*":
            for item in value.values():
                yield from _at(item, path[1:])
        elif path[0] in value:
            yield from _at(value[path[0]], path[1:])


def meets_scalar(value: Any, path: str) -> bool:
    """Does something stand on the way that is no object, so that the path leads nowhere although there is something?"""
    return _meets(value, segments(path)[:-1])


def _meets(value: Any, path: Segments) -> bool:
    if isinstance(value, list):
        return any(_meets(item, path) for item in value)
    if not isinstance(value, dict):
        return value is not None
    if not path:
        return False
    below = value.values() if path[0] == "*" else [value[path[0]]] if path[0] in value else []
    return any(_meets(item, path[1:]) for item in below)


def leaves(value: Any, path: Segments = ()) -> Iterator[tuple[Segments, Any]]:
    """Every value that holds no other, with the keys that lead to it. Empty lists and objects are leaves too."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, (*path, str(key)))
    elif isinstance(value, list | tuple) and value:
        for item in value:
            yield from leaves(item, path)
    else:
        yield path, value


def covers(pattern: Segments, path: Segments) -> bool:
    """Does the pattern name this place or one above it? ``**`` at its end names everything below."""
    if pattern and pattern[-1] == "**":
        pattern = pattern[:-1]
    return len(pattern) <= len(path) and all(one in ("*", other) for one, other in zip(pattern, path, strict=False))


def leads(pattern: Segments, path: Segments) -> bool:
    """Does the pattern name a place below this one?"""
    return len(pattern) > len(path) and all(one in ("*", other) for one, other in zip(pattern, path, strict=False))


def loose(value: Any, patterns: Iterable[str]) -> Iterator[str]:
    """Places in an object that carry something and that no pattern names, as dotted paths, each once.

    A key that no pattern knows carries something by itself: its name is text.
    """
    known = frozenset(patterns)
    rest = {key: item for key, item in value.items() if key not in known}  # most arguments are named by themselves
    if not rest:
        return
    split = [segments(one) for one in known]
    found: dict[str, None] = {}
    for key, item in rest.items():
        for path in _loose(item, (key,), split):
            found[".".join(path)] = None
    yield from found


def _loose(value: Any, path: Segments, patterns: list[Segments]) -> Iterator[Segments]:
    if any(covers(one, path) for one in patterns):
        return
    deeper = [one for one in patterns if leads(one, path)]
    if not deeper:
        if len(path) > 1 or carries(value):
            yield path
    elif isinstance(value, list):
        for item in value:
            yield from _loose(item, path, patterns)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _loose(item, (*path, key), patterns)
    elif carries(value):
        yield path


def carries(value: Any) -> bool:
    """Can a value carry text or a number? Truth values and nothing can't."""
    if isinstance(value, list):
        return any(carries(item) for item in value)
    if isinstance(value, dict):
        return bool(value)
    return value is not None and value != "" and not isinstance(value, bool)
