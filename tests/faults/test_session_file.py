"""Proves T10, T2 and T17 of stored sessions: cut, edited, swapped or parted from its head, a file loads every leg.

Every byte of the last two records and of the head is cut off and changed; lines are swapped, doubled, removed, put in.
What can't be told from a crash between two writes is repaired and keeps every label; everything else is every leg, in a
new conversation in which nothing counts as typed, with the damaged files beside.
Mutations that this file catches: a file without its head is believed; lines after the head are passed over; one of two
damaged heads is passed over; the key is not asked for; evidence replaces earlier evidence; a version that is unknown
counts as damage; the new conversation keeps what was typed.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interlock import Call, Conversation, Message, Session
from interlock.errors import JournalUnavailable
from interlock.model.messages import Text, ToolUse
from interlock.model.records import read_line
from interlock.model.transcript import unpaired
from interlock.stores.head_file import SLOT, head_of
from interlock.stores.session_file import HEADER
from tests.faults.disks import QuietDisk, abandon, every_leg, guarded, missing, over
from tests.worlds import FixedClock

LABELS = {"private:mail", "untrusted:mail", "untrusted:memory", "private:image"}
TO_BOB = Call("send", {"to": "bob@corp.example", "body": "x"}, "b")


@pytest.fixture(autouse=True)
def no_waiting() -> Iterator[None]:
    with over(QuietDisk()):
        yield


def written(path: Path, *, key: bytes = b"", records: int = 0) -> Path:
    """A session with a typed address, a few labels, a rewrite, and a call whose result never came."""
    conversation = Conversation(clock=FixedClock())
    conversation.say("mail bob@corp.example")
    session = Session.create(path, conversation, key=key, clock=FixedClock())
    guard = guarded(session)
    outcome = guard.call("read_mail", {"folder": "inbox"}, id="a", run=lambda **_: "mail from a stranger")
    conversation.push(Message.assistant("", ToolUse("a", "read_mail", {"folder": "inbox"})))
    conversation.push(Message.results(outcome))
    conversation.rewrite(conversation.messages[:1])
    conversation.push(Message.user("look"))
    for number in range(records):
        guard.admit(f"text {number}", labels=["untrusted:memory"], source="notes")
    guard.admit("text", labels=["untrusted:memory", "private:image"], source="notes")
    session.record_run(conversation.snapshot(), conversation)
    abandon(session)
    return path


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with over(QuietDisk()):
        return written(tmp_path_factory.mktemp("template") / "s")


@pytest.fixture
def stored(template: Path, tmp_path: Path) -> Path:
    shutil.copy(template, tmp_path / "s")
    shutil.copy(head_of(template), head_of(tmp_path / "s"))
    return tmp_path / "s"


class Copies:
    """A fresh copy of a session for each change."""

    def __init__(self, stored: Path, folder: Path) -> None:
        self.log, self.head = stored.read_bytes(), head_of(stored).read_bytes()
        self.folder = folder
        self.number = 0

    def put(self, log: bytes | None = None, head: bytes | None = None) -> Path:
        self.number += 1
        path = self.folder / f"c{self.number}"
        path.write_bytes(self.log if log is None else log)
        head_of(path).write_bytes(self.head if head is None else head)
        return path

    @property
    def lines(self) -> list[bytes]:
        return self.log.removeprefix(HEADER).splitlines(keepends=True)

    def last_two(self) -> int:
        """Where the last two records begin."""
        return len(self.log) - sum(map(len, self.lines[-2:]))

    def newest_head(self) -> tuple[int, int]:
        """Where the head of the last record begins, and its length."""
        begin = SLOT * (len(self.lines) % 2)
        return begin, self.head.index(b"\n", begin) + 1 - begin


@pytest.fixture
def copies(stored: Path, tmp_path: Path) -> Copies:
    folder = tmp_path / "copies"
    folder.mkdir()
    return Copies(stored, folder)


def opened(path: Path, **known: bytes) -> Session:
    return Session.load(path, clock=FixedClock(), **known)


def damaged(path: Path, *, twice: bool = True, **known: bytes) -> str:
    """Load a damaged file, and check all that must be true of it. Gives what was wrong.

    Args:
        twice: load what became of it, too.
    """
    old = path.read_bytes() if path.exists() else None
    session = opened(path, **known)
    assert session.damage
    assert every_leg(session.conversation)
    assert not session.conversation.state.typed
    assert not session.conversation.state.texts
    assert session.conversation.state.deafening
    assert not unpaired(session.conversation.messages)
    assert all(len(session.timeline.labels_of(place)) >= 3 for place in range(len(session.timeline)))
    assert guarded(session).preview(TO_BOB).verdict != "allow", "an address that nobody typed here is vouched for"
    why = session.damage
    abandon(session)
    kept = [one.read_bytes() for one in path.parent.glob(f"{path.name}.damaged-*")]
    assert old is None or old in kept, "the evidence is gone"
    if not twice:
        return why
    again = opened(path, **known)
    assert not again.damage
    assert every_leg(again.conversation)
    assert not again.conversation.state.typed
    abandon(again)
    return why


def repaired_or_every_leg(path: Path) -> bool:
    session = opened(path)
    assert not missing(session.conversation, LABELS), "labels that had been acknowledged are gone"
    assert every_leg(session.conversation) or not session.damage
    assert not unpaired(session.conversation.messages)
    abandon(session)
    again = opened(path)
    assert not again.damage
    assert not missing(again.conversation, LABELS)
    assert every_leg(again.conversation) or not session.damage
    abandon(again)
    return not session.damage


def test_what_the_template_is(copies: Copies, stored: Path) -> None:
    assert len(copies.lines) >= 6
    assert [read_line(line[:-1], place)[0].sequence for place, line in enumerate(copies.lines, 1)][-1] == len(
        copies.lines
    )
    session = opened(stored)
    assert not session.damage
    assert set(session.conversation.taint) == LABELS
    assert guarded(session).preview(TO_BOB).verdict == "allow"
    session.close()


# --- cut ----------------------------------------------------------------------------------------------------------


def test_t10_a_file_cut_at_any_byte_of_its_last_two_records_loads_every_leg(copies: Copies) -> None:
    for end in range(copies.last_two(), len(copies.log)):
        assert "missing" in (why := damaged(copies.put(copies.log[:end]), twice=end % 32 == 0)) or (
            "not a record" in why
        )


def test_t10_a_file_cut_at_any_byte_of_its_beginning_loads_every_leg(copies: Copies) -> None:
    for end in range(len(HEADER) + 4):
        if end != len(HEADER) - 1:  # see tests/regressions/test_session_versions.py
            damaged(copies.put(copies.log[:end]))


def test_t16_a_head_cut_at_any_byte_loads_every_label(copies: Copies) -> None:
    begin, length = copies.newest_head()
    edges = {0, 1, SLOT - 1, SLOT, SLOT + 1, len(copies.head) - 1}
    inside = {*range(begin, begin + length), *range(SLOT - 8, SLOT + 8)}
    outcomes = {
        end: repaired_or_every_leg(copies.put(head=copies.head[:end]))
        for end in sorted(edges | inside)
        if end < len(copies.head)
    }
    assert not outcomes[0], "a head without a byte is no head"


def test_t16_a_line_that_nobody_acknowledged_is_cut_off_and_its_labels_stay(copies: Copies, stored: Path) -> None:
    """The line of a write that died before its head: cut at any byte of it, whole, or turned into noise."""
    session = opened(stored)
    before, held = stored.read_bytes(), head_of(stored).read_bytes()
    guarded(session).admit("text", labels=["private:late"], source="notes")
    line = stored.read_bytes()[len(before) :]
    abandon(session)
    for end in range(len(line) + 1):
        after = opened(copies.put(before + line[:end], held))
        assert not after.damage
        assert set(after.conversation.taint) == LABELS | ({"private:late"} if end == len(line) else set())
        abandon(after)
    noise = opened(copies.put(before + b"noise\n", held))
    assert not noise.damage
    assert every_leg(noise.conversation), "a whole line that can't be read may have held anything"
    abandon(noise)
    damaged(copies.put(before + line + b"n", held))
    damaged(copies.put(before + line + line, held))


# --- edited -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bit", [0, 5])
def test_t10_any_byte_of_the_last_record_changed_loads_every_leg(copies: Copies, bit: int) -> None:
    begin = len(copies.log) - len(copies.lines[-1])
    for place in range(begin, len(copies.log)):
        changed = bytearray(copies.log)
        changed[place] ^= 1 << bit
        damaged(copies.put(bytes(changed)), twice=place % 32 == 0)


@pytest.mark.parametrize("bit", [0, 6])
def test_t16_any_byte_of_the_newest_head_changed_loads_every_label(copies: Copies, bit: int) -> None:
    begin, length = copies.newest_head()
    for place in range(begin, begin + length):
        changed = bytearray(copies.head)
        changed[place] ^= 1 << bit
        repaired_or_every_leg(copies.put(head=bytes(changed)))


def test_t10_any_byte_of_the_older_head_changed_loads_every_leg(copies: Copies) -> None:
    """The newest one is whole and names the last line, so no crash explains it."""
    begin = SLOT - copies.newest_head()[0]
    for place in range(begin, copies.head.index(b"\n", begin)):
        changed = bytearray(copies.head)
        changed[place] ^= 1
        assert "head" in damaged(copies.put(head=bytes(changed)), twice=place % 32 == 0)


def swapped(lines: list[bytes]) -> list[bytes]:
    return [*lines[:2], lines[3], lines[2], *lines[4:]]


def doubled(lines: list[bytes]) -> list[bytes]:
    return [*lines[:3], lines[2], *lines[3:]]


def removed(lines: list[bytes]) -> list[bytes]:
    return [*lines[:2], *lines[3:]]


def last_removed(lines: list[bytes]) -> list[bytes]:
    return lines[:-1]


def first_removed(lines: list[bytes]) -> list[bytes]:
    return lines[1:]


def backwards(lines: list[bytes]) -> list[bytes]:
    return lines[::-1]


def empty_put_in(lines: list[bytes]) -> list[bytes]:
    return [*lines[:3], b"\n", *lines[3:]]


def two_after_the_end(lines: list[bytes]) -> list[bytes]:
    return [*lines, lines[-1], lines[-1]]


def spaced(lines: list[bytes]) -> list[bytes]:
    return [*lines[:-1], lines[-1].replace(b'","', b'", "', 1)]


def labels_gone(lines: list[bytes]) -> list[bytes]:
    return [line.replace(b'"untrusted:mail"', b'"untrusted:mild"') for line in lines]


def everything_gone(lines: list[bytes]) -> list[bytes]:
    return []


EDITS = [
    swapped,
    doubled,
    removed,
    last_removed,
    first_removed,
    backwards,
    empty_put_in,
    two_after_the_end,
    spaced,
    labels_gone,
    everything_gone,
]


@pytest.mark.parametrize("edit", EDITS)
def test_t10_lines_that_are_not_those_that_were_written(
    copies: Copies, edit: Callable[[list[bytes]], list[bytes]]
) -> None:
    damaged(copies.put(HEADER + b"".join(edit(copies.lines))))


@pytest.mark.parametrize("data", [b"", b"\n", b"{}\n", b"\0" * 200, b"\xff\xfe" * 50, HEADER * 2, b"[" * 100_000])
def test_t10_a_file_that_is_no_session(copies: Copies, data: bytes) -> None:
    damaged(copies.put(data))
    damaged(copies.put(HEADER + data))
    damaged(copies.put(head=data))


# --- swapped ------------------------------------------------------------------------------------------------------


def older(stored: Path) -> tuple[bytes, bytes]:
    """The files as they stood before a few more writes, which this makes."""
    log, head = stored.read_bytes(), head_of(stored).read_bytes()
    session = opened(stored)
    guard = guarded(session)
    for number in range(3):
        guard.admit(f"text {number}", labels=["private:later"], source="notes")
    session.close()
    return log, head


def test_t10_an_older_copy_of_the_file_alone_loads_every_leg(stored: Path) -> None:
    log, _ = older(stored)
    stored.write_bytes(log)
    assert "missing" in damaged(stored)


def test_t10_an_older_copy_of_the_head_alone_loads_every_leg(stored: Path) -> None:
    _, head = older(stored)
    head_of(stored).write_bytes(head)
    assert "after the head" in damaged(stored)


def test_t10_a_head_that_is_one_write_older_looks_like_a_crash_and_keeps_every_label(stored: Path) -> None:
    session = opened(stored)
    head = head_of(stored).read_bytes()
    guarded(session).admit("text", labels=["private:later"], source="notes")
    abandon(session)
    head_of(stored).write_bytes(head)
    after = opened(stored)
    assert not after.damage
    assert set(after.conversation.taint) == LABELS | {"private:later"}
    after.close()


@pytest.mark.parametrize("records", [0, 1])
def test_t10_file_and_head_of_two_sessions(copies: Copies, tmp_path: Path, records: int) -> None:
    other = written(tmp_path / "other", records=records)
    damaged(copies.put(head=head_of(other).read_bytes()))
    damaged(copies.put(log=other.read_bytes()))


# --- gone ---------------------------------------------------------------------------------------------------------


def test_t10_a_head_that_is_gone_is_every_leg(stored: Path) -> None:
    head_of(stored).unlink()
    assert "the head is gone" in damaged(stored)


def test_t10_a_file_that_is_gone_is_every_leg(stored: Path) -> None:
    stored.unlink()
    assert "the file is gone" in damaged(stored)


def test_both_gone_is_no_session(stored: Path) -> None:
    stored.unlink()
    head_of(stored).unlink()
    with pytest.raises(JournalUnavailable, match="no session; create one"):
        opened(stored)
    assert not stored.exists()


def test_t2_a_session_that_lost_one_file_is_not_created_anew(stored: Path) -> None:
    for gone in (stored, head_of(stored)):
        held = gone.read_bytes()
        gone.unlink()
        with pytest.raises(JournalUnavailable, match="exists already"):
            Session.create(stored, Conversation.new())
        gone.write_bytes(held)
    with pytest.raises(JournalUnavailable, match="exists already"):
        Session.create(stored, Conversation.new())
    opened(stored).close()


# --- versions and keys --------------------------------------------------------------------------------------------


def test_a_later_version_is_left_alone(stored: Path) -> None:
    later = stored.read_bytes().replace(b'session":1', b'session":2', 1)
    stored.write_bytes(later)
    head = head_of(stored).read_bytes()
    with pytest.raises(JournalUnavailable, match="version 2"):
        opened(stored)
    assert stored.read_bytes() == later
    assert head_of(stored).read_bytes() == head
    assert not list(stored.parent.glob("*.damaged*"))


def test_t10_a_keyed_session_opens_with_its_key_only(tmp_path: Path) -> None:
    path = written(tmp_path / "s", key=b"key")
    session = opened(path, key=b"key")
    assert not session.damage
    assert set(session.conversation.taint) == LABELS
    session.close()
    assert "key" in damaged(path, key=b"another")


def test_t10_a_keyed_session_without_its_key_is_every_leg(tmp_path: Path) -> None:
    assert "key" in damaged(written(tmp_path / "s", key=b"key"))


def test_t10_a_session_without_a_key_is_no_keyed_one(stored: Path) -> None:
    assert "key" in damaged(stored, key=b"key")


def test_t10_a_forger_without_the_key_is_found(tmp_path: Path) -> None:
    """Both files written anew by somebody who knows the format: only the key tells."""
    path, forged = written(tmp_path / "s", key=b"key"), tmp_path / "forged"
    Session.create(forged, Conversation.user("nothing ever happened")).close()
    shutil.copy(forged, path)
    shutil.copy(head_of(forged), head_of(path))
    assert "key" in damaged(path, key=b"key")


# --- evidence, and what damage leaves -----------------------------------------------------------------------------


def test_t2_damage_again_and_again_keeps_all_evidence_and_every_leg(stored: Path) -> None:
    seen: list[bytes] = []
    for number in range(1, 5):
        seen.append(stored.read_bytes()[:-9])
        stored.write_bytes(seen[-1])
        head = head_of(stored).read_bytes()
        session = opened(stored)
        assert session.damage.endswith(f"kept as s.damaged-{number}")
        assert every_leg(session.conversation)
        guarded(session).admit(f"text {number}", labels=["untrusted:memory"], source="notes")
        session.close()
        evidence = stored.with_name(f"s.damaged-{number}")
        assert head_of(evidence).read_bytes() == head
        assert evidence.stat().st_mode & 0o777 == head_of(evidence).stat().st_mode & 0o777 == 0o600
    assert [stored.with_name(f"s.damaged-{number}").read_bytes() for number in range(1, 5)] == seen


def test_evidence_never_replaces_what_somebody_else_put_there(stored: Path) -> None:
    taken = (stored.with_name("s.damaged-1"), head_of(stored.with_name("s.damaged-2")))
    for one in taken:
        one.write_bytes(b"mine")
    head_of(stored).unlink()
    session = opened(stored)
    assert session.damage.endswith("s.damaged-3")
    session.close()
    assert [one.read_bytes() for one in taken] == [b"mine", b"mine"]


def test_t2_damage_is_a_new_conversation(stored: Path) -> None:
    """An id that can't be believed could be that of another conversation, with its grants and tickets."""
    session = opened(stored)
    old = session.conversation.id
    ticket = guarded(session).propose(TO_BOB)
    session.close()
    ids = {old, ticket.conversation}
    for number in range(1, 4):
        head_of(stored).unlink()
        after = opened(stored)
        ids.add(after.conversation.id)
        assert len(ids) == number + 1
        after.close()


def test_what_can_be_read_of_a_damaged_file_is_shown_under_every_label(stored: Path) -> None:
    head_of(stored).unlink()
    session = opened(stored)
    assert [one.text for one in session.conversation.messages] == ["mail bob@corp.example", "look"]
    assert session.timeline.labels_of(0) == session.timeline.labels_of(1)
    assert {"untrusted:unknown", "private:unknown", "egress:unknown"} <= set(session.timeline.labels_of(0))
    session.close()


def test_t2_a_typed_text_in_a_damaged_file_grounds_nothing_and_is_not_the_persons(stored: Path) -> None:
    head_of(stored).unlink()
    session = opened(stored)
    fresh = session.conversation.restart_from_trusted()
    assert fresh.is_empty()
    assert set(fresh.taint) == {"egress:unknown"}
    before = session.conversation.snapshot()
    session.conversation.roll_back_failed_turn(before)
    assert session.conversation.messages[-1].blocks == (Text("look"),), "a prompt that nobody typed here stays"
    session.close()
