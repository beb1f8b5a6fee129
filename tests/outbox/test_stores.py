"""Proves T8 and T9 of the outbox on real stores: of many processes one sends, and a crash is never repeated.

Mutations that this file catches: a delivery that is written beside the decision and not with it; a draft of another
namespace that can be seen; a body that stays when the draft is over; a crash that is tried again.
"""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from interlock import Conversation, Guard
from interlock.cli import cli
from interlock.conversations import Conversations
from interlock.errors import Refused
from interlock.gate.conversation import SystemClock
from interlock.gate.outbox import Outbox
from interlock.model.entries import Taken, decode
from interlock.ports import Store
from interlock.stores.sqlite import SqliteStore
from tests.approvals.consumers import opened
from tests.approvals.desk import EVE, Sent
from tests.outbox.box import Runs, only, staging

SENDERS = 4 if os.environ.get("INTERLOCK_PROFILE") == "deep" else 2


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "postgres":
        yield request.getfixturevalue("postgres_server").fresh()
        return
    SqliteStore.migrate(tmp_path / "p" / "s.db")
    yield str(tmp_path / "p" / "s.db")


@pytest.fixture
def store(where: str) -> Iterator[Store]:
    found = opened(where)
    yield found
    found.close()


def drafted(store: Store, *bodies: str, namespace: str = "default") -> tuple[Guard, Outbox]:
    lock = staging(store, SystemClock())  # type: ignore[arg-type]  # a clock all the same
    guard = lock.guard(Conversations(store, namespace).new("hello").conversation)
    guard.call("read_mail", {}, run=lambda: "mail")
    for body in bodies:
        assert guard.call("send", {**EVE, "body": body}, run=Sent()).decision.drafted
    return guard, lock.outbox(namespace)


def sender(where: str, file: Path, rounds: int, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.outbox.senders", where, str(file), str(rounds), *more]
    started = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    return started


def go(*started: subprocess.Popen[str]) -> None:
    for one in started:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    for one in started:
        one.communicate(timeout=120)


def test_of_several_processes_one_sends(store: Store, where: str, tmp_path: Path) -> None:
    bodies = [f"draft {number}" for number in range(6)]
    guard, box = drafted(store, *bodies, "stays")
    for one in box.drafts()[:-1]:
        box.release(one, "kim")
    file = tmp_path / "ran"
    go(*(sender(where, file, 3) for _ in range(SENDERS)))
    assert sorted(file.read_text().splitlines()) == [f"send {one}" for one in bodies]
    entries = [decode(one.body) for one in store.within("default").entries(guard.conversation.id)]
    assert len([one for one in entries if isinstance(one, Taken)]) == len(bodies)
    assert json.loads(only(box).draft.arguments)["body"] == "stays"


def test_a_crash_in_the_middle_is_in_doubt_and_not_repeated(store: Store, where: str, tmp_path: Path) -> None:
    guard, box = drafted(store, "once")
    box.release(only(box), "kim")
    file = tmp_path / "ran"
    dying = sender(where, file, 1, "die")
    go(dying)
    assert dying.returncode == 9
    go(sender(where, file, 2))
    runs = Runs()
    assert box.deliver(runs) == []
    assert only(box).kept.status.value == "taken"
    resumed = Conversations(store, "default").load(guard.conversation.id, alone=True)
    assert resumed.conversation.state.drafts[only(box).draft.id].status.value == "in doubt"
    assert (box.deliver(runs), runs.calls) == ([], [])
    assert file.read_text().splitlines() == ["send once"]


def test_a_namespace_sees_its_own(store: Store) -> None:
    _, ours = drafted(store, "ours")
    _, theirs = drafted(store, "theirs", namespace="team")
    name = only(ours).draft.id
    with pytest.raises(Refused):
        theirs.find(name)
    with pytest.raises(Refused):
        theirs.reject(name, "kim")
    ours.release(only(ours), "kim")
    runs = Runs()
    assert theirs.deliver(runs) == []
    assert [one.outcome.executed for one in ours.deliver(runs)] == [True]
    assert [one[1]["body"] for one in runs.calls] == ["ours"]


def test_erasing_a_conversation_erases_its_drafts(store: Store) -> None:
    guard, _ = drafted(store, "secret")
    store.within("default").erase(guard.conversation.id, at="2026-11-30T12:00:00.000000Z")
    assert staging(store)._drafts.stored("default") == ()
    assert guard.conversation.state.drafts  # that there was one stays on record


# --- the command line ---------------------------------------------------------------------------------------------

CONFIGURATION = """
version = 1
[journal]
kind = "sqlite"
path = "private/store.db"
durability = "process"
[outbox]
tools = ["send"]
[settings]
leak_guard = "ask"
[tools.read_mail]
returns = ["private:mail"]
egress = "none"
[tools.send]
returns = []
egress = "chosen"
destinations = { to = "email" }
content = ["body"]
"""


@pytest.fixture
def configured(tmp_path: Path) -> Iterator[tuple[Path, Guard, Outbox]]:
    from interlock import Interlock

    file = tmp_path / "interlock.toml"
    file.write_text(CONFIGURATION)
    SqliteStore.migrate(tmp_path / "private" / "store.db")
    lock = Interlock.load(file)
    guard = lock.guard(Conversation(namespace="team"))
    guard.call("read_mail", {}, run=lambda: "mail")
    assert guard.call("send", {**EVE, "body": "a\u202eb"}, run=Sent()).decision.drafted
    yield file, guard, lock.outbox("team")
    store: Any = lock.journal
    store.close()


def run(*arguments: str, file: Path) -> Any:
    return CliRunner().invoke(cli, ["outbox", *arguments, "--config", str(file)])


def test_the_commands(configured: tuple[Path, Guard, Outbox]) -> None:
    file, _, box = configured
    shown = only(box)
    name = shown.draft.id
    assert run("list", file=file).exit_code == 2  # whose?
    assert "empty" in run("list", "--namespace", "other", file=file).stderr
    assert name in run("list", "--namespace", "team", file=file).stdout
    listed = json.loads(run("list", "--namespace", "team", "--json", file=file).stdout)
    assert [(one["draft"], one["status"]) for one in listed["drafts"]] == [(name, "drafted")]
    text = run("show", name, "--namespace", "team", file=file).stdout
    assert "body (3 characters, 1 of them invisible and escaped here): a\\u{202e}b" in text
    assert f"Digest {shown.digest}" in text
    raw = run("show", name, "--namespace", "team", "--raw", file=file)
    assert raw.stdout_bytes == shown.draft.arguments.encode()
    assert json.loads(raw.stdout_bytes) == {**EVE, "body": "a\u202eb"}
    assert run("show", name, "--namespace", "other", file=file).exit_code == 2
    headless = run("release", name, "--namespace", "team", file=file)
    assert (headless.exit_code, "no terminal" in headless.stderr) == (2, True)
    wrong = run("release", name, "--namespace", "team", "--shown", "sha256:0", file=file)
    assert (wrong.exit_code, "is not the digest" in wrong.stderr) == (2, True)
    done = run("release", name, "--namespace", "team", "--shown", shown.digest, "--by", "kim", file=file)
    assert (done.exit_code, "is released" in done.stderr) == (0, True)
    runs = Runs()
    assert [one.outcome.executed for one in box.deliver(runs)] == [True]
    gone = run("reject", name, "--namespace", "team", file=file)
    assert (gone.exit_code, "is not one draft" in gone.stderr) == (2, True)


def test_what_has_entered_since_needs_another_look(configured: tuple[Path, Guard, Outbox]) -> None:
    file, guard, box = configured
    digest = only(box).digest
    guard.admit("x", labels=["untrusted:web"], source="web")
    name = only(box).draft.id
    stale = run("release", name, "--namespace", "team", "--shown", digest, file=file)
    assert (stale.exit_code, "show it again" in stale.stderr) == (2, True)
    assert "untrusted:web" in run("show", name, "--namespace", "team", file=file).stdout
    denied = run("release", name, "--namespace", "team", "--shown", only(box).digest, file=file)
    assert (denied.exit_code, "the policy denies it now (trifecta" in denied.stderr) == (2, True)
    assert run("reject", name[:7], "--namespace", "team", "--by", "kim", file=file).exit_code == 0
    assert box.drafts() == []


@pytest.mark.parametrize(("typed", "status"), [("yes\n", "released"), ("no\n", "drafted"), ("\n\x04", "drafted")])
def test_at_a_terminal(configured: tuple[Path, Guard, Outbox], typed: str, status: str) -> None:
    file, _, box = configured
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "interlock.cli", "outbox", "release", only(box).draft.id, "--namespace", "team"]
    started = subprocess.Popen(
        [*command, "--config", str(file)], stdin=slave, stderr=slave, stdout=subprocess.DEVNULL, close_fds=True
    )
    os.close(slave)
    seen = ""
    while "Release? [yes, no]" not in seen:
        seen += os.read(master, 4096).decode()
    assert "eve@evil.test" in seen
    os.write(master, typed.encode())
    assert started.wait(30) == (0 if status == "released" else 1)
    os.close(master)
    assert only(box).kept.status.value == status
