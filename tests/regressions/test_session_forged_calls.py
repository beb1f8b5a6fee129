"""A damaged session file loaded a call that has no result, in the user's role (T17).

Of a damaged file the messages that can still be read are shown under every label. When calls and results did not fit
together, everything but messages of the user and the system was left out, by role. A stranger who edits the file can
write a call into a message of the user: it stayed, and the next request was one that no provider takes.
Mutation that this file catches: leaving out messages by their role and not by what is in them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock import Conversation, Session
from interlock.model.transcript import unpaired
from tests.faults.disks import every_leg

USE = b'{"arguments":{},"name":"fetch","server":"","use":"z"}'
ANSWER = b'{"answers":"q","is_error":false,"text":"x"}'


@pytest.mark.parametrize("block", [USE, ANSWER])
@pytest.mark.parametrize("role", ["user", "system", "assistant", "tool"])
def test_t17_a_forged_line_can_not_part_a_call_from_its_result(tmp_path: Path, role: str, block: bytes) -> None:
    path = tmp_path / "s"
    Session.create(path, Conversation.user("hello")).close()
    message = b'{"blocks":[%b],"labels":[],"role":"%b"}' % (block, role.encode())
    forged = b'{"body":{"changes":[{"keep":1,"messages":[%b]}]}}\n' % message
    path.write_bytes(path.read_bytes() + forged * 2)
    session = Session.load(path)
    assert session.damage
    assert every_leg(session.conversation)
    assert not unpaired(session.conversation.messages)
    session.close()
