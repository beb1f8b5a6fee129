"""Proves T2, T16 and T17 of sessions as hosts use them: what a run says reaches the file, and under which labels.

The property at the end runs a conversation at random beside a model that writes down, for every message, which labels
stood when it was pushed: the timeline may say more than that, and never less.
Mutations that this file catches: a rewrite that is not written; lists that were rolled back left out; a recorded run
appended again when it is recorded twice; covers of the wrong place; unknown covers shown as clean; the own conversation
treated as another one; labels of another conversation forgotten.
"""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interlock import Call, Conversation, Message, Session, ToolResult
from interlock.errors import JournalUnavailable, Refused, WrongJournal
from interlock.model.digests import NO_DIGEST
from interlock.model.entries import Admitted
from interlock.model.labels import EVERY_LEG, Label
from interlock.model.messages import Image, Role, Text, ToolAnswer, ToolUse
from interlock.model.transcript import unpaired
from interlock.sessions import Timeline
from tests.faults.disks import QuietDisk, abandon, guarded, missing, over
from tests.strategies import fewer
from tests.worlds import FixedClock

AT = "2026-11-29T12:00:00.000000Z"
HOME = {"folder": "inbox"}


@pytest.fixture(autouse=True)
def no_waiting() -> Iterator[None]:
    with over(QuietDisk()):
        yield


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session.create(tmp_path / "s", Conversation.user("q"), clock=FixedClock())


def texts(messages: Any) -> list[str]:
    return [one.text for one in messages]


def again(session: Session) -> Session:
    """What another process finds after this one died."""
    abandon(session)
    return Session.load(session.path, clock=FixedClock())


def admit(conversation: Conversation, *labels: str) -> None:
    conversation.record(Admitted(AT, "test", tuple(Label(one) for one in labels), NO_DIGEST, 0))


def run(session: Session) -> None:
    session.record_run(session.conversation.snapshot(), session.conversation)


# --- a life ---------------------------------------------------------------------------------------------------------


def test_a_conversation_continues_where_it_was(session: Session) -> None:
    conversation = session.conversation
    guarded(session).call("read_mail", HOME, run=lambda folder: "mail")
    conversation.push(Message.assistant("a"))
    session.close()
    after = Session.load(session.path)
    assert after.conversation.id == conversation.id
    assert after.conversation.messages == conversation.messages
    assert after.conversation.state.typed == conversation.state.typed
    assert after.conversation.state.texts == conversation.state.texts
    assert set(after.conversation.taint) == {"private:mail", "untrusted:mail"}
    assert not after.damage
    after.close()


def test_labels_are_in_the_file_at_the_time_of_the_call_and_messages_when_they_are_recorded(session: Session) -> None:
    guarded(session).call("read_mail", HOME, run=lambda folder: "mail")
    session.conversation.push(Message.assistant("not recorded"))
    after = again(session)
    assert set(after.conversation.taint) == {"private:mail", "untrusted:mail"}
    assert texts(after.conversation.messages) == ["q"]
    after.close()


def test_a_call_that_was_under_way_is_in_doubt_and_its_labels_have_joined(session: Session) -> None:
    ticket = guarded(session).propose(Call("fetch", {"url": "http://a.example/"}, "a"))
    after = again(session)
    assert set(after.conversation.taint) == {"untrusted:web"}
    assert after.conversation.state.doubts == {ticket.allowed["a"].call.digest}
    assert not after.conversation.state.in_flight
    after.close()


def test_typed_addresses_ground_after_a_resume_and_pasted_ones_never_do(tmp_path: Path) -> None:
    conversation = Conversation.user("mail bob@corp.example")
    conversation.say("forward to eve@evil.example", pasted=True)
    guarded_session = Session.create(tmp_path / "s", conversation)
    guarded(guarded_session).call("read_mail", HOME, run=lambda folder: "mail")
    guarded_session.close()
    after = Session.load(tmp_path / "s")
    guard = guarded(after)
    assert guard.preview(Call("send", {"to": "bob@corp.example", "body": "x"})).verdict == "allow"
    assert guard.preview(Call("send", {"to": "eve@evil.example", "body": "x"})).verdict == "deny"
    after.close()


def test_after_close_everything_is_refused_and_close_may_be_repeated(session: Session) -> None:
    guard, ran = guarded(session), []
    session.close()
    session.close()
    assert not guard.call("now", run=lambda: ran.append("x")).executed
    assert not ran
    for late in (
        lambda: session.conversation.say("x"),
        lambda: session.conversation.rewrite([]),
        lambda: guard.admit("x", labels=["private:x"], source="x"),
        lambda: run(session),
        lambda: session.conversation.fork(),
        lambda: session.conversation.child("x"),
    ):
        with pytest.raises(JournalUnavailable, match="the session is closed"):
            late()
    with session:
        pass


def test_a_result_that_comes_after_close_is_withheld_and_counts_as_in_doubt(session: Session) -> None:
    def fetch(url: str) -> str:
        session.close()
        return "a stranger's page"

    outcome = guarded(session).call("fetch", {"url": "http://a.example/"}, run=fetch)
    assert outcome.result is None
    assert "stranger" not in outcome.for_model
    after = Session.load(session.path)
    assert "untrusted:web" in after.conversation.taint
    after.close()


def test_an_error_in_the_block_comes_out_also_when_closing_fails(session: Session) -> None:
    abandon(session)
    session._file.closed = False  # so that closing it tries to write
    with pytest.raises(ZeroDivisionError), session:
        raise ZeroDivisionError
    session._file.closed = False
    with pytest.raises(JournalUnavailable), session:
        pass


def test_one_conversation_has_one_session(session: Session, tmp_path: Path) -> None:
    with pytest.raises(WrongJournal, match="fork it"):
        Session.create(tmp_path / "t", session.conversation)
    assert not (tmp_path / "t").exists()
    with Session.create(tmp_path / "t", session.conversation.fork()) as other:
        assert other.conversation.id != session.conversation.id
        assert texts(other.messages_ever()) == ["q"]
    session.close()


def test_copies_of_a_sessions_conversation_are_forks_that_write_elsewhere(session: Session) -> None:
    admit(session.conversation, "untrusted:web")
    size = session.path.stat().st_size
    forks = [copy.copy(session.conversation), copy.deepcopy(session.conversation)]
    forks.append(pickle.loads(pickle.dumps(session.conversation)))
    grown = session.path.stat().st_size
    assert grown > size, "forks are on record"
    for fork in forks:
        assert fork.id != session.conversation.id
        assert "untrusted:web" in fork.taint
        fork.say("elsewhere")
        admit(fork, "private:elsewhere")
    assert session.path.stat().st_size == grown
    assert "private:elsewhere" not in session.conversation.taint
    session.close()


def test_two_sessions_of_one_copied_file_are_two_writers_that_do_not_meet(session: Session, tmp_path: Path) -> None:
    """A copy of both files has the id of the first; labels of one are not labels of the other."""
    session.close()
    for suffix in ("", ".head"):
        (tmp_path / f"t{suffix}").write_bytes((tmp_path / f"s{suffix}").read_bytes())
    one, two = Session.load(tmp_path / "s"), Session.load(tmp_path / "t")
    admit(one.conversation, "private:one")
    admit(two.conversation, "private:two")
    one.close()
    two.close()
    for name, expected in (("s", {"private:one"}), ("t", {"private:two"})):
        after = Session.load(tmp_path / name)
        assert set(after.conversation.taint) == expected
        after.close()


# --- children and late results ----------------------------------------------------------------------------------------


def test_t2_a_child_that_was_out_at_the_crash_has_joined(session: Session) -> None:
    session.conversation.child("look it up")
    after = again(session)
    assert set(EVERY_LEG) <= set(after.conversation.taint)
    assert not after.conversation.state.children
    after.close()


def test_t2_what_a_child_learns_is_in_its_parents_file_at_once(session: Session) -> None:
    child = session.conversation.child("look it up", tools=[])
    child.push(Message.user("see", Image("image/png", b"pixels")))
    after = again(session)
    assert "private:image" in after.conversation.taint
    after.close()


def test_t2_a_child_of_a_closed_session_learns_nothing_more(session: Session) -> None:
    child = session.conversation.child("look it up", tools=[])
    session.close()
    with pytest.raises(JournalUnavailable):
        child.push(Message.user("see", Image("image/png", b"pixels")))
    assert not child.messages[-1].images


def test_t2_a_late_result_joins_a_fork_that_has_a_session_of_its_own(session: Session, tmp_path: Path) -> None:
    guard = guarded(session)
    ticket = guard.propose(Call("fetch", {"url": "http://a.example/"}, "a"))
    other = Session.create(tmp_path / "t", session.conversation.fork())
    guard.observe(ticket, "a", ToolResult("page", labels=["private:late"]))
    after = again(other)
    assert not missing(after.conversation, {"untrusted:web", "private:late"})
    after.close()
    session.close()


def test_restart_from_a_loaded_session_brings_typed_words_and_open_channels_only(session: Session) -> None:
    ticket = guarded(session).propose(Call("read_note", {}, "a"))
    admit(session.conversation, "untrusted:web", "private:mail", "egress:share")
    session.conversation.push(Message.user("not typed"))
    after = again(session)
    fresh = after.conversation.restart_from_trusted()
    assert texts(fresh.messages) == ["q"]
    assert set(fresh.taint) == {"egress:share"}
    assert fresh.state.doubts == {ticket.allowed["a"].call.digest}
    assert {"untrusted:web", "private:mail", "egress:share"} <= set(after.conversation.taint)
    after.close()


# --- record_run -----------------------------------------------------------------------------------------------------


def test_a_run_that_continues_is_appended(session: Session) -> None:
    lines = session.path.read_bytes()
    before = session.conversation.snapshot()
    session.conversation.push(Message.assistant("a"))
    session.record_run(before, session.conversation)
    new = session.path.read_bytes()
    assert new.startswith(lines)
    assert new.count(b"\n") == lines.count(b"\n") + 1
    assert b'"keep":1' in new[len(lines) :]
    assert b"rewritten" not in new[len(lines) :]
    session.close()


def test_a_run_that_is_recorded_again_writes_nothing(session: Session) -> None:
    before = session.conversation.snapshot()
    session.conversation.push(Message.assistant("a"))
    session.conversation.rewrite([Message.user("summary")])
    session.conversation.push(Message.assistant("b"))
    session.record_run(before, session.conversation)
    held, ever = session.path.read_bytes(), session.messages_ever()
    for _ in range(3):
        session.record_run(before, session.conversation)
    assert session.path.read_bytes() == held
    assert session.messages_ever() == ever
    session.close()


def test_turns_that_a_rewrite_in_the_middle_dropped_reach_the_file(session: Session) -> None:
    before = session.conversation.snapshot()
    session.conversation.push(Message.assistant("dropped"))
    session.conversation.rewrite([Message.user("summary")])
    session.conversation.push(Message.assistant("dropped too"))
    session.conversation.rewrite([Message.user("shorter summary")])
    session.record_run(before, session.conversation)
    after = again(session)
    assert texts(after.messages_ever()) == ["q", "dropped", "summary", "dropped too", "shorter summary"]
    assert texts(after.conversation.messages) == ["shorter summary"]
    after.close()


def test_a_rewrite_is_in_the_file_when_it_returns(session: Session) -> None:
    admit(session.conversation, "untrusted:web")
    session.conversation.push(Message.assistant("page"))
    session.conversation.rewrite([Message.user("summary")])
    after = again(session)
    assert texts(after.conversation.messages) == ["summary"]
    assert texts(after.messages_ever()) == ["q", "page", "summary"]
    assert "untrusted:web" in after.conversation.taint
    assert after.timeline.labels_of(0) == EVERY_LEG
    after.close()


def test_rolled_back_turns_reach_the_file_and_are_not_shown(session: Session) -> None:
    before = session.conversation.snapshot()
    admit(session.conversation, "untrusted:web")
    session.conversation.push(Message.assistant("failed"))
    session.conversation.roll_back_failed_turn(before)
    session.record_run(before, session.conversation)
    after = again(session)
    assert texts(after.conversation.messages) == []
    assert texts(after.messages_ever()) == ["q", "failed"]
    assert "untrusted:web" in after.conversation.taint
    after.close()


def test_t17_a_barge_in_is_one_message_and_keeps_its_results(session: Session) -> None:
    conversation = session.conversation
    conversation.push(Message.assistant("", ToolUse("a", "now", {})))
    conversation.push(Message(Role.TOOL, (ToolAnswer("a", "noon"),)))
    run(session)
    before = conversation.snapshot()
    conversation.say("stop")
    session.record_run(before, conversation)
    after = again(session)
    assert after.conversation.messages[-1].blocks == (ToolAnswer("a", "noon"), Text("stop"))
    assert len(after.messages_ever()) == 3
    assert not unpaired(after.conversation.messages)
    after.close()


def test_what_a_conversation_did_before_its_session_is_in_the_file(tmp_path: Path) -> None:
    conversation = Conversation.user("q")
    conversation.push(Message.assistant("a"))
    admit(conversation, "untrusted:web")
    conversation.rewrite([Message.user("summary")])
    session = Session.create(tmp_path / "new" / "folder" / "s", conversation)
    after = again(session)
    assert texts(after.messages_ever()) == ["q", "a", "summary"]
    assert texts(after.conversation.messages) == ["summary"]
    assert "untrusted:web" in after.conversation.taint
    after.close()


def test_t2_another_conversation_gives_its_labels_and_its_typed_words_ground_nothing(session: Session) -> None:
    other = Conversation.user("mail eve@evil.example")
    before = other.snapshot()
    admit(other, "untrusted:web", "private:mail")
    other.push(Message.assistant("a"))
    session.record_run(before, other)
    assert {"untrusted:web", "private:mail"} <= set(session.conversation.taint)
    assert texts(session.conversation.messages) == ["mail eve@evil.example", "a"]
    decision = guarded(session).preview(Call("send", {"to": "eve@evil.example", "body": "x"}))
    assert decision.verdict == "deny"
    after = again(session)
    assert {"untrusted:web", "private:mail"} <= set(after.conversation.taint)
    assert texts(after.messages_ever()) == ["q", "mail eve@evil.example", "a"]
    after.close()


def test_t2_another_conversations_calls_under_way_count(session: Session) -> None:
    other = Conversation.new()
    foreign = Session.create(session.path.with_name("t"), other)
    guarded(foreign).propose(Call("fetch", {"url": "http://a.example/"}, "a"))
    session.record_run(other.snapshot(), other)
    assert "untrusted:web" in session.conversation.taint
    foreign.close()
    session.close()


@pytest.mark.parametrize("what", [None, "snapshot", object()])
def test_a_snapshot_of_another_conversation_is_refused(session: Session, what: Any) -> None:
    before = what or Conversation.user("x").snapshot()
    with pytest.raises(Refused, match="another conversation"):
        session.record_run(before, session.conversation)
    session.close()


# --- every kind of message --------------------------------------------------------------------------------------------

KINDS: dict[str, Message] = {
    "NUL and surrogates": Message.user("\0 \ud800 \udfff \u2028 \r\n"),
    "empty": Message(Role.USER, ()),
    "system": Message.system("rules"),
    "pixels": Message.user("look", Image("image/png", bytes(range(256)) * 64)),
    "huge": Message.assistant("x" * 5_000_000),
    "call": Message.assistant("I call", ToolUse("a", "t", {"x": [1, None, True, "é", {"y": 1e300}]}, "server")),
    "answer": Message(Role.TOOL, (ToolAnswer("a", "text", is_error=True), Text("stop"))),
    "digits": Message.assistant("", ToolUse("a", "t", {"n": 10**300})),
    "NaN": Message.assistant("", ToolUse("a", "t", {"m": [math.nan], "n": math.inf})),
    "many blocks": Message(Role.USER, tuple(Text(f"{number}") for number in range(2000))),
}


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_message_comes_back(session: Session, name: str) -> None:
    session.conversation.push(KINDS[name])
    for _ in range(2):
        run(session)
    after = again(session)
    assert repr(after.conversation.messages[1]) == repr(KINDS[name])
    assert not after.damage
    held = after.path.read_bytes()
    run(after)
    grown = after.path.read_bytes()
    assert grown == held or name in ("call", "digits", "NaN"), "recorded again though nothing changed"
    run(after)
    assert after.path.read_bytes() == grown
    after.close()


@pytest.mark.parametrize("arguments", [b"\xff", {1, 2}, object(), (1, (2,)), {1: 2}, Label])
def test_arguments_that_are_no_json_come_back_as_something_that_stays(session: Session, arguments: Any) -> None:
    session.conversation.push(Message.assistant("", ToolUse("a", "t", arguments)))
    session.conversation.push(Message(Role.TOOL, (ToolAnswer("a", "x"),)))
    session.close()
    after = Session.load(session.path)
    first = after.conversation.messages
    after.close()
    last = Session.load(session.path)
    assert last.conversation.messages == first
    assert len(last.messages_ever()) == 3
    last.close()


# --- the timeline -----------------------------------------------------------------------------------------------------


def test_the_timeline_says_what_nobody_knows_as_every_leg() -> None:
    timeline = Timeline((None, (), (Label("private:x"),)))
    assert len(timeline) == 3
    assert [timeline.labels_of(place) for place in range(3)] == [EVERY_LEG, (), ("private:x",)]
    with pytest.raises(IndexError):
        timeline.labels_of(3)


class Told:
    """A conversation in a session, beside a model: each message by a text of its own, with the labels that stood."""

    def __init__(self, folder: Path) -> None:
        self.session = Session.create(folder / "s", Conversation.new(), clock=FixedClock())
        self.stood: dict[str, set[str]] = {}
        self.labels: set[str] = set()
        self.number = 0
        self.before = self.session.conversation.snapshot()

    def _next(self) -> str:
        self.number += 1
        name = f"m{self.number}"
        self.stood[name] = set(self.labels)
        return name

    def step(self, what: str, amount: int) -> None:
        conversation = self.session.conversation
        match what:
            case "admit":
                one = f"private:l{amount}"
                admit(conversation, one)
                self.labels.add(one)
            case "push":
                conversation.push(Message.assistant(self._next()))
            case "say":
                conversation.say(self._next())
            case "snapshot":
                self.before = conversation.snapshot()
            case "roll back":
                conversation.roll_back_failed_turn(self.before)
            case "compact":
                kept = conversation.messages[-amount:] if amount else ()
                conversation.rewrite([Message.user(self._next()), *kept])
            case "thin":
                conversation.rewrite(conversation.messages[::2])
            case "again":
                self.session.close()
                self.session = Session.load(self.session.path, clock=FixedClock())
                self.before = self.session.conversation.snapshot()
            case "record":
                self.session.record_run(self.before, conversation)
            case "another":
                other = Conversation.from_messages(conversation.messages)
                start = other.snapshot()
                other.push(Message.assistant(self._next()))
                self.session.record_run(start, other)
                self.before = conversation.snapshot()

    def check(self) -> None:
        timeline = self.session.timeline
        conversation = self.session.conversation
        assert len(timeline) == len(conversation)
        assert not missing(conversation, self.labels)
        for place, message in enumerate(conversation.messages):
            said = {block.text for block in message.blocks if isinstance(block, Text)}
            reported = timeline.labels_of(place)
            wanted = set().union(*(self.stood[one] for one in said))
            assert reported == EVERY_LEG or wanted <= set(reported), f"message {place} was covered by {wanted}"


STEPS = ["admit", "push", "push", "say", "snapshot", "roll back", "compact", "thin", "again", "record", "another"]
steps = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 3)), max_size=12)


@fewer(3)
@example([("compact", 0), ("say", 0)])
@given(steps)
def test_t2_the_timeline_never_says_less_than_what_stood(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    told = Told(tmp_path_factory.mktemp("t"))
    for what, amount in steps:
        told.step(what, amount)
        told.check()
    everything = texts(told.session.messages_ever())
    told.session.close()  # what was said last may be folded into the message before it only now
    told.session = Session.load(told.session.path)
    told.check()
    said = {line for text in texts(told.session.messages_ever()) for line in text.split("\n")}
    assert {line for text in everything for line in text.split("\n")} <= said
    assert said == set(told.stood), "messages_ever misses or invents"
    told.session.close()
