"""Proves that entries hold digests and lengths, and no word of a prompt, an argument or a result.

Reading back is in tests/laws/test_chain.py. Mutation that this file catches: an argument, a result or a message that is
written into the journal.
"""

from __future__ import annotations

from interlock import Call, Conversation, MemoryJournal, ToolResult
from interlock.model.messages import Image, Message
from tests.worlds import StepsWorld, guard_in


def test_no_bodies_in_the_journal() -> None:
    world = StepsWorld(MemoryJournal())
    conversation = Conversation.user("typed secret-value write to bob@secret-value.example")
    conversation.say("pasted secret-value", pasted=True)
    conversation.push(Message.user("shown secret-value", Image("image/png", b"secret-value")))
    guard = guard_in(world, conversation)
    guard.admit("admitted secret-value", labels=["untrusted:memory"], source="notes/7")
    ticket = guard.propose(
        Call("read_mail", {"folder": "secret-value"}, "a"),
        Call("fetch", {"url": "http://secret-value.example/secret-value"}, "b"),
        Call("send", {"to": "eve@secret-value.example", "body": "secret-value"}, "c"),
        Call("send", {"to": "secret-value\0"}, "d"),
        Call("secret-value!", {}, "e"),
        Call("read_note", {"x": "secret-value"}, "f"),
    )
    guard.observe(ticket, "a", ToolResult("result secret-value"))
    guard.observe(ticket, "f", ValueError("error secret-value"))
    bodies = b"\n".join(sealed.body for sealed in world.memory.entries(conversation.id))
    assert b"secret-value" not in bodies
    assert bodies.count(b'"kind":"decided"') == 6


def test_the_length_and_the_digest_tell_contents_apart() -> None:
    found = []
    for text in ("a", "b", "\u00e9", "a\ud800", "a?"):
        conversation = Conversation.new()
        conversation.say(text)
        found.append(conversation._waiting[-1])
    assert len({entry.content for entry in found}) == 5
    assert [entry.length for entry in found] == [1, 1, 1, 2, 2]
