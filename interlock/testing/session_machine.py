"""A state machine over sessions: the conversation machine with a disk under it (T2, T10, T11, T16).

The suite knows nothing of the format. It copies every file of the session's folder after each step, and makes crashes
and damage out of the copies: a write that stopped at any byte, a side file that is gone or older than the main one, a
main file that was cut, edited or swapped for an older copy. Whatever is loaded from there must hold at least what had
been acknowledged; and what was really damaged must be found: every leg, or an error.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from interlock.model.messages import Message, Role
from interlock.testing.machines import ConversationMachine
from interlock.testing.rounds import OTHERS, TYPED, Held
from interlock.testing.toolbox import FRIEND, TOOLS
from interlock.testing.traces import Tally, lost, shown

LEGS: Final = ("untrusted", "private", "egress")
KEPT_DISKS: Final = 8

Disk = dict[str, bytes]


class SessionMachine(ConversationMachine):
    """See :func:`interlock.testing.check_session`."""

    def __init__(
        self,
        tally: Tally,
        create: Callable[[Path, Any], Any],
        load: Callable[[Path], Any],
        factory: Callable[[], Any],
        guard: Callable[[Any], Any] | None = None,
        folder: Path | None = None,
    ) -> None:
        super().__init__(tally, factory, guard)
        self._create, self._load = create, load
        self._root = Path(tempfile.mkdtemp(prefix="interlock-suite-", dir=folder))
        self._folders = 0
        self._sessions: list[Any] = []
        self._disks: list[Disk] = []
        self._session: Any = None
        self._file = Path()
        self._recorded: list[Message] = []
        self._ever: list[Message] = []
        self._acknowledged: set[str] = set()

    def end(self) -> None:
        super().end()
        self.crash()

    def clean(self) -> None:
        for session in self._sessions:
            try:
                session.close()
            except Exception:
                pass  # it was left behind on purpose, in a folder that goes now
        shutil.rmtree(self._root, ignore_errors=True)

    # --- the disk -------------------------------------------------------------------------------------------------

    def _new_file(self) -> Path:
        self._folders += 1
        return self._root / f"{self._folders}" / "session"

    def _disk(self) -> Disk:
        """Every file of the session's folder. Locks are no content."""
        folder = self._file.parent
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.suffix != ".lock"
        }

    def _laid_out(self, disk: Disk) -> Path:
        place = self._new_file()
        for name, data in disk.items():
            file = place.parent / name
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file.write_bytes(data)
            file.chmod(0o600)
        return place

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """After each step, what is on the disk and what was acknowledged."""
        before = set(self.pool[0].exposure) if self.pool else set()
        with super().step(text):
            yield
        if self._session is not None:
            disk = self._disk()
            if not self._disks or disk != self._disks[-1]:
                self._disks = [*self._disks[-KEPT_DISKS:], disk]
                self._acknowledged = before

    @initialize()
    def begin(self) -> None:
        with self.step("A is a new conversation in a session"):
            held = self._add(self._factory())
            self._file = self._new_file()
            self._took(self._create(self._file, held.subject))
            held.subject = self._session.conversation

    def _took(self, session: Any) -> None:
        self._session = session
        self._sessions.append(session)

    # --- what sessions do -----------------------------------------------------------------------------------------

    @property
    def _own(self) -> Held:
        return self.pool[0]

    @rule(text=st.sampled_from(list(TYPED)), tool=st.sampled_from(list(TOOLS)), answered=st.booleans())
    def recorded_run(self, text: str, tool: str, answered: bool) -> None:
        """A run from its snapshot to its record, so that much is on record for what follows."""
        held = self._own
        if not held.idle:
            return
        self._snapshot(held)
        self._say(held, text)
        if answered:
            self._call(held, [tool], FRIEND, True, True)
            self._answer(held)
        self.record()

    @rule()
    def record(self) -> None:
        held = self._own
        if held.before is None:
            return
        with self.step(f"the run in {held.name} was recorded"):
            self._session.record_run(held.before[0], held.subject)
            self._note_recorded()

    def _note_recorded(self) -> None:
        self._recorded = list(self._own.messages)
        self._ever += [one for one in self._recorded if one not in self._ever]

    def _rewrite(self, held: Held, how: str) -> None:
        before, count = list(held.messages), len(held.rewritten)
        super()._rewrite(held, how)
        if held is self._own and len(held.rewritten) > count:  # on record with what it replaced
            self._replaced(before)

    def _roll_back(self, held: Held) -> None:
        before = list(held.messages)
        super()._roll_back(held)
        if held is self._own:
            self._replaced(before)

    def _replaced(self, before: list[Message]) -> None:
        self._ever += [one for one in before if one not in self._ever]
        self._note_recorded()

    @rule()
    def load_again(self) -> None:
        """Closed and loaded: everything is as it was, and calls that were under way are in doubt."""
        with self.step(f"{self._own.name} was closed and loaded"):
            self._session.close()
            self._note_recorded()
            before = self._own
            self._continue(self._load(self._file), before, before.exposure)
            self._adopt(self._own, before.messages)
            self.demand(not getattr(self._session, "damage", ""), "T10", "no damage", self._session)

    @rule()
    def second_writer(self) -> None:
        with self.step("somebody else opened the file, too"):
            try:
                other = self._load(self._file)
            except Exception:
                self.note("→ refused")
                return
            self._sessions.append(other)
            self.broken("one writer at a time", "an error that says so", "a second session")

    # --- crashes --------------------------------------------------------------------------------------------------

    def _continue(self, session: Any, before: Held, labels: set[str]) -> None:
        """The loaded conversation is all that is left; its forks and children were in the process that stopped."""
        self._took(session)
        # Of a damaged session nothing counts as typed, so a rollback leaves a prompt that was typed before.
        texts = set[str]() if getattr(session, "damage", "") else before.texts
        self.pool = [Held(before.name, session.conversation, set(labels), typed=before.typed, texts=texts)]
        self._own.messages = list(session.conversation.messages)
        self._disks = []

    def _crashed(self, disk: Disk, labels: set[str]) -> None:
        """The process stopped and this is on the disk: it loads, with at least these labels."""
        before, self._file = self._own, self._laid_out(disk)
        self._continue(self._load(self._file), before, labels)
        self._as_stored(self._own)

    def _as_stored(self, held: Held) -> None:
        found = set(held.subject.exposure)
        self.demand(
            not lost(held.taint, found), "T16", f"at least what was acknowledged: {shown(held.taint)}", shown(found)
        )
        ever = self._session.messages_ever()
        strange = [one for one in held.messages if one.role is not Role.TOOL and not _among(one, ever)]
        self.demand(not strange, "the contract", "messages_ever holds all messages", f"not {strange}")
        # What was not acknowledged, or was lost with its head, is on record no more.
        self._recorded, self._ever = list(held.messages), list(ever)

    @rule()
    def crash(self) -> None:
        """Between two writes: everything that was acknowledged is there, also the messages that were recorded."""
        held = self._own
        with self.step(f"the process of {held.name} stopped"):
            recorded, said = list(self._recorded), list(self._ever)
            self._crashed(self._disk(), held.exposure)
            self._adopt(self._own, recorded)
            ever = self._session.messages_ever()
            missing = [one for one in said if not _among(one, ever)]
            self.demand(not missing, "T11", "everything that was ever recorded", f"not {missing[:2]}")

    @rule(where=st.integers(0, 2**20), which=st.integers(0, 3), others_done=st.booleans())
    def crash_in_a_write(self, where: int, which: int, others_done: bool) -> None:
        """The last write stopped at some byte of one of the files that it touches; the others were done or not."""
        if len(self._disks) < 2:
            return
        old, new = self._disks[-2:]
        changed = sorted(name for name in new if old.get(name) != new[name])
        if not changed:
            return
        name = changed[which % len(changed)]
        torn, cut = _torn(old.get(name, b""), new[name], where)
        with self.step(f"the process of {self._own.name} stopped in a write, at byte {cut} of {name}"):
            self._crashed({**(new if others_done else old), name: torn}, self._acknowledged)

    # --- damage ---------------------------------------------------------------------------------------------------

    @rule(
        how=st.sampled_from(["cut", "edited", "a line removed", "two lines swapped", "an older copy", "head lost"]),
        where=st.integers(0, 2**20),
    )
    def damage(self, how: str, where: int) -> None:
        """Somebody changed the files: found, as every leg or as an error."""
        disk = self._disk()
        changed = self._damaged(disk, how, where)
        if changed is None or changed == disk:
            return
        with self.step(f"the files of {self._own.name} were damaged: {how}"):
            try:
                session = self._load(self._laid_out(changed))
            except Exception as error:
                self.note(f"→ {type(error).__name__}")
                return
            self._sessions.append(session)
            found = set(session.conversation.exposure)
            here = self._own.exposure
            missing = [leg for leg in LEGS if not any(one.startswith(leg) for one in found)]
            self.demand(not missing, "T10", "every leg, or an error", shown(found))
            self.demand(not lost(here, found), "T16", f"at least {shown(here)}", shown(found))
            session.close()

    @rule(age=st.sampled_from([1, 1, *range(1, KEPT_DISKS + 1)]))
    def older_head(self, age: int) -> None:
        """The side files are older than the main one. If nothing else shows it, no label may be lost by it."""
        if len(self._disks) > age:
            self._older_head(self._disks[-1 - age], age)

    @rule(label=st.sampled_from(OTHERS))
    def last_write_without_its_head(self, label: str) -> None:
        """One write more in the main file than its head knows: a crash looks like this, and so does an old head."""
        held, before = self._own, self._disk()
        with self.step(f"into {held.name} content with {label} was admitted"):
            self._guard(held).admit("a note", labels=[label], source="notes/7")
            held.taint.add(label)
        self._older_head(before, 1)

    def _older_head(self, old: Disk, age: int) -> None:
        disk, name = self._disk(), self._file.name
        with self.step(f"the head of {self._own.name} was put back by {age}"):
            self._crashed({**disk, **{one: old[one] for one in old if one != name}}, self._own.exposure)

    def _damaged(self, disk: Disk, how: str, where: int) -> Disk | None:
        name = self._file.name
        data = disk.get(name, b"")
        lines = data.splitlines(keepends=True)
        match how:
            case "cut":
                return {**disk, name: data[: where % max(1, len(data))]}
            case "edited":
                at = where % max(1, len(data))
                return {**disk, name: data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]}
            case "a line removed":
                at = where % max(1, len(lines))
                return {**disk, name: b"".join(lines[:at] + lines[at + 1 :])}
            case "two lines swapped":
                at = where % max(1, len(lines) - 1)
                return {**disk, name: b"".join([*lines[:at], *lines[at : at + 2][::-1], *lines[at + 2 :]])}
            case "an older copy":
                old = self._disks[0].get(name, data) if self._disks else data
                return {**disk, name: old}
            case _:
                return {name: data} if len(disk) > 1 else None


def _among(message: Message, ever: tuple[Message, ...]) -> bool:
    """Is it there, or did it go on growing there?"""
    count = len(message.blocks)
    return any(one.role is message.role and one.blocks[:count] == message.blocks for one in ever)


def _torn(before: bytes, after: bytes, where: int) -> tuple[bytes, int]:
    """A file between two states: what differs is new up to some byte and old from there on."""
    ends = min(len(before), len(after))
    first = next((at for at in range(ends) if before[at] != after[at]), ends)
    back = next((at for at in range(1, ends - first + 1) if before[-at] != after[-at]), ends - first + 1) - 1
    last = len(after) if len(before) != len(after) else len(after) - back
    cut = first + where % (max(last, first) - first + 1)
    return after[:cut] + before[cut:], cut
