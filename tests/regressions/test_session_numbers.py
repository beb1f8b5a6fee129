"""`"sequence":1` changed to `"sequence":true` or `1.0` was not found in a session file (T10).

`True` and `1.0` equal 1, and the line was compared with what would be written of the very value that had been read. No
label could be lost by it; but an edit is found, whatever it changes.
Mutation that this file catches: the type of the number left unchecked.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock import Conversation, Session
from tests.faults.disks import every_leg


@pytest.mark.parametrize("written", [b"true", b"1.0", b"1e0", b'"1"', b"null", b"01", b"-1", b"[1]"])
def test_t10_a_number_in_another_dress_is_an_edit(tmp_path: Path, written: bytes) -> None:
    path = tmp_path / "s"
    Session.create(path, Conversation.user("hello")).close()
    path.write_bytes(path.read_bytes().replace(b'"sequence":1}', b'"sequence":%b}' % written, 1))
    session = Session.load(path)
    assert session.damage
    assert every_leg(session.conversation)
    session.close()
