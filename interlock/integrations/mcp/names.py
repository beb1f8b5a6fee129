"""How tools and prompts of several servers are called in one list.

With one server its names stand as they are. With several each is ``server__tool``. No name is ever taken apart again:
what a client asks for is looked up (case 71), and names of servers hold no ``__``, so no two tools have the same name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

SEPARATOR = "__"


def shown(server: str, name: str, *, alone: bool) -> str:
    """The name by which a client knows a tool or prompt."""
    return name if alone else f"{server}{SEPARATOR}{name}"


def table(names: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, str]]:
    """Shown name → (server, name). What two servers would both be called by is in it for neither."""
    alone = len(names) == 1
    found: dict[str, tuple[str, str]] = {}
    twice: set[str] = set()
    for server, tools in names.items():
        for name in tools:
            key = shown(server, name, alone=alone)
            if key in found:
                twice.add(key)
            found[key] = (server, name)
    return {key: pair for key, pair in found.items() if key not in twice}
