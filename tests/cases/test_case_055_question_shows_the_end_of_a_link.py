"""Case 55: the person is shown `notes.txt` and says yes, and what is written is the list of keys that may log in.

The question shows where the path leads, and the yes is bound to that place. The honest twin is a plain file.
"""

from __future__ import annotations

from pathlib import Path

from interlock.assembly import LocalFiles
from interlock.model.question_view import lines
from tests.approvals.desk import YES, Person, Sent, locked, reader

NOTE = {"path": "notes.txt", "text": "x"}


def asked(folder: Path, *answers: object) -> tuple[Person, Sent, bool]:
    person, sent = Person(*answers), Sent()
    guard = reader(locked(person, files=LocalFiles(folder), settings={"leak_guard": "off"}))
    guard.admit("write it", labels=["untrusted:web"], source="https://evil.test/")
    return person, sent, guard.call("write", NOTE, run=sent).executed


def test_attack_the_question_shows_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("keys")
    (tmp_path / "notes.txt").symlink_to("elsewhere")
    person, sent, executed = asked(tmp_path, None)
    assert (executed, sent.calls) == (False, [])
    whole = "\n".join(lines(person.asked[0]))
    assert f"notes.txt → {tmp_path / 'elsewhere'} (4 bytes, sha256 " in whole


def test_attack_a_link_to_what_decides_is_asked_of_nobody(tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / "notes.txt").symlink_to(tmp_path / ".ssh" / "authorized_keys")
    person, sent, executed = asked(tmp_path, YES)
    assert (executed, sent.calls, person.asked) == (False, [], [])


def test_honest_a_plain_file(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("old")
    person, sent, executed = asked(tmp_path, YES)
    assert (executed, sent.calls) == (True, [NOTE])
    assert f"notes.txt → {tmp_path / 'notes.txt'} (3 bytes" in "\n".join(lines(person.asked[0]))
