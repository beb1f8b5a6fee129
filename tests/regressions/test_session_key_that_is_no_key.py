"""A key that was given as text replaced the session.

`key="secret"` in place of `key=b"secret"`: the head could not be checked, which counted as damage. The session was put
aside, a new file was written in its place, and then the head could not be made either: a `TypeError`, and a session
that its right key no longer opened.
Mutation that this file catches: a key that is not looked at before anything is done.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interlock import Conversation, Session
from interlock.errors import InterlockError


@pytest.mark.parametrize("key", ["secret", 5, ["secret"]])
def test_a_key_of_another_type_is_refused_and_nothing_is_touched(tmp_path: Path, key: Any) -> None:
    Session.create(tmp_path / "s", Conversation.user("hello"), key=b"secret").close()
    held = {one: one.read_bytes() for one in tmp_path.iterdir()}
    with pytest.raises((InterlockError, TypeError)):
        Session.load(tmp_path / "s", key=key)
    with pytest.raises((InterlockError, TypeError)):
        Session.create(tmp_path / "t", Conversation.user("hello"), key=key)
    assert {one: one.read_bytes() for one in tmp_path.iterdir() if one.name in ("s", "s.head")} == {
        one: data for one, data in held.items() if one.name in ("s", "s.head")
    }
    assert not (tmp_path / "t").exists()
    session = Session.load(tmp_path / "s", key=b"secret")
    assert not session.damage
    session.close()
