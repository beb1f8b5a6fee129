"""Proves T9 under a crowd: of five hundred consumers of one grant exactly one gets it, in threads and in processes.

Mutations that this file catches: a consumption that is written beside the decision and not with it; a decision that is
not held against the version that it was made under.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.model.entries import Consumed, Decided, decode
from interlock.ports import Store
from interlock.stores.memory_store import MemoryStore
from interlock.stores.sqlite import SqliteStore
from tests.approvals.consumers import NAMESPACE, opened, prepared, raced

CONSUMERS = 500
# On a database the losers wait for each other's locks, so the whole crowd comes in deep runs.
PROCESSES, THREADS, EACH = (5, 10, 10) if os.environ.get("INTERLOCK_PROFILE") == "deep" else (2, 8, 3)


def judged(store: Store, conversation: str, ran: list[str], count: int) -> None:
    entries = [decode(one.body) for one in store.within(NAMESPACE).entries(conversation)]
    consumed = [one for one in entries if isinstance(one, Consumed)]
    sends = [one for one in entries if isinstance(one, Decided) and one.tool == "send"]
    assert len(ran) == 1, f"{len(ran)} of {count} calls ran on one yes"
    assert [one.question for one in consumed] == ran
    assert [one.number for one in sends if one.verdict == "allow"] == [consumed[0].number]
    # Who loses 256 races, or waits too long for a busy database, is refused unheard; nobody is heard twice.
    assert 1 < len(sends) <= count + 1


def test_threads_on_a_store_in_memory() -> None:
    store = MemoryStore()
    conversation = prepared(store)
    judged(store, conversation, raced(store, conversation, 100, CONSUMERS // 100), CONSUMERS)


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "postgres":
        yield request.getfixturevalue("postgres_server").fresh()
        return
    SqliteStore.migrate(tmp_path / "p" / "s.db")
    yield str(tmp_path / "p" / "s.db")


def test_processes_on_a_database(where: str) -> None:
    store = opened(where)
    conversation = prepared(store)
    command = [sys.executable, "-m", "tests.approvals.consumers", where, conversation, str(THREADS), str(EACH)]
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(PROCESSES)
    ]
    for one in running:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in running:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    ran = [grant for one in running for grant in json.loads(one.communicate(timeout=300)[0])]
    judged(store, conversation, ran, PROCESSES * THREADS * EACH)
    store.close()
