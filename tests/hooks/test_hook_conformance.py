"""Proves that nothing leaks through an agent whose only gate is its hook: random scripts, judged by what tools received
(T2, T8, T17), for each host's protocol.

Mutation that it is shown to catch: a result that is not observed, a fork that is clean, a task that counts as typed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import pytest

from interlock import Call
from interlock.hooks import Desk
from interlock.testing import Kit, check_integration
from tests.hooks.hosts import NAMES, Ran, Session, ask, place
from tests.ids import stable

EXAMPLES = 400 if os.environ.get("INTERLOCK_PROFILE") == "deep" else 12
NUMBERS = count(1)


class Hooked:
    """A coding agent: it runs whatever its hook does not refuse."""

    def __init__(self, desk: Desk, host: str, kit: Kit, *, session: Session | None = None, agent: str = "") -> None:
        self.desk, self.host, self.kit = desk, host, kit
        desk._locks[host] = self._lock()
        self.extra = {"agent_id": agent} if agent else {}
        self.answered: list[str] = []
        self.session = session or Session(host, f"c-{next(NUMBERS)}")
        if session is None:
            self._ask(self.session.begin())

    def _lock(self) -> Any:
        found = _LOCKS.get((id(self.desk), self.host))
        if found is None:
            found = _LOCKS[id(self.desk), self.host] = self.kit.interlock(journal=self.desk._store)
        return found

    def _ask(self, event: dict[str, Any]) -> Ran:
        return ask(self.desk, self.host, {**event, **self.extra})

    def say(self, text: str) -> None:
        # A sub-agent is spoken to by its session, whose hook hears it.
        assert ask(self.desk, self.host, self.session.prompt(text)).verdict == "allow"

    def act(self, calls: Sequence[Call]) -> list[tuple[str, str]]:
        shown = []
        for call in calls:
            arguments = dict(call.arguments)
            before = self._ask(self.session.before(call.name, arguments))
            self.answered.append(f"toolu_{self.session.name}_{self.session.calls}")
            if before.verdict != "allow":
                shown.append((call.id, before.out or before.err))
                continue
            result = self.kit.run(call.name, arguments)
            assert self._ask(self.session.after(call.name, arguments, result)).verdict == "allow"
            shown.append((call.id, result))
        return shown

    def resume(self) -> None:
        self._ask(self.session.begin("resume"))

    def join(self, child: Hooked) -> None:
        pass

    def fork(self) -> Hooked:
        if not self.answered or self.host not in ("claude-code", "codex"):
            fork = Session(self.host, f"c-{next(NUMBERS)}")
            made = type(self)(self.desk, self.host, self.kit, session=fork)
            made._ask(fork.begin("resume"))
            return made
        path = self.kit.folder / f"fork-{next(NUMBERS)}.jsonl"
        fork = Session(self.host, f"c-{next(NUMBERS)}", str(path))
        made = type(self)(self.desk, self.host, self.kit, session=fork)
        made.answered = [*self.answered]
        made._ask(fork.prompt("go on"))
        lines = [{"type": "tool_result", "tool_use_id": one} for one in self.answered]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(one) + "\n" for one in lines))
        made._ask(fork.event("Stop"))  # whatever comes after the prompt settles where it came from
        return made

    def taint(self) -> list[str]:
        conversation, _ = self.desk._index.conversation(self.host, self.session.name)
        return [str(one) for one in self.desk._store.within(self.host).state(conversation).exposure]


class HookedSession(Hooked):
    """The session itself. Only it starts sub-agents here: no host says whose sub-agent one is, so one that a sub-agent
    started begins as the session stands (ADR 0098)."""

    def spawn(self, task: str) -> Hooked:
        number = next(NUMBERS)
        child = Hooked(self.desk, self.host, self.kit, session=self.session, agent=f"a-{number}")
        child._ask(self.session.event(NAMES[self.host][2], prompt=task))
        return child


_LOCKS: dict[tuple[int, str], Any] = {}


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    with place() as here:
        opened = here.desk()
        yield opened
        opened.close()
        _LOCKS.clear()


@pytest.mark.parametrize("host", ["claude-code", "codex", "gemini", "cursor"], ids=stable)
def test_nothing_leaks_through_a_hook(desk: Desk, host: str) -> None:
    report = check_integration(lambda kit: HookedSession(desk, host, kit), examples=EXAMPLES)
    assert report.examples >= 5
