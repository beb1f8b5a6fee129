"""An error of a port that was passed on as it is became its own cause.

`raise error from error` makes a chain without an end: a reporter that walks `__cause__` never returns, and the cycle
keeps every frame alive.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import Bug, Call, Conversation, MemoryJournal
from interlock.errors import Conflict, EngineUnavailable, JournalUnavailable
from interlock.gate import steps
from interlock.gate.drivers import adrive, drive
from tests.worlds import Fault, PortsWorld, guard_in, rules

ALLOW = [Call("read_mail", {"folder": "inbox"}, "a")]


@pytest.mark.parametrize(
    "error", [Bug, JournalUnavailable, EngineUnavailable, Conflict, KeyboardInterrupt, asyncio.CancelledError]
)
@pytest.mark.parametrize("asynchronous", [True, False])
def test_no_error_is_its_own_cause(error: type[BaseException], asynchronous: bool) -> None:
    for at in range(1, 5):
        raised = error("injected")
        world = PortsWorld(MemoryJournal(), Fault(at, lambda raised=raised: raised))
        conversation = Conversation.new()
        guard_in(world, conversation)
        flow: Any = steps.propose(conversation.id, ALLOW, rules(world.engine))
        try:
            if asynchronous:
                adrive(flow, world).send(None)
            else:
                drive(flow, world)
        except BaseException as found:
            assert found is raised or isinstance(found, StopIteration)  # noqa: PT017 - some are refusals
        assert raised.__cause__ is not raised
        assert raised.__context__ is not raised
