"""T18: each fork that was alive made every later entry dearer, although none of them waited for anything.

A fork is told of late results of calls that were under way when it was made. Most are made when nothing is; they were
asked all the same, at every entry: with 3,000 forks an append took fifty times as long.
"""

from __future__ import annotations

from time import perf_counter

from interlock import Call, Conversation, Guard, ToolResult
from tests.regressions.stage import interlock


def seconds(guard: Guard) -> float:
    """The best of five times for twenty entries."""
    found = []
    for _ in range(5):
        began = perf_counter()
        for _ in range(20):
            guard.admit("text", labels=["private:mail"], source="mail")
        found.append(perf_counter() - began)
    return min(found)


def test_t18_forks_that_wait_for_nothing_cost_nothing() -> None:
    guard = interlock().guard(Conversation.new())
    waiting = guard.propose(Call("read_file", {"path": "plan.txt"}, "read"))
    told = guard.conversation.fork()
    guard.observe(waiting, "read", ToolResult("x", labels=("private:credentials",)))
    assert "private:credentials" in told.taint
    forks = [told, *(guard.conversation.fork() for _ in range(2000))]
    assert seconds(guard) < 8 * seconds(interlock().guard(Conversation.new()))
    assert len(forks) == 2001
