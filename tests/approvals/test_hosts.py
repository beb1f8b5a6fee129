"""Proves that approvals work where conversations are kept and where loops run: session files, loops, wrapped tools.

Mutations that this file catches: a session that loses its grants, or takes one up that was used; a loop that does not
ask; a wrapped tool that runs around the question.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interlock import Call, Conversation, Interlock, NotPermitted, Session, tool
from interlock.gate.conversation import SystemClock
from interlock.loops import run_chat
from interlock.model.grants import Status
from tests.approvals.desk import EVE, NO, YES, Person, Sent, locked, reader


def test_t9_a_grant_survives_a_restart_and_its_use_too(tmp_path: Path) -> None:
    path = tmp_path / "s" / "talk.jsonl"
    path.parent.mkdir(mode=0o700)
    lock = locked(clock=SystemClock())  # type: ignore[arg-type]  # a clock all the same
    session = Session.create(path, Conversation())
    guard = lock.guard(session.conversation)
    guard.call("read_mail", {}, run=lambda: "mail")
    question = guard.propose(Call("send", EVE, "a")).questions["a"].id
    guard.answer(question, "approve", by="kim")
    session.close()

    session = Session.load(path)
    guard = lock.guard(session.conversation)
    assert guard.conversation.state.questions[question].status is Status.GRANTED
    ticket = guard.propose(Call("send", EVE, "b"))
    assert ticket.allowed
    session.close()  # the process ends before the call is made

    session = Session.load(path)
    guard = lock.guard(session.conversation)
    again = guard.propose(Call("send", EVE, "c"))
    assert not again.allowed
    assert {code for code, _ in again.questions["c"].reasons} == {"in_doubt", "leak_guard"}
    session.close()


def test_a_loop_asks_the_approver() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "send", "arguments": '{"to": "eve@evil.test"}'}}
    replies = [
        {"choices": [{"message": {"role": "assistant", "tool_calls": [call]}, "finish_reason": "tool_calls"}]},
        {"choices": [{"message": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"}]},
    ]
    for answer, executed in ((YES, True), (NO, False)):
        script, person, sent = iter(replies), Person(answer), Sent()
        guard = reader(locked(person))

        def ask(script: Any = script, **_: Any) -> Any:
            return next(script)

        def run(_: str, given: dict[str, Any], sent: Sent = sent) -> str:
            return sent(**given)

        finished = run_chat(ask, guard, run, "Send it.")
        assert (finished.reason, finished.outcomes[0].executed, len(person.asked)) == ("done", executed, 1)
        assert len(sent.calls) == executed
        text = finished.messages[2]["content"]
        assert text == "sent" if executed else "a person refused" in text


def test_a_wrapped_tool_is_asked_about_too() -> None:
    ran: list[str] = []

    @tool(returns=[], reads=["private:crm"], egress="chosen", destinations={"to": "email"})
    def post(to: str, subject: str = "hello", at: Any = object()) -> str:  # noqa: B008 - a default that is no JSON
        """Posts."""
        ran.append(to)
        return "posted"

    person = Person(YES, NO)
    lock: Interlock = locked(person, manifest=None, tools=[post], settings={"leak_guard": "ask"})
    with lock.guard(Conversation(clock=lock._world[1])):
        assert post("eve@evil.test") == "posted"
        with pytest.raises(NotPermitted, match="refused"):
            post("eve@evil.test")
    assert ran == ["eve@evil.test"]
    assert person.asked[0].payload == {
        "to": "eve@evil.test",
        "subject": "hello",
        "at": "(a default that is no JSON value)",
    }
