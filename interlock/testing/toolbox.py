"""The tools of the property suite, and gates over them: a small world with every leg in it.

What each tool brings is written down twice, in the manifest and in :data:`TOOLS`, so that the second can judge what the
code makes of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final

from interlock.gate.drivers import World
from interlock.gate.guard import Active, Guard
from interlock.gate.steps import Rules
from interlock.model.manifest import Manifest
from interlock.model.settings import parse_settings
from interlock.model.tools import ToolId, ToolSpec
from interlock.policy.bundle import assemble
from interlock.policy.embedded import EmbeddedEngine
from interlock.policy.reference import ReferenceEngine
from interlock.policy.sources import shipped_sources
from interlock.ports import Engine, Journal
from interlock.stores.memory import MemoryJournal


@dataclass(frozen=True, slots=True)
class Brings:
    """What one tool of the suite brings, and the argument that says where it sends."""

    certain: frozenset[str] = frozenset()
    untrusted: frozenset[str] = frozenset()
    receiver: str = ""


TOOLS: Final[Mapping[str, Brings]] = {
    "read_notes": Brings(frozenset({"private:notes"})),
    "fetch": Brings(frozenset(), frozenset({"untrusted:web"}), "url"),
    "read_mail": Brings(frozenset({"private:mail"}), frozenset({"untrusted:mail"})),
    "send": Brings(receiver="to"),
    "share": Brings(frozenset({"private:files", "egress:share"})),
    "clock": Brings(),
}

MANIFEST: Final = Manifest.parse(
    {
        "version": 1,
        "tools": {
            "read_notes": {"returns": ["private:notes"], "egress": "none"},
            "fetch": {"returns": ["untrusted:web"], "egress": "chosen", "destinations": {"url": "url"}},
            "read_mail": {"returns": ["private:mail", "untrusted:mail"], "egress": "none"},
            "send": {"returns": [], "egress": "chosen", "destinations": {"to": "email"}, "content": ["body"]},
            "share": {
                "returns": [],
                "reads": ["private:files"],
                "opens": ["egress:share"],
                "egress": "none",
                "effect": "write",
                "destinations": {"path": "path"},
            },
            "clock": {"returns": [], "egress": "none"},
        },
    },
    "the property suite's tools",
)

# Somebody that the person may name, and somebody that only hostile content names.
FRIEND: Final = "bob@corp.example"
STRANGER: Final = "eve@evil.example"
PAGE: Final = "http://corp.example/"
HOSTILE_PAGE: Final = "http://evil.example/"
PEOPLE: Final = (STRANGER, FRIEND)


def specs(names: Iterable[str]) -> tuple[ToolSpec, ...]:
    """The specs of some tools of the suite."""
    return tuple(MANIFEST.spec(ToolId("", name)) for name in names)


class Ticking:
    """A clock that begins at the same time always and goes on by a second at each look."""

    def __init__(self) -> None:
        self._now = datetime(2026, 11, 29, 12, tzinfo=UTC)

    def now(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now


class NoLinks:
    """A file system in which every path is what it seems."""

    def resolve(self, paths: Sequence[str]) -> tuple[str, ...]:
        return tuple(path if path.startswith("/") else f"/home/agent/{path}" for path in paths)


@cache
def reference(items: tuple[tuple[str, str], ...] = ()) -> ReferenceEngine:
    """The shipped controls in plain Python, under some settings: the oracle."""
    settings = parse_settings(dict(items))
    controls = EmbeddedEngine(assemble(shipped_sources(), settings)).controls
    return ReferenceEngine(settings.model_dump(), controls)


def guards(journal: Journal | None = None, engine: Engine | None = None) -> Callable[[Any], Guard]:
    """Makes guards of conversations over the suite's tools, all in one journal."""
    engine = engine or reference()
    rules = Rules(MANIFEST, engine.controls, engine.revision, engine.name, frozenset(), ())
    active = Active(World(engine, journal or MemoryJournal(), Ticking(), NoLinks()), rules)
    return lambda conversation: Guard(conversation, lambda: active, lambda _outcome: None)
