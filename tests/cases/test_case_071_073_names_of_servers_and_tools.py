"""Cases 71 and 73: two tools whose joined names are the same, and a server that is called like a set of built-in tools.

A joined name `evil__foo__bar` can be taken apart in two ways, and the later server silently gets the earlier one's
rights; a server `files` answers for the agent's own `files`. Identity is the pair of server and name everywhere: in
the manifest, in digests and in permits, in both directions. The honest twin uses both pairs, each for itself.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Call, Conversation, Interlock, Manifest, MemoryJournal, NotPermitted, tool
from interlock.errors import ManifestError
from interlock.model.calls import call_digest
from interlock.model.tools import ToolId
from tests.cases.desk import did, fresh, got, locked

PAIRS = [
    ToolId("evil__foo", "bar"),
    ToolId("evil", "foo__bar"),
    ToolId("evil_", "_x"),
    ToolId("evil", "__x"),
    ToolId("acme_", "status"),
    ToolId("acme", "_status"),
    ToolId("", "evil__foo__bar"),
    ToolId("a", "b/c"),
    ToolId("a.b", "c"),
    ToolId("", "a/b"),
]
QUIET: dict[str, Any] = {"returns": [], "egress": "none"}


def declared(one: ToolId) -> Interlock:
    where = {"servers": {one.server: {"tools": {one.name: QUIET}}}} if one.server else {"tools": {one.name: QUIET}}
    return locked(Manifest.parse({"version": 1, **where}))


@pytest.mark.parametrize("one", PAIRS, ids=str)
def test_attack_no_pair_speaks_for_another(one: ToolId) -> None:
    guard = fresh(declared(one))
    for other in PAIRS:
        if other != one:
            assert got(did(guard, other.name, server=other.server))[0] == "ask", other
            assert call_digest(one, b"{}") != call_digest(other, b"{}")
    assert did(guard, one.name, server=one.server).executed


def test_attack_a_server_called_like_the_agents_own_tools() -> None:
    own = {"read_file": {"returns": ["private:files"], "egress": "none"}}
    theirs = {"read_file": {"returns": ["untrusted:files"], "egress": "none"}}
    lock = locked(Manifest.parse({"version": 1, "tools": own, "servers": {"filesystem": {"tools": theirs}}}))
    mine, other = fresh(lock), fresh(lock)
    did(mine, "read_file")
    did(other, "read_file", server="filesystem")
    assert set(mine.conversation.taint) == {"private:files"}
    assert set(other.conversation.taint) == {"untrusted:files"}
    assert got(did(fresh(lock), "read_file", server="Filesystem")) == ("deny", "invalid_call")
    assert got(did(fresh(lock), "read_file", server="files"))[0] == "ask"


def test_attack_a_permit_for_the_servers_tool_does_not_open_the_own_one() -> None:
    ran: list[str] = []

    @tool(**QUIET)
    def status() -> str:
        """Ours."""
        ran.append("own")
        return "ok"

    manifest = Manifest.parse({"version": 1, "servers": {"acme": {"tools": {"status": QUIET}}}})
    lock = Interlock(manifest=manifest, tools=[status], journal=MemoryJournal())
    guard = lock.guard(Conversation.new())
    outcome = guard.call("status", run=status, server="acme")
    assert isinstance(outcome.error, NotPermitted)
    assert ran == []


def test_attack_a_second_declaration_is_never_a_choice() -> None:
    manifest = Manifest.parse({"version": 1, "tools": {"status": QUIET}})
    with pytest.raises(ManifestError, match="declared twice"):
        manifest.joined(Manifest.parse({"version": 1, "tools": {"status": QUIET}}))
    with pytest.raises(ManifestError, match="differ only by case"):
        manifest.joined(Manifest.parse({"version": 1, "tools": {"Status": QUIET}}))


def test_honest_both_pairs_side_by_side() -> None:
    servers = {"evil__foo": {"tools": {"bar": QUIET}}, "evil": {"tools": {"foo__bar": QUIET}}}
    guard = fresh(locked(Manifest.parse({"version": 1, "servers": servers})))
    ticket = guard.propose(Call("bar", {}, "a", "evil__foo"), Call("foo__bar", {}, "b", "evil"))
    assert list(ticket.allowed) == ["a", "b"]
