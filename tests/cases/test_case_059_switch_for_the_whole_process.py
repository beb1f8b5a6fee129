"""Case 59: one conversation's yes flips a switch that all conversations share.

A call that is in order in one conversation is proposed in another one at the same moment, through the same Interlock
and the same wrapped function, and is refused there: nothing about it is kept in the process, in the function or in the
tool's spec. The honest twin is the first conversation.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest

from interlock import Interlock, MemoryJournal, NotPermitted, tool
from tests.cases.desk import EVIL, armed, did, fresh, got, shared


def test_attack_another_conversation_is_still_refused_meanwhile() -> None:
    clean, tainted = fresh(shared()), armed(shared())
    seen: list[tuple[str, str]] = []

    def while_it_runs(**_: Any) -> str:
        seen.append(got(did(tainted, "send_email", EVIL)))
        return "sent"

    before = shared().manifest.digest
    assert clean.call("send_email", EVIL, run=while_it_runs).executed
    assert seen == [("deny", "trifecta")]
    assert shared().manifest.digest == before


def test_attack_a_permit_of_one_thread_is_not_anothers() -> None:
    entered, go_on = threading.Event(), threading.Event()

    @tool(returns=[], egress="chosen", destinations={"to": "email"})
    def post(to: str) -> str:
        """Posts."""
        entered.set()
        assert go_on.wait(10)
        return "posted"

    guard = fresh(Interlock(tools=[post], journal=MemoryJournal()))
    outcomes: list[Any] = []
    thread = threading.Thread(target=lambda: outcomes.append(guard.call("post", {"to": "kim@corp.example"}, run=post)))
    thread.start()
    assert entered.wait(10)
    with pytest.raises(NotPermitted):
        post("kim@corp.example")
    go_on.set()
    thread.join(10)
    assert [one.result for one in outcomes] == ["posted"]


def test_attack_a_guard_around_one_thread_is_not_around_another() -> None:
    @tool(returns=[], egress="none")
    def clock() -> str:
        """The time."""
        return "12:00"

    errors: list[BaseException] = []

    def elsewhere() -> None:
        try:
            clock()
        except BaseException as error:
            errors.append(error)

    with fresh(Interlock(tools=[clock], journal=MemoryJournal())):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join(10)
        assert clock() == "12:00"
    assert [type(error) for error in errors] == [NotPermitted]


def test_honest_the_first_conversation() -> None:
    assert did(fresh(shared()), "send_email", EVIL).executed
