"""Proves that the report counts what was recorded: in a store, in saved journals, and in session files.

Mutations that this file catches: a call that ran after a yes counted twice; a yes counted among what a rubber stamp
would have let run; nobody's answer counted as a refusal; a draft counted as unanswered; a damaged record counted.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from interlock import Answer, Call, Conversation, MemoryJournal, Session
from interlock.cli import cli
from interlock.model.approval_report import Report, quantile
from interlock.stores.sqlite import SqliteStore
from tests.approvals.desk import EVE, KIM, NO, YES, Person, Sent, ToldClock, entries, locked, reader


def story(journal: Any = None) -> tuple[Any, Any]:
    """A conversation with a yes after 2 s, a no after 6 s, an edit after 4 s, a yes to that after 3 s, nobody's answer,
    and calls in peace."""
    clock = ToldClock()
    edit = Answer("edit", "kim", Call("send", {**KIM, "body": "less"}))
    person = Person(YES, NO, edit, YES, None)
    waits = iter((2, 6, 4, 3, 30))
    person.meanwhile = lambda _: clock.jump(seconds=next(waits))
    lock = locked(person, journal, clock)
    guard = reader(lock)
    sent = Sent()
    for number, arguments in enumerate((EVE, KIM, {**EVE, "bcc": "x@y.example"}, {**KIM, "bcc": "x@y.example"})):
        guard.call("send", {**arguments, "body": str(number)}, run=sent)
    assert (len(sent.calls), len(person.asked)) == (2, 5)
    return lock, guard


def test_what_is_counted() -> None:
    report = Report()
    report.add(entries(*story()))
    data = report.as_data()
    # read_mail, four sends, and the call that was made instead of one of them
    assert (data["calls"], data["questions"], data["asks per 100 calls"]) == (6, 5, 83.3)
    assert (data["approved"], data["refused"], data["edited"], data["unanswered"]) == (2, 1, 1, 1)
    assert (data["ran after a yes"], data["share approved"]) == (2, 0.5)
    assert data["a rubber stamp would have let run"] == 3
    assert [round(each) for each in (data["seconds to answer"]["p50"], data["seconds to answer"]["p90"])] == [3, 6]
    assert data["tools"]["send"] == {**data["controls"]["leak_guard"]}
    assert set(data["controls"]) == {"leak_guard"}


def test_nobody_to_ask_and_drafts() -> None:
    lock = locked(None, approvals=None, outbox=["write"])
    guard = reader(lock)
    guard.admit("x", labels=["untrusted:web"], source="web")
    guard.call("send", EVE, run=Sent())
    guard.call("write", {"path": "/tmp/x", "text": "x"}, run=Sent())
    box = lock.outbox()
    (shown,) = box.drafts()
    box.release(shown, "kim")
    box.deliver(lambda *_: "done")
    report = Report()
    report.add(entries(lock, guard))
    data = report.as_data()
    assert (data["questions"], data["unanswered"], data["a rubber stamp would have let run"]) == (0, 1, 1)
    assert (data["share approved"], data["seconds to answer"]["p50"]) == (None, None)
    assert data["outbox"] == {"drafted": 1, "released": 1, "rejected": 0, "sent": 1}
    assert data["calls"] == 3  # the delivery is the drafted call
    assert "write" not in data["tools"]


def test_identical_calls_of_a_batch_are_one_question_of_several_calls() -> None:
    lock = locked(Person(NO))
    guard = reader(lock)
    guard.batch([Call("send", EVE, f"c{n}") for n in range(3)], run=lambda *_: "sent")
    report = Report()
    report.add(entries(lock, guard))
    assert (report.whole.questions, report.whole.refused, report.whole.stamped, report.calls) == (1, 1, 3, 4)


def test_a_yes_that_was_never_used_is_no_rubber_stamps() -> None:
    lock = locked(None)
    guard = reader(lock)
    question = guard.propose(Call("send", EVE, "a")).questions["a"]
    guard.answer(question.id, "approve", by="kim")
    report = Report()
    report.add(entries(lock, guard))
    assert (report.whole.approved, report.whole.stamped, report.ran) == (1, 0, 0)


@pytest.mark.parametrize(("share", "wanted"), [(0.5, 2), (0.9, 4), (1.0, 4), (0.01, 1)])
def test_quantiles(share: float, wanted: float) -> None:
    assert quantile([4, 1, 3, 2], share) == wanted


def run(*arguments: str) -> Any:
    return CliRunner().invoke(cli, ["approvals", "report", *arguments])


def test_the_command_on_files_and_a_store(tmp_path: Path) -> None:
    journal = MemoryJournal()
    _, guard = story(journal)
    journal.save(guard.conversation.id, tmp_path / "one.jsonl")
    session = Session.create(tmp_path / "two.session", Conversation(namespace="team"))
    with session:
        other = locked(Person(NO), clock=ToldClock()).guard(session.conversation)
        other.call("read_mail", {}, run=lambda: "mail")
        other.call("send", EVE, run=Sent())
    found = json.loads(run(str(tmp_path / "one.jsonl"), str(tmp_path / "two.session"), "--json").stdout)
    assert (found["conversations"], found["questions"], found["refused"]) == (2, 6, 2)
    text = run(str(tmp_path / "one.jsonl")).stdout
    assert "5 questions, 83.3 per 100 calls; 2 calls ran after a yes" in text
    assert "a rubber stamp would also have let run: 3 calls" in text

    path = tmp_path / "private" / "store.db"
    SqliteStore.migrate(path)
    store = SqliteStore(path, durability="process")
    story(store)
    store.close()
    stored = json.loads(run("--store", str(path), "--namespace", "default", "--json").stdout)
    assert (stored["conversations"], stored["questions"]) == (1, 5)
    assert json.loads(run("--store", str(path), "--namespace", "other", "--json").stdout)["conversations"] == 0

    damaged = tmp_path / "one.jsonl"
    damaged.write_bytes(damaged.read_bytes().replace(b"approve", b"refused"))
    assert run(str(damaged)).exit_code == 2
    assert run(str(tmp_path / "none")).exit_code == 2
