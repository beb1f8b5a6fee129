"""Worlds for tests: ports that record everything, fail where told, and never sleep. Proves nothing by itself.

A :class:`Tape` is what really happened, written by the ports and by the tools themselves, not by the code under test:
what was appended, what was executed, in which order. The judgements at the end of this file read only the tape.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from interlock import Call, Conversation, Guard, Manifest, MemoryJournal, Outcome, ToolResult
from interlock.gate import steps
from interlock.gate.drivers import World
from interlock.gate.effects import Effect
from interlock.gate.guard import Active
from interlock.gate.steps import Rules
from interlock.model.calls import call_digest
from interlock.model.canonical import canonical
from interlock.model.entries import Entry, Observed, Ruling, decode
from interlock.model.tools import ToolId
from tests.strategies import reference


class FixedClock:
    """Tells a time that grows by a second at each look, from the same start in every test."""

    def __init__(self) -> None:
        self._now = datetime(2026, 11, 29, 12, tzinfo=UTC)

    def now(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now


class NoFiles:
    """A file system without links: paths resolve to themselves below a root."""

    def resolve(self, paths: Sequence[str]) -> tuple[str, ...]:
        return tuple(path if path.startswith("/") else f"/home/u/{path}" for path in paths)


MANIFEST = Manifest.parse(
    {
        "version": 1,
        "tools": {
            "read_mail": {"returns": ["private:mail", "untrusted:mail"], "egress": "none"},
            "read_note": {"returns": ["private:notes"], "egress": "none"},
            "fetch": {"returns": ["untrusted:web"], "egress": "chosen", "destinations": {"url": "url"}},
            "send": {"returns": [], "egress": "chosen", "destinations": {"to": "email"}, "content": ["body"]},
            "share": {
                "returns": [],
                "reads": ["private:files"],
                "opens": ["egress:share"],
                "egress": "none",
                "effect": "write",
                "destinations": {"path": "path"},
            },
            "write": {
                "returns": [],
                "egress": "none",
                "effect": "write",
                "destinations": {"path": "path"},
                "content": ["text"],
            },
            "now": {"returns": [], "egress": "none"},
        },
    }
)


def rules(engine: Any = None, manifest: Manifest = MANIFEST, **changes: Any) -> Rules:
    """What the steps know: the shipped controls in plain Python (fast), unless an engine brings its own.

    Answers are not remembered here, so that every question is an effect that can fail; tests/laws/test_look.py is
    about what is remembered.
    """
    engine = engine or reference()
    known: dict[str, Any] = {
        "manifest": manifest,
        "controls": engine.controls,
        "revision": engine.revision,
        "engine": engine.name,
        "operator": frozenset(),
        "protected": ("/home/u/policies",),
    }
    return Rules(**{**known, **changes})


def carry_out(conversation: str, calls: Sequence[Call], known: Rules) -> Generator[Effect, Any, list[Outcome]]:
    """Propose a round, run what is allowed in order, observe each; one outcome per call, in order (T17)."""
    ticket = yield from steps.propose(conversation, calls, known)
    outcomes: list[Outcome] = []
    for call_id, outcome in ticket.outcomes.items():
        allowed = ticket.allowed.get(call_id)
        outcomes.append(outcome if allowed is None else (yield from steps.run_allowed(conversation, allowed)))
    return outcomes


class SaysEngine:
    """An engine that gives what a function gives: bytes, text, or an exception."""

    name = "says"
    revision = "says"

    def __init__(self, controls: Mapping[str, Any], say: Callable[[bytes], Any]) -> None:
        self.controls = controls
        self._say = say

    def evaluate(self, document: bytes) -> Any:
        return self._say(document)


# --- faults -----------------------------------------------------------------------------------------------------------


@dataclass
class Fault:
    """Fails effect number ``at`` (from 1), or all from there on.

    ``after``: the effect happens first, and only its reply is lost: a commit whose acknowledgement never came.
    """

    at: int
    error: Callable[[], BaseException]
    persistent: bool = False
    after: bool = False
    hit: int = 0

    def strikes(self, number: int) -> bool:
        struck = number >= self.at if self.persistent else number == self.at
        self.hit += struck
        return struck


@dataclass
class Tape:
    """What really happened, and the place where it fails.

    Attributes:
        effects: names of all effects in order, with the execution of tools among them.
        runs: digest of every execution, and how many entries the journal held when it began.
        shown: contents that tools returned.
    """

    fault: Fault | None = None
    effects: list[str] = field(default_factory=list)
    runs: list[tuple[str, int]] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    asleep: bool = False

    def tick(self, name: str, happen: Callable[[], Any]) -> Any:
        """One effect: record it, and let it fail if it is its turn."""
        if self.asleep:
            return happen()
        self.effects.append(name)
        struck = self.fault is not None and self.fault.strikes(len(self.effects))
        if struck and not self.fault.after:
            raise self.fault.error()
        reply = happen()
        if struck:
            raise self.fault.error()
        return reply


class StepsWorld(World):
    """The world with a tape, and a fault that is thrown into the steps as it is, without the border's translation."""

    __slots__ = ("memory", "tape")

    def __init__(self, memory: MemoryJournal, fault: Fault | None = None, engine: Any = None) -> None:
        World.__init__(self, engine or reference(), memory, FixedClock(), NoFiles())
        object.__setattr__(self, "memory", memory)
        object.__setattr__(self, "tape", Tape(fault))

    def answer(self, effect: Effect) -> Any:
        return self.tape.tick(type(effect).__name__, lambda: World.answer(self, effect))

    def over(self, journal: Any, pages: Any = None) -> Any:
        return _over(self, journal, pages)


class AsyncWorld(StepsWorld):
    """The same world through awaitables."""

    __slots__ = ()

    def answer(self, effect: Effect) -> Any:
        async def later() -> Any:
            await asyncio.sleep(0)
            return StepsWorld.answer(self, effect)

        return later()


class PortsWorld(World):
    """The world whose *ports* fail: errors cross the border, where foreign ones are translated."""

    __slots__ = ("memory", "tape")

    def __init__(self, memory: MemoryJournal, fault: Fault | None = None, engine: Any = None) -> None:
        tape = Tape(fault)
        ports = (engine or reference(), memory, FixedClock(), NoFiles())
        World.__init__(self, *(_Port(tape, port) for port in ports))
        object.__setattr__(self, "memory", memory)
        object.__setattr__(self, "tape", tape)

    def over(self, journal: Any, pages: Any = None) -> Any:
        return _over(self, journal, pages)


def _over(world: Any, journal: Any, pages: Any) -> Any:
    """The same world, tape and all, over another journal."""
    other = object.__new__(type(world))
    for name in (*World.__slots__, "memory", "tape"):
        object.__setattr__(other, name, getattr(world, name))
    object.__setattr__(other, "journal", journal)
    object.__setattr__(other, "pages", {} if pages is None else pages)
    return other


class _Port:
    """Any port, with each method behind the fault."""

    def __init__(self, tape: Tape, port: Any) -> None:
        self._tape, self._port = tape, port

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if not callable(found):
            return found
        return lambda *args, **kwargs: self._tape.tick(name, lambda: found(*args, **kwargs))


# --- tools ------------------------------------------------------------------------------------------------------------


class Tools:
    """All tools of the manifest at once, as ``run(name, arguments)``: writes the tape itself."""

    def __init__(self, world: Any, conversation: str, external: Mapping[str, bool] | None = None) -> None:
        self._world, self._conversation = world, conversation
        self._external = dict(external or {})

    def __call__(self, name: str, arguments: dict[str, Any]) -> Any:
        return self._world.tape.tick("Execute", lambda: self._happen(name, arguments))

    def _happen(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        exact = call_digest(ToolId("", name), canonical(arguments))
        tape: Tape = self._world.tape
        tape.runs.append((exact, len(entries(self._world, self._conversation))))
        content = f"content {len(tape.runs)} of {name}"
        tape.shown.append(content)
        return ToolResult(content, external=self._external.get(name, True))


class AsyncTools(Tools):
    """The same tools as a coroutine function."""

    async def __call__(self, name: str, arguments: dict[str, Any]) -> Any:
        await asyncio.sleep(0)
        return Tools.__call__(self, name, arguments)


# --- reading back -----------------------------------------------------------------------------------------------------


def entries(world: Any, conversation: str) -> list[Entry]:
    """All entries of a conversation as the journal holds them, read behind the fault's back."""
    return [_decoded(sealed.body) for sealed in world.memory.entries(conversation)]


_decoded = lru_cache(maxsize=4096)(decode)


def guard_in(world: Any, conversation: Conversation, using: Rules | None = None) -> Guard:
    """A guard in a test's world; the fault sleeps while the conversation is bound."""
    world.tape.asleep = True
    active = Active(world, using or rules(world.engine))
    guard = Guard(conversation, lambda: active, lambda outcome: None)
    world.tape.asleep = False
    return guard


# --- judging ----------------------------------------------------------------------------------------------------------


def assert_nothing_ran_unrecorded(world: Any, conversation: str) -> None:
    """T8: before each execution there is one more entry that allows exactly its digest than there were executions."""
    journal = entries(world, conversation)
    counted: dict[str, int] = {}
    for exact, held in world.tape.runs:
        counted[exact] = counted.get(exact, 0) + 1
        allows = [entry for entry in journal[:held] if isinstance(entry, Ruling) and entry.runs and entry.call == exact]
        assert len(allows) >= counted[exact], "a call was executed that no entry before it allows"


def assert_nothing_was_forgotten(world: Any, conversation: str, external: Mapping[str, bool] | None = None) -> None:
    """T2, T8: the exposure afterwards holds every label of every executed call."""
    held = world.memory.state(conversation).exposure.labels
    ran = [exact for exact, _ in world.tape.runs]
    for entry in entries(world, conversation):
        if isinstance(entry, Ruling) and entry.call in ran and entry.runs:
            spec = MANIFEST.spec(ToolId(entry.server, entry.tool))
            wanted = {*spec.private, *spec.opens}
            if (external or {}).get(entry.tool, True):
                wanted |= set(spec.untrusted)
            assert wanted <= held, f"labels of {entry.tool} were forgotten: {wanted - held}"


def assert_shown_is_observed(world: Any, conversation: str, outcomes: Sequence[Any]) -> None:
    """What the model may see of a tool was journalled first: content without an outcome entry is withheld."""
    observed = sum(isinstance(entry, Observed) for entry in entries(world, conversation))
    visible = [content for content in world.tape.shown if any(content in one.for_model for one in outcomes)]
    assert len(visible) <= observed, "content reached the model without an entry"
