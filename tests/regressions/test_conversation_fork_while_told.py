"""T2: a fork that was made while other forks were being told of a late result was never told of anything.

Forks that wait for nothing any more are left out of the list of those to tell. The list was read, shortened and put
back without the lock under which a new fork is added to it, so a fork that was added in between was gone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from interlock import Call, Conversation, ToolResult
from tests.regressions.stage import interlock

CARRIED = ToolResult("password", labels=("private:credentials",))


class Watched:
    """Stands for the reference to a fork, and lets another thread act whenever this one looks at it."""

    def __init__(self, fork: Conversation, meanwhile: Callable[[], None]) -> None:
        self._fork, self._meanwhile, self._looker = fork, meanwhile, threading.get_ident()
        self.threads: list[threading.Thread] = []

    def __call__(self) -> Conversation:
        if threading.get_ident() == self._looker:
            self.threads.append(threading.Thread(target=self._meanwhile))
            self.threads[-1].start()
            self.threads[-1].join(0.3)  # it may have to wait for us
        return self._fork


def test_t2_a_fork_made_while_another_is_told_is_told_as_well() -> None:
    guard = interlock().guard(Conversation.new())
    conversation = guard.conversation
    first = guard.propose(Call("read_file", {"path": "a.txt"}, "a"))
    second = guard.propose(Call("read_file", {"path": "b.txt"}, "b"))
    told, made = conversation.fork(), list[Conversation]()
    (heir,) = conversation._heirs
    heir.fork = watched = Watched(told, lambda: made.append(conversation.fork()))  # type: ignore[assignment]
    guard.observe(first, "a", ToolResult("x"))
    heir.fork = lambda: told  # type: ignore[assignment]
    for thread in watched.threads:
        thread.join(30)
    assert len(made) == len(watched.threads) >= 2
    guard.observe(second, "b", CARRIED)
    for one in (conversation, told, *made):
        assert "private:credentials" in one.taint
