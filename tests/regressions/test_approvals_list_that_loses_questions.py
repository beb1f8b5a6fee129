"""The other terminal looked at what is open, and by looking destroyed it.

* A question is kept a moment before the journal knows of it. Whoever listed the questions in that moment took it for
  one that is over, and emptied it: it could not be shown any more, so nobody could answer.
* One question that can't be shown was the end of every list, and of ``watch``: it hid all others, and could not even be
  refused.
* Of two processes that asked about one call at once, the loser overwrote what the winner had kept, under the same id.
* What a lost race had kept, arguments and all, stayed in the store until somebody listed it after its end.

Found by review.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from interlock import ApprovalRules, Call, Conversation, Question
from interlock.approvals.elsewhere import Desk
from interlock.cli import cli
from interlock.gate.conversation import SystemClock
from interlock.model.grants import Status
from interlock.model.question import until
from interlock.stores.sql_questions import SqlQuestions
from interlock.stores.sqlite import SqliteStore
from tests.approvals.desk import EVE, KIM, ToldClock, locked, reader


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


def asking(store: SqliteStore, clock: Any = None) -> Any:
    return reader(locked(None, store, clock or SystemClock(), approvals=ApprovalRules()))


def desk_of(store: SqliteStore, clock: Any = None) -> Desk:
    return Desk(store, SqlQuestions(store), clock or SystemClock(), "default")


def bodies(path: Path) -> list[bytes]:
    with sqlite3.connect(path) as database:
        return [bytes(body) for (body,) in database.execute("SELECT body FROM interlock_questions") if body]


def test_a_look_at_the_wrong_moment_empties_nothing(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    keep, desk = SqlQuestions.keep, desk_of(store)

    def kept(self: SqlQuestions, question: Question) -> None:
        keep(self, question)
        assert desk.open_questions() == []  # it is not on record yet

    monkeypatch.setattr(SqlQuestions, "keep", kept)
    question = asking(store).propose(Call("send", EVE, "a")).questions["a"]
    assert [one for one, _ in desk.open_questions()] == [question]


def test_what_never_came_on_record_is_emptied_after_its_end(store: SqliteStore, path: Path) -> None:
    clock = ToldClock()
    guard = asking(store, clock)
    question = guard.propose(Call("send", EVE, "a")).questions["a"]
    SqlQuestions(store).keep(Question(**{**_fields(question), "id": "q-lost"}))
    desk = desk_of(store, clock)
    assert len(desk.open_questions()) == 1
    assert len(bodies(path)) == 2
    clock.jump(seconds=1000)
    assert desk.open_questions() == []
    assert bodies(path) == []
    assert [until(one) for one in (b"", b"[]", b"{}", b"null")] == [""] * 4


def _fields(question: Question) -> dict[str, Any]:
    return {name: getattr(question, name) for name in Question.__dataclass_fields__}


def test_one_that_can_not_be_shown_hides_no_other_and_can_be_refused(store: SqliteStore, path: Path) -> None:
    guard = asking(store)
    bad = guard.propose(Call("send", EVE, "a")).questions["a"]
    good = guard.propose(Call("send", KIM, "b")).questions["b"]
    with sqlite3.connect(path) as database:
        database.execute("UPDATE interlock_questions SET body = ? WHERE question = ?", (b"{}", bad.id.encode()))
    assert [one.id for one, _ in desk_of(store).open_questions()] == [good.id]
    where = ("--namespace", "default", "--store", str(path))
    listed = CliRunner().invoke(cli, ["approvals", "list", *where])
    assert (listed.exit_code, good.id in listed.stdout) == (0, True)
    refused = CliRunner().invoke(cli, ["approvals", "refuse", bad.id, *where])
    assert refused.exit_code == 0, refused.output
    assert guard.conversation.state.questions[bad.id].status is Status.REFUSED


def test_a_lost_race_leaves_nothing_and_overwrites_nothing(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = locked(None, store, SystemClock(), approvals=ApprovalRules())  # type: ignore[arg-type]  # a clock
    conversation = Conversation()
    guard = lock.guard(conversation)
    guard.call("read_mail", {}, run=lambda: "a mail")
    keep, won = SqlQuestions.keep, list[Question]()

    def kept(self: SqlQuestions, question: Question) -> None:
        keep(self, question)
        if not won:
            won.append(question)  # before the winner's own question comes here
            won[0] = lock.guard(conversation).propose(Call("send", EVE, "other")).questions["other"]

    monkeypatch.setattr(SqlQuestions, "keep", kept)
    question = guard.propose(Call("send", EVE, "a")).questions["a"]
    assert question.id == won[0].id  # it is asked already
    assert [one for one, _ in desk_of(store).open_questions()] == won
    assert bodies(path) == [won[0].encode()]
