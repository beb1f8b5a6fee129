"""Proves that `interlock session` shows what a session file holds, writes nothing, and says when it is damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from interlock import Call, Conversation, Interlock, Manifest, MemoryJournal, Message, Session, ToolUse
from interlock.cli import cli

FETCH = {"returns": ["untrusted:web"], "egress": "none"}
SLOW = {"returns": ["private:files"], "egress": "none"}
MANIFEST = Manifest.parse({"version": 1, "tools": {"fetch": FETCH, "slow": SLOW}})


def main(arguments: list[str]) -> int:
    """The command in this process; gives its exit code."""
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments, standalone_mode=True)
    return int(ended.value.code or 0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats" / "monday.jsonl"


def written(path: Path, key: bytes = b"") -> Conversation:
    conversation = Conversation.user("look\x1b[2J at \u202ethis")
    with Session.create(path, conversation, key=key):
        guard = Interlock(manifest=MANIFEST, journal=MemoryJournal()).guard(conversation)
        conversation.push(Message.assistant("", ToolUse("a", "fetch", {})))
        conversation.push(Message.results(guard.call("fetch", {}, id="a", run=lambda: "page")))
        guard.propose(Call("slow", {}, id="b"))
    return conversation


def test_it_shows_labels_messages_and_what_is_under_way(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conversation = written(path)
    before = path.read_bytes()
    assert main(["session", str(path)]) == 0
    shown = capsys.readouterr().out
    for text in (conversation.id, "untrusted:web", "call 1, fetch", "call 2, slow: no outcome yet", "[calls fetch]"):
        assert text in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert path.read_bytes() == before


def test_as_data(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(path)
    assert main(["session", str(path), "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert [one["label"] for one in value["taint"]] == ["untrusted:web"]
    assert [one["labels"] for one in value["messages"]] == [[], [], ["untrusted:web"]]
    assert value["in_flight"][0]["tool"] == "slow"
    assert value["damaged"] == ""


def test_it_needs_no_lock(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(path)
    with Session.load(path):
        assert main(["session", str(path)]) == 0
    assert "verified" in capsys.readouterr().out


@pytest.mark.parametrize("extra", [[], ["--json"]])
def test_damage_is_shown_and_left_alone(path: Path, extra: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    written(path)
    data = path.read_bytes().replace(b"fetch", b"fetsh", 1)
    path.write_bytes(data)
    assert main(["session", str(path), *extra]) == 1
    assert "damaged" in capsys.readouterr().out
    assert path.read_bytes() == data


def test_a_key_is_needed_to_verify(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(path, b"secret")
    key = tmp_path / "key"
    key.write_bytes(b"secret")
    assert main(["session", str(path)]) == 1
    assert main(["session", str(path), "--key-file", str(key)]) == 0
    assert main(["session", str(path), "--key-file", str(tmp_path / "none")]) == 2
    assert "can't be read" in capsys.readouterr().err


def test_there_is_none(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["session", str(path)]) == 2
    assert "there is no session" in capsys.readouterr().err


def test_long_sessions_show_their_end(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conversation = Conversation.new()
    with Session.create(path, conversation):
        for number in range(30):
            conversation.push(Message.assistant(f"message {number}!"))
    assert main(["session", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "message 29!" in shown
    assert "message 9!" not in shown
    assert "10 earlier messages" in shown
    assert main(["session", str(path), "--last", "0"]) == 0
    assert "message 9!" in capsys.readouterr().out
