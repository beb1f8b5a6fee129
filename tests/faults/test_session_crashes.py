"""Proves T16, T2, T11 and T17 of session files under failure: whatever stops at whatever effect, no label is lost.

SQLite's method, one level below `test_nth_effect.py`: a life of a session is lived again and again while its process
dies at effect number 1, 2, 3, … of the disk: before it, after it, in the middle of a write; with power, and with a loss
of everything that was not made durable. Then the same with a disk that is full or broken, once or for ever. What had
been acknowledged before must load, and nothing may be acknowledged that is not durable.
Mutations that this file catches: the head written before the line; no flush of the line or of the head; a cut line that
is not cut; labels of a cut line forgotten; a failed head write that leaves the session usable; one slot for both heads.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interlock import Call, Conversation, Message, Session, ToolResult
from interlock.errors import Conflict, JournalUnavailable
from interlock.model.entries import Resumed
from interlock.model.messages import Image, ToolAnswer, ToolUse
from interlock.model.records import read_line
from interlock.model.state import State, apply
from interlock.model.transcript import unpaired
from interlock.stores.head_file import head_of
from interlock.stores.session_file import HEADER
from tests.faults.disks import (
    Died,
    QuietDisk,
    Trouble,
    TroubledDisk,
    abandon,
    every_leg,
    guarded,
    input_output,
    missing,
    no_space,
    over,
)
from tests.worlds import FixedClock

BROUGHT = {
    "read_mail": {"private:mail", "untrusted:mail"},
    "fetch": {"untrusted:web"},
    "share": {"private:files", "egress:share"},
    "now": set(),
}
ARGUMENTS = {"read_mail": {"folder": "inbox"}, "fetch": {"url": "http://a.example/"}, "share": {"path": "notes/x"}}


class Life:
    """What somebody does with a session, step by step, and what was acknowledged to them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.labels: set[str] = set()
        self.texts: list[str] = []
        self.created = False
        self.session: Session | None = None

    def create(self) -> None:
        conversation = Conversation(labels=["private:brought"], clock=FixedClock())
        conversation.say("mail bob@corp.example")
        self.session = Session.create(self.path, conversation, clock=FixedClock())
        self.guard = guarded(self.session)
        self.created = True
        self.labels |= {"private:brought"}
        self.texts.append("mail bob@corp.example")

    def load(self) -> None:
        self.session = None
        self.session = Session.load(self.path, clock=FixedClock())
        self.guard = guarded(self.session)
        self.created = True
        self.labels |= self.session.conversation.exposure.labels

    @property
    def conversation(self) -> Conversation:
        assert self.session is not None
        return self.session.conversation

    def call(self, name: str) -> None:
        """A whole round. What ran was acknowledged as allowed, and what is shown was acknowledged as observed."""
        arguments = ARGUMENTS.get(name, {})
        outcome = self.guard.call(name, arguments, id="a", run=lambda **_: ToolResult(f"text of {name}"))
        if outcome.executed:
            self.labels |= BROUGHT[name]
        if outcome.result is None:
            raise JournalUnavailable("the result is withheld")
        self.conversation.push(Message.assistant("", ToolUse("a", name, arguments)))
        self.conversation.push(Message.results(outcome))

    def propose(self) -> None:
        """A call that is never observed."""
        if self.guard.propose(Call("fetch", ARGUMENTS["fetch"], "p")).allowed:
            self.labels |= BROUGHT["fetch"]

    def admit(self) -> None:
        self.guard.admit("what was remembered", labels=["untrusted:memory"], source="notes")
        self.labels.add("untrusted:memory")

    def show(self) -> None:
        self.conversation.push(Message.user("look", Image("image/png", b"pixels")))
        self.labels.add("private:image")

    def record(self) -> None:
        assert self.session is not None
        self.session.record_run(self.conversation.snapshot(), self.conversation)
        self.texts += [one.text for one in self.conversation.messages]

    def rewrite(self) -> None:
        old = [one.text for one in self.conversation.messages]
        self.conversation.rewrite([Message.user("summary of it all")])
        self.texts += [*old, "summary of it all"]

    def roll_back(self) -> None:
        before = self.conversation.snapshot()
        self.conversation.push(Message.assistant("half an answer"))
        self.conversation.roll_back_failed_turn(before)
        self.texts.append("half an answer")

    def delegate(self) -> None:
        child = self.conversation.child("look it up", tools=[])
        child.push(Message.user("see", Image("image/png", b"pixels")))
        self.labels.add("private:image")
        self.conversation.join(child)

    def close(self) -> None:
        assert self.session is not None
        shown = [one.text for one in self.conversation.messages]
        self.session.close()
        self.texts += shown


Step = Callable[[Life], None]


def call(name: str) -> Step:
    return lambda life: life.call(name)


LIVES: dict[str, list[Step]] = {
    "created and used": [Life.create, call("share"), Life.record, call("read_mail"), Life.close],
    "rewritten": [Life.create, call("fetch"), Life.rewrite, Life.admit, Life.roll_back, Life.close],
    "loaded": [Life.create, Life.propose, Life.close, Life.load, call("read_mail"), Life.close, Life.load, Life.close],
    "delegated": [Life.create, Life.show, Life.delegate, Life.record, call("now"), Life.close],
}
PLACES = {"before": 0, "after": 1, "first byte": 1e-9, "half": 0.5, "all but a byte": 0.999_999}


def lived(path: Path, steps: list[Step], disk: TroubledDisk, *, patient: bool = False) -> Life:
    """Live until the process dies; or, patiently, go on after every refusal."""
    life = Life(path)
    with over(disk):
        for step in steps:
            try:
                step(life)
            except Died:
                break
            except JournalUnavailable:
                assert patient
                assert disk.hit, "refused although nothing went wrong"
                if life.session is None:
                    break
    if life.session is not None:
        abandon(life.session)
    return life


def judge(life: Life, *, broken_in: bool = False) -> None:
    """Load what is left, twice, and compare it with what had been acknowledged.

    Args:
        broken_in: the file was damaged before, so that every leg is what must load.
    """
    with over(QuietDisk()):
        try:
            session = Session.load(life.path, clock=FixedClock())
        except JournalUnavailable as error:
            assert "there is no session" in str(error)  # noqa: PT017 - whether there is one depends on the place
            assert not life.created
            return
        assert not missing(session.conversation, life.labels), "labels that had been acknowledged are gone"
        assert not unpaired(session.conversation.messages)
        if broken_in or session.damage:
            assert every_leg(session.conversation)
        if life.created and not broken_in:
            assert not session.damage, "a crash is no damage"
            everything = [one.text for one in session.messages_ever()]
            assert set(life.texts) <= set(everything), "messages that had been acknowledged are gone"
        assert guarded(session).call("now", run=lambda: "noon").result == "noon"
        session.close()
        again = Session.load(life.path, clock=FixedClock())
        assert not again.damage
        assert not missing(again.conversation, life.labels)
        assert every_leg(again.conversation) or not session.damage
        again.close()


def every_effect(
    folder: Path, steps: list[Step], place: float, prepare: Callable[[Path], None] = lambda path: None
) -> Iterator[tuple[Path, TroubledDisk]]:
    """Yield a place and a disk with trouble at effect 1, 2, 3, … until nothing went wrong any more."""
    clean = TroubledDisk()
    prepare(folder / "clean")
    lived(folder / "clean", steps, clean)
    clean.forget()
    assert len(clean.effects) >= 8, "the life does not go through this disk"
    for at, name in enumerate(clean.effects, 1):
        if 0 < place < 1 and name != "write":
            continue  # only a write can happen in part
        path = folder / f"at {at}"
        prepare(path)
        yield path, TroubledDisk(Trouble(at, happens=place))


@pytest.mark.parametrize("power", ["with power", "without power"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", LIVES)
def test_t16_a_crash_at_any_effect_loads_every_acknowledged_label(
    tmp_path: Path, name: str, place: str, power: str
) -> None:
    for path, disk in every_effect(tmp_path, LIVES[name], PLACES[place]):
        life = lived(path, LIVES[name], disk)
        assert disk.hit
        if power == "without power":
            disk.lose_power()
        disk.forget()
        judge(life)


FAILURES = {"full": no_space, "broken": input_output}


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "for ever"])
@pytest.mark.parametrize("place", ["before", "after", "half"])
@pytest.mark.parametrize("error", FAILURES)
@pytest.mark.parametrize("name", LIVES)
def test_t16_a_disk_that_fails_is_never_acknowledged(
    tmp_path: Path, name: str, error: str, place: str, lasting: bool
) -> None:
    """The session goes on or refuses everything; a loss of power at the end finds whatever it only claimed."""
    for path, disk in every_effect(tmp_path, LIVES[name], PLACES[place]):
        assert disk.trouble is not None
        disk.trouble.error, disk.trouble.lasting = FAILURES[error], lasting
        life = lived(path, LIVES[name], disk, patient=True)
        assert disk.hit
        disk.lose_power()
        disk.forget()
        judge(life)


def cut_in_the_middle(path: Path) -> None:
    """A file that is damaged: its middle is gone, its head is there."""
    quiet = Life(path)
    with over(QuietDisk()):
        for step in (Life.create, call("read_mail"), Life.close):
            step(quiet)
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join(lines[:1] + lines[2:]))


def without_head(path: Path) -> None:
    cut_in_the_middle(path)
    head_of(path).unlink()


def without_file(path: Path) -> None:
    cut_in_the_middle(path)
    path.unlink()


@pytest.mark.parametrize("power", ["with power", "without power"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("damage", [cut_in_the_middle, without_head, without_file])
def test_t16_t2_a_crash_while_damage_is_put_aside_loads_every_leg(
    tmp_path: Path, damage: Callable[[Path], None], place: str, power: str
) -> None:
    steps: list[Step] = [Life.load, Life.admit, Life.close]
    for path, disk in every_effect(tmp_path, steps, PLACES[place], damage):
        damaged = path.read_bytes() if path.exists() else b""
        life = lived(path, steps, disk)
        assert disk.hit
        if power == "without power":
            disk.lose_power()
        disk.forget()
        judge(life, broken_in=True)
        kept = [one.read_bytes() for one in path.parent.glob(f"{path.name}.damaged-*")]
        assert not damaged or damaged in kept, "the evidence is gone"


@pytest.mark.parametrize("error", FAILURES)
@pytest.mark.parametrize("damage", [cut_in_the_middle, without_head])
def test_t16_damage_on_a_disk_that_fails_is_an_error_and_every_leg_later(
    tmp_path: Path, damage: Callable[[Path], None], error: str
) -> None:
    steps: list[Step] = [Life.load, Life.admit, Life.close]
    for path, disk in every_effect(tmp_path, steps, 0, damage):
        assert disk.trouble is not None
        disk.trouble.error = FAILURES[error]
        life = lived(path, steps, disk, patient=True)
        disk.forget()
        judge(life, broken_in=True)


# --- one write, looked at closely -------------------------------------------------------------------------------------


def test_t16_the_line_is_durable_before_its_head_is_written(tmp_path: Path) -> None:
    disk = TroubledDisk()
    with over(disk):
        session = Session.create(tmp_path / "s", Conversation.new())
        disk.effects.clear()
        guarded(session).admit("text", labels=["untrusted:memory"], source="notes")
        assert disk.effects == ["write", "sync", "write", "sync"]
        abandon(session)
    disk.forget()


@pytest.mark.parametrize("at", [1, 2])
def test_t2_a_line_that_failed_is_taken_back_and_the_session_goes_on(tmp_path: Path, at: int) -> None:
    disk = TroubledDisk()
    with over(disk):
        session = Session.create(tmp_path / "s", Conversation.new())
        guard, size = guarded(session), (tmp_path / "s").stat().st_size
        disk.trouble = Trouble(len(disk.effects) + at, no_space, 0.5)
        with pytest.raises(JournalUnavailable, match="No space left"):
            guard.admit("text", labels=["untrusted:memory"], source="notes")
        assert (tmp_path / "s").stat().st_size == size
        assert not session.conversation.exposure
        guard.admit("text", labels=["private:memory"], source="notes")
        session.close()
        disk.forget()
        after = Session.load(tmp_path / "s")
        assert not after.damage
        assert set(after.conversation.taint) == {"private:memory"}
        after.close()


@pytest.mark.parametrize("at", [3, 4])
def test_t2_a_head_that_failed_stops_everything_until_it_is_loaded(tmp_path: Path, at: int) -> None:
    """Nobody can say which head is on the disk, so nothing more is acknowledged; reading stays possible."""
    disk = TroubledDisk()
    with over(disk):
        session = Session.create(tmp_path / "s", Conversation.user("hello"))
        guard = guarded(session)
        disk.trouble = Trouble(len(disk.effects) + at, input_output, 0.5)
        with pytest.raises(JournalUnavailable):
            guard.admit("text", labels=["untrusted:memory"], source="notes")
        ran: list[str] = []
        for _ in range(2):
            assert not guard.call("now", run=lambda: ran.append("x")).executed
            with pytest.raises(JournalUnavailable, match="load the session again"):
                session.conversation.say("more")
            with pytest.raises(JournalUnavailable, match="load the session again"):
                session.conversation.rewrite([])
            with pytest.raises(JournalUnavailable, match="load the session again"):
                session.record_run(session.conversation.snapshot(), session.conversation)
        assert not ran
        assert [one.text for one in session.conversation.messages] == ["hello"]
        with pytest.raises(JournalUnavailable):
            session.close()
        disk.forget()
        after = Session.load(tmp_path / "s")
        assert not after.damage
        assert "untrusted:memory" in after.conversation.taint  # the line was whole, so its labels count
        after.close()


def test_t2_a_line_that_can_not_even_be_taken_back_stops_everything(tmp_path: Path) -> None:
    disk = TroubledDisk()
    with over(disk):
        session = Session.create(tmp_path / "s", Conversation.new())
        disk.trouble = Trouble(len(disk.effects) + 1, input_output, 0.5, lasting=True)
        with pytest.raises(JournalUnavailable, match=r"Input/output|load the session again"):
            session.conversation.say("hello")
        disk.trouble = None
        with pytest.raises(JournalUnavailable, match="load the session again"):
            session.conversation.say("hello")
        abandon(session)
        disk.forget()
        after = Session.load(tmp_path / "s")
        assert not after.damage
        after.close()


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_t16_an_interrupt_at_any_effect_comes_out_and_leaves_no_half_acknowledged_write(
    tmp_path: Path, at: int, error: type[BaseException]
) -> None:
    disk = TroubledDisk()
    with over(disk):
        session = Session.create(tmp_path / "s", Conversation.new())
        disk.trouble = Trouble(len(disk.effects) + at, error, 0.5)
        with pytest.raises(error):
            session.conversation.push(Message.user("", Image("image/png", b"")))
        assert session.conversation.is_empty()
        try:
            session.conversation.push(Message.user("", Image("image/png", b"")))
        except JournalUnavailable:
            assert at >= 3
        abandon(session)
        disk.lose_power()
        after = Session.load(tmp_path / "s")
        assert not after.damage
        assert at >= 3 or "private:image" in after.conversation.taint
        after.close()


def test_t8_a_decision_that_lost_a_race_is_not_written(tmp_path: Path) -> None:
    with over(QuietDisk()):
        session = Session.create(tmp_path / "s", Conversation.new())
        held = (tmp_path / "s").read_bytes()
        with pytest.raises(Conflict):
            session.conversation.append([Resumed("2026-11-29T12:00:00.000000Z", "x")], expected=99)
        assert (tmp_path / "s").read_bytes() == held
        session.close()


def test_t11_the_fold_of_the_lines_is_the_state(tmp_path: Path) -> None:
    """Whatever a life wrote, reading it again entry by entry gives the state that was acknowledged last."""
    for name, steps in LIVES.items():
        path = tmp_path / name
        life = lived(path, steps, disk := TroubledDisk())
        disk.forget()
        state = State()
        for place, line in enumerate(path.read_bytes().removeprefix(HEADER).splitlines(), 1):
            for entry in read_line(line, place)[1].entries:
                state = apply(state, entry)
        assert state == life.conversation.state


def test_t17_a_round_that_a_crash_cut_off_is_answered(tmp_path: Path) -> None:
    with over(QuietDisk()):
        session = Session.create(tmp_path / "s", Conversation.user("go"))
        session.conversation.push(Message.assistant("", ToolUse("a", "fetch", {}), ToolUse("b", "now", {})))
        session.record_run(session.conversation.snapshot(), session.conversation)
        abandon(session)
        after = Session.load(tmp_path / "s")
        made_up = after.conversation.messages[-1]
        assert [one.id for one in made_up.blocks if isinstance(one, ToolAnswer)] == ["a", "b"]
        assert not unpaired(after.conversation.messages)
        after.close()
        last = Session.load(tmp_path / "s")
        assert last.conversation.messages == after.conversation.messages
        last.close()


def test_the_disk_says_what_failed(tmp_path: Path) -> None:
    disk = TroubledDisk(Trouble(1, lambda: OSError(errno.EROFS, "Read-only file system")))
    with over(disk), pytest.raises(JournalUnavailable, match="Read-only file system"):
        Session.create(tmp_path / "s", Conversation.new())
    disk.forget()
