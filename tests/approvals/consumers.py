"""Many consumers of one grant, as a program of its own: each process has threads, each thread a guard. Holds no test.

``python -m tests.approvals.consumers WHERE CONVERSATION THREADS EACH`` prints how many calls were allowed, by question.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

from interlock import Call, Guard
from interlock.conversations import Conversations
from interlock.gate.conversation import SystemClock
from interlock.ports import Store
from tests.approvals.desk import EVE, locked

NAMESPACE = "default"


def opened(where: str) -> Store:
    if where.startswith("postgresql:") or "=" in where:
        from interlock.stores.postgres import PostgresStore

        return PostgresStore(where, plaintext=True, durability="process")
    from interlock.stores.sqlite import SqliteStore

    return SqliteStore(where, durability="process")


def prepared(store: Store) -> str:
    """A conversation with one grant that nobody has used. Its id."""
    guard = _guard(store, None)
    guard.call("read_mail", {}, run=lambda: "mail")
    question = guard.propose(Call("send", EVE, "first")).questions["first"]
    guard.answer(question.id, "approve", by="kim")
    return guard.conversation.id


def _guard(store: Store, conversation: str | None) -> Guard:
    kept = Conversations(store, NAMESPACE)
    stored = kept.new("send it") if conversation is None else kept.load(conversation)
    return locked(journal=store, clock=SystemClock()).guard(stored.conversation)  # type: ignore[arg-type]


def raced(store: Store, conversation: str, threads: int, each: int) -> list[str]:
    """The grants by which calls were allowed, once for each call that could run."""
    start = threading.Barrier(threads)
    guard = _guard(store, conversation)
    ran: list[str] = []

    def consume(number: int) -> None:
        start.wait(60)
        for turn in range(each):
            ticket = guard.propose(Call("send", EVE, f"t{number}-{turn}"))
            ran.extend(one.decision.grant for one in ticket.allowed.values())

    workers = [threading.Thread(target=consume, args=(number,)) for number in range(threads)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    return ran


def main(arguments: list[str]) -> None:
    where, conversation, threads, each = arguments
    store = opened(where)
    print("ready", flush=True)
    sys.stdin.readline()
    found: Any = raced(store, conversation, int(threads), int(each))
    print(json.dumps(found), flush=True)
    store.close()


if __name__ == "__main__":
    main(sys.argv[1:])
