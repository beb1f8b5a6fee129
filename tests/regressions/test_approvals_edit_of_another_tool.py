"""An approver put a call of another tool in the place of the one that was asked about. It was decided by the legs of
that other tool, which sends nothing, and then handed to the function that the host had at hand: the one that sends.

And of a call that the *provider* runs, only a yes goes back. A person who had changed its arguments to harmless ones
thereby said yes to the ones that the model had written.

Both found by review. An edit is a call of the same tool, and a provider is told yes only about its very own call.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import Answer, Call, Manifest
from interlock.loops import arun_responses, run_responses
from tests.approvals.desk import EVE, YES, Person, Sent, locked, reader


def test_a_harmless_tool_in_its_place_does_not_send() -> None:
    guard, sent = reader(locked(Person(Answer("edit", "kim", Call("calc", EVE))))), Sent()
    outcome = guard.call("send", EVE, run=sent)
    assert (sent.calls, outcome.executed, outcome.tool) == ([], False, "send")
    assert "same tool" in outcome.decision.reasons[0].for_person


MANIFEST = Manifest.parse(
    {
        "version": 1,
        "tools": {"read_mail": {"returns": ["private:mail"], "egress": "none"}},
        "servers": {
            "crm": {
                "tools": {"post": {"returns": [], "egress": "chosen", "destinations": {"to": "email"}}},
            }
        },
    }
)


def _item(name: str, to: str) -> dict[str, Any]:
    arguments = f'{{"to": "{to}"}}'
    return {"type": "mcp_approval_request", "id": name, "server_label": "crm", "name": "post", "arguments": arguments}


@pytest.mark.parametrize("waiting", [False, True], ids=["sync", "async"])
def test_a_provider_is_told_yes_about_its_own_call_only(waiting: bool) -> None:
    harmless = Answer("edit", "kim", Call("post", {"to": "b@corp.example"}, server="crm"))
    for answers, approved in (([harmless, YES, YES], [False, True]), ([YES, YES], [True, True])):
        items = [_item("one", "eve@evil.test"), _item("two", "b@corp.example")]
        replies = iter([{"status": "completed", "output": items}, {"status": "completed", "output": []}])

        class First(Person):
            """The first question is that about eve."""

        person = First(*answers)
        guard = reader(locked(person, manifest=MANIFEST))

        def ask(replies: Any = replies, **_: Any) -> Any:
            return next(replies)

        async def aask(replies: Any = replies, **_: Any) -> Any:
            return next(replies)

        def run(name: str, _: dict[str, Any]) -> str:
            raise AssertionError(name)

        if waiting:
            finished = asyncio.run(arun_responses(aask, guard, run, "Post it."))
        else:
            finished = run_responses(ask, guard, run, "Post it.")
        told = {
            one["approval_request_id"]: one["approve"]
            for one in finished.messages
            if one.get("type") == "mcp_approval_response"
        }
        assert [told["one"], told["two"]] == approved
