"""Case 54: the person approves `sh deploy.sh`, and by the time it runs the script is another one.

The files that a command names are read through their links when the question is asked, and again before it runs. What
was changed, replaced, turned into a link or put where nothing was makes the approval void, and says so. What can't be
read can't be approved. The honest twin is a script that nobody touched.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock import Call, Guard, Interlock
from interlock.assembly import LocalFiles
from interlock.model.operands import Sort
from tests.approvals.desk import YES, Person, Sent, locked, reader

DEPLOY = {"command": "sh deploy.sh --now"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "deploy.sh").write_text("echo fine\n")
    (tmp_path / "other.sh").write_text("echo fine\n")
    (tmp_path / "link.sh").symlink_to("deploy.sh")
    return tmp_path


def guarded(folder: Path, *answers: object) -> tuple[Interlock, Guard, Person]:
    person = Person(*answers)
    lock = locked(person, files=LocalFiles(folder))
    return lock, reader(lock), person


def _rewritten(folder: Path) -> None:
    (folder / "deploy.sh").write_text("curl evil\n")


def _same_length(folder: Path) -> None:
    stamps = os.stat(folder / "deploy.sh")
    (folder / "deploy.sh").write_text("echo evil\n")
    os.utime(folder / "deploy.sh", ns=(stamps.st_atime_ns, stamps.st_mtime_ns))


def _replaced_by_a_link(folder: Path) -> None:
    (folder / "deploy.sh").unlink()
    (folder / "deploy.sh").symlink_to("other.sh")  # the same words, at another place


def _gone(folder: Path) -> None:
    (folder / "deploy.sh").unlink()


def _appeared(folder: Path) -> None:
    (folder / "sh").write_text("another shell")


CHANGES: list[Callable[[Path], None]] = [_rewritten, _same_length, _replaced_by_a_link, _gone, _appeared]


@pytest.mark.parametrize("change", CHANGES, ids=lambda one: one.__name__)
def test_attack_between_the_yes_and_the_call(folder: Path, change: Callable[[Path], None]) -> None:
    _, guard, _ = guarded(folder)
    question = guard.propose(Call("shell", DEPLOY, "a")).questions["a"]
    guard.answer(question.id, "approve")
    change(folder)
    ticket = guard.propose(Call("shell", DEPLOY, "b"))
    outcome = ticket.outcomes["b"]
    assert (outcome.verdict.value, outcome.decision.code, ticket.allowed) == ("deny", "operand_changed", {})
    assert "operand changed" in outcome.decision.reasons[0].for_person
    assert guard.conversation.state.questions[question.id].why == "operand changed"
    assert guard.propose(Call("shell", DEPLOY, "c")).questions  # asked anew, about the file as it is now


@pytest.mark.parametrize("change", CHANGES, ids=lambda one: one.__name__)
def test_attack_between_the_decision_and_the_call(folder: Path, change: Callable[[Path], None]) -> None:
    """The last look is right before the tool, when the approval is used up already: then nothing runs, either."""
    _, guard, _ = guarded(folder)
    guard.answer(guard.propose(Call("shell", DEPLOY, "a")).questions["a"].id, "approve")
    ticket = guard.propose(Call("shell", DEPLOY, "b"))
    assert guard.ready(ticket, "b") is None
    change(folder)
    outcome = guard._run(ticket, "b", lambda *_: pytest.fail("it ran"))
    assert (outcome.executed, outcome.decision.code) == (False, "operand_changed")
    assert guard.conversation.state.in_flight == {}


def test_attack_while_the_person_reads(folder: Path) -> None:
    _, guard, person = guarded(folder, YES)
    person.meanwhile = lambda _: _rewritten(folder)
    sent = Sent()
    outcome = guard.call("shell", DEPLOY, run=sent)
    assert (outcome.decision.code, sent.calls) == ("operand_changed", [])


def test_attack_a_file_that_can_not_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlock.stores.operand_files.MAX_FILE", 4)  # it is larger than what is read
    _, guard, person = guarded(folder, YES)
    outcome = guard.call("shell", DEPLOY, run=Sent())
    assert (outcome.decision.code, person.asked) == ("not_bindable", [])


def test_attack_a_pipe_is_not_opened(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    _, guard, person = guarded(folder, None)
    guard.call("shell", {"command": "sh pipe"}, run=Sent())  # opening it would wait for ever
    assert {one.sort for one in person.asked[0].operands if one.path == "pipe"} == {Sort.OTHER}


def test_honest_the_script_that_was_shown(folder: Path) -> None:
    _, guard, person = guarded(folder, YES)
    sent = Sent()
    assert guard.call("shell", {"command": "sh link.sh"}, run=sent).executed
    shown = {one.path: one for one in person.asked[0].operands}
    assert shown["link.sh"].resolved == str(folder / "deploy.sh")
    assert (shown["link.sh"].size, shown["link.sh"].sort) == (10, Sort.FILE)
