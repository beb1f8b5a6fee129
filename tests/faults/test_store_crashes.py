"""Proves that a turn that dies between any two statements loses nothing that was acknowledged (T2, T8, T10, T16).

A process runs guarded turns on a stored conversation and is killed with SIGKILL, at every place before and after each
statement in turn. What it had said by then is held against what is loaded afterwards. (T9 waits for approvals.)

Mutations that it is shown to catch: the head moved in a transaction of its own, running before the decision is
committed, messages stored after the entries were committed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.conversations import Conversations
from interlock.model.calls import call_digest
from interlock.model.canonical import canonical
from interlock.model.entries import Decided
from interlock.model.tools import ToolId
from interlock.ports import Store
from interlock.stores.sqlite import SqliteStore
from interlock.testing.stores import check_chain
from tests.faults.turns_that_die import NAMESPACE
from tests.servers import Server

ROOT = Path(__file__).resolve().parents[2]
# In the deep profile every place, again and again; otherwise some of them, another choice per store.
DEEP = os.environ.get("INTERLOCK_PROFILE") == "deep"
DEATHS = 300
# Every address that a turn may send to was typed, so that later turns may fetch as well.
TYPED = "go " + " ".join(f"https://a{turn}.example/" for turn in range(9))
KINDS = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


class Nursery:
    def __init__(self, module: str = "tests.faults.turns_that_die") -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", module],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, kind: str, where: str, conversation: str, place: int) -> tuple[list[str], int]:
        """What a turn was told before it ended, and how it ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{kind}\t{where}\t{conversation}\t{place}\n")
        self._process.stdin.flush()
        told: list[str] = []
        for line in self._process.stdout:
            if line.startswith("end "):
                return told, int(line.split()[1])
            told.append(line.rstrip("\n"))
        raise AssertionError("the nursery is gone")

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    running = Nursery()
    yield running
    running.close()


def opened(kind: str, where: str) -> Store:
    if kind == "sqlite":
        return SqliteStore(where)
    from interlock.stores.postgres import PostgresStore

    return PostgresStore(where, plaintext=True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no SIGKILL on this system")
@pytest.mark.parametrize("kind", KINDS)
def test_killed_between_any_two_statements(
    kind: str, nursery: Nursery, tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    if kind == "sqlite":
        where = str(tmp_path / "store.db")
        SqliteStore.migrate(where)
    else:
        server: Server = request.getfixturevalue("postgres_server")
        where = server.fresh()
    store = opened(kind, where)
    conversations = Conversations(store, NAMESPACE)
    places = _places(nursery, kind, where, conversations.new(TYPED).id)
    assert places > 40, "the boundaries are not counted"
    step = 1 if DEEP else 5
    rounds = -(-DEATHS // places) if DEEP else 1
    deaths = 0
    for one in range(rounds):
        for place in range(1 + (one if DEEP else len(kind)) % step, places + 1, step):
            stored = conversations.new(TYPED)
            # Each second one has a whole turn behind it, so that there is something to lose.
            before = nursery.run(kind, where, stored.id, 0)[0] if place % 2 else []
            told, status = nursery.run(kind, where, stored.id, place)
            assert os.WIFSIGNALED(status), f"it lived at place {place}: {told}"
            assert os.WTERMSIG(status) == signal.SIGKILL
            deaths += 1
            judge(store, stored.id, [*before, *told])
    if DEEP:
        assert deaths >= DEATHS
        with capsys.disabled():
            print(f"\n{kind}: {deaths} processes killed at {places} places")
    store.close()


def _places(nursery: Nursery, kind: str, where: str, conversation: str) -> int:
    told, status = nursery.run(kind, where, conversation, 0)
    assert status == 0, told
    return int(told[-1].split()[1])


def judge(store: Store, conversation: str, told: list[str]) -> None:
    view = store.within(NAMESPACE)
    entries = check_chain(view, conversation)
    # T16: never less than what was in context.
    shown = {line.split()[1] for line in told if line.startswith("shown ")}
    exposure = set(view.state(conversation).exposure)
    assert shown <= exposure, f"loaded {exposure}, the model had seen {shown}"
    # T8: whatever ran had an entry that allows exactly it.
    for name, arguments in (("fetch", [{"url": f"https://a{turn}.example/"} for turn in range(9)]), ("read", [{}])):
        digests = {call_digest(ToolId("", name), canonical(one)) for one in arguments}
        allows = [one for one in entries if isinstance(one, Decided) and one.verdict == "allow" and one.call in digests]
        ran = told.count(f"ran {name}")
        assert len(allows) >= ran, f"{name} ran {ran} times, allowed {len(allows)} times"
        if ran:
            wanted = {"fetch": "untrusted:web", "read": "private:files"}[name]
            assert wanted in exposure, f"{name} ran, and {wanted} is not in the exposure"
    # The end of a turn is whole or not there; what was acknowledged is there.
    loaded = Conversations(store, NAMESPACE).load(conversation)
    assert not loaded.damage
    texts = [one.text for one in loaded.conversation.messages]
    assert texts[0] == TYPED
    for line in told:
        what, _, number = line.partition(" ")
        if what == "turn":
            assert f"more {number}" in texts, f"the end of turn {number} was acknowledged, and is gone"
        if what == "rewritten":
            assert f"done {number}" in texts, f"rewrite {number} was acknowledged, and is gone"
    ever = [one.text for one in loaded.messages_ever()]
    for text in texts:
        if text.startswith("done "):
            number = text.split()[1]
            assert f"turn {number}" in ever, "a rewrite is there without what it replaced"
    assert set(texts) <= set(ever)
