"""Case 36: a stored state is a program, and loading it runs it.

Going back in a session reads what somebody may have written in between. Entries are JSON of closed kinds: a pickle, a
class tag, an unknown kind or a canonical form that is not ours is `Tampered`, and nothing in it is run. A session file
with such a line, or one that is such a thing as a whole, loads with every leg. The honest twin writes an entry of every
kind and a whole session, and reads them back.
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from interlock import Conversation, Session
from interlock.errors import Tampered
from interlock.model.digests import content_digest
from interlock.model.entries import Admitted, Decided, Failed, Observed, Opened, Typed, decode, encode
from interlock.model.labels import EVERY_LEG, Label
from tests.cases.desk import EVIL, did, got, shared

AT = "2026-11-29T12:00:00.000000Z"
NOTHING = content_digest("")


class Runs:
    """Runs when it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.putenv, ("INTERLOCK_CASE_36", "1")


@pytest.mark.parametrize(
    "body",
    [
        pickle.dumps(Runs()),
        pickle.dumps(Opened(AT, "c-1")),
        b'{"py/object":"interlock.model.entries.Opened","at":"x","conversation":"c-1"}',
        b'{"__class__":"Opened","at":"x","conversation":"c-1","kind":"opened"}',
        b'!!python/object/apply:os.system ["true"]',
        b'{"at":"x","kind":"cleared"}',
        b'{"at":"x","conversation":"c-1","kind":"opened","labels":[],"namespace":"default","parent":"","x":1}',
        encode(Opened(AT, "c-1")) + b" ",
        encode(Opened(AT, "c-1")).replace(b"[]", b'["untrusted:web",7]'),
        b"",
        b"null",
        b"\xff\xfe",
    ],
)
def test_attack_what_is_no_entry_is_tampered_with(body: bytes) -> None:
    with pytest.raises(Tampered):
        decode(body, 3)
    assert "INTERLOCK_CASE_36" not in os.environ


FORGED = {
    "a pickle": pickle.dumps(Runs()),
    "a pickle of a conversation": pickle.dumps(Conversation.new()),
    "a class tag": b'{"body":{"py/object":"interlock.model.records.Record"},"digest":"","previous":"","sequence":1}',
    "YAML": b'!!python/object/apply:os.putenv ["INTERLOCK_CASE_36", "1"]',
    "nothing": b"",
}


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_attack_a_session_file_that_is_a_program(tmp_path: Path, forged: bytes, whole: bool) -> None:
    path = tmp_path / "s.jsonl"
    with Session.create(path, Conversation.user("hello")) as session:
        did(shared().guard(session.conversation), "calc", {"expression": "1"})
    lines = path.read_bytes().splitlines()
    path.write_bytes(forged if whole else b"\n".join([*lines[:-2], forged.replace(b"\n", b" "), lines[-1], b""]))
    with Session.load(path) as session:
        assert set(session.conversation.taint) == set(EVERY_LEG)
        assert session.damage
        assert got(did(shared().guard(session.conversation), "send_email", EVIL))[0] == "deny"
    assert "INTERLOCK_CASE_36" not in os.environ


def test_honest_a_session_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with Session.create(path, Conversation.user("Write to kim@corp.example please.")) as session:
        did(shared().guard(session.conversation), "page_text", {"page": "guide"})
    with Session.load(path) as session:
        assert set(session.conversation.taint) == {"untrusted:web"}
        assert not session.damage
        assert did(shared().guard(session.conversation), "send_email", {**EVIL, "to": "kim@corp.example"}).executed


def test_honest_every_kind_of_entry_comes_back() -> None:
    labels = (Label("untrusted:web"),)
    for entry in (
        Opened(AT, "c-1", labels=labels),
        Typed(AT, NOTHING, 0),
        Admitted(AT, "notes", labels, NOTHING, 0),
        Decided(AT, 1, "a", "", "calc", NOTHING, "allow", (), 1),
        Observed(AT, 1, True, NOTHING, 0, labels),
        Failed(AT, 1, True, "OSError", labels),
    ):
        assert decode(encode(entry)) == entry
