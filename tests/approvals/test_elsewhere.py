"""Proves that a person in another process answers by the store, and that nothing but the journal says so.

Mutations that this file catches: a body that was exchanged and is shown; a namespace that may be left out; an answer to
a question that is over; a question that is kept when it is closed.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from interlock import Conversation, Guard, Interlock
from interlock.approvals.elsewhere import Desk, Elsewhere
from interlock.cli import cli
from interlock.errors import Misconfigured, Refused, Tampered
from interlock.gate.conversation import SystemClock
from interlock.stores.sql_questions import SqlQuestions
from interlock.stores.sqlite import SqliteStore
from tests.approvals.desk import EVE, KIM, Sent, locked


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "private" / "store.db"
    SqliteStore.migrate(file)
    return file


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(path, durability="process")
    yield opened
    opened.close()


def guarded(store: SqliteStore, namespace: str = "default") -> tuple[Interlock, Guard]:
    lock = locked(Elsewhere(store, poll=0.02), store, SystemClock())  # type: ignore[arg-type]  # a clock all the same
    guard = lock.guard(Conversation(namespace=namespace))
    assert guard.call("read_mail", {}, run=lambda: "mail").executed
    return lock, guard


def in_thread(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    came: list[Any] = []
    thread = threading.Thread(target=lambda: came.append(work()), daemon=True)
    thread.start()
    return thread, came


def waiting(desk: Desk, count: int = 1) -> list[Any]:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        found = desk.open_questions()
        if len(found) >= count:
            return found
        time.sleep(0.02)
    raise AssertionError("nothing was asked")


def desk_of(store: SqliteStore, namespace: str = "default") -> Desk:
    return Desk(store, SqlQuestions(store), SystemClock(), namespace)


def run(*arguments: str, path: Path) -> Any:
    return CliRunner().invoke(cli, ["approvals", *arguments, "--store", str(path)])


def test_another_process_approves(store: SqliteStore, path: Path) -> None:
    _, guard = guarded(store)
    sent = Sent()
    thread, came = in_thread(lambda: guard.call("send", EVE, run=sent))
    (question, _), *_ = waiting(desk_of(store))
    command = [sys.executable, "-m", "interlock.cli", "approvals", "approve", question.id[:8]]
    more = ["--namespace", "default", "--store", str(path), "--shown", question.digest, "--by", "kim"]
    done = subprocess.run([*command, *more], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    thread.join(20)
    assert (came[0].executed, sent.calls) == (True, [EVE])
    assert guard.conversation.state.questions[question.id].by == "kim"
    assert desk_of(store).open_questions() == []
    assert SqlQuestions(store).waiting("default") == ()  # what a call would send is not kept longer than it must be


def test_the_commands(store: SqliteStore, path: Path) -> None:
    _, guard = guarded(store, "team")
    thread, came = in_thread(lambda: guard.call("send", {**EVE, "body": "a\u202eb"}, run=Sent()))
    (question, _), *_ = waiting(desk_of(store, "team"))
    assert run("list", path=path).exit_code == 2  # whose questions?
    assert "nothing waits" in run("list", "--namespace", "other", path=path).stderr
    listed = run("list", "--namespace", "team", path=path)
    assert question.id in listed.stdout
    assert "leak_guard" in listed.stdout
    as_json = json.loads(run("list", "--namespace", "team", "--json", path=path).stdout)
    assert [one["question"] for one in as_json["questions"]] == [question.id]
    shown = run("show", question.id, "--namespace", "team", path=path).stdout
    assert "body (3 characters, 1 of them invisible and escaped here): a\\u{202e}b" in shown
    assert f"Digest {question.digest}" in shown
    assert run("show", question.id, "--namespace", "other", path=path).exit_code == 2
    assert json.loads(run("show", question.id, "--namespace", "team", "--json", path=path).stdout)["question"]
    headless = run("approve", question.id, "--namespace", "team", path=path)
    assert (headless.exit_code, "no terminal" in headless.stderr) == (2, True)
    wrong = run("approve", question.id, "--namespace", "team", "--shown", "sha256:0", path=path)
    assert (wrong.exit_code, "not the digest" in wrong.stderr) == (2, True)
    line = json.loads(run("watch", "--namespace", "team", "--json", "--for", "0.2", path=path).stdout)
    assert line["question"] == question.id
    assert run("refuse", question.id, "--namespace", "team", "--by", "kim", path=path).exit_code == 0
    thread.join(20)
    assert came[0].decision.code == "refused"
    again = run("refuse", question.id, "--namespace", "team", path=path)
    assert (again.exit_code, "not open" in again.stderr) == (2, True)


def test_a_kept_question_that_was_exchanged_is_not_shown(store: SqliteStore, path: Path) -> None:
    _, guard = guarded(store)
    asked = guard.propose(*[_call(EVE, "a"), _call(KIM, "b")]).questions
    database = sqlite3.connect(path)
    harmless = asked["b"].encode()
    database.execute("UPDATE interlock_questions SET body = ? WHERE question = ?", (harmless, asked["a"].id.encode()))
    database.commit()
    database.close()
    with pytest.raises(Tampered, match="not the one that was asked"):
        desk_of(store).find(asked["a"].id)
    assert "not the one" in run("approve", asked["a"].id, "--namespace", "default", "--shown", "x", path=path).stderr


def test_what_is_over_can_not_be_answered(store: SqliteStore) -> None:
    _, guard = guarded(store)
    desk = desk_of(store)
    question = guard.propose(_call(EVE, "a")).questions["a"]
    found, _ = desk.find(question.id)
    guard.admit("x", labels=["untrusted:web"], source="https://evil.test/")
    with pytest.raises(Refused, match="void: labels grew"):
        desk.answer(found, "approve", "kim")
    with pytest.raises(Refused, match="void: labels grew"):
        desk.find(question.id)
    assert desk.open_questions() == []


def test_nobody_answers_in_time(store: SqliteStore) -> None:
    lock = locked(Elsewhere(store, poll=0.02), store, SystemClock(), approvals=_short())  # type: ignore[arg-type]
    guard = lock.guard(Conversation())
    guard.call("read_mail", {}, run=lambda: "mail")
    outcome = guard.call("send", EVE, run=Sent())
    assert outcome.decision.code == "no_answer"
    assert "in time" in outcome.decision.reasons[0].for_person


def test_deleting_a_conversation_deletes_what_it_asked(store: SqliteStore) -> None:
    _, guard = guarded(store)
    guard.propose(_call(EVE, "a"))
    assert SqlQuestions(store).waiting("default")
    store.within("default").erase(guard.conversation.id, at="2026-11-29T12:00:00.000000Z")
    assert not SqlQuestions(store).waiting("default")


def test_a_configuration_names_the_channel(tmp_path: Path) -> None:
    text = (
        'version = 1\n[settings]\nleak_guard = "ask"\n[tools.read_mail]\nreturns = ["private:mail"]\negress = "none"\n'
        '[tools.send]\nreturns = []\negress = "chosen"\ndestinations = { to = "email" }\ncontent = ["body"]\n'
    )
    file = tmp_path / "interlock.toml"
    approvals = '[approvals]\nchannel = "store"\nseconds = 1\nexpiry = 60\n'
    file.write_text(text + approvals)
    with pytest.raises(Misconfigured, match="needs a store"):
        Interlock.load(file)
    file.write_text(text + '[journal]\nkind = "sqlite"\npath = "data/s.db"\n' + approvals)
    SqliteStore.migrate(tmp_path / "data" / "s.db")
    lock = Interlock.load(file)
    guard = lock.guard(Conversation())
    guard.call("read_mail", {}, run=lambda: "mail")
    assert guard.call("send", EVE, run=Sent()).decision.code == "no_answer"
    lock.journal.close()  # type: ignore[union-attr]  # a store
    file.write_text(text + '[journal]\nkind = "memory"\n[approvals]\nchannel = "pause"\n')
    guard = Interlock.load(file).guard(Conversation())
    guard.call("read_mail", {}, run=lambda: "mail")
    question = guard.propose(_call(EVE, "a")).questions["a"]
    guard.answer(question.id, "approve")
    assert guard.propose(_call(EVE, "b")).allowed
    file.write_text(text + '[journal]\nkind = "memory"\n[approvals]\nchannel = "yes"\n')
    with pytest.raises(Misconfigured, match="approvals"):
        Interlock.load(file)


def _call(arguments: dict[str, Any], call_id: str) -> Any:
    from interlock import Call

    return Call("send", arguments, call_id)


def _short() -> Any:
    from interlock import ApprovalRules

    return ApprovalRules(seconds=0.1, expiry=60)
