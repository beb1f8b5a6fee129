"""One turn of a guarded conversation in a store, in a process that can be struck between any two statements.

Holds no test. Run as a script it is a nursery: it imports everything once, and forks one process per line of its
standard input, so that hundreds of deaths take seconds.

    KIND WHERE CONVERSATION PLACE       (PLACE: number of the statement boundary at which to die; 0 lives)

For each it prints what the turn was told before it died, a line each, and then `end` and the wait status. A tool says
that it runs before anything else; a label is `shown` once the guard has given the result to the model.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from interlock import Interlock, Manifest, Message, ToolUse
from interlock.conversations import Conversations
from interlock.model.messages import Role, ToolAnswer
from interlock.ports import Store
from interlock.stores import sqlite

NAMESPACE = "crash"
MANIFEST = Manifest.parse(
    {
        "version": 1,
        "tools": {
            "fetch": {"returns": ["untrusted:web"], "egress": "chosen", "destinations": {"url": "url"}},
            "read": {"returns": ["private:files"], "egress": "none"},
        },
    }
)


class Boundaries:
    """Counts the places before and after each statement, and acts at one of them."""

    def __init__(self, at: int, act: Callable[[], None]) -> None:
        self.count = 0
        self.at = at
        self.act = act
        self.persistent = False

    def pass_one(self) -> None:
        self.count += 1
        if self.count == self.at or (self.persistent and 0 < self.at < self.count):
            self.act()

    def around(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            self.pass_one()
            reply = method(*arguments, **options)
            self.pass_one()
            return reply

        return counted


def opened(kind: str, where: str, boundaries: Boundaries, durability: Any = "full") -> Store:
    """The store, with every statement of its from now on between two boundaries."""
    if kind == "sqlite":

        class Counted(sqlite.sqlite3.Connection):
            execute = boundaries.around(sqlite.sqlite3.Connection.execute)
            executemany = boundaries.around(sqlite.sqlite3.Connection.executemany)

        plain = sqlite.sqlite3.connect
        store: Store = sqlite.SqliteStore(where, durability=durability)
        store.database.close()  # type: ignore[attr-defined]  # its connection is not counted
        sqlite.sqlite3.connect = lambda *given, **options: plain(*given, **options, factory=Counted)  # type: ignore[assignment,call-overload]
        store.database._closed = False  # type: ignore[attr-defined]
        store.database.rows("SELECT 1")  # type: ignore[attr-defined]
        sqlite.sqlite3.connect = plain
        boundaries.count = 0
        return store
    import psycopg

    from interlock.stores.postgres import PostgresStore

    store = PostgresStore(where, plaintext=True, connections=1)
    store.database.rows("SELECT 1")
    for owner, name in ((psycopg.Connection, "execute"), (psycopg.Cursor, "executemany")):
        setattr(owner, name, boundaries.around(getattr(owner, name)))
    boundaries.count = 0
    return store


def turn(store: Store, conversation: str, tell: Callable[[str], None]) -> None:
    """Two guarded calls and the end of the turn."""
    stored = Conversations(store, NAMESPACE).load(conversation)
    guard = Interlock(manifest=MANIFEST, journal=store).guard(stored.conversation)
    number = stored.turn

    def fetch(url: str) -> str:
        tell("ran fetch")
        return "a page"

    def read() -> str:
        tell("ran read")
        return "a file"

    outcomes = [guard.call("fetch", {"url": f"https://a{number}.example/"}, run=fetch)]
    if outcomes[0].result is not None:
        tell("shown untrusted:web")
    outcomes.append(guard.call("read", {}, run=read))
    if outcomes[1].result is not None:
        tell("shown private:files")
    uses = [ToolUse(f"call_{place}", name, {}) for place, name in enumerate(("fetch", "read"))]
    answers = [ToolAnswer(use.id, outcome.for_model) for use, outcome in zip(uses, outcomes, strict=True)]
    stored.conversation.push(Message.assistant(f"turn {number}", *uses))
    stored.conversation.push(Message(Role.TOOL, tuple(answers)))
    stored.conversation.push(Message.assistant(f"done {number}"))
    stored.conversation.rewrite([*stored.conversation.messages[:-3], Message.assistant(f"done {number}")])
    tell(f"rewritten {number}")
    stored.conversation.push(Message.user(f"more {number}"))
    stored.record_turn()
    tell(f"turn {number}")


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    for line in sys.stdin:
        kind, where, conversation, place = line.rstrip("\n").split("\t")
        child = os.fork()
        if not child:
            boundaries = Boundaries(int(place), _die)
            store = opened(kind, where, boundaries)
            turn(store, conversation, lambda text: os.write(1, f"{text}\n".encode()) and None)
            os.write(1, f"places {boundaries.count}\n".encode())
            os._exit(0)
        _, status = os.waitpid(child, 0)
        os.write(1, f"end {status}\n".encode())


if __name__ == "__main__":
    main()
