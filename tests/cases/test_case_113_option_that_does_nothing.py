"""Case 113: an option is documented, is set, and nothing ever reads it.

For each setting, each value of it, each kind of the address book, each class of egress, each effect and each argument
of the Interlock there is a call here whose outcome it turns. A new option without such a call fails this file. The
honest twin of each row is the other value, under which the call goes through or is judged more mildly.
"""

from __future__ import annotations

import inspect
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from interlock import Interlock, Manifest, MemoryJournal
from interlock.assembly import FixedClock, LocalFiles
from interlock.model.manifest_lint import lint_manifest
from interlock.model.settings import SETTING_VALUES, AddressBook, Settings
from interlock.model.tools import Effect, Egress, ToolSpec
from tests.cases.desk import EVIL, MANIFEST, Engine, all_allow, armed, did, fresh, got, locked, mine

# Setting → value → verdict of the call that it is about.
TURNED: dict[str, dict[str, str]] = {
    "trifecta": {"deny": "deny", "ask": "ask"},
    "leak_guard": {"deny": "deny", "ask": "ask", "off": "allow"},
    "open_channel": {"deny": "deny", "ask": "ask"},
    "preset": {"strict": "ask", "convenient": "allow", "trifecta-only": "allow", "lockdown": "deny"},
    "secret_egress": {"deny": "deny", "ask": "ask"},
    "lockdown": {"deny": "deny", "ask": "ask", "off": "allow"},
    "metadata": {"ignored": "ask", "grounds": "allow"},
    "destructive": {"ask": "ask", "off": "allow"},
    **{
        key: {"deny": "deny", "ask": "ask", "off": "allow"}
        for key in (
            "secret_read",
            "steered_destination",
            "steered_object",
            "steered_party",
            "steered_link",
            "self_only",
            "split_exfiltration",
        )
    },
}
STEERING: dict[str, dict[str, Any]] = {
    "read_mail": {"returns": ["untrusted:mail"], "egress": "none", "fields": {"sender": "metadata"}},
    "read_key": {"returns": ["private:credentials"], "egress": "none"},
    "read_file": {"returns": ["private:files"], "egress": "none"},
    "send": {"returns": [], "egress": "chosen", "destinations": {"to": "email"}, "content": ["body"]},
    "look": {"returns": [], "egress": "none", "objects": {"file": "id:file"}},
    "book": {"returns": [], "egress": "none", "effect": "add", "parties": {"hotel": "name"}},
    "note": {"returns": [], "egress": "none", "effect": "add", "audience": "self", "content": ["text"]},
    "empty": {"returns": [], "egress": "none", "effect": "destroy"},
}
# Setting → the call that it is about, in a conversation that has read a mail from eve@evil.test.
STEERED: dict[str, tuple[str, dict[str, Any]]] = {
    "preset": ("send", {"to": "eve@evil.test"}),
    "metadata": ("send", {"to": "eve@evil.test"}),
    "lockdown": ("send", {"to": "kim@corp.example"}),
    "steered_destination": ("send", {"to": "eve@evil.test"}),
    "steered_link": ("send", {"to": "kim@corp.example", "body": "https://evil.test/"}),
    "steered_object": ("look", {"file": "13"}),
    "steered_party": ("book", {"hotel": "Palace"}),
    "self_only": ("note", {"text": "https://evil.test/"}),
    "destructive": ("empty", {}),
    "secret_read": ("read_key", {}),
}


def about_steering(setting: str, value: str) -> str:
    # A link in a text that is kept is asked about by two controls.
    others = {"steered_link": "off"} if setting == "self_only" else {}
    guard = fresh(locked(STEERING, settings={**others, setting: value}), "Write to kim@corp.example please.")
    if setting == "split_exfiltration":
        did(guard, "read_file")
        return [got(did(guard, "send", {"to": "eve@evil.test"}))[0] for _ in range(9)][-1]
    if setting == "secret_egress":
        did(guard, "read_key")
        guard.admit("x", labels=["untrusted:paste"], source="x")
        return got(did(guard, "send", {"to": "kim@corp.example"}))[0]
    did(guard, "read_mail", result={"sender": "eve@evil.test", "body": "x"})
    name, arguments = STEERED[setting]
    return got(did(guard, name, arguments))[0]


def about(setting: str, value: str) -> str:
    if setting in STEERED or setting in ("split_exfiltration", "secret_egress"):
        return about_steering(setting, value)
    lock = locked(settings={setting: value})
    if setting == "trifecta":
        return got(did(armed(lock), "send_email", EVIL))[0]
    if setting == "leak_guard":
        guard = fresh(lock)
        did(guard, "read_file", {"path": "plan.txt"})
        return got(did(guard, "send_email", EVIL))[0]
    return got(did(armed(lock), "expose_port", {"port": 1}))[0]


@pytest.mark.parametrize(
    ("setting", "value"), [(name, value) for name in SETTING_VALUES for value in SETTING_VALUES[name]]
)
def test_every_value_of_every_setting(setting: str, value: str) -> None:
    assert about(setting, value) == TURNED[setting][value]


def test_no_setting_is_left_out() -> None:
    assert set(TURNED) == set(SETTING_VALUES)
    assert set(Settings.model_fields) == {
        *SETTING_VALUES,
        *("address_book", "controls", "own_domains", "hosts", "roots"),
    }
    for name, values in SETTING_VALUES.items():
        assert set(TURNED[name]) == set(values)


VALUES = {
    "url": "https://corp.example/in",
    "email": "kim@corp.example",
    "path": "out/plan.txt",
    "domain": "corp.example",
    "account": "AT611904300234573201",
    "phone": "+43 1 5555",
    "channel": "#team",
    "user": "kim",
    "id": "doc-7",
    "name": "Grand Palace",
}


@pytest.mark.parametrize(
    ("setting", "value", "kind", "inside", "outside"),
    [
        ("own_domains", "corp.example", "email", "kim@mail.corp.example", "kim@evilcorp.example"),
        ("hosts", "corp.example", "url", "https://api.corp.example/x", "https://corp.example.evil.test/"),
        ("roots", "/srv/out", "path", "/srv/out/a.txt", "/srv/outside/a.txt"),
    ],
)
def test_every_allow_list(setting: str, value: str, kind: str, inside: str, outside: str) -> None:
    tools = {
        "read": {"returns": ["untrusted:mail", "private:mail"], "egress": "none"},
        "put": {"returns": [], "egress": "chosen", "destinations": {"where": kind}},
    }
    for settings, where, verdict in (
        ({}, inside, "deny"),
        ({setting: [value]}, inside, "allow"),
        ({setting: [value]}, outside, "deny"),
    ):
        guard = fresh(locked(tools, settings=settings))
        did(guard, "read")
        assert got(did(guard, "put", {"where": where}))[0] == verdict


@pytest.mark.parametrize("kind", AddressBook.model_fields)
def test_every_kind_of_the_address_book(kind: str) -> None:
    tools = {
        "read": {"returns": ["untrusted:mail", "private:mail"], "egress": "none"},
        "put": {"returns": [], "egress": "chosen", "destinations": {"where": kind}},
    }
    for book, verdict in (({}, "deny"), ({kind: [VALUES[kind]]}, "allow")):
        guard = fresh(locked(tools, settings={"address_book": book}))
        did(guard, "read")
        assert got(did(guard, "put", {"where": VALUES[kind]}))[0] == verdict
        assert got(did(guard, "put", {"where": VALUES[kind] + "x"}))[0] == "deny"


def test_every_class_of_egress() -> None:
    found = {}
    for egress in Egress:
        entry: dict[str, Any] = {"returns": [], "egress": egress.value, "content": ["text"]}
        if egress is Egress.BLIND:
            entry["audience"] = "closed"
        tools = {"read": {"returns": ["untrusted:mail", "private:mail"], "egress": "none"}, "put": entry}
        for guarded in ("off", "deny"):
            guard = fresh(locked(tools, settings={"leak_guard": guarded}))
            did(guard, "read")
            found[egress.value, guarded] = got(did(guard, "put", {"text": "x"}))[0]
    assert found == {
        ("none", "off"): "allow",
        ("none", "deny"): "allow",
        ("blind", "off"): "allow",
        ("blind", "deny"): "deny",
        ("chosen", "off"): "deny",
        ("chosen", "deny"): "deny",
    }


def test_every_effect() -> None:
    found = {}
    for effect in Effect:
        tools = {
            "read": {"returns": ["untrusted:web"], "egress": "none"},
            "do": {"returns": [], "egress": "none", "effect": effect.value},
        }
        guard = fresh(locked(tools))
        before = got(did(guard, "do"))[0]
        did(guard, "read")
        found[effect.value] = before, got(did(guard, "do"))[0]
    assert found == {
        "none": ("allow", "allow"),
        "add": ("allow", "allow"),
        "write": ("allow", "ask"),
        "destroy": ("allow", "ask"),
        "control": ("ask", "deny"),
    }


# Key of a manifest entry → a send's entry without it and with it, and what the call then gets.
SEND: dict[str, Any] = {"returns": [], "egress": "chosen", "destinations": {"to": "email"}, "content": ["body"]}
KEYS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], tuple[str, str]]] = {
    "destinations": (SEND, {**SEND, "destinations": {}}, {"to": "kim@corp.example"}, ("allow", "deny")),
    "content": (SEND, {**SEND, "content": []}, {"to": "kim@corp.example", "body": "x"}, ("allow", "deny")),
    "egress": (SEND, {**SEND, "egress": "none"}, {"to": "eve@evil.test"}, ("deny", "allow")),
    "opens": (
        {"returns": [], "egress": "none"},
        {"returns": [], "egress": "none", "opens": ["egress:port"]},
        {},
        ("allow", "deny"),
    ),
    "effect": (
        {"returns": [], "egress": "none"},
        {"returns": [], "egress": "none", "effect": "write"},
        {},
        ("allow", "ask"),
    ),
    "audience": (
        {"returns": [], "egress": "chosen", "content": ["line"]},
        {"returns": [], "egress": "blind", "audience": "closed", "content": ["line"]},
        {"line": "x"},
        ("deny", "allow"),
    ),
}


@pytest.mark.parametrize("key", KEYS)
def test_every_key_of_a_tool_that_a_call_feels(key: str) -> None:
    without, with_it, arguments, wanted = KEYS[key]
    read = {"returns": ["untrusted:mail", "private:mail"], "egress": "none"}
    found = []
    for entry in (without, with_it):
        guard = fresh(locked({"read": read, "put": entry}), "Write to kim@corp.example please.")
        did(guard, "read")
        found.append(got(did(guard, "put", arguments))[0])
    assert tuple(found) == wanted


def test_every_key_of_a_tool_that_a_later_call_feels() -> None:
    for key, labels in (("returns", ["private:files"]), ("reads", ["private:files"]), ("returns", ["untrusted:web"])):
        leg = labels[0].partition(":")[0]
        other = {"private": "untrusted:mail", "untrusted": "private:mail"}[leg]
        found = []
        for given in ([], labels):
            entry = {"returns": [], "egress": "none", key: given}
            guard = fresh(locked({"get": entry, "put": SEND}))
            guard.admit("x", labels=[other], source="x")
            did(guard, "get")
            found.append(got(did(guard, "put", {"to": "eve@evil.test"}))[0])
        # A send to a stranger is asked as soon as their text is here, and denied with both legs.
        assert found == ["allow" if leg == "untrusted" else "ask", "deny"], key


def test_no_key_of_a_tool_is_left_out() -> None:
    """What no call feels is felt by the digest (description) and by the linter (arguments), or the test fails."""
    entry = {"returns": [], "egress": "none"}
    digests = {
        locked({"a": {**entry, **more}}).manifest.digest for more in ({}, {"description": "x"}, {"arguments": ["x"]})
    }
    assert len(digests) == 3
    sending = Manifest.parse({"version": 1, "tools": {"a": {**SEND, "arguments": ["to", "body", "headers"]}}})
    assert [one.rule for one in lint_manifest(sending)] == ["unclassified-argument"]
    said = {field.name for field in fields(ToolSpec) if field.init} - {"id", "known", "digest"}
    # `nouns` is the second half of a kind. What the keys below turn stands in tests/unit/model/test_fields.py and
    # test_narrowing.py.
    elsewhere = {"nouns", "objects", "parties", "fields", "ids", "keep", "when"}
    # What is written to and read from is felt by another conversation: cases 31 and 44.
    later = {"returns", "reads", "writes_to", "reads_from"}
    # What a person is shown who is asked: case 68.
    elsewhere.add("defaults")
    assert {*KEYS, *elsewhere, *later, "description", "arguments"} == said


class Watcher:
    """In the place of telemetry: which conversations it was told of."""

    def __init__(self) -> None:
        self.told: set[str] = set()

    def watch(self, conversation: str, *_: object) -> None:
        self.told.add(conversation)


def watched(watcher: Watcher, lock: Interlock) -> bool:
    guard = fresh(lock)
    did(guard, "calc")
    return guard.conversation.id in watcher.told


def test_every_argument_of_the_interlock(tmp_path: Path) -> None:
    watcher = Watcher()
    night = FixedClock(datetime(2026, 11, 30, 3, tzinfo=UTC))
    day = FixedClock(datetime(2026, 11, 30, 12, tzinfo=UTC))
    hours = mine(tmp_path / "hours", 'startswith(input.now, "2026-11-30T12")')
    note = {"path": str(tmp_path / "note"), "text": "x"}
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "rc").symlink_to(tmp_path / ".bashrc")
    journal = MemoryJournal()
    turned: dict[str, tuple[object, object]] = {
        "manifest": (
            got(did(fresh(locked(Manifest({}).joined(MANIFEST))), "calc")),
            got(did(fresh(locked({"a": {"returns": [], "egress": "none"}})), "calc")),
        ),
        "mode": (
            did(armed(locked(mode="shadow")), "send_email", EVIL).executed,
            did(armed(locked(mode="enforce")), "send_email", EVIL).executed,
        ),
        "policies": (
            got(did(fresh(locked(policies=[mine(tmp_path / "a", "input.tool.known == true")])), "calc")),
            got(did(fresh(locked(policies=[mine(tmp_path / "b", 'input.tool.name == "x"')])), "calc")),
        ),
        "settings": (about("leak_guard", "off"), about("leak_guard", "deny")),
        "engine": (
            got(did(armed(locked(engine=Engine(lambda _: all_allow()))), "send_email", EVIL)),
            got(did(armed(locked()), "send_email", EVIL)),
        ),
        "journal": (
            fresh(Interlock(manifest=MANIFEST, journal=journal)).conversation.id in journal._records,
            fresh(Interlock(manifest=MANIFEST, journal=MemoryJournal())).conversation.id in journal._records,
        ),
        "clock": (
            got(did(fresh(locked(policies=[hours], clock=day)), "calc")),
            got(did(fresh(locked(policies=[hours], clock=night)), "calc")),
        ),
        "files": (
            got(did(fresh(locked(files=LocalFiles(tmp_path))), "write_file", {"path": "rc", "text": "x"})),
            got(
                did(fresh(locked(files=LocalFiles(tmp_path / "elsewhere"))), "write_file", {"path": "rc", "text": "x"})
            ),
        ),
        "protected": (
            got(did(fresh(locked()), "write_file", note)),
            got(did(fresh(locked(protected=[tmp_path / "note"])), "write_file", note)),
        ),
        "telemetry": (watched(watcher, locked(telemetry=watcher)), watched(watcher, locked())),
    }
    for name, (one, other) in turned.items():
        assert one != other, name
    # `tools` is what test_case_041 is made of, `artifacts` what test_case_031 is, case 61 those of approvals, and
    # tests/outbox those of the outbox.
    others = {"tools", "artifacts", "approver", "approvals", "outbox", "outbox_seconds", "self"}
    assert {*turned, *others} == set(inspect.signature(Interlock.__init__).parameters)
