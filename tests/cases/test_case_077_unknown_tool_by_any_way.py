"""Case 77: every call of a certain shape is waved through at once, whoever the tool is.

Names that a proxy makes, names in a family that is trusted, names of a declared server's other tools: what nobody
declared is unknown, says so under its own code whatever else objects, has every leg, and is entered by no way in. The
honest twin is declared, and by the same name on another server it is unknown again.
"""

from __future__ import annotations

import pytest

from interlock import Call, Conversation, Interlock, MemoryJournal, NotPermitted, tool
from tests.cases.desk import did, fresh, locked

NAMES = [
    ("mcp__files__read", ""),
    ("mcp__", ""),
    ("read", "files"),
    ("calc", "files"),
    ("functions.calc", ""),
    ("calc2", ""),
    ("_calc", ""),
    ("calc.", ""),
    ("a/calc", ""),
    ("calc:latest", ""),
]


@pytest.mark.parametrize(("name", "server"), NAMES)
def test_attack_it_says_that_nobody_declared_it(name: str, server: str) -> None:
    guard = fresh()
    ran: list[str] = []
    for arguments in ({}, {"known": True}):
        outcome = guard.call(name, arguments, run=lambda **_: ran.append("ran"), server=server)
        assert outcome.verdict.value == "ask"
        assert "unknown_tool" in outcome.decision.codes
        assert "declare_tool" in outcome.decision.candidates
    assert ran == []
    assert not guard.conversation.exposure


@pytest.mark.parametrize("settings", [{}, {"trifecta": "ask", "open_channel": "ask", "leak_guard": "off"}])
def test_attack_no_setting_and_no_company_lets_it_run(settings: dict[str, str]) -> None:
    guard = fresh(locked(settings=settings), "Use get_time please.")
    for calls in ([Call("get_time")], [Call("calc"), Call("get_time"), Call("get_time", {}, "", "x")]):
        ticket = guard.propose(*calls)
        assert {one.call.tool.name for one in ticket.allowed.values()} <= {"calc"}
        asked = [one for one in ticket.outcomes.values() if one.tool.endswith("get_time")]
        assert asked
        assert all("unknown_tool" in one.decision.codes for one in asked)
    assert "unknown_tool" in guard.preview(Call("get_time")).codes


def test_attack_a_function_that_this_interlock_was_not_given() -> None:
    ran: list[str] = []

    @tool(returns=[], egress="none")
    def clock() -> str:
        """The time."""
        ran.append("ran")
        return "12:00"

    with fresh(), pytest.raises(NotPermitted, match=r"unknown_tool|credential_egress"):
        clock()
    assert ran == []


def test_honest_the_declared_one() -> None:
    @tool(returns=[], egress="none", server="clocks")
    def clock() -> str:
        """The time."""
        return "12:00"

    guard = Interlock(tools=[clock], journal=MemoryJournal()).guard(Conversation.new())
    assert guard.call("clock", run=clock, server="clocks").result == "12:00"
    assert "unknown_tool" in did(guard, "clock").decision.codes
