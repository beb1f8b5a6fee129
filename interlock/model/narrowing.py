"""Argument-aware legs: the narrower spec of a call whose arguments prove that it can do less.

A condition holds only for what was parsed and verified; for anything else the tool keeps every leg. A command line is
never looked at: the beginning of one says nothing about its end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from interlock.model.destinations import normalised
from interlock.model.origins import is_under
from interlock.model.places import at, meets_scalar
from interlock.model.tools import Condition, Kind, ToolSpec

MAX_VALUES: Final = 256
# No program takes it for an option or the name of a file of options: a letter, digit, dot or wildcard comes first.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.*?][\x20-\x7e]*")


def narrowed(spec: ToolSpec, arguments: Mapping[str, Any], resolved: Mapping[str, tuple[str, ...]]) -> ToolSpec:
    """The spec of the first clause whose conditions all hold, or the tool's own.

    Args:
        resolved: for every text of :func:`places_to_resolve`, what the file system makes of it.
    """
    for clause in spec.when:
        if all(_holds(one, arguments, resolved) for one in clause.conditions):
            return clause.spec
    return spec


def places_to_resolve(spec: ToolSpec, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Texts of path conditions: they hold only below the root after links are resolved."""
    found: set[str] = set()
    for clause in spec.when:
        for one in clause.conditions:
            if one.test == "under":
                found.update(value for value in _values(arguments, one.argument) if _plain_path(value))
    return tuple(sorted(found))


def _holds(one: Condition, arguments: Mapping[str, Any], resolved: Mapping[str, tuple[str, ...]]) -> bool:
    if one.test == "absent":
        whole = dict(arguments)
        return not meets_scalar(whole, one.argument) and all(
            value in (None, "", [], {}) for value in at(whole, one.argument)
        )
    values = _values(arguments, one.argument)
    if not values or len(values) > MAX_VALUES:
        return False
    match one.test:
        case "is":
            return all(
                any(type(value) is type(wanted) and value == wanted for wanted in one.values) for value in values
            )
        case "host":
            return all(_below(_host(value), one.values) for value in values)
        case "domain":
            return all(_below(_mail_domain(value), one.values) for value in values)
        case "under":
            return all(_stays_under(value, one.values, resolved) for value in values)
        case "plain":
            return all(isinstance(value, str) and _PLAIN.fullmatch(value) is not None for value in values)
        case "sql":
            from interlock.model.sql import only_does  # loaded late: the parser takes longer than all of Interlock

            return all(only_does(value, one.values, one.more, one.dialect) for value in values)
        case _:
            return False


def _values(arguments: Mapping[str, Any], path: str) -> list[Any]:
    found: list[Any] = []
    for value in at(dict(arguments), path):
        found.extend(value if isinstance(value, list) and value else [value])
    return found


def _host(value: Any) -> str | None:
    normal = normalised(Kind.URL, value) if isinstance(value, str) and "://" in value else None
    return None if normal is None else urlsplit(normal).hostname


def _mail_domain(value: Any) -> str | None:
    normal = normalised(Kind.EMAIL, value) if isinstance(value, str) else None
    return None if normal is None else normal.rpartition("@")[2]


def _below(name: str | None, allowed: Iterable[str]) -> bool:
    """By labels: ``corp.example`` holds ``api.corp.example`` and not ``evilcorp.example``."""
    return name is not None and any(name == one or name.endswith(f".{one}") for one in allowed)


def _plain_path(value: Any) -> bool:
    return isinstance(value, str) and normalised(Kind.PATH, value) is not None and not value.startswith("~")


def _stays_under(value: Any, roots: Iterable[str], resolved: Mapping[str, tuple[str, ...]]) -> bool:
    if not _plain_path(value):
        return False
    real = resolved.get(value, ())
    return bool(real) and all(any(is_under(path, root) for root in roots) for path in real)
