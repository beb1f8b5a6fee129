"""Looking at a session that is being written called it damaged.

Looking takes no lock. It read the file and then the head: a write in between had a head that named a line which had not
been read yet, and an honest session was reported as tampered with.
Mutation that this file catches: one look, without another one when the files changed meanwhile.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interlock import Conversation, Session
from interlock.errors import Tampered
from interlock.stores import session_file
from interlock.stores.session_file import SessionFile
from tests.faults.disks import guarded


@pytest.mark.parametrize("writes", [1, 2, 3])
@pytest.mark.parametrize("times", [1, 2])
def test_t10_a_writer_at_work_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int, times: int
) -> None:
    session = Session.create(tmp_path / "s", Conversation.user("hello"))
    guard, read = guarded(session), session_file.read_regular
    left = [times]

    def reading(path: Path) -> Any:
        found = read(path)
        if left[0]:
            left[0] -= 1
            for number in range(writes):
                guard.admit("text", labels=[f"private:n{left[0]}{number}"], source="notes")
        return found

    monkeypatch.setattr(session_file, "read_regular", reading)
    try:
        seen = SessionFile.look(tmp_path / "s")
    except Tampered as problem:
        pytest.fail(f"an honest session was called damaged: {problem}")
    assert set(seen.folded.taint) <= set(session.conversation.taint)
    session.close()
