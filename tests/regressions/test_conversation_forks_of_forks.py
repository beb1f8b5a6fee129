"""T2: a late result reached a fork, but not the fork of that fork, and late work of a child reached no fork at all.

A fork learned of a late result by an entry of another kind than the one that forks are told of, so it did not hand it
on. Work that was delegated before the fork was not thought of as a call made before it.
"""

from __future__ import annotations

from pathlib import Path

from interlock import Call, Conversation, Session, ToolResult
from tests.regressions.stage import call, interlock

READ = Call("read_file", {"path": "plan.txt"}, "read")
CARRIED = ToolResult("password", labels=("private:credentials",))


def test_t2_a_late_result_reaches_every_fork_along_the_line() -> None:
    guard = interlock().guard(Conversation.new())
    waiting = guard.propose(READ)
    line = [guard.conversation]
    for _ in range(4):
        line.append(line[-1].fork())
    guard.observe(waiting, "read", CARRIED)
    assert all("private:credentials" in one.taint for one in line)


def test_t2_no_fork_learns_of_calls_that_were_made_after_it() -> None:
    guard = interlock().guard(Conversation.new())
    waiting = guard.propose(READ)
    fork = guard.conversation.fork()
    later = guard.propose(Call("read_file", {"path": "other.txt"}, "later"))
    guard.observe(later, "later", CARRIED)
    assert "private:credentials" not in fork.taint
    guard.observe(waiting, "read", ToolResult("x"))
    assert set(fork.taint) == {"private:files"}


def test_t2_late_work_of_a_child_reaches_the_forks_that_were_made_meanwhile() -> None:
    parent = Conversation.new()
    child = parent.child("task", tools=[])
    fork = parent.fork()
    further = fork.fork()
    call(interlock().guard(child), "fetch", url="http://guide.example/")
    parent.join(child)
    for one in (parent, fork, further):
        assert "untrusted:web" in one.exposure
    assert "untrusted:web" not in Conversation.new().exposure


def test_t2_a_fork_after_the_join_is_told_nothing_twice() -> None:
    parent = Conversation.new()
    child = parent.child("task", tools=[])
    parent.join(child)
    fork = parent.fork()
    version = fork.state.version
    parent.join(child)
    assert fork.state.version == version


def test_t2_late_work_of_a_copy_of_a_child_is_late_work_of_the_child() -> None:
    parent = Conversation.new()
    child = parent.child("task", tools=[])
    fork = parent.fork()
    copied = child.fork().fork()
    call(interlock().guard(copied), "fetch", url="http://guide.example/")
    parent.join(copied)
    assert "untrusted:web" in parent.exposure
    assert "untrusted:web" in fork.exposure


def test_t2_late_work_of_a_child_that_was_loaded_from_its_file(tmp_path: Path) -> None:
    parent = Conversation.new()
    Session.create(tmp_path / "child.jsonl", parent.child("task", tools=[])).close()
    fork = parent.fork()
    with Session.load(tmp_path / "child.jsonl") as session:
        call(interlock().guard(session.conversation), "fetch", url="http://guide.example/")
        parent.join(session.conversation)
    for one in (parent, fork):
        assert "untrusted:web" in one.taint
