"""``deny = ["a/b"]`` missed a local tool of that name, and a denied tool was shown as malformed.

A slash in a denial was always read as server and tool, so a local tool called ``a/b`` could not be denied, and where a
server ``a`` had a tool ``b``, the local one went on. And the outcome and the journal of a tool that a workspace denies
said ``(malformed)`` in place of its name, as if the call had been unreadable. Now every tool that is meant is denied,
and a denied tool keeps its name.
Mutations that this file catches: ``narrow`` reading only one of the two meanings; ``_frozen`` giving no tool with the
refusal; ``_entry`` without the proposal's tool.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock import Call, Conversation
from interlock.errors import Misconfigured
from interlock.model.entries import Decided
from tests.regressions.stage import call, last, says
from tests.regressions.workspaces import OPERATOR, loaded

LOCAL = '[tools."a/b"]\nreturns = []\negress = "none"\n'
REMOTE = '[servers.a.tools.b]\nreturns = []\negress = "none"\n'
CALLS = {LOCAL: Call("a/b", {}), REMOTE: Call("b", {}, server="a")}


@pytest.mark.parametrize("declared", [(LOCAL,), (REMOTE,), (LOCAL, REMOTE)], ids=["local", "remote", "both"])
def test_every_tool_that_is_meant_is_denied(declared: tuple[str, ...], tmp_path: Path) -> None:
    for denial, verdict in (("a/b", "deny unavailable"), ("calc", "allow")):
        built = loaded(tmp_path, f'deny = ["{denial}"]\n', operator=OPERATOR + "".join(declared))
        for one in declared:
            assert says(built.guard(Conversation.new()).preview(CALLS[one])) == verdict


@pytest.mark.parametrize("name", ["b", "a", "b/a", "a/b/c", "/b", ""])
def test_a_denial_of_nothing_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="deny: no tool is called"):
        loaded(tmp_path, f'deny = ["{name}"]\n', operator=OPERATOR + LOCAL + REMOTE)


def test_a_denied_tool_keeps_its_name(tmp_path: Path) -> None:
    guard = loaded(tmp_path, 'deny = ["calc", "a/b"]\n', operator=OPERATOR + REMOTE).guard(Conversation.new())
    outcome = call(guard, "calc")
    assert outcome.decision.codes == ("unavailable",)
    assert (outcome.tool, last(guard, Decided).tool, last(guard, Decided).server) == ("calc", "calc", "")
    guard.propose(Call("b", {}, server="a"))
    assert (last(guard, Decided).tool, last(guard, Decided).server) == ("b", "a")


def test_honest_a_malformed_call_is_shown_as_malformed(tmp_path: Path) -> None:
    guard = loaded(tmp_path, "").guard(Conversation.new())
    assert guard.preview(Call("no\x00name", {})).codes == ("invalid_call",)
    guard.propose(Call("no\x00name", {}))
    assert last(guard, Decided).tool == "(malformed)"
